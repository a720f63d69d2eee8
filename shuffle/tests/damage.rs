//! Files that are not what was written: every one is noticed, none gives other data or panics.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use element::option_table::Compression;
use element::{DirectoryStore, SpillStore, SubpartitionIndex};
use slackwater_shuffle::testing::{read_blocks, result_partition, write_blocks};
use slackwater_shuffle::{
    Damage, FileShuffle, FileShuffleOptions, PartitionDescriptor, ReadMode, ShuffleError,
    ShuffleService,
};
use tempfile::TempDir;

struct Files {
    directory: TempDir,
    read: ReadMode,
}

impl Files {
    fn new(read: ReadMode) -> Self {
        Self { directory: tempfile::tempdir().expect("a directory is made"), read }
    }

    /// A shuffle that has nothing open.
    fn shuffle(&self) -> FileShuffle {
        let store: Arc<dyn SpillStore> = Arc::new(DirectoryStore::new(self.directory.path()));
        FileShuffle::with_options(vec![store], FileShuffleOptions { read: self.read, sync: false })
    }

    fn named(&self, start: &str, end: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.directory.path()).expect("listed");
        entries
            .map(|entry| entry.expect("an entry").path())
            .find(|path| {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                name.starts_with(start) && name.ends_with(end)
            })
            .expect("the file is there")
    }
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).expect("read");
    change(&mut bytes);
    std::fs::write(path, bytes).expect("written");
}

fn blocks() -> Vec<(Option<u32>, Vec<u8>)> {
    let block = |n: u8| (0..n % 7 * 3).map(|m| n.wrapping_mul(m)).collect();
    (0..12).map(|n| ((n % 4 > 0).then_some(u32::from(n % 3)), block(n))).collect()
}

fn write(shuffle: &FileShuffle, descriptor: &PartitionDescriptor) {
    let blocks = blocks();
    let blocks = blocks.iter().map(|(to, block)| (*to, block.as_slice()));
    write_blocks(shuffle, descriptor, blocks);
}

type All = Vec<Vec<Vec<u8>>>;

/// All subpartitions, one by one.
fn read_all(shuffle: &FileShuffle, descriptor: &PartitionDescriptor) -> Result<All, ShuffleError> {
    (0..3).map(|index| read_blocks(shuffle, descriptor, index..index + 1)).collect()
}

#[track_caller]
fn assert_noticed(result: Result<All, ShuffleError>, what: &str) {
    let noticed = matches!(result, Err(ShuffleError::Corrupt { .. } | ShuffleError::Lost { .. }));
    assert!(noticed, "{what}: {result:?}");
}

/// T19: each bit of both files matters, or does not change what is read.
#[test]
fn any_flipped_bit_is_noticed() {
    for (read, compression) in
        [(ReadMode::Mapped, Compression::None), (ReadMode::Positional, Compression::Lz4)]
    {
        let files = Files::new(read);
        let descriptor = result_partition(0, 3).compressed(compression);
        write(&files.shuffle(), &descriptor);
        let right = read_all(&files.shuffle(), &descriptor).expect("nothing is wrong");
        for ending in [".data", ".index"] {
            let path = files.named("result", ending);
            let intact = std::fs::read(&path).expect("read");
            for at in 0..intact.len() {
                change(&path, |bytes| bytes[at] ^= 1 << (at % 8));
                match read_all(&files.shuffle(), &descriptor) {
                    Ok(found) => assert_eq!(found, right, "byte {at} of {ending}"),
                    error => assert_noticed(error, &format!("byte {at} of {ending}")),
                }
                std::fs::write(&path, &intact).expect("restored");
            }
        }
    }
}

