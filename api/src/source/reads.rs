//! The short way to file sources: methods of the environment.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::{CsvSource, JsonSource, TextSource};
use crate::{DataStream, StreamExecutionEnvironment, WatermarkStrategy};

impl StreamExecutionEnvironment {
    /// The lines of a file, a directory, or the files of a glob; see [`TextSource`].
    pub fn read_text_file(&self, path: impl AsRef<Path>) -> DataStream<String> {
        self.from_source(TextSource::new(path), WatermarkStrategy::none(), "text files")
    }

    /// The rows of CSV files with a header, each a `T`; see [`CsvSource`].
    pub fn read_csv<T>(&self, path: impl AsRef<Path>) -> DataStream<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.from_source(CsvSource::<T>::new(path), WatermarkStrategy::none(), "csv files")
    }

    /// The records of JSON lines files, each a `T`; see [`JsonSource`].
    pub fn read_json<T>(&self, path: impl AsRef<Path>) -> DataStream<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.from_source(JsonSource::<T>::new(path), WatermarkStrategy::none(), "json files")
    }
}
