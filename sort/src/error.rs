//! [`SortError`]: how a sort ends when it does not end well.

use element::{CodecError, StoreError};

/// Why a sort could not go on. Whatever it is, memory and files are given back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SortError {
    /// The cancel flag was raised.
    #[error("the sort is cancelled")]
    Cancelled,
    /// A file operation on a run failed.
    #[error("a sorted run cannot be kept")]
    Store(#[source] StoreError),
    /// There is no room for another run: the disk is full, or the limit on temporary data is reached.
    #[error("no room for temporary data")]
    NoRoom(#[source] StoreError),
    /// A run does not read back as it was written: cut, changed, or another one in its place.
    #[error("block {block} of sort run `{run}` is damaged: {what}")]
    Damaged {
        /// The run's file.
        run: String,
        /// The block, counted from 0.
        block: u64,
        /// What does not fit.
        what: &'static str,
        /// What the store said, if it noticed first.
        #[source]
        source: Option<StoreError>,
    },
    /// A run is gone.
    #[error("sort run `{run}` is missing")]
    Missing {
        /// The run's file.
        run: String,
        /// What the store said.
        #[source]
        source: StoreError,
    },
    /// A key or payload of four GiB or more.
    #[error("a record of {bytes} bytes is too long to sort")]
    TooLong {
        /// Bytes of key and payload.
        bytes: u64,
    },
    /// Bytes of a key or record do not decode: the sorted order stands, the value does not.
    #[error("a sorted record cannot be decoded")]
    Decode(#[from] CodecError),
    /// Runs cannot be sealed: the options do not make them durable.
    #[error("the sorter's runs are not durable")]
    NotDurable,
    /// The sorter has fewer records at its end than it was given, or more: a fault of its own, which is
    /// told in place of a result.
    #[error("the sorter has {found} records at the end of input, and was given {given}")]
    Lost {
        /// Records pushed, and those of the runs that it went on with.
        given: u64,
        /// Records that would be handed out.
        found: u64,
    },
    /// The sorter failed before and holds nothing any more.
    #[error("the sorter has failed before")]
    Failed,
}

impl SortError {
    /// Whether a limit on temporary data, or a full disk, stopped the sort.
    #[must_use]
    pub fn is_no_room(&self) -> bool {
        matches!(self, Self::NoRoom(_))
    }

    /// Whether a run was found damaged or missing.
    #[must_use]
    pub fn is_damaged_or_missing(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Missing { .. })
    }
}

impl From<StoreError> for SortError {
    fn from(error: StoreError) -> Self {
        if error.is_full() { Self::NoRoom(error) } else { Self::Store(error) }
    }
}

/// What is done for each record answers with a boxed error: nothing of its size is moved along.
impl From<Box<SortError>> for SortError {
    fn from(error: Box<SortError>) -> Self {
        *error
    }
}
