//! [`CheckpointSettings`]: how often checkpoints are taken and what they promise, read once.

use std::time::Duration;

use element::option_table::{self, CheckpointingMode};
use element::{ConfigError, Configuration};

/// How often, and how strictly.
#[derive(Clone, Debug)]
pub struct CheckpointSettings {
    /// Time between checkpoints; `None`: none.
    pub interval: Option<Duration>,
    /// The same in backlog; `None`: as `interval`; zero: none.
    pub interval_during_backlog: Option<Duration>,
    /// What they promise.
    pub mode: CheckpointingMode,
    /// After so long they are given up.
    pub timeout: Duration,
    /// Least time from the end of one to the start of the next.
    pub min_pause: Duration,
    /// How many at once.
    pub max_concurrent: u32,
    /// Failures in a row that are borne.
    pub tolerable_failures: u32,
    /// Whether collected backlogs are stored, so that checkpoints go on while a source is in backlog.
    pub durable_backlog: bool,
}

impl CheckpointSettings {
    /// As the options say.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], also for an interval in backlog that is below the normal one and not 0 (K3).
    pub fn of(config: &Configuration) -> Result<Self, ConfigError> {
        let interval = config.get(&option_table::CHECKPOINT_INTERVAL)?;
        let in_backlog = config.get(&option_table::CHECKPOINT_INTERVAL_DURING_BACKLOG)?;
        if interval.is_some_and(|interval| interval.is_zero()) {
            return Err(ConfigError::Refused {
                key: option_table::CHECKPOINT_INTERVAL.key.to_owned(),
                reason: "0 is no interval: leave the option out for no checkpoints".to_owned(),
            });
        }
        if let (Some(interval), Some(in_backlog)) = (interval, in_backlog)
            && !in_backlog.is_zero()
            && in_backlog < interval
        {
            return Err(ConfigError::Refused {
                key: option_table::CHECKPOINT_INTERVAL_DURING_BACKLOG.key.to_owned(),
                reason: format!(
                    "{in_backlog:?} is below the normal interval of {interval:?}, and not 0"
                ),
            });
        }
        Ok(Self {
            interval,
            interval_during_backlog: in_backlog,
            mode: config.get(&option_table::CHECKPOINT_MODE)?,
            timeout: config.get(&option_table::CHECKPOINT_TIMEOUT)?,
            min_pause: config.get(&option_table::CHECKPOINT_MIN_PAUSE)?,
            max_concurrent: config.get(&option_table::CHECKPOINT_MAX_CONCURRENT)?.max(1),
            tolerable_failures: config.get(&option_table::CHECKPOINT_TOLERABLE_FAILURES)?,
            // The plan knows whether any backlog is.
            durable_backlog: false,
        })
    }
}
