//! What is done when a task fails: whether to start again, and after what time.

use std::collections::VecDeque;
use std::time::Duration;

use element::option_table::{self, RestartStrategy};
use element::{ConfigError, Configuration};

/// A restart strategy with what it remembers of a job's failures.
#[derive(Debug)]
pub struct RestartPolicy {
    strategy: Strategy,
    failures: u32,
    recent: VecDeque<Duration>,
    backoff: Duration,
}

#[derive(Debug)]
enum Strategy {
    None,
    Fixed { attempts: u32, delay: Duration },
    Exponential { initial: Duration, most: Duration },
    Rate { most: u32, interval: Duration, delay: Duration },
}

impl RestartPolicy {
    /// As the options say; without a word: a fixed delay if the job can go on from somewhere.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if an option has no valid value.
    pub fn of(config: &Configuration, recoverable: bool) -> Result<Self, ConfigError> {
        let delay = config.get(&option_table::RESTART_DELAY)?;
        let chosen = config.get(&option_table::RESTART_STRATEGY)?;
        let fallback =
            if recoverable { RestartStrategy::FixedDelay } else { RestartStrategy::None };
        let strategy = match chosen.unwrap_or(fallback) {
            RestartStrategy::None => Strategy::None,
            RestartStrategy::FixedDelay => {
                Strategy::Fixed { attempts: config.get(&option_table::RESTART_ATTEMPTS)?, delay }
            }
            RestartStrategy::ExponentialDelay => Strategy::Exponential {
                initial: config.get(&option_table::RESTART_INITIAL_BACKOFF)?,
                most: config.get(&option_table::RESTART_MAX_BACKOFF)?,
            },
            RestartStrategy::FailureRate => Strategy::Rate {
                most: config.get(&option_table::RESTART_MAX_FAILURES)?,
                interval: config.get(&option_table::RESTART_FAILURE_INTERVAL)?,
                delay,
            },
        };
        Ok(Self { strategy, failures: 0, recent: VecDeque::new(), backoff: Duration::ZERO })
    }

    /// A failure at `now`: the time to wait before the next attempt, or `None` to give up.
    pub fn failed(&mut self, now: Duration) -> Option<Duration> {
        self.failures += 1;
        match &self.strategy {
            Strategy::None => None,
            Strategy::Fixed { attempts, delay } => (self.failures <= *attempts).then_some(*delay),
            Strategy::Exponential { initial, most } => {
                self.backoff =
                    if self.backoff.is_zero() { *initial } else { (self.backoff * 2).min(*most) };
                Some(self.backoff)
            }
            Strategy::Rate { most, interval, delay } => {
                self.recent.push_back(now);
                while self.recent.front().is_some_and(|then| *then + *interval < now) {
                    self.recent.pop_front();
                }
                (self.recent.len() <= *most as usize).then_some(*delay)
            }
        }
    }

    /// Failures so far.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
}
