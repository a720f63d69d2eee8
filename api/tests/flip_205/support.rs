//! Streams that count how often they are computed, and hands on the files of what is kept.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{CacheOutcome, CachedDataStream, Collected, DataSetId};

/// How often a function has been called.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<AtomicU64>);

impl Calls {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn one_more(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// Batch jobs of this parallelism on so many workers; restarts come at once.
pub(crate) fn env(parallelism: u32, workers: u32) -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(parallelism))
        .set(&options::WORKERS, workers)
        .set(&options::RESTART_DELAY, Duration::ZERO);
    env
}

/// The numbers below `count`, spread over all subtasks, doubled by a function that counts its calls.
pub(crate) fn doubled(
    env: &StreamExecutionEnvironment,
    count: u64,
    calls: &Calls,
) -> DataStream<u64> {
    let calls = calls.clone();
    env.generate(count, |i| i)
        .partition_custom(|i, subtasks| u32::try_from(*i).unwrap() % subtasks)
        .map(move |i| {
            calls.one_more();
            i * 2
        })
        .name("doubled")
}

/// What [`doubled`] gives, in order.
pub(crate) fn doubles(count: u64) -> Vec<u64> {
    (0..count).map(|i| i * 2).collect()
}

/// What became of a cached stream in the job that collected something.
#[track_caller]
pub(crate) fn outcome<T>(collected: &Collected<T>, name: &str) -> CacheOutcome {
    collected
        .report()
        .cache(name)
        .unwrap_or_else(|| panic!("`{name}` in the report"))
        .outcome
        .clone()
}

#[track_caller]
pub(crate) fn assert_recomputed<T>(collected: &Collected<T>, name: &str, why: &str) {
    match outcome(collected, name) {
        CacheOutcome::Recomputed { reason } => assert!(reason.contains(why), "{reason}"),
        other => panic!("{other:?}"),
    }
}

/// The files of one part of a data set: data and index.
pub(crate) fn files_of(
    env: &StreamExecutionEnvironment,
    data_set: DataSetId,
    producer: u32,
) -> Vec<PathBuf> {
    let files = env.cluster().unwrap().partition_files(data_set);
    let of_part = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.split('.').next().unwrap().ends_with(&format!("-{producer}"))
    };
    let files: Vec<PathBuf> = files.into_iter().filter(of_part).collect();
    assert_eq!(files.len(), 2, "data and index");
    files
}

/// The data file of one part.
pub(crate) fn data_file(
    env: &StreamExecutionEnvironment,
    data_set: DataSetId,
    producer: u32,
) -> PathBuf {
    let is_data = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "data");
    files_of(env, data_set, producer).into_iter().find(is_data).unwrap()
}

/// Flips one bit in the middle of a file.
pub(crate) fn flip(path: &PathBuf) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

/// Removes the files of one part.
pub(crate) fn remove<T: Record + Clone>(
    env: &StreamExecutionEnvironment,
    cached: &CachedDataStream<T>,
    producer: u32,
) {
    for file in files_of(env, cached.data_set(), producer) {
        std::fs::remove_file(file).unwrap();
    }
}
