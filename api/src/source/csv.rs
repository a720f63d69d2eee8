//! [`CsvSource`]: CSV files to typed rows.

mod cell;
mod row;
mod rows;

use std::marker::PhantomData;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::bad_record::OnBadRecord;
use super::files::{Cut, Files};
use super::reader::{FileReader, Format};
use super::split::FileSplit;
use crate::{Boundedness, ByteSize, ReaderContext, Source, SourceReader, SplitEnumerator, options};
use rows::CsvRows;

/// Rows of CSV files, each made a `T` by serde: of one file, of all in a directory and its
/// directories, or of those that a glob names; plain or gzip (by name: `.gz`).
///
/// The first row of each file names the columns; a field of `T` takes the column of its name, whatever
/// the order, and columns that `T` does not have are passed over. An empty cell is `None` for an
/// `Option`, as are the cells that [`null_values`](Self::null_values) names. A row with more or fewer
/// cells than the header is a bad record. Quotes are those of RFC 4180: a quoted cell may hold
/// delimiters, line ends, and quotes written twice. Empty lines are no rows. A number beyond the range of
/// its field makes the row a bad record; a [`Decimal`](crate::Decimal) keeps all its digits.
///
/// Files come in order of path, rows in order of their file at parallelism 1. A file is read by one
/// reader, unless [`split_inside_files`](Self::split_inside_files) is set.
///
/// ```no_run
/// use slackwater::{CsvSource, prelude::*};
///
/// #[derive(serde::Deserialize, Record, Clone)]
/// struct Departure { carrier: String, dep_delay: Option<f64> }
///
/// let env = StreamExecutionEnvironment::new();
/// let rows = CsvSource::<Departure>::new("flights/*.csv").null_values(["NA"]);
/// let rows = env.from_source(rows, WatermarkStrategy::none(), "departures");
/// # let _: DataStream<Departure> = rows;
/// ```
pub struct CsvSource<T> {
    files: Files,
    cut: Cut,
    dialect: Dialect,
    records: PhantomData<fn() -> T>,
}

/// How rows are written.
#[derive(Clone, Debug)]
struct Dialect {
    delimiter: u8,
    trim: csv::Trim,
    nulls: Vec<Vec<u8>>,
    header: Header,
}

/// Where the names of columns come from.
#[derive(Clone, Debug)]
enum Header {
    FirstRow,
    Named(csv::ByteRecord),
    None,
}

impl<T> Clone for CsvSource<T> {
    fn clone(&self) -> Self {
        Self {
            files: self.files.clone(),
            cut: self.cut,
            dialect: self.dialect.clone(),
            records: PhantomData,
        }
    }
}

impl<T: DeserializeOwned + Send + 'static> CsvSource<T> {
    /// The rows of a file, a directory, or the files of a glob (`*`, `?`, `[a-z]`, `**`).
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            files: Files::new(path.as_ref()),
            cut: Cut::Never,
            dialect: Dialect {
                delimiter: b',',
                trim: csv::Trim::None,
                nulls: Vec::new(),
                header: Header::FirstRow,
            },
            records: PhantomData,
        }
    }

    /// What to do about a row that is no `T` (by default the job fails).
    #[must_use]
    pub fn on_bad_record(mut self, policy: OnBadRecord) -> Self {
        self.files.on_bad_record = policy;
        self
    }

    /// Cells that are `None` for an `Option`, beside the empty one. Other fields take them as text.
    #[must_use]
    pub fn null_values(mut self, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.dialect.nulls = values.into_iter().map(|value| value.into().into_bytes()).collect();
        self
    }

    /// What stands between cells (a comma).
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.dialect.delimiter = delimiter;
        self
    }

    /// Takes white space off both ends of each cell and name.
    #[must_use]
    pub fn trim(mut self) -> Self {
        self.dialect.trim = csv::Trim::All;
        self
    }

    /// The files have no header: columns are named here.
    #[must_use]
    pub fn columns(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(|name| name.into().into_bytes());
        self.dialect.header = Header::Named(names.collect());
        self
    }

    /// The files have no header: fields take columns by their place. Rows may then differ in length,
    /// as long as each has a cell for every field.
    #[must_use]
    pub fn without_header(mut self) -> Self {
        self.dialect.header = Header::None;
        self
    }

    /// Cuts big files into splits at line ends, so that several readers share one. Only for files in
    /// which no quoted cell holds a line end: one that does would be cut.
    #[must_use]
    pub fn split_inside_files(mut self) -> Self {
        self.cut = Cut::AtLines;
        self
    }

    /// The size of the pieces that big files are cut into (16 MiB).
    #[must_use]
    pub fn split_size(mut self, size: ByteSize) -> Self {
        self.files.split_size = size;
        self
    }
}

impl<T: DeserializeOwned + Send + 'static> Source for CsvSource<T> {
    type Item = T;
    type Split = FileSplit;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<FileSplit>>> {
        self.files.enumerator(self.cut, restored)
    }

    fn identity(&self, by: options::CacheSourceIdentity) -> anyhow::Result<Option<String>> {
        Ok(Some(self.files.identity(by)?))
    }

    fn reader(
        &self,
        context: &ReaderContext,
    ) -> anyhow::Result<Box<dyn SourceReader<T, FileSplit>>> {
        let policy = self.files.on_bad_record.clone();
        Ok(Box::new(FileReader::new(self.clone(), policy, context)))
    }
}

impl<T: DeserializeOwned + Send + 'static> Format for CsvSource<T> {
    type Item = T;
    type Rows = CsvRows<T>;

    fn open(&self, split: &FileSplit) -> anyhow::Result<CsvRows<T>> {
        let buffer = usize::try_from(self.files.buffer_size.0).unwrap_or(usize::MAX).max(1);
        CsvRows::open(split, self.dialect.clone(), buffer)
    }
}
