//! What workers keep for the cluster, and for how long (FLIP-67).

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use slackwater::prelude::*;
use slackwater::shuffle::{
    DirectoryStore, FileShuffle, PartitionDescriptor, PartitionIdentity, ResultPartitionReader,
    ResultPartitionWriter, ShuffleError, ShuffleService,
};
use slackwater::{Deletion, JobError};

use crate::support::*;

/// A job that fails in the sink once the cached part is written.
fn fails_behind_its_cache(env: &StreamExecutionEnvironment, calls: &Calls) -> JobError {
    env.set(&options::RESTART_STRATEGY, Some(options::RestartStrategy::None));
    let cached = doubled(env, 500, calls).cache();
    cached.key_by(|n| n % 2).count().try_for_each(|_| Err(slackwater::Error::msg("no more")));
    let error = env.execute("fails").unwrap_err();
    assert!(!cached.is_cached());
    let failed = calls.get();
    assert!(cached.count().is_ok());
    assert_eq!(calls.get(), failed + 500, "the next use computes");
    error
}

/// A15, P2, tC5: a job that fails leaves nothing, not even what its finished producers wrote.
#[test]
fn a_job_that_fails_leaves_no_data_set() {
    let (env, calls) = (env(2, 2), Calls::default());
    let error = fails_behind_its_cache(&env, &calls);
    assert!(matches!(error, JobError::Failed { .. }), "{error}");
    let [only] = env.datasets().try_into().unwrap();
    let files = env.cluster().unwrap().files();
    assert_eq!(files.len(), 4, "the cache of the second job alone: {files:?}");
    assert_eq!(only.partitions, 2);
}

/// A15, P2, tC5: so does one that is cancelled before its consumers start.
#[test]
fn a_job_that_is_cancelled_leaves_no_data_set() {
    let (env, calls) = (env(1, 1), Calls::default());
    let cached = doubled(&env, 100, &calls).cache();
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let gate = Mutex::new((begun, may_go));
    cached.key_by(|n| *n).count().for_each(move |_| {
        let gate = gate.lock().unwrap();
        let _ = gate.0.send(());
        let _ = gate.1.recv();
    });
    let job = env.submit("cancelled").unwrap();
    has_begun.recv().unwrap();
    job.cancel();
    drop(go);
    assert!(matches!(job.wait(), Err(JobError::Cancelled { .. })));
    assert!(env.datasets().is_empty());
    assert!(env.cluster().unwrap().files().is_empty());
}

/// P1, P3, tC6, tC10: a hundred small jobs leave what is cached, and nothing else.
#[test]
fn small_jobs_leave_no_entry_and_no_file() {
    let (env, calls) = (env(2, 1), Calls::default());
    let cached = doubled(&env, 50, &calls).cache();
    cached.count().unwrap();
    let kept = env.cluster().unwrap().files();
    for _ in 0..100 {
        assert_eq!(cached.key_by(|n| n % 5).count().execute_and_collect().unwrap().len(), 5);
    }
    assert_eq!(env.cluster().unwrap().files(), kept);
    cached.invalidate().unwrap();
    assert!(env.cluster().unwrap().files().is_empty());
    assert_eq!(calls.get(), 50);
}

/// P4, tC2: a job whose parts are kept late is not over before, and the next one reads them.
#[test]
fn a_job_is_not_over_before_its_parts_are_kept() {
    let (env, calls) = (env(1, 1), Calls::default());
    let cached = doubled(&env, 100, &calls).cache();
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let gate = Mutex::new(Some((begun, may_go)));
    cached.for_each(move |_| {
        if let Some((begun, may_go)) = gate.lock().unwrap().take() {
            begun.send(()).unwrap();
            may_go.recv().unwrap();
        }
    });
    let job = env.submit("slow to keep").unwrap();
    has_begun.recv().unwrap();
    let cluster = env.cluster().unwrap();
    let paused = cluster.pause(cluster.workers()[0]).unwrap();
    go.send(()).unwrap();
    while calls.get() < 100 {
        std::thread::yield_now();
    }
    assert!(!job.is_finished());
    assert!(!cached.is_cached());
    drop(paused);
    job.wait().unwrap();
    assert!(cached.is_cached());
    assert!(cached.execute_and_collect().unwrap().report().cache("doubled").unwrap().is_hit());
}

