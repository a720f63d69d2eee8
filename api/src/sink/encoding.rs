//! [`Encoding`]: records to the bytes of one part file.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

/// How much is written at once.
const BUFFER: usize = 256 << 10;

/// A file that counts what was written to it.
#[derive(Debug)]
pub(crate) struct PartFile {
    pub(crate) file: File,
    pub(crate) bytes: u64,
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// How records become a file. Shared by all subtasks.
pub(crate) trait Encoding: Clone + Send + Sync + 'static {
    /// The end of a file's name.
    const EXTENSION: &'static str;
    /// A file that is being written.
    type Part: Send;

    /// Begins a file.
    fn begin(&self, file: PartFile) -> Self::Part;

    /// Hands what is buffered to the file.
    fn flush(part: &mut Self::Part) -> io::Result<()>;

    /// The file beneath.
    fn file(part: &Self::Part) -> &PartFile;
}

/// An encoding that takes records of `T`.
pub(crate) trait Encodes<T>: Encoding {
    /// Appends a record.
    fn write(part: &mut Self::Part, value: &T) -> anyhow::Result<()>;
}

/// One line of text a record.
#[derive(Clone, Debug)]
pub(crate) struct Lines;

impl Encoding for Lines {
    const EXTENSION: &'static str = "txt";
    type Part = BufWriter<PartFile>;

    fn begin(&self, file: PartFile) -> Self::Part {
        BufWriter::with_capacity(BUFFER, file)
    }

    fn flush(part: &mut Self::Part) -> io::Result<()> {
        part.flush()
    }

    fn file(part: &Self::Part) -> &PartFile {
        part.get_ref()
    }
}

impl<T: Display> Encodes<T> for Lines {
    fn write(part: &mut Self::Part, value: &T) -> anyhow::Result<()> {
        Ok(writeln!(part, "{value}")?)
    }
}

/// One JSON value a line.
#[derive(Clone, Debug)]
pub(crate) struct Json;

impl Encoding for Json {
    const EXTENSION: &'static str = "json";
    type Part = BufWriter<PartFile>;

    fn begin(&self, file: PartFile) -> Self::Part {
        BufWriter::with_capacity(BUFFER, file)
    }

    fn flush(part: &mut Self::Part) -> io::Result<()> {
        part.flush()
    }

    fn file(part: &Self::Part) -> &PartFile {
        part.get_ref()
    }
}

impl<T: Serialize> Encodes<T> for Json {
    fn write(part: &mut Self::Part, value: &T) -> anyhow::Result<()> {
        serde_json::to_writer(&mut *part, value)?;
        Ok(part.write_all(b"\n")?)
    }
}

/// One CSV row a record, the names of its fields first.
#[derive(Clone, Debug)]
pub(crate) struct Csv {
    pub(crate) delimiter: u8,
}

impl Encoding for Csv {
    const EXTENSION: &'static str = "csv";
    type Part = csv::Writer<PartFile>;

    fn begin(&self, file: PartFile) -> Self::Part {
        csv::WriterBuilder::new()
            .delimiter(self.delimiter)
            .buffer_capacity(BUFFER)
            .from_writer(file)
    }

    fn flush(part: &mut Self::Part) -> io::Result<()> {
        part.flush()
    }

    fn file(part: &Self::Part) -> &PartFile {
        part.get_ref()
    }
}

impl<T: Serialize> Encodes<T> for Csv {
    fn write(part: &mut Self::Part, value: &T) -> anyhow::Result<()> {
        Ok(part.serialize(value)?)
    }
}
