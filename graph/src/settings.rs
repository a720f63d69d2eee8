//! The options that shape a plan, read once.
//!
//! Made by the api from a [`Configuration`] and the machine, or by a test by field; read by every
//! rule. Left out on purpose: options that matter only at run time.

use std::fmt;
use std::time::Duration;

use element::option_table::{
    self, BacklogStrategy, BatchShuffleMode, CacheOutsideBatch, RuntimeMode, StateBackendKind,
};
use element::{ByteSize, ConfigError, Configuration, DataSetId};

/// Where keyed state lives in batch mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BatchState {
    /// Only the state of the current key; needs sorted inputs (FLIP-140).
    #[default]
    OneKey,
    /// Where `state.backend.type` says, as in streaming.
    Configured,
}

/// What shapes a plan beside the program.
#[derive(Clone, Copy)]
pub struct PlanSettings<'a> {
    /// The mode asked for.
    pub mode: RuntimeMode,
    /// Subtasks of operators that do not say otherwise.
    pub default_parallelism: u32,
    /// Key groups of operators that do not say otherwise, 1 to 32768.
    pub max_parallelism: u32,
    /// Whether neighbours share a task where they can.
    pub chaining: bool,
    /// Exchanges of batch jobs.
    pub batch_shuffle_mode: BatchShuffleMode,
    /// Time between checkpoints; `None`: no checkpoints.
    pub checkpoint_interval: Option<Duration>,
    /// Time between checkpoints in backlog; zero: none then, and keyed backlogs may be sorted.
    pub interval_during_backlog: Option<Duration>,
    /// Whether keyed operators sort their backlog.
    pub backlog_strategy: BacklogStrategy,
    /// Whether sorted runs of a backlog survive a crash where they can.
    pub backlog_durable: bool,
    /// Where keyed state lives in streaming.
    pub state_backend: StateBackendKind,
    /// Where keyed state lives in batch mode.
    pub batch_state: BatchState,
    /// Whether keyed inputs are sorted in batch mode.
    pub sorted_inputs: bool,
    /// Memory of each sorted input.
    pub sorted_inputs_memory: ByteSize,
    /// What a job that may not make a cache does with a stream to be cached.
    pub cache_outside_batch: CacheOutsideBatch,
    /// Whether a data set is complete. Asked once for each mark of the program.
    pub available: &'a dyn Fn(DataSetId) -> bool,
}

impl Default for PlanSettings<'_> {
    /// The defaults of the options, parallelism 1, no data set.
    fn default() -> Self {
        Self {
            mode: RuntimeMode::Automatic,
            default_parallelism: 1,
            max_parallelism: 32_768,
            chaining: true,
            batch_shuffle_mode: BatchShuffleMode::AllExchangesBlocking,
            checkpoint_interval: None,
            interval_during_backlog: None,
            backlog_strategy: BacklogStrategy::Auto,
            backlog_durable: false,
            state_backend: StateBackendKind::Heap,
            batch_state: BatchState::OneKey,
            sorted_inputs: true,
            sorted_inputs_memory: ByteSize::mib(128),
            cache_outside_batch: CacheOutsideBatch::Error,
            available: &|_| false,
        }
    }
}

impl<'a> PlanSettings<'a> {
    /// What the options say. `cores` is the parallelism if no option sets one.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the value of an option does not parse.
    pub fn from_configuration(
        configuration: &Configuration,
        cores: u32,
        available: &'a dyn Fn(DataSetId) -> bool,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            mode: configuration.get(&option_table::RUNTIME_MODE)?,
            default_parallelism: configuration.get(&option_table::PARALLELISM)?.unwrap_or(cores),
            max_parallelism: configuration.get(&option_table::MAX_PARALLELISM)?,
            chaining: configuration.get(&option_table::OPERATOR_CHAINING)?,
            batch_shuffle_mode: configuration.get(&option_table::BATCH_SHUFFLE_MODE)?,
            checkpoint_interval: configuration.get(&option_table::CHECKPOINT_INTERVAL)?,
            interval_during_backlog: configuration
                .get(&option_table::CHECKPOINT_INTERVAL_DURING_BACKLOG)?,
            backlog_strategy: configuration.get(&option_table::BACKLOG_STRATEGY)?,
            backlog_durable: configuration.get(&option_table::BACKLOG_DURABLE)?,
            state_backend: configuration.get(&option_table::STATE_BACKEND)?,
            batch_state: BatchState::OneKey,
            sorted_inputs: configuration.get(&option_table::SORTED_INPUTS)?,
            sorted_inputs_memory: configuration.get(&option_table::SORTED_INPUTS_MEMORY)?,
            cache_outside_batch: configuration.get(&option_table::CACHE_OUTSIDE_BATCH)?,
            available,
        })
    }
}

impl fmt::Debug for PlanSettings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanSettings")
            .field("mode", &self.mode)
            .field("default_parallelism", &self.default_parallelism)
            .field("max_parallelism", &self.max_parallelism)
            .field("interval_during_backlog", &self.interval_during_backlog)
            .field("backlog_strategy", &self.backlog_strategy)
            .finish_non_exhaustive()
    }
}
