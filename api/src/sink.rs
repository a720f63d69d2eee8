//! Sinks: rolling files of CSV, JSON lines or text, exactly once or at least once, and the console.
//!
//! The rolling machinery is in `rolling`, what a part file looks like in `encoding`, the commit of a
//! part and the clean-up behind a failure in `parts`.

mod encoding;
mod files;
mod parts;
mod print;
mod rolling;

pub use files::{CsvFiles, JsonFiles, TextFiles};
pub use parts::FileSinkError;
pub(crate) use print::Print;
