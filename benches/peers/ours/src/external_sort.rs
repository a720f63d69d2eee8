//! J5: lines of 100 bytes from a file to a file, by their first ten bytes, in little memory.
//!
//! The crate `sort` alone, one thread that feeds it. `file`, `out`, `tmp`, `mb` (256).

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::sync::Arc;
use std::time::Instant;

use slackwater::{ByteSize, Result};
use element::{DirectoryStore, MemoryBudget};
use slackwater_sort::{ExternalSorter, NO_TIMESTAMP, SorterOptions, SpillTarget};

use crate::arguments::Arguments;
use crate::result_line::ResultLine;

const LINE: usize = 100;
const KEY: usize = 10;

/// Whole lines, about a MiB of them.
const BLOCK: usize = LINE * 10_000;

pub(crate) fn run(arguments: &Arguments) -> Result<ResultLine> {
    let input = arguments.text("file").unwrap_or("sort.txt");
    let output = arguments.text("out").unwrap_or("sorted.txt");
    let directory = arguments.text("tmp").unwrap_or(".");
    let budget = ByteSize::mib(arguments.number("mb", 256)?);
    let start = Instant::now();
    let spill = SpillTarget::new(Arc::new(DirectoryStore::new(directory)), "lines");
    let mut sorter = ExternalSorter::new(SorterOptions::new(MemoryBudget::new(budget), spill));
    let mut file = File::open(input)?;
    let records = file.metadata()?.len() / LINE as u64;
    let mut block = vec![0; BLOCK];
    let mut left = records * LINE as u64;
    while left > 0 {
        let length = usize::try_from(left.min(BLOCK as u64))?;
        let part = &mut block[..length];
        file.read_exact(part)?;
        for line in part.chunks_exact(LINE) {
            let (key, rest) = line.split_at(KEY);
            sorter.push(key, NO_TIMESTAMP, rest)?;
        }
        left -= length as u64;
    }
    let mut writer = BufWriter::with_capacity(1 << 20, File::create(output)?);
    let mut sorted = sorter.finish()?;
    while let Some(record) = sorted.next()? {
        writer.write_all(record.key)?;
        writer.write_all(record.payload)?;
    }
    writer.flush()?;
    let stats = sorted.close()?;
    let mut line = ResultLine::new("slackwater-sort", "J5", (records, records), start.elapsed(), 0);
    line.number("runs", stats.runs);
    line.number("passes", stats.passes);
    line.number("bytes_spilled", stats.spilled_written);
    Ok(line)
}
