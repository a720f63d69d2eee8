//! A table in memory that changes whenever somebody looks at it, and its log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use slackwater::{
    Boundedness, CapturedTable, ChangeOf, KeyRange, LogEntry, LogPoll, LogReader, Result,
    RowReader, Timestamp,
};

pub(crate) type Entry = LogEntry<u32, i64, u64>;
pub(crate) type Item = ChangeOf<Table>;

/// Numbers from a seed (SplitMix64).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

struct Inner {
    rows: BTreeMap<u32, i64>,
    before: BTreeMap<u32, i64>,
    log: Vec<Entry>,
    position: u64,
    writes_left: u32,
    keys: u32,
    chance: Chance,
}

impl Inner {
    /// A few writes, as another program may make them between any two reads.
    fn touch(&mut self) {
        for _ in 0..self.chance.below(3) {
            if self.writes_left == 0 {
                // Positions of other tables, so that the newest is not always an entry's.
                self.position += self.chance.below(2);
                return;
            }
            self.writes_left -= 1;
            self.position += 1 + self.chance.below(3);
            let key = self.chance.below(u64::from(self.keys)) as u32;
            let deleted = self.chance.below(4) == 0;
            let row = (!deleted).then(|| self.chance.below(1_000) as i64);
            match row {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
            self.log.push(LogEntry { position: self.position, key, row });
        }
    }
}

/// A table with keys from 0, changed `writes` times in all.
#[derive(Clone)]
pub(crate) struct Table {
    inner: Arc<Mutex<Inner>>,
    bounds: Vec<u32>,
}

impl Table {
    pub(crate) fn new(seed: u64, keys: u32, writes: u32, bounds: &[u32]) -> Self {
        let mut chance = Chance::from_seed(seed);
        let mut rows = BTreeMap::new();
        for key in 0..keys {
            if chance.below(3) > 0 {
                rows.insert(key, chance.below(1_000) as i64);
            }
        }
        let inner = Inner {
            before: rows.clone(),
            rows,
            log: Vec::new(),
            position: 100,
            writes_left: writes,
            keys,
            chance,
        };
        Self { inner: Arc::new(Mutex::new(inner)), bounds: bounds.to_vec() }
    }

    /// Rows as they stood at first, every change in order, and the rows as they stand.
    pub(crate) fn history(&self) -> (BTreeMap<u32, i64>, Vec<Entry>, BTreeMap<u32, i64>) {
        let inner = self.inner.lock().unwrap();
        (inner.before.clone(), inner.log.clone(), inner.rows.clone())
    }
}

impl CapturedTable for Table {
    type Key = u32;
    type Row = i64;
    type Position = u64;

    fn chunk_bounds(&self) -> Result<Vec<u32>> {
        Ok(self.bounds.clone())
    }

    fn position(&self) -> Result<u64> {
        let mut inner = self.inner.lock().unwrap();
        inner.touch();
        Ok(inner.position)
    }

    fn read_chunk(&self, range: &KeyRange<u32>) -> Result<RowReader<u32, i64>> {
        let (inner, range) = (Arc::clone(&self.inner), range.clone());
        let mut next = range.from.unwrap_or(0);
        Ok(Box::new(std::iter::from_fn(move || {
            let mut inner = inner.lock().unwrap();
            inner.touch();
            let (key, row) = inner.rows.range(next..).next().map(|(key, row)| (*key, *row))?;
            next = key + 1;
            range.contains(&key).then_some(Ok((key, row)))
        })))
    }

    fn read_log(&self, after: &u64) -> Result<Box<dyn LogReader<u32, i64, u64>>> {
        Ok(Box::new(Tail { inner: Arc::clone(&self.inner), after: *after }))
    }

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }
}

struct Tail {
    inner: Arc<Mutex<Inner>>,
    after: u64,
}

impl LogReader<u32, i64, u64> for Tail {
    fn poll(&mut self) -> Result<LogPoll<u32, i64, u64>> {
        let mut inner = self.inner.lock().unwrap();
        inner.touch();
        let wanted = 1 + inner.chance.below(5) as usize;
        let behind = inner.log.partition_point(|entry| entry.position <= self.after);
        let entries: Vec<Entry> = inner.log[behind..].iter().take(wanted).cloned().collect();
        if let Some(last) = entries.last() {
            self.after = last.position;
            return Ok(LogPoll::Entries(entries));
        }
        if inner.writes_left == 0 {
            return Ok(LogPoll::End);
        }
        let again = Some(Timestamp::from_millis(0));
        Ok(LogPoll::Nothing { read_to: inner.position, again })
    }
}
