//! The picture of the switch (FLIP-327): what a keyed input does while its source is in backlog.
//!
//! ```text
//!   records in any order                                 records by (hash, key, time, arrival)
//!   --------------------> Collecting: sorter or table ---------------------------> Draining
//!                          memory, then runs on disk        key by key into the function, the
//!                                                           key's due timers at its end
//! ```
//!
//! [`BacklogPlan`] decides once, when the operator opens, what a phase does; a [`Collecting`] lives
//! from the first attribute `backlog` to the switch; a [`Draining`] from the switch to the last key.
//! Under `auto` memory that a few keys have filled is handed over before the switch, and collecting
//! goes on: then a key is read and written once a hand-over.
//! Batch mode is the same with one phase that ends with the input, over state that forgets a key
//! when the next begins (FLIP-140).

mod collecting;
mod draining;
mod folding;
mod key_watch;
mod phase;
mod plan;
mod sorted_input;

pub use collecting::Collecting;
pub use draining::Draining;
pub(crate) use folding::{FoldCombiner, FoldedKeys, fold_batch};
pub use phase::PhaseSoFar;
pub use plan::{BacklogPlan, take_sealed};
pub(crate) use sorted_input::SortedInput;
