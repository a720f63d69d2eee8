//! Keyed state in a store of the user's own: an ordered map, plugged in through the public api.
//!
//! The store is opened for each subtask and attempt by a factory. Here it also counts what it is asked,
//! so that the end can show what a sorted backlog costs: one read and one write for each key.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::store::{ByteStore, StoreContext, StoreFailure, StoreSnapshot, Visit, WriteBatch};
use slackwater::{CollectionSource, GeneratorSource, HybridSource};

#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
}

/// State in a map; cloned as a whole for a snapshot.
#[derive(Clone, Debug, Default)]
struct MapStore {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    counts: Arc<Counts>,
}

impl MapStore {
    fn visit(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) {
        let end = to.map_or(Bound::Unbounded, Bound::Excluded);
        for (key, value) in self.entries.range::<[u8], _>((Bound::Included(from), end)) {
            if visit(key, value).is_break() {
                return;
            }
        }
    }
}

impl ByteStore for MapStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFailure> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        Ok(self.entries.get(key).cloned())
    }

    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.visit(from, to, visit);
        Ok(())
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), StoreFailure> {
        for (key, value) in batch.iter() {
            self.counts.writes.fetch_add(1, Ordering::Relaxed);
            match value {
                Some(value) => self.entries.insert(key.to_vec(), value.to_vec()),
                None => self.entries.remove(key),
            };
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Box<dyn StoreSnapshot>, StoreFailure> {
        Ok(Box::new(self.clone()))
    }
}

impl StoreSnapshot for MapStore {
    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: Visit<'_>) -> Result<(), StoreFailure> {
        self.visit(from, to, visit);
        Ok(())
    }
}

fn main() -> Result<()> {
    let counts = Arc::new(Counts::default());
    let shared = Arc::clone(&counts);
    let env = StreamExecutionEnvironment::builder()
        .state_store(move |_: &StoreContext| {
            let counts = Arc::clone(&shared);
            Ok(Box::new(MapStore { counts, ..MapStore::default() }) as Box<dyn ByteStore>)
        })
        .set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::CHECKPOINT_INTERVAL, Some(10.secs()))
        .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO))
        .build();
    let history = GeneratorSource::bounded(100_000, |i| (i % 1_000, None));
    let live = CollectionSource::new([7, 7, 7]);
    let sums = env
        .from_source(
            HybridSource::starting_with(history).then(live),
            WatermarkStrategy::none(),
            "numbers",
        )
        .key_by(|n| *n)
        .count()
        .execute_and_collect()?;
    assert!(sums.contains(&(7, 103)));
    let (reads, writes) =
        (counts.reads.load(Ordering::Relaxed), counts.writes.load(Ordering::Relaxed));
    println!("100,003 records of 1,000 keys: {reads} reads and {writes} writes of our store");
    assert!(reads <= 1_003 + 64 && writes <= 1_003, "one of each a key, and for each live record");
    Ok(())
}
