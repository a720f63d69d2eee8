//! Slackwater: a typed stream and batch engine. One job reads its history like a batch job and its
//! live data like a stream (FLIP-327), and intermediate results are kept between jobs (FLIP-205).
//!
//! ```
//! use slackwater::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let env = StreamExecutionEnvironment::new();
//! let counts = env
//!     .from_collection(["slack water", "the tide turns", "slack"])
//!     .flat_map(|line: &str, out| line.split(' ').for_each(|word| out.collect(word.to_owned())))
//!     .key_by(String::clone)
//!     .count()
//!     .execute_and_collect()?;
//! assert_eq!(counts.top(1), [("slack".to_owned(), 2)]);
//! # Ok(())
//! # }
//! ```
//!
//! A program builds a graph of transformations on a [`StreamExecutionEnvironment`]; nothing runs
//! until [`execute`](StreamExecutionEnvironment::execute) or one of its kin. Bounds stand only where
//! bytes move: [`Record`] where records cross tasks, [`Key`] where they are grouped.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate self as slackwater;

mod aggregates;
mod async_stream;
#[cfg(doctest)]
mod book;
mod broadcast;
mod cached_data_stream;
mod cluster;
mod collected;
mod connected_data_streams;
mod connected_streams;
mod data_stream;
mod decimal;
mod environment;
mod error;
mod fingerprint;
mod job;
mod joins;
mod keyed_closures;
mod keyed_stream;
mod named_cache;
mod partition_window;
pub mod prelude;
mod signals;
mod sink;
mod source;
mod stream_methods;
pub mod testing;
mod tolerant;
mod upstream;
mod window_result;
mod windowed_stream;

pub use aggregates::{Count, Extreme, FoldAggregate, Reduce, Sum, SumError};
pub use broadcast::{BroadcastConnectedStream, BroadcastStream, KeyedBroadcastConnectedStream};
pub use cached_data_stream::CachedDataStream;
pub use cluster::Cluster;
pub use collected::Collected;
pub use connected_data_streams::ConnectedDataStreams;
pub use connected_streams::{Connect, ConnectedStreams};
pub use data_stream::DataStream;
pub use decimal::{Decimal, DecimalError};
pub use environment::{EnvironmentBuilder, EnvironmentConfig, StreamExecutionEnvironment};
pub use error::{Error, Result};
pub use job::{JobHandle, JobStatus};
pub use joins::{IntervalJoined, JoinedStreams, TimeOffset, WindowedJoin};
pub use keyed_closures::StatefulStream;
pub use keyed_stream::KeyedStream;
pub use sink::{CsvFiles, FileSinkError, JsonFiles, TextFiles};
pub use source::{
    BadRecord, CaptureError, CapturedTable, Change, ChangeCaptureSource, ChangeKind, ChangeOf,
    CsvSource, FileError, FileSplit, JsonSource, KeyRange, LineCollector, LineRecords, LogEntry,
    LogPoll, LogReader, LogReaderOf, OnBadRecord, RowReader, TcpError, TcpSource, TextSource,
};
pub use tolerant::{Attempted, TolerantKeyedStream, TolerantStream};
pub use window_result::WindowResult;
pub use windowed_stream::WindowedStream;

