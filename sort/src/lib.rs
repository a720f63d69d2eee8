//! Records in any order in, by key out, within a memory budget.
//!
//! ```text
//! options, rules       what is asked, and the one order
//!
//! ExternalSorter --> stage --> buffer (page, ordering, sorting, radix, window) -- in_memory --> SortedStream --> Groups
//!      |               |                                 ^
//!      |               v when the memory refuses (external/spilling)
//!      |          parted: parts of the order as they are ------> parted_reader, a part at a time -> in_memory
//!      |          spiller, run (record, block): sorted --------> run_reader, kept, merge (passes before)
//!      |
//! lanes                runs written by threads while the next buffer fills
//! ranges               one sort cut into parts that threads drain side by side
//! directories          where runs may lie: several, with fail-over, limit and sweep
//! durable              runs that outlive their sorter, and the sorter that goes on with them
//! TypedSorter          keys and records encoded
//! CombiningSorter      table: equal keys folded before they are sorted; combined: and while merging
//! key_block, front     keys looked up many at once, and few ones by their numbers
//! ```
//!
//! ```
//! use std::sync::Arc;
//! use element::{ByteSize, MemoryBudget};
//! use slackwater_sort::{ExternalSorter, SorterOptions, SpillDirectories, SpillTarget};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let directories = [std::env::temp_dir()];
//! let store = Arc::new(SpillDirectories::open(&directories, Some(ByteSize::mib(512)), &[])?);
//! let budget = MemoryBudget::new(ByteSize::mib(16));
//! let options = SorterOptions::new(budget, SpillTarget::new(store, "words")).with_fan_in(64);
//! let mut sorter = ExternalSorter::new(options);
//! for (position, word) in ["tide", "slack", "ebb", "slack"].into_iter().enumerate() {
//!     sorter.push(word.as_bytes(), position as i64, b"")?;
//! }
//! let mut words = Vec::new();
//! let mut groups = sorter.finish()?.groups();
//! while let Some(mut group) = groups.next()? {
//!     let word = String::from_utf8(group.key().to_vec())?;
//!     let mut positions = Vec::new();
//!     while let Some(record) = group.next()? {
//!         positions.push(record.timestamp);
//!     }
//!     words.push((word, positions));
//! }
//! assert_eq!(words[1], ("slack".to_owned(), vec![1, 3]));
//! # Ok(())
//! # }
//! ```
//!
//! Where records compare by a value, [`TypedSorter`] writes keys and records down itself; where equal
//! keys fold into one, [`CombiningSorter`] sorts only what is left of them. Descending order, ties by
//! arrival, a prefix of your own and block compression are in [`SorterOptions`]; another thread stops a
//! sort by a [`CancelFlag`]; [`SorterOptions::with_threads`] writes runs by threads and
//! [`ExternalSorter::finish_ranges`] gives parts for several to merge. What a
//! sort has cost is in its [`SortStats`], at any time:
//!
//! ```text
//! records, bytes_in               pushed
//! spilled_raw, spilled_written    bytes of runs before and after compression, all passes together
//! runs, passes                    0 and 0: all of it fitted; n and 1: n runs, read once
//! peak_bytes, peak_open_files     never above budget plus a record, fan-in plus one
//! deep_comparisons, combined      work beyond the prefix; records that a combiner saved
//! ```
//!
//! Stands alone: any byte-string keys, a timestamp and a payload each. Left out on purpose: hashing
//! and key groups (the runtime gives the hash as the prefix of a key), and where descriptions of durable
//! runs rest.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod account;
mod block;
mod buffer;
mod combined;
mod combining;
mod directories;
mod durable;
mod error;
mod external;
mod front;
mod fuzzing;
mod grouped;
mod in_memory;
mod kept;
mod key_block;
mod lanes;
mod merge;
mod options;
mod page;
mod parted;
mod parted_reader;
mod passes;
mod radix;
mod ranges;
mod record;
mod rules;
mod run;
mod run_reader;
mod sorting;
mod spiller;
mod stage;
mod stats;
mod stream;
mod table;
mod typed;
mod window;

pub use combined::{CombinedRecord, CombinedStream};
pub use combining::{Combiner, CombiningSorter};
pub use directories::{NoDirectory, SpillDirectories, UnusableDirectory};
pub use durable::RunDescription;
pub use error::SortError;
pub use external::ExternalSorter;
#[doc(hidden)]
pub use fuzzing::{drain_damaged_run, read_garbage_records};
pub use grouped::{Group, Groups};
pub use key_block::KeyBlock;
pub use options::{
    BlockCompression, CancelFlag, KeyPrefix, Order, SorterOptions, SpillTarget, Ties,
};
pub use record::NO_TIMESTAMP;
pub use stats::SortStats;
pub use stream::{SortedRecord, SortedStream};
pub use typed::{TypedSorter, TypedStream};
