//! Every option there is. Flink's own keys where Flink has the option, ours otherwise.

use std::time::Duration;

use super::values::named_values;
use super::{ConfigOption, OptionEntry, OptionValue};
use crate::ByteSize;

named_values! {
    /// How a job runs (FLIP-134).
    RuntimeMode: "`streaming`, `batch` or `automatic`" {
        /// Record by record, with checkpoints; unbounded input allowed.
        Streaming = "streaming",
        /// Stage by stage over bounded input.
        Batch = "batch",
        /// Batch if and only if all sources are bounded.
        Automatic = "automatic",
    }
}

named_values! {
    /// How tasks of a batch job exchange data (FLIP-148).
    BatchShuffleMode: "`all-exchanges-blocking` or `all-exchanges-pipelined`" {
        /// Through files; stages run one after the other.
        AllExchangesBlocking = "all-exchanges-blocking",
        /// Through channels; all stages run at once.
        AllExchangesPipelined = "all-exchanges-pipelined",
    }
}

named_values! {
    /// Whether a keyed operator sorts its backlog (FLIP-327).
    BacklogStrategy: "`auto`, `sort` or `stream`" {
        /// By the cost of the state and the number of keys.
        Auto = "auto",
        /// Always where it is allowed.
        Sort = "sort",
        /// Never: record by record, as live records.
        Stream = "stream",
    }
}

named_values! {
    /// Where keyed state lives.
    StateBackendKind: "`heap`, `disk` or `rocksdb`" {
        /// Typed values in memory.
        Heap = "heap",
        /// On disk, in pure Rust.
        Disk = "disk",
        /// In RocksDB (feature `rocksdb`).
        Rocksdb = "rocksdb",
    }
}

named_values! {
    /// What a job outside of batch mode does with a stream to be cached (decision D1).
    CacheOutsideBatch: "`error` or `recompute`" {
        /// A plan error that names the stream.
        Error = "error",
        /// Runs uncached, and makes no cache.
        Recompute = "recompute",
    }
}

named_values! {
    /// What is made again when parts of a cached result are lost.
    CacheRecovery: "`job` or `partitions`" {
        /// The whole result, by the job that needs it (FLIP-205).
        Job = "job",
        /// The lost parts, by their producers and what those read; the whole where parts cannot be made
        /// by themselves. For functions that answer the same every time.
        Partitions = "partitions",
    }
}

named_values! {
    /// By what a named cache notices that a file of a source has changed.
    CacheSourceIdentity: "`metadata` or `content`" {
        /// By path, size and modification time.
        Metadata = "metadata",
        /// By path, size and a hash of its bytes, read at each planning.
        Content = "content",
    }
}

named_values! {
    /// What becomes of a cached result that finds no room in the budget, also when others are evicted.
    CacheOverBudget: "`recompute` or `error`" {
        /// It is not kept; the next job that needs it computes it again.
        Recompute = "recompute",
        /// The job that makes it fails, naming it.
        Error = "error",
    }
}

named_values! {
    /// How blocks are compressed.
    Compression: "`none`, `lz4` or `zstd`" {
        /// As they are.
        None = "none",
        /// lz4, raw where it would grow.
        Lz4 = "lz4",
        /// zstd level 1 (feature `zstd`), raw where it would grow.
        Zstd = "zstd",
    }
}

named_values! {
    /// How the runs of external sorts are compressed.
    SortCompression: "`none` or `lz4`" {
        /// As they are: a plain disk is faster than any compressor.
        None = "none",
        /// lz4, raw where it would grow.
        Lz4 = "lz4",
    }
}

named_values! {
    /// What a checkpoint promises.
    CheckpointingMode: "`exactly-once` or `at-least-once`" {
        /// Barriers are aligned.
        ExactlyOnce = "exactly-once",
        /// Barriers are not waited for.
        AtLeastOnce = "at-least-once",
    }
}

named_values! {
    /// What is done when a task fails.
    RestartStrategy: "`none`, `fixed-delay`, `exponential-delay` or `failure-rate`" {
        /// The job fails.
        None = "none",
        /// A number of attempts with a delay between them.
        FixedDelay = "fixed-delay",
        /// Delays that grow.
        ExponentialDelay = "exponential-delay",
        /// While there are not too many failures in an interval.
        FailureRate = "failure-rate",
    }
}

/// Declares the options and the list of all of them.
macro_rules! options {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $key:literal, $default:expr;)*) => {
        $(
            $(#[doc = $doc])*
            pub const $name: ConfigOption<$type> =
                ConfigOption { key: $key, default: || $default, doc: concat!($($doc),*) };
        )*

        pub(super) const ALL: &[OptionEntry] = &[
            $(OptionEntry {
                key: $key,
                default: || <$type as OptionValue>::format(&($name.default)()),
                doc: concat!($($doc),*),
                expected: <$type as OptionValue>::EXPECTED,
                parses: |text| <$type as OptionValue>::parse(text).is_some(),
            },)*
        ];
    };
}

