//! A partition read after it is finished, as often as wanted: the typed layer over the byte seam.
//!
//! [`BlockingWriter`] packs the records of one subtask into blocks for each consumer;
//! [`BlockingReader`] unpacks them. Both work over any [`crate::ShuffleService`].

mod reader;
mod writer;

pub use reader::BlockingReader;
pub use writer::{BlockingOptions, BlockingWriter};
