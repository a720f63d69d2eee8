//! What goes wrong with state, and with the store beneath it.
//!
//! Every error names the state or the store's operation. Errors of snapshots are in
//! [`crate::SnapshotError`], which [`StateError`] carries.

use element::{CodecError, SchemaError};

use crate::SnapshotError;

/// A byte store that could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("state store cannot {operation}")]
pub struct StoreFailure {
    /// What was tried: `get`, `write`, ...
    pub operation: &'static str,
    /// What the store said.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl StoreFailure {
    /// A failure of `operation`.
    pub fn new(
        operation: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { operation, source: source.into() }
    }
}

/// Why keyed state could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Two handles give one name to different things.
    #[error("state `{state}` is declared as {declared}, and as {again}")]
    Redeclared {
        /// The state's name.
        state: String,
        /// Kind and type of the first declaration.
        declared: String,
        /// Kind and type of this one.
        again: String,
    },
    /// Two names share an id; one of them must be changed.
    #[error("states `{first}` and `{second}` share an id: one needs another name")]
    NameClash {
        /// The state declared first.
        first: String,
        /// The other.
        second: String,
    },
    /// No key is current: the operator is not keyed, or nothing has set one.
    #[error("state `{state}` is used without a current key")]
    NoKey {
        /// The state's name.
        state: String,
    },
    /// Bytes in the store are not a value of the state's type.
    #[error("state `{state}` holds bytes that are no value of its type")]
    Decode {
        /// The state's name.
        state: String,
        /// What is wrong with them.
        #[source]
        source: CodecError,
    },
    /// A restored state was written with a type that cannot be read as the program's.
    #[error("state `{state}` cannot be restored")]
    Schema {
        /// The state's name.
        state: String,
        /// Field, old and new type.
        #[source]
        source: SchemaError,
    },
    /// A restored state has another kind than the program's.
    #[error("state `{state}` was written as {written}, and is declared as {declared}")]
    KindChanged {
        /// The state's name.
        state: String,
        /// The kind in the snapshot.
        written: String,
        /// The kind in the program.
        declared: String,
    },
    /// A key came in sorted input that lies before the current one.
    #[error("a key with hash {hash:016x} comes out of order in sorted input")]
    OutOfOrder {
        /// The key's hash.
        hash: u64,
    },
    /// The backend cannot do this.
    #[error("{backend} state does not support {what}")]
    NotSupported {
        /// Which backend.
        backend: &'static str,
        /// What was asked.
        what: &'static str,
    },
    /// A snapshot could not be written or read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The store beneath failed.
    #[error("state could not be kept")]
    Store(#[from] StoreFailure),
}