/// P5, tC11: a worker that holds a part is not idle.
#[test]
fn a_worker_that_holds_a_part_is_not_idle() {
    let (env, calls) = (env(1, 2), Calls::default());
    let cached = doubled(&env, 100, &calls).cache();
    cached.count().unwrap();
    let idle = env.cluster().unwrap().idle_workers();
    assert_eq!(idle.len(), 1);
    assert!(!idle.contains(&env.datasets()[0].workers[0]));
    cached.invalidate().unwrap();
    assert_eq!(env.cluster().unwrap().idle_workers().len(), 2);
}

/// P8, A25: the listing shows what is kept, until the environment is closed.
#[test]
fn a_forgotten_cache_is_listed_until_the_environment_is_closed() {
    let (env, calls) = (env(3, 2), Calls::default());
    doubled(&env, 300, &calls).name("forgotten").cache().count().unwrap();
    let [listed] = env.datasets().try_into().unwrap();
    assert_eq!((listed.name.as_str(), listed.is_complete), ("forgotten", true));
    assert_eq!((listed.partitions, listed.rows), (3, 300));
    let files = env.cluster().unwrap().partition_files(listed.id);
    let bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert_eq!(listed.bytes, bytes);
    env.close().unwrap();
    assert!(env.datasets().is_empty());
}

/// A12, P12: closing leaves no file, and can be repeated.
#[test]
fn closing_leaves_no_file() {
    let (env, calls) = (env(2, 2), Calls::default());
    let cached = doubled(&env, 100, &calls).cache();
    cached.count().unwrap();
    let directory = env.cluster().unwrap().directory().to_owned();
    env.close().unwrap();
    assert!(!directory.exists());
    env.close().unwrap();
    assert!(matches!(cached.count(), Err(JobError::Closed)));
    assert!(cached.invalidate().is_ok());
}

/// P9: deletion answers at once with an id that can be asked after, and can be repeated.
#[test]
fn a_deletion_is_asked_for_and_asked_after() {
    let (env, calls) = (env(2, 1), Calls::default());
    let cached = doubled(&env, 100, &calls).cache();
    cached.count().unwrap();
    let cluster = env.cluster().unwrap();
    let paused = cluster.pause(cluster.workers()[0]).unwrap();
    let request = cluster.delete(cached.data_set());
    assert_eq!(cluster.deletion(request), Some(Deletion::Pending));
    assert!(!cached.is_cached(), "nobody reads it any more");
    let again = cluster.delete(cached.data_set());
    assert_eq!(cluster.deletion(again), Some(Deletion::Done), "nothing was left to be asked");
    drop(paused);
    cluster.quiesce();
    assert_eq!(cluster.deletion(request), Some(Deletion::Done));
    assert!(cluster.partition_files(cached.data_set()).is_empty());
}

/// A making from before an invalidation is not kept: it may have read what is stale.
#[test]
fn what_is_made_while_it_is_invalidated_is_not_kept() {
    let (env, calls) = (env(1, 1), Calls::default());
    let cached = doubled(&env, 100, &calls).cache();
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let gate = Mutex::new(Some((begun, may_go)));
    cached.for_each(move |_| {
        if let Some((begun, may_go)) = gate.lock().unwrap().take() {
            begun.send(()).unwrap();
            may_go.recv().unwrap();
        }
    });
    let job = env.submit("stale").unwrap();
    has_begun.recv().unwrap();
    cached.invalidate().unwrap();
    go.send(()).unwrap();
    job.wait().unwrap();
    assert!(!cached.is_cached());
    assert!(env.cluster().unwrap().files().is_empty());
}