/// Faults of case 17, at every length.
#[test]
fn any_cut_or_zeroed_end_is_noticed() {
    for read in [ReadMode::Mapped, ReadMode::Positional] {
        let files = Files::new(read);
        let descriptor = result_partition(0, 3);
        write(&files.shuffle(), &descriptor);
        for ending in [".data", ".index"] {
            let path = files.named("result", ending);
            let intact = std::fs::read(&path).expect("read");
            for length in 0..intact.len() {
                change(&path, |bytes| bytes.truncate(length));
                let what = format!("{ending} cut to {length}");
                assert_noticed(read_all(&files.shuffle(), &descriptor), &what);
                let zeroed = [&intact[..length], &vec![0; intact.len() - length]].concat();
                std::fs::write(&path, &zeroed).expect("written");
                match read_all(&files.shuffle(), &descriptor) {
                    Ok(_) => assert_eq!(zeroed, intact, "{ending} zeroed from {length}"),
                    error => assert_noticed(error, &format!("{ending} zeroed from {length}")),
                }
                std::fs::write(&path, &intact).expect("restored");
            }
        }
    }
}

#[test]
fn a_file_that_grows_or_goes_is_noticed() {
    let files = Files::new(ReadMode::Mapped);
    let descriptor = result_partition(0, 3);
    write(&files.shuffle(), &descriptor);
    change(&files.named("result", ".data"), |bytes| bytes.push(0));
    let longer = read_all(&files.shuffle(), &descriptor);
    let length = matches!(longer, Err(ShuffleError::Corrupt { damage: Damage::Length, .. }));
    assert!(length, "{longer:?}");
    std::fs::remove_file(files.named("result", ".data")).expect("removed");
    let gone = read_all(&files.shuffle(), &descriptor);
    assert!(matches!(gone, Err(ShuffleError::Lost { .. })), "{gone:?}");
}

/// Identity in every checksum: a file in another's place is no data.
#[test]
fn a_file_put_in_the_place_of_another_is_noticed() {
    for ending in [".data", ".index"] {
        let files = Files::new(ReadMode::Mapped);
        let (one, other) = (result_partition(1, 3), result_partition(2, 3));
        write(&files.shuffle(), &one);
        write(&files.shuffle(), &other);
        let from = files.named("result-1-0-3-2", ending);
        std::fs::copy(from, files.named("result-1-0-3-1", ending)).expect("copied");
        assert_noticed(read_all(&files.shuffle(), &one), ending);
        read_all(&files.shuffle(), &other).expect("the other is as it was");
    }
}

/// A reader that is under way when its file is cut says so.
#[test]
fn a_cut_under_a_readers_eyes_is_noticed() {
    for read in [ReadMode::Mapped, ReadMode::Positional] {
        let files = Files::new(read);
        let shuffle = files.shuffle();
        let descriptor = result_partition(0, 1);
        let block = vec![1; 400_000];
        write_blocks(&shuffle, &descriptor, (0..8).map(|_| (Some(0), block.as_slice())));
        let mut reader = shuffle.reader(&descriptor, 0..1).expect("a reader is given");
        assert_eq!(reader.next().expect("the first block"), Some(block.as_slice()));
        change(&files.named("result", ".data"), |bytes| bytes.truncate(bytes.len() / 2));
        let rest = (0..8).find_map(|_| reader.next().map(|block| block.map(<[u8]>::len)).err());
        assert!(matches!(rest, Some(ShuffleError::Corrupt { .. })), "{rest:?}");
    }
}

/// A block of one subpartition in the place of another's, or of a later one: the place is checked.
#[test]
fn blocks_that_change_places_are_noticed() {
    let files = Files::new(ReadMode::Mapped);
    let descriptor = result_partition(0, 2);
    let shuffle = files.shuffle();
    let mut writer = shuffle.writer(&descriptor).expect("a writer is given");
    for (index, block) in [(0, [1; 16]), (1, [2; 16]), (0, [3; 16])] {
        writer.write(SubpartitionIndex(index), &block).expect("taken");
    }
    writer.finish().expect("finished");
    let path = files.named("result", ".data");
    let intact = std::fs::read(&path).expect("read");
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        change(&path, |bytes| {
            let place = |n: usize| 16 + 32 * n..48 + 32 * n;
            bytes[place(one)].copy_from_slice(&intact[place(other)]);
            bytes[place(other)].copy_from_slice(&intact[place(one)]);
        });
        let found = read_blocks(&files.shuffle(), &descriptor, 0..2);
        let noticed = matches!(found, Err(ShuffleError::Corrupt { damage: Damage::Block, .. }));
        assert!(noticed, "{one} and {other}: {found:?}");
        std::fs::write(&path, &intact).expect("restored");
    }
}
