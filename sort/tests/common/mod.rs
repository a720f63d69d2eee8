//! What the tests of this folder share: sorters over a store in memory, and drained results.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses a part of it"
)]

use std::sync::Arc;
use std::thread;

use element::{ByteSize, FileRole, MemoryBudget, MemoryStore, Operation, SpillStore};
use slackwater_sort::{
    ExternalSorter, SortError, SortStats, SortedStream, SorterOptions, SpillTarget,
};

pub type Row = (Vec<u8>, i64, Vec<u8>);

/// A budget and a store that a test looks at afterwards.
pub struct Place {
    pub budget: Arc<MemoryBudget>,
    pub store: Arc<dyn SpillStore>,
}

impl Place {
    pub fn new(bytes: u64) -> Self {
        Self::over(bytes, Arc::new(MemoryStore::new()))
    }

    pub fn over(bytes: u64, store: Arc<dyn SpillStore>) -> Self {
        Self { budget: MemoryBudget::new(ByteSize(bytes)), store }
    }

    pub fn options(&self) -> SorterOptions {
        let spill = SpillTarget::new(Arc::clone(&self.store), "test");
        SorterOptions::new(Arc::clone(&self.budget), spill)
    }

    pub fn files(&self) -> Vec<String> {
        self.store.list(FileRole::SortRun, "").unwrap()
    }

    /// No memory is in use, and no file is left but what could not be deleted, which is deleted now.
    #[track_caller]
    pub fn is_left_clean(&self, failed: Operation) {
        assert_eq!(self.budget.used(), ByteSize(0));
        let left = self.files();
        assert!(left.is_empty() || failed == Operation::Delete, "{left:?} is left");
        for name in left {
            self.store.delete(FileRole::SortRun, &name).unwrap();
        }
    }

    /// Nothing is borrowed and no file is left.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert_eq!(self.budget.used(), ByteSize(0), "memory is left on loan");
        assert_eq!(self.files(), Vec::<String>::new(), "files are left");
    }
}

pub fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

pub fn drain(mut stream: SortedStream) -> Result<(Vec<Row>, SortStats), SortError> {
    let mut rows = Vec::new();
    while let Some(record) = stream.next()? {
        rows.push((record.key.to_vec(), record.timestamp, record.payload.to_vec()));
    }
    Ok((rows, stream.stats()))
}

pub fn sort(options: SorterOptions, rows: &[Row]) -> Result<(Vec<Row>, SortStats), SortError> {
    let mut sorter = ExternalSorter::new(options);
    for (key, timestamp, payload) in rows {
        sorter.push(key, *timestamp, payload)?;
    }
    drain(sorter.finish()?)
}

/// The same rows handed over in pieces.
pub fn drain_in_pieces(mut stream: SortedStream) -> Result<(Vec<Row>, SortStats), SortError> {
    let mut rows = Vec::new();
    for piece in [1, 2, 63, 64, 65, 200].into_iter().cycle() {
        let handed = stream.hand_over(piece, |record| {
            rows.push((record.key.to_vec(), record.timestamp, record.payload.to_vec()));
            Ok::<_, SortError>(())
        })?;
        assert!(handed <= piece);
        if handed < piece {
            break;
        }
    }
    Ok((rows, stream.stats()))
}

/// Streams drained side by side, each by a thread.
pub fn drain_side_by_side(streams: Vec<SortedStream>) -> Vec<Vec<Row>> {
    thread::scope(|scope| {
        let start = |stream| scope.spawn(|| drain_in_pieces(stream).unwrap().0);
        let threads: Vec<_> = streams.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The same through the zero-copy ways in, and out in pieces.
pub fn sort_with(options: SorterOptions, rows: &[Row]) -> Result<(Vec<Row>, SortStats), SortError> {
    let prefix = options.prefix;
    let mut sorter = ExternalSorter::new(options);
    for (n, (key, timestamp, payload)) in rows.iter().enumerate() {
        let write_key = |out: &mut Vec<u8>| out.extend_from_slice(key);
        let write_payload = |out: &mut Vec<u8>| out.extend_from_slice(payload);
        match prefix {
            Some(prefix) if n % 2 == 0 => {
                sorter.push_with_prefix(*timestamp, write_key, prefix, write_payload)?;
            }
            _ => sorter.push_with(*timestamp, write_key, write_payload)?,
        }
    }
    drain_in_pieces(sorter.finish()?)
}

/// What the standard library's stable sort makes of it.
pub fn expected(rows: &[Row]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    rows
}

/// Rows with a payload that tells the order of arrival.
pub fn rows(count: u64, key: impl Fn(u64) -> Vec<u8>, timestamp: impl Fn(u64) -> i64) -> Vec<Row> {
    (0..count).map(|n| (key(n), timestamp(n), n.to_le_bytes().to_vec())).collect()
}