options! {
    /// How jobs run: streaming, batch, or automatic (batch if and only if all sources are bounded).
    RUNTIME_MODE: RuntimeMode = "execution.runtime-mode", RuntimeMode::Automatic;
    /// Exchanges of batch jobs: through files, or through channels.
    BATCH_SHUFFLE_MODE: BatchShuffleMode = "execution.batch-shuffle-mode", BatchShuffleMode::AllExchangesBlocking;
    /// Subtasks of each operator that does not say otherwise.
    PARALLELISM: Option<u32> = "parallelism.default", None;
    /// Key groups of each operator: the bound of its parallelism, 1 to 32768.
    MAX_PARALLELISM: u32 = "pipeline.max-parallelism", 32_768;
    /// Whether neighbours run in one task where they can.
    OPERATOR_CHAINING: bool = "pipeline.operator-chaining.enabled", true;
    /// TaskManagers of this environment, each with a directory of its own.
    WORKERS: u32 = "taskmanager.number", 1;
    /// Slots of each TaskManager; unset: the cores or the job's highest parallelism.
    TASK_SLOTS: Option<u32> = "taskmanager.numberOfTaskSlots", None;
    /// Managed memory of each TaskManager, for sorters, state caches and store buffers; unset: 40 % of what the process may use.
    MANAGED_MEMORY: Option<ByteSize> = "taskmanager.memory.managed.size", None;
    /// Directories for temporary files, separated by commas; one that cannot be used is passed over; unset: the system's.
    TMP_DIRS: Option<String> = "io.tmp.dirs", None;
    /// Bytes that the sorters of one TaskManager may have in each temporary directory; unset: what there is.
    TMP_QUOTA: Option<ByteSize> = "taskmanager.tmp.quota", None;
    /// Memory of each sorted input.
    SORTED_INPUTS_MEMORY: ByteSize = "execution.sorted-inputs.memory", ByteSize::mib(128);
    /// Whether batch mode sorts keyed inputs; false is refused with the one-key state backend.
    SORTED_INPUTS: bool = "execution.sorted-inputs.enabled", true;
    /// Runs merged at once by external sorts.
    SORT_FAN_IN: u32 = "execution.sort.fan-in", 128;
    /// Compression of the runs that external sorts spill.
    SORT_COMPRESSION: SortCompression = "execution.sort.compression", SortCompression::None;
    /// Whether keyed operators sort their backlog.
    BACKLOG_STRATEGY: BacklogStrategy = "execution.backlog.strategy", BacklogStrategy::Auto;
    /// Whether what sorters have collected of a backlog is stored in checkpoints: a crash in it then reads again what came since the last one.
    BACKLOG_DURABLE: bool = "execution.backlog.durable", false;
    /// A source whose watermark lags more than this behind the clock is in backlog; unset: off (FLIP-328).
    BACKLOG_WATERMARK_LAG: Option<Duration> = "pipeline.backlog.watermark-lag-threshold", None;
    /// Time between checkpoints; unset: none.
    CHECKPOINT_INTERVAL: Option<Duration> = "execution.checkpointing.interval", None;
    /// Time between checkpoints while a source is in backlog; 0: none then, and backlogs are sorted; unset: the normal interval (FLIP-309).
    CHECKPOINT_INTERVAL_DURING_BACKLOG: Option<Duration> = "execution.checkpointing.interval-during-backlog", None;
    /// What checkpoints promise.
    CHECKPOINT_MODE: CheckpointingMode = "execution.checkpointing.mode", CheckpointingMode::ExactlyOnce;
    /// Time after which a checkpoint that is not complete is given up.
    CHECKPOINT_TIMEOUT: Duration = "execution.checkpointing.timeout", Duration::from_secs(600);
    /// Least time between the end of a checkpoint and the start of the next.
    CHECKPOINT_MIN_PAUSE: Duration = "execution.checkpointing.min-pause", Duration::ZERO;
    /// Checkpoints under way at once.
    CHECKPOINT_MAX_CONCURRENT: u32 = "execution.checkpointing.max-concurrent-checkpoints", 1;
    /// Failed checkpoints in a row after which the job fails.
    CHECKPOINT_TOLERABLE_FAILURES: u32 = "execution.checkpointing.tolerable-failed-checkpoints", 0;
    /// Completed checkpoints kept.
    CHECKPOINTS_RETAINED: u32 = "execution.checkpointing.num-retained", 1;
    /// Whether the last checkpoint outlives a job that is cancelled.
    CHECKPOINT_RETAIN_ON_CANCEL: bool = "execution.checkpointing.externalized-checkpoint-retention", false;
    /// Directory of checkpoints; unset: a temporary one.
    CHECKPOINT_DIR: Option<String> = "execution.checkpointing.dir", None;
    /// A checkpoint or savepoint to start from.
    SAVEPOINT_PATH: Option<String> = "execution.savepoint.path", None;
    /// Whether state of operators that the program no longer has is left out on restore.
    ALLOW_NON_RESTORED_STATE: bool = "execution.savepoint.ignore-unclaimed-state", false;
    /// Where keyed state lives in streaming mode.
    STATE_BACKEND: StateBackendKind = "state.backend.type", StateBackendKind::Heap;
    /// Keys held by the write-back cache in front of a disk store; unset: 1 in sorted backlog, off otherwise (FLIP-325).
    STATE_CACHE_ENTRIES: Option<u64> = "state.backend.cache.max-entries-num", None;
    /// Memory of a disk store's own caches.
    STATE_STORE_CACHE: ByteSize = "state.backend.store-cache.size", ByteSize::mib(64);
    /// Timers of each kind that a subtask keeps in memory; those due later lie in a store beside its state, of the same kind, of a job in memory on disk.
    STATE_TIMERS_IN_MEMORY: u64 = "state.timers.max-in-memory-num", 1_000_000;
    /// Whether sorted writes are ingested as whole files.
    STATE_BULK_LOAD: bool = "state.backend.bulk-load.enabled", true;
    /// What a job outside of batch mode does with a stream to be cached.
    CACHE_OUTSIDE_BATCH: CacheOutsideBatch = "execution.cache.outside-batch", CacheOutsideBatch::Error;
    /// Directory of named caches, which stay when the program ends; unset: there are none.
    CACHE_DIR: Option<String> = "execution.cache.dir", None;
    /// By what named caches notice that a source's file has changed.
    CACHE_SOURCE_IDENTITY: CacheSourceIdentity = "execution.cache.source-identity", CacheSourceIdentity::Metadata;
    /// What is made again when parts of a cached result are lost: all of it, or those parts by their producers alone.
    CACHE_RECOVERY: CacheRecovery = "execution.cache.recovery", CacheRecovery::Job;
    /// Bytes that all caches of an environment may take; unset: no limit.
    CACHE_MAX_BYTES: Option<ByteSize> = "execution.cache.max-bytes", None;
    /// What becomes of a cached result that finds no room in the budget.
    CACHE_OVER_BUDGET: CacheOverBudget = "execution.cache.over-budget", CacheOverBudget::Recompute;
    /// Compression of cached results; zstd needs the feature `zstd`.
    CACHE_COMPRESSION: Compression = "execution.cache.compression", Compression::None;
    /// Compression of blocking exchanges; zstd needs the feature `zstd`.
    SHUFFLE_COMPRESSION: Compression = "execution.shuffle.compression", Compression::None;
    /// Consumers from which on a blocking exchange sorts instead of keeping a buffer a consumer.
    SHUFFLE_SORT_THRESHOLD: u32 = "taskmanager.network.sort-shuffle.min-parallelism", 64;
    /// Memory of a blocking exchange's writer.
    SHUFFLE_MEMORY: ByteSize = "taskmanager.memory.framework.batch-shuffle.size", ByteSize::mib(32);
    /// Batches that wait in a channel before its writer is held up.
    CHANNEL_BATCHES: u32 = "taskmanager.network.batches-per-channel", 8;
    /// Bytes, by estimate, that wait in a channel before its writer is held up.
    CHANNEL_BYTES: ByteSize = "taskmanager.network.bytes-per-channel", ByteSize::mib(4);
    /// What is done when a task fails; unset: fixed-delay with checkpoints or in batch mode, none otherwise.
    RESTART_STRATEGY: Option<RestartStrategy> = "restart-strategy.type", None;
    /// Restarts before the job fails.
    RESTART_ATTEMPTS: u32 = "restart-strategy.fixed-delay.attempts", 3;
    /// Time before a restart.
    RESTART_DELAY: Duration = "restart-strategy.fixed-delay.delay", Duration::from_millis(100);
    /// Time before the first restart.
    RESTART_INITIAL_BACKOFF: Duration = "restart-strategy.exponential-delay.initial-backoff", Duration::from_millis(100);
    /// Greatest time before a restart.
    RESTART_MAX_BACKOFF: Duration = "restart-strategy.exponential-delay.max-backoff", Duration::from_secs(60);
    /// Failures in an interval before the job fails.
    RESTART_MAX_FAILURES: u32 = "restart-strategy.failure-rate.max-failures-per-interval", 3;
    /// The interval in which failures are counted.
    RESTART_FAILURE_INTERVAL: Duration = "restart-strategy.failure-rate.failure-rate-interval", Duration::from_secs(60);
    /// Time between two heartbeats of a TaskManager.
    HEARTBEAT_INTERVAL: Duration = "heartbeat.interval", Duration::from_millis(500);
    /// Time without an answer to a heartbeat after which a TaskManager counts as lost.
    HEARTBEAT_TIMEOUT: Duration = "heartbeat.timeout", Duration::from_secs(50);
}