/// Partitions in a store of the user's, which outlives workers or not, and may refuse to drop one.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere {
    inner: Arc<FileShuffle>,
    survives: bool,
    /// The first release of this part fails.
    stubborn: Option<u32>,
}

impl Elsewhere {
    pub(crate) fn below(directory: &std::path::Path, survives: bool) -> Self {
        let store = Arc::new(DirectoryStore::new(directory));
        Self { inner: Arc::new(FileShuffle::new(store)), survives, stubborn: None }
    }
}

impl ShuffleService for Elsewhere {
    fn writer(
        &self,
        descriptor: &PartitionDescriptor,
    ) -> Result<Box<dyn ResultPartitionWriter>, ShuffleError> {
        self.inner.writer(descriptor)
    }

    fn reader(
        &self,
        descriptor: &PartitionDescriptor,
        subpartitions: std::ops::Range<u32>,
    ) -> Result<Box<dyn ResultPartitionReader>, ShuffleError> {
        self.inner.reader(descriptor, subpartitions)
    }

    fn release(&self, partition: &PartitionIdentity) -> Result<(), ShuffleError> {
        match partition {
            PartitionIdentity::DataSet { producer, .. } if Some(producer.0) == self.stubborn => {
                Err(ShuffleError::Service { partition: *partition, source: "it is stuck".into() })
            }
            _ => self.inner.release(partition),
        }
    }

    fn survives_worker_loss(&self) -> bool {
        self.survives
    }
}

fn elsewhere(service: Elsewhere, workers: u32) -> StreamExecutionEnvironment {
    StreamExecutionEnvironment::builder()
        .shuffle(service)
        .set(&options::PARALLELISM, Some(3))
        .set(&options::WORKERS, workers)
        .build()
}

/// A22, tC7, tC11: kept apart from its workers a cache outlives them; lost there it is made anew.
#[test]
fn a_cache_apart_from_its_workers_outlives_them() {
    let directory = tempfile::tempdir().unwrap();
    let env = elsewhere(Elsewhere::below(directory.path(), true), 2);
    let calls = Calls::default();
    let cached = doubled(&env, 600, &calls).cache();
    cached.count().unwrap();
    let cluster = env.cluster().unwrap();
    assert_eq!(cluster.idle_workers().len(), 2, "nothing rests on them");
    for worker in cluster.workers() {
        cluster.kill(worker).unwrap();
    }
    let read = cached.execute_and_collect().unwrap();
    assert!(read.report().cache("doubled").unwrap().is_hit());
    assert_eq!(read.sorted(), doubles(600));
    assert_eq!(calls.get(), 600);
    let files = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = files.collect();
    assert_eq!(files.len(), 6);
    let data = files.iter().find(|file| file.extension().is_some_and(|end| end == "data"));
    std::fs::remove_file(data.unwrap()).unwrap();
    let again = cached.execute_and_collect().unwrap();
    assert_recomputed(&again, "doubled", "is lost");
    assert_eq!(again.sorted(), doubles(600));
    assert_eq!(calls.get(), 1_200);
    env.close().unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// tC16: one part that cannot be dropped does not keep the others, and is reported.
#[test]
fn a_failing_deletion_at_closing_does_not_keep_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let service = Elsewhere { stubborn: Some(1), ..Elsewhere::below(directory.path(), true) };
    let env = elsewhere(service, 1);
    let calls = Calls::default();
    for name in ["one", "two"] {
        doubled(&env, 30, &calls).name(name).cache().count().unwrap();
    }
    let error = env.close().unwrap_err();
    let JobError::NotReleased { failures } = &error else { panic!("{error}") };
    assert_eq!(failures.len(), 2, "one of each: {failures:?}");
    assert!(error.to_string().contains("it is stuck"), "{error}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 4, "those two parts");
}
