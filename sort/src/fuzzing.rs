//! The way in for the fuzz target of the run reader. No part of the library's promises.
//!
//! Two ways to be wrong: records that are garbage under checksums that are right, and files that were
//! changed after they were written. Neither may panic, loop, or give anything but an error or, for a
//! file whose change was undone, the records as written.

use std::sync::Arc;

use element::{ByteSize, MemoryBudget, MemoryStore};

use crate::run_reader::RunReader;
use crate::spiller::Spiller;
use crate::{BlockCompression, ExternalSorter, SortError, SorterOptions, SpillTarget};

fn options(store: &MemoryStore, compression: BlockCompression) -> SorterOptions {
    let spill = SpillTarget::new(Arc::new(store.clone()), "fuzz");
    SorterOptions::new(MemoryBudget::new(ByteSize(1 << 16)), spill)
        .with_fan_in(4)
        .with_compression(compression)
}

fn compression_of(bytes: &[u8]) -> BlockCompression {
    if bytes.first().is_some_and(|byte| byte & 1 == 1) {
        BlockCompression::Lz4
    } else {
        BlockCompression::None
    }
}

/// Whether a part of the order is read, and not all of it.
fn is_in_parts(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|byte| byte & 2 == 2)
}

/// Reads `bytes` as the records of a run whose blocks are sealed as they should be, or of a part of it;
/// gives the number of records read before the end or an error.
#[must_use]
pub fn read_garbage_records(bytes: &[u8]) -> u64 {
    let store = MemoryStore::new();
    let mut spiller = Spiller::new(options(&store, compression_of(bytes)));
    let mut read = 0;
    let mut all = || -> Result<(), SortError> {
        let mut writer = spiller.create_run()?;
        for chunk in bytes.chunks(64) {
            writer.append(chunk, chunk.len(), &mut spiller)?;
        }
        let run = spiller.seal_run(writer)?;
        let run = Arc::new(run);
        let mut reader = if is_in_parts(bytes) {
            let from = bytes.first_chunk().map_or(0, |word| u64::from_be_bytes(*word));
            RunReader::open_from(run, from, &mut spiller)?
        } else {
            RunReader::open(run, &mut spiller)?
        };
        while reader.advance()? {
            read += 1 + (reader.key().len() + reader.payload().len()) as u64 / u64::MAX;
        }
        Ok(())
    };
    match all() {
        Ok(()) | Err(_) => read,
    }
}

/// Sorts a few hundred records, changes one run as `bytes` say (two bytes of position, one to mix
/// in, again and again), and drains, all at once or part by part. Gives whether all records came.
///
/// # Errors
///
/// The sort's own.
///
/// # Panics
///
/// If the records that come are not those that went in, in order.
pub fn drain_damaged_run(bytes: &[u8]) -> Result<bool, SortError> {
    let store = MemoryStore::new();
    let options = options(&store, compression_of(bytes)).with_memory(2_000);
    let in_parts = is_in_parts(bytes);
    let mut sorter = ExternalSorter::new(options.with_fan_in(if in_parts { 64 } else { 4 }));
    for n in 0..256_u16 {
        sorter.push(&(n ^ 0x5a).to_be_bytes(), i64::from(n), &[7; 5])?;
    }
    let streams = if in_parts { sorter.finish_ranges(3)? } else { vec![sorter.finish()?] };
    let mut names = element::SpillStore::list(&store, element::FileRole::SortRun, "")?;
    if let Some(name) = names.pop() {
        store.damage(&name, |file| {
            for change in bytes.get(1..).unwrap_or_default().chunks_exact(3) {
                let at = usize::from(change[0]) << 8 | usize::from(change[1]);
                let length = file.len().max(1);
                if let Some(byte) = file.get_mut(at % length) {
                    *byte ^= change[2];
                }
            }
        });
    }
    let mut count = 0_u16;
    for mut stream in streams {
        while let Some(record) = stream.next()? {
            assert_eq!(record.key, count.to_be_bytes(), "a changed record was handed out");
            assert_eq!(record.payload, [7; 5]);
            count += 1;
        }
    }
    assert_eq!(count, 256, "records are missing and nobody said so");
    Ok(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn garbage_under_right_checksums_is_an_error_and_no_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..2_000),
        ) {
            let _ = read_garbage_records(&bytes);
        }

        #[test]
        fn a_changed_run_gives_an_error_or_the_records_as_written(
            bytes in prop::collection::vec(any::<u8>(), 0..10),
        ) {
            match drain_damaged_run(&bytes) {
                Ok(all) => prop_assert!(all),
                Err(error) => prop_assert!(error.is_damaged_or_missing(), "{}", error),
            }
        }
    }
}
