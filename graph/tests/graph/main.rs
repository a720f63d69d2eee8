//! What the graph crate promises, through its public API.
//!
//! Plans are compared as text with `tests/plans/*.txt`; `UPDATE_GOLDEN=1` rewrites those.

mod backlog;
mod caches;
mod costs;
mod dags;
mod diagrams;
mod exchanges;
mod plans;
mod program;
mod refusals;
