//! The job running: tasks, operators, the backlog switch, checkpoints, and the cluster in one process.
//!
//! In reading order: [`source`] and [`sink`] are the ends; [`operator`] is what stands between;
//! [`output`] joins them into chains; [`exchange`] and [`network`] join chains; [`task`] steps one
//! chain; [`backlog`] is the switch from history to live (FLIP-327); [`checkpoint`] makes it survive;
//! [`cluster`] runs jobs on workers; [`report`] says what happened.

#![forbid(unsafe_code)]

pub mod backlog;
pub mod checkpoint;
pub mod cluster;
pub mod context;
pub mod error;
pub mod events;
pub mod exchange;
pub mod executor;
pub mod factory;
pub mod metrics;
pub mod network;
pub mod nodes;
pub mod operator;
pub mod output;
pub mod report;
pub mod session;
#[cfg(feature = "sim")]
pub mod sim;
pub mod sink;
pub mod source;
pub mod stores;
pub mod task;
mod temporary;
pub mod testing;
pub mod user;

pub use error::{JobError, TaskError, TaskFailure};
pub use report::JobReport;
