//! The names that most programs need.

pub use crate::{
    Aggregator, Collector, DataStream, DurationExt, Error, JobReport, Key, KeyedContext,
    KeyedProcessFunction, KeyedStream, ListState, MapState, OrderedF64, Record, ReducingState,
    Result, SideTag, StreamExecutionEnvironment, Timestamp, ValueState, WatermarkStrategy, options,
};
