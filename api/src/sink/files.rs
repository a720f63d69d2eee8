//! [`CsvFiles`], [`JsonFiles`], [`TextFiles`]: rolling files in a directory.

use std::fmt::Display;
use std::path::Path;

use serde::Serialize;

use super::encoding::{Csv, Json, Lines};
use super::rolling::Rolling;
use crate::{ByteSize, Sink, SinkContext, SinkWriter};

macro_rules! file_sink {
    ($(#[$doc:meta])* $name:ident, $encoding:ty, $made:expr, $bound:path) => {
        $(#[$doc])*
        ///
        /// Exactly once: a file gets its name, `part-...`, when the checkpoint that covers it is
        /// complete, or with the end of the input; until then it is hidden (`.part-....inprogress`). What
        /// attempts that failed have left is removed when the job goes on. A job without checkpoints
        /// shows its files when its input ends.
        ///
        /// At least once: a file is visible from its first record and grows; after a failure, records
        /// since the last checkpoint are there twice.
        ///
        /// Each subtask writes files of its own, closes one at each checkpoint or when it has grown to
        /// [`roll_size`](Self::roll_size), and syncs it then. The order within a file is that of the
        /// stream.
        #[derive(Clone, Debug)]
        pub struct $name(Rolling<$encoding>);

        impl $name {
            /// Files in a directory, which is made if it is not there, exactly once.
            pub fn exactly_once(directory: impl AsRef<Path>) -> Self {
                Self(Rolling::exactly_once(directory.as_ref(), $made))
            }

            /// Files in a directory, which is made if it is not there, at least once.
            pub fn at_least_once(directory: impl AsRef<Path>) -> Self {
                Self(Rolling::at_least_once(directory.as_ref(), $made))
            }

            /// The size at which a file is closed between checkpoints (128 MiB).
            #[must_use]
            pub fn roll_size(mut self, size: ByteSize) -> Self {
                self.0.roll_size = size;
                self
            }
        }

        impl<T: $bound + Send + 'static> Sink<T> for $name {
            fn writer(
                &self,
                context: &SinkContext,
                restored: &[Vec<u8>],
            ) -> anyhow::Result<Box<dyn SinkWriter<T>>> {
                self.0.writer(context, restored)
            }
        }
    };
}

file_sink! {
    /// Files of CSV rows, made by serde; the names of a struct's fields are the first row of each file.
    CsvFiles, Csv, Csv { delimiter: b',' }, Serialize
}

file_sink! {
    /// Files of JSON lines, made by serde: one value a line.
    JsonFiles, Json, Json, Serialize
}

file_sink! {
    /// Files of text: each record as it is displayed, and a line end.
    TextFiles, Lines, Lines, Display
}

impl CsvFiles {
    /// What stands between cells (a comma).
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.0.encoding.delimiter = delimiter;
        self
    }
}
