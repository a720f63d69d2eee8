//! Errors as programs and functions pass them.

/// Any error, with its causes: what a user's function returns, and what `main` may.
///
/// Made from every standard error by `?`; [`downcast_ref`](anyhow::Error::downcast_ref) finds the
/// typed one within, such as [`JobError`](crate::JobError). Printed by `main` as one paragraph.
pub use anyhow::Error;

/// A result with any error.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;
