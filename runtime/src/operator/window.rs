//! Windows: records of one key grouped by time or number, and what comes out of each group.
//!
//! ```text
//!   record -> assigner -> windows -> body (accumulator or list, by namespace)
//!                                      |
//!             trigger: fire? purge? <--+--> timers: the window's end, its clean-up
//!                                      |
//!                                      '--> result, stamped with the window's last instant
//! ```
//!
//! A window is a keyed function as any other, so it runs live, in batch and over a sorted backlog
//! alike; its namespace is its bounds. What is late is asked of the watermark that the operator shows,
//! which during a backlog phase is the one from before it (decision D12).
//!
//! Sliding windows of aggregates go by panes ([`SlidingPanes`]), so that overlap costs nothing a
//! record.

mod assigner;
mod body;
mod bounds;
mod evictor;
mod folding;
mod grid;
mod operator;
mod panes;
mod session;
mod trigger;
mod triggers;

pub use assigner::{
    Aligned, EndOfStreamWindows, GlobalWindows, SessionEventTime, SessionProcessingTime,
    SlidingEventTime, SlidingProcessingTime, TumblingEventTime, TumblingProcessingTime,
    WindowAssigner, WindowError, WindowTime,
};
pub use body::{AggregateBody, ListBody, ProcessWindowFunction, WindowBody, WindowClosure};
pub use bounds::Window;
pub use evictor::{Contents, CountEvictor, DeltaEvictor, Evictor, TimeEvictor};
pub use folding::{PartFold, Parts};
pub use grid::PaneGrid;
pub use operator::{WindowOperator, WindowSettings};
pub use panes::SlidingPanes;
pub use trigger::{Trigger, TriggerContext, TriggerResult};
pub use triggers::{
    ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger, CountTrigger, DeltaTrigger,
    EndOfStreamTrigger, EventTimeTrigger, NeverTrigger, ProcessingTimeTrigger, PurgingTrigger,
};

/// The tag of the side output that records go to which are too late for every window.
pub const LATE_RECORDS: &str = "late records";
