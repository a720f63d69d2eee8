//! [`Print`]: records to the standard output.
//!
//! Lines are buffered until the source has nothing more, a checkpoint, or the end. A closed pipe is an
//! error of the sink.

use std::io::{BufWriter, Result, Stdout, Write};

use crate::{Sink, SinkContext, SinkWriter, Timestamp};

/// How a record is spelled, without the end of its line.
type Spell<T> = fn(&mut dyn Write, &T) -> Result<()>;

/// Writes each record as a line; with several subtasks, the subtask's number, from 1, before it.
pub(crate) struct Print<T>(pub(crate) Spell<T>);

impl<T: Send + 'static> Sink<T> for Print<T> {
    fn writer(
        &self,
        context: &SinkContext,
        _: &[Vec<u8>],
    ) -> anyhow::Result<Box<dyn SinkWriter<T>>> {
        let prefix = match context.parallelism {
            1 => String::new(),
            _ => format!("{}> ", context.subtask.0 + 1),
        };
        Ok(Box::new(Printer { prefix, spell: self.0, out: BufWriter::new(std::io::stdout()) }))
    }
}

struct Printer<T> {
    prefix: String,
    spell: Spell<T>,
    out: BufWriter<Stdout>,
}

impl<T: Send> SinkWriter<T> for Printer<T> {
    fn write(&mut self, value: T, _: Option<Timestamp>) -> anyhow::Result<()> {
        self.out.write_all(self.prefix.as_bytes())?;
        (self.spell)(&mut self.out, &value)?;
        Ok(self.out.write_all(b"\n")?)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        Ok(self.out.flush()?)
    }

    fn prepare_commit(&mut self) -> anyhow::Result<Vec<Vec<u8>>> {
        self.out.flush()?;
        Ok(Vec::new())
    }
}
