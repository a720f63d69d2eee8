//! [`Setting`]: how a job runs: mode, store, parallelism, memory, checkpoints.
//!
//! The three modes read the same program: `Stream` record by record, `Mixed` with the history sorted
//! (FLIP-327), `Batch` as a bounded job.

use std::time::Duration;

use slackwater::options::{self, BacklogStrategy, RuntimeMode, StateBackendKind};
use slackwater::store::{ByteStore, StoreContext, StoreFailure};
use slackwater::{ByteSize, StreamExecutionEnvironment};

/// How the engine takes the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Record by record, as live records.
    Stream,
    /// As backlog: collected, then key by key over the state that live records use.
    Mixed,
    /// As a bounded job in stages.
    Batch,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Stream, Self::Mixed, Self::Batch];

    /// In lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Mixed => "mixed",
            Self::Batch => "batch",
        }
    }
}

/// Opens a store of one's own for a subtask.
pub type OpenStore = fn(&StoreContext) -> Result<Box<dyn ByteStore>, StoreFailure>;

/// Where keyed state lives. Of no matter in batch mode.
#[derive(Clone, Copy, Debug)]
pub enum Store {
    /// Typed values in memory.
    Heap,
    /// On disk, in pure Rust.
    Disk,
    /// In RocksDB.
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    /// One's own, by name.
    Own(&'static str, OpenStore),
}

impl Store {
    /// The stores of this build.
    pub const BUILT_IN: &[Self] = &[
        Self::Heap,
        Self::Disk,
        #[cfg(feature = "rocksdb")]
        Self::Rocksdb,
    ];

    /// As options name it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Disk => "disk",
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => "rocksdb",
            Self::Own(name, _) => name,
        }
    }
}

/// How a job runs.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How the history is taken.
    pub mode: Mode,
    /// Where state lives.
    pub store: Store,
    /// Subtasks of each operator.
    pub parallelism: u32,
    /// Memory of each sorter, in bytes; `None`: the engine's own (128 MiB).
    pub sort_memory: Option<u64>,
    /// Keys in the write-back cache; `None`: the engine's own.
    pub cache_entries: Option<u64>,
    /// Time between checkpoints outside of backlog; `None`: none.
    pub checkpoints: Option<Duration>,
    /// Directories for temporary files; `None`: the system's.
    pub directories: Option<String>,
}

impl Setting {
    /// At parallelism 2, checkpoints each ten seconds, all else at the engine's own.
    #[must_use]
    pub fn new(mode: Mode, store: Store) -> Self {
        Self {
            mode,
            store,
            parallelism: 2,
            sort_memory: None,
            cache_entries: None,
            checkpoints: Some(Duration::from_secs(10)),
            directories: None,
        }
    }

    /// An environment that runs so.
    #[must_use]
    pub fn environment(&self) -> StreamExecutionEnvironment {
        let builder = StreamExecutionEnvironment::builder();
        let (builder, kind) = match self.store {
            Store::Heap => (builder, StateBackendKind::Heap),
            Store::Disk => (builder, StateBackendKind::Disk),
            #[cfg(feature = "rocksdb")]
            Store::Rocksdb => (builder, StateBackendKind::Rocksdb),
            Store::Own(_, open) => (builder.state_store(open), StateBackendKind::Heap),
        };
        self.apply(builder.set(&options::STATE_BACKEND, kind)).build()
    }

    /// Sets the options of everything but the store.
    #[must_use]
    pub fn apply(&self, builder: slackwater::EnvironmentBuilder) -> slackwater::EnvironmentBuilder {
        let mode = match self.mode {
            Mode::Batch => RuntimeMode::Batch,
            Mode::Stream | Mode::Mixed => RuntimeMode::Streaming,
        };
        let mut builder = builder
            .set(&options::RUNTIME_MODE, mode)
            .set(&options::PARALLELISM, Some(self.parallelism))
            .set(&options::STATE_CACHE_ENTRIES, self.cache_entries)
            .set(&options::TMP_DIRS, self.directories.clone());
        if self.mode != Mode::Batch {
            builder = builder.set(&options::CHECKPOINT_INTERVAL, self.checkpoints);
        }
        if let Some(bytes) = self.sort_memory {
            builder = builder.set(&options::SORTED_INPUTS_MEMORY, ByteSize(bytes));
        }
        if self.mode == Mode::Mixed {
            builder = builder
                .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO))
                .set(&options::BACKLOG_STRATEGY, BacklogStrategy::Sort);
        }
        builder
    }
}
