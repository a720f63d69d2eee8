//! [`Print`]: records to the standard output.
//!
//! Lines are buffered until the source has nothing more, a checkpoint, or the end. A closed pipe is an
//! error of the sink.

use std::fmt::Display;
use std::io::{BufWriter, Stdout, Write};

use crate::{Sink, SinkContext, SinkWriter, Timestamp};

/// Writes each record as a line; with several subtasks, the subtask's number, from 1, before it.
pub(crate) struct Print;

impl<T: Display + Send + 'static> Sink<T> for Print {
    fn writer(
        &self,
        context: &SinkContext,
        _: &[Vec<u8>],
    ) -> anyhow::Result<Box<dyn SinkWriter<T>>> {
        let prefix = match context.parallelism {
            1 => String::new(),
            _ => format!("{}> ", context.subtask.0 + 1),
        };
        Ok(Box::new(Printer { prefix, out: BufWriter::new(std::io::stdout()) }))
    }
}

struct Printer {
    prefix: String,
    out: BufWriter<Stdout>,
}

impl<T: Display> SinkWriter<T> for Printer {
    fn write(&mut self, value: T, _: Option<Timestamp>) -> anyhow::Result<()> {
        Ok(writeln!(self.out, "{}{value}", self.prefix)?)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        Ok(self.out.flush()?)
    }

    fn prepare_commit(&mut self) -> anyhow::Result<Vec<Vec<u8>>> {
        self.out.flush()?;
        Ok(Vec::new())
    }
}
