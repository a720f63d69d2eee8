//! J5: lines of 100 bytes from a file to a file, by their first ten bytes, in little memory.
//!
//! The crate `sort` alone: one thread feeds it, `threads` (2) others write its runs, and as many merge a part
//! of the order each and write it where it belongs. Runs are packed by default: together with the output
//! they are more than the system holds back from the disk, which then stops every writer.
//! `file`, `out`, `tmp`, `mb` (256), `lz4` (1).

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use element::{DirectoryStore, MemoryBudget};
use slackwater::{ByteSize, Error, Result};
use slackwater_sort::{
    BlockCompression, ExternalSorter, NO_TIMESTAMP, SortStats, SortedStream, SorterOptions,
    SpillTarget,
};

use crate::arguments::Arguments;
use crate::result_line::ResultLine;

const LINE: usize = 100;
const KEY: usize = 10;

/// Whole lines, about a quarter of a MiB of them: they are in the cache when they are pushed.
const BLOCK: usize = LINE * 2_500;

/// Bytes written at once.
const OUTPUT: usize = LINE * 10_000;

pub(crate) fn run(arguments: &Arguments) -> Result<ResultLine> {
    let input = arguments.text("file").unwrap_or("sort.txt");
    let output = arguments.text("out").unwrap_or("sorted.txt");
    let directory = arguments.text("tmp").unwrap_or(".");
    let budget = ByteSize::mib(arguments.number("mb", 256)?);
    let threads = usize::try_from(arguments.number("threads", 2)?)?.max(1);
    let is_packed = arguments.number("lz4", 1)? > 0;
    let compression = if is_packed { BlockCompression::Lz4 } else { BlockCompression::None };
    let start = Instant::now();
    let spill = SpillTarget::new(Arc::new(DirectoryStore::new(directory)), "lines");
    let options = SorterOptions::new(MemoryBudget::new(budget), spill)
        .with_threads(threads)
        .with_compression(compression);
    let mut sorter = ExternalSorter::new(options);
    let records = feed(&mut sorter, input)?;
    let pushed = start.elapsed();
    let parts = sorter.finish_ranges(threads)?;
    let ways = parts.len() as u64;
    let stats = drain(parts, &File::create(output)?)?;
    let mut line = ResultLine::new("slackwater-sort", "J5", (records, records), start.elapsed(), 0);
    line.number("runs", stats.runs);
    line.number("passes", stats.passes);
    line.number("bytes_spilled", stats.spilled_written);
    line.number("parts", ways);
    line.number("push_ms", u64::try_from(pushed.as_millis())?);
    Ok(line)
}

/// Pushes all lines of a file; gives their number.
fn feed(sorter: &mut ExternalSorter, input: &str) -> Result<u64> {
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
    Ok(records)
}

/// Writes each part on a thread of its own, behind the records of those before it.
fn drain(parts: Vec<SortedStream>, output: &File) -> Result<SortStats> {
    let mut offset = 0;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for part in parts {
            let start = offset;
            offset += part.records() * LINE as u64;
            threads.push(scope.spawn(move || write(part, output, start)));
        }
        let mut stats = SortStats::default();
        for thread in threads {
            stats = thread.join().map_err(|_| Error::msg("a thread has panicked"))??;
        }
        Ok(stats)
    })
}

fn write(mut part: SortedStream, output: &File, start: u64) -> Result<SortStats> {
    let mut offset = start;
    let mut lines = Vec::with_capacity(OUTPUT);
    while part.hand_over(OUTPUT / LINE, |record| {
        lines.extend_from_slice(record.key);
        lines.extend_from_slice(record.payload);
        Ok::<_, Error>(())
    })? > 0
    {
        output.write_all_at(&lines, offset)?;
        offset += lines.len() as u64;
        lines.clear();
    }
    Ok(part.close()?)
}
