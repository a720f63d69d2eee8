//! What a job is: from the transformations of a program to a graph that can be scheduled.
//!
//! No threads, no files, no clock. A program appends to a [`TransformationGraph`]; [`plan`] makes a
//! [`JobGraph`] of it in steps, a file each:
//!
//! ```text
//!  TransformationGraph      what the program wrote, append only
//!        | translate        what the sinks need; complete caches cut their upstream (cache_rules)
//!        v
//!  StreamGraph              uids, parallelisms and partitioners settled (validate, mode)
//!        | backlog_rules    how each input is treated: direct, sorted, combined
//!        | chain            neighbours that run in one task
//!        | exchange         pipelined or blocking
//!        | regions          what is scheduled together, in order
//!        v
//!  JobGraph                 vertices, edges, regions, caches; explained as text
//! ```
//!
//! The payloads are opaque: `N` of an operator says only its [`OperatorAttributes`], `E` of an
//! edge says nothing. Left out on purpose: what operators do, where tasks run, how long a cached
//! data set is kept.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod assemble;
mod attributes;
mod backlog_rules;
mod cache;
mod cache_rules;
mod chain;
mod diagram;
mod durable;
mod error;
mod exchange;
mod explain;
mod job_graph;
mod mode;
mod partitioner;
mod plan;
mod reach;
mod regions;
mod rings;
mod settings;
mod stream_graph;
mod transformation;
mod translate;
mod uid;
mod validate;

pub use attributes::{BacklogEmission, ChainingPolicy, Describe, OperatorAttributes, OperatorKind};
pub use cache::{CacheDecision, CacheMark, CachePlan};
pub use durable::Durability;
pub use error::PlanError;
pub use job_graph::{
    ChainLink, ChainNode, EdgeSource, EdgeTarget, Exchange, InputTreatment, JobEdge, JobGraph,
    JobVertex, PersistentOutput, ResolvedMode,
};
pub use partitioner::{OutputTag, Partitioner};
pub use plan::plan;
pub use settings::{BatchState, PlanSettings};
pub use transformation::{InputEdge, Transformation, TransformationGraph};
