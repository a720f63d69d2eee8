//! The names that most programs need.

pub use crate::{
    Aggregator, Collector, DataStream, DurationExt, Error, JobReport, Key, KeyedContext,
    KeyedProcessFunction, KeyedStream, ListState, MapState, OrderedF64, Record, ReducingState,
    Result, SessionEventTime, SideTag, SlidingEventTime, StreamExecutionEnvironment, TimeOffset,
    Timestamp, TumblingEventTime, ValueState, WatermarkStrategy, Window, options,
};