pub use derive::{Key, Record};
pub use element::{
    Batch, ByteSize, Clock, CodecError, CompactString, ConfigError, Configuration, DataSetId,
    DurationExt, Generation, Key, KeyHash, ManualClock, OptionValue, OrderedF32, OrderedF64,
    Record, Schema, Serde, SubtaskIndex, TaskManagerId, Timestamp,
};
pub use graph::{BacklogEmission, ResolvedMode};
pub use runtime::checkpoint::newest_checkpoint;
pub use runtime::cluster::{
    DataSetListing, Deletion, Fingerprint, JobProgress, NamedCache, OperatorProgress,
    ReleaseFailure, RequestId,
};
pub use runtime::error::{JobError, Suspension, TaskError, TaskFailure};
pub use runtime::operator::aggregate::Aggregator;
pub use runtime::operator::async_function::{AsyncOrder, AsyncSettings, AsyncTimeout};
pub use runtime::operator::broadcast::{
    BroadcastContext, BroadcastProcessFunction, ReadOnlyContext,
};
pub use runtime::operator::co_process::{KeyedCoProcessFunction, TwoInputBacklog};
pub use runtime::operator::connected::CoProcessFunction;
pub use runtime::operator::either::Either;
pub use runtime::operator::flat_map::Collector;
pub use runtime::operator::keyed_broadcast::{
    KeyedBroadcastContext, KeyedBroadcastProcessFunction, KeyedReadOnlyContext,
};
pub use runtime::operator::keyed_context::{KeyedContext, Timers};
pub use runtime::operator::process::KeyedProcessFunction;
pub use runtime::operator::process_function::{ProcessContext, ProcessFunction, RuntimeContext};
pub use runtime::operator::side_output::SideTag;
pub use runtime::operator::timestamps::{WatermarkGenerator, WatermarkStrategy};
pub use runtime::operator::tolerant::DeadLetter;
pub use runtime::operator::window::{
    Contents, ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger, CountEvictor,
    CountTrigger, DeltaEvictor, DeltaTrigger, EndOfStreamTrigger, EndOfStreamWindows,
    EventTimeTrigger, Evictor, GlobalWindows, NeverTrigger, ProcessWindowFunction,
    ProcessingTimeTrigger, PurgingTrigger, SessionEventTime, SessionProcessingTime,
    SlidingEventTime, SlidingProcessingTime, TimeEvictor, Trigger, TriggerContext, TriggerResult,
    TumblingEventTime, TumblingProcessingTime, Window, WindowAssigner, WindowError, WindowTime,
};
pub use runtime::report::{CacheOutcome, CacheReport, JobReport, OperatorReport};
pub use runtime::session::PausedWorker;
pub use runtime::sink::{Sink, SinkContext, SinkWriter};
pub use runtime::source::alignment::WatermarkAlignment;
pub use runtime::source::collection::CollectionSource;
pub use runtime::source::generator::GeneratorSource;
pub use runtime::source::hybrid::HybridSource;
pub use runtime::source::scripted::{ScriptStep, ScriptedSource};
pub use runtime::source::{
    Boundedness, EnumeratorContext, ReaderContext, ReaderPoll, Source, SourceReader, SourceSides,
    SplitEnumerator, StaticSplits,
};
pub use state::{
    AggregateFunction, AggregatingState, BroadcastRead, BroadcastState, BroadcastWrite, KeyedState,
    KeyedStateBackend, ListState, MapState, ReducingState, StateAccess, StateError, TtlClock,
    TtlConfig, TtlUpdate, TtlVisibility, ValueState,
};

/// Every option, by the field's name.
pub mod options {
    use std::fmt::Write;

    pub use element::option_table::*;

    /// All options as text, by key: what a value looks like, the default, and what it does.
    #[must_use]
    pub fn describe() -> String {
        let mut text = String::new();
        for option in element::all_options() {
            let (key, expected, doc) = (option.key, option.expected, option.doc.trim());
            let default = (option.default)();
            let default = if default.is_empty() { "none" } else { &default };
            // Writing to a string does not fail.
            let _ = writeln!(text, "{key}\n    {expected}; default: {default}\n    {doc}");
        }
        text
    }
}

/// The seam for a store of keyed state of the user's own.
pub mod store {
    pub use state::{
        BulkLoad, ByteStore, ByteStoreFactory, MemoryByteStore, StoreContext, StoreFailure,
        StoreSnapshot, StoreTables, Visit, WriteBatch,
    };
}

/// The seam for a shuffle of the user's own.
pub mod shuffle {
    pub use element::{DirectoryStore, SubpartitionIndex};
    pub use shuffle::{
        Damage, FileShuffle, FinishedPartition, PartitionDescriptor, PartitionIdentity,
        ResultPartitionReader, ResultPartitionWriter, ShuffleError, ShuffleService,
    };
}

/// The engine in one seeded thread, for tests of interleavings and faults.
#[cfg(feature = "sim")]
pub mod sim {
    pub use element::{FaultPlan, FaultyStore, Operation};
    pub use runtime::executor::Turn;
    pub use runtime::sim::{Simulation, TraceEntry};
}

#[doc(hidden)]
pub mod __private {
    //! What the derives name.
    pub use element::__private::*;
}

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
