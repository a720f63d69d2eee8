//! Workers that are silent: paused, cut off, and back when others have taken their place.
//!
//! Time is moved by hand. A worker counts as lost when a heartbeat that it was asked for has no
//! answer for the time-out; so time passes in two moves, and between them the others have answered.

use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use slackwater::options::RestartStrategy;
use slackwater::prelude::*;
use slackwater::{Cluster, EnvironmentBuilder, ManualClock, TaskManagerId};

use crate::cluster::Elsewhere;
use crate::support::*;

const INTERVAL: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(50);

/// Batch jobs over a clock that stands still.
fn timed(parallelism: u32, workers: u32) -> (StreamExecutionEnvironment, ManualClock) {
    timed_over(StreamExecutionEnvironment::builder(), parallelism, workers)
}

fn timed_over(
    builder: EnvironmentBuilder,
    parallelism: u32,
    workers: u32,
) -> (StreamExecutionEnvironment, ManualClock) {
    let clock = ManualClock::default();
    let env = builder
        .clock(clock.clone())
        .set(&options::PARALLELISM, Some(parallelism))
        .set(&options::WORKERS, workers)
        .set(&options::HEARTBEAT_INTERVAL, INTERVAL)
        .set(&options::HEARTBEAT_TIMEOUT, TIMEOUT)
        .set(&options::RESTART_DELAY, Duration::ZERO)
        .build();
    (env, clock)
}

/// Waits for something that comes by itself; the limit is there for tests that hang.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::yield_now();
    }
}

/// Moves the clock, and waits until these workers have answered a heartbeat asked for since.
fn pass(clock: &ManualClock, by: Duration, cluster: &Cluster, answering: &[TaskManagerId]) {
    let before: Vec<_> = answering.iter().map(|worker| cluster.heartbeat(*worker)).collect();
    clock.advance(by);
    for (worker, before) in answering.iter().zip(before) {
        until("a worker answers", || cluster.heartbeat(*worker) > before);
    }
}

/// Moves time on until a silent worker is lost, and the other one is not.
fn lose(clock: &ManualClock, cluster: &Cluster, silent: TaskManagerId, other: TaskManagerId) {
    pass(clock, INTERVAL, cluster, &[other]);
    pass(clock, TIMEOUT, cluster, &[other]);
    until("the silent one is lost", || !cluster.workers().contains(&silent));
    assert!(cluster.workers().contains(&other), "who answers is not lost");
}

fn home(cluster: &Cluster, worker: TaskManagerId) -> std::path::PathBuf {
    cluster.directory().join(format!("worker-{worker}"))
}

fn is_gone(path: &Path) -> bool {
    !path.exists()
}

/// A16, P6, P11: a worker that hangs is lost by the clock, its data set goes whole, the next job makes
/// it anew; and a second time.
#[test]
fn a_silent_worker_is_lost_by_the_clock_and_its_caches_with_it() {
    let (env, clock) = timed(3, 2);
    let calls = Calls::default();
    let cached = doubled(&env, 600, &calls).cache();
    cached.count().unwrap();
    let cluster = env.cluster().unwrap();
    for round in 1..3 {
        let [silent, other] = cluster.workers().try_into().unwrap();
        let paused = cluster.pause(silent).unwrap();
        lose(&clock, &cluster, silent, other);
        assert_eq!(cluster.workers().len(), 2, "another one has come");
        until("the data set is given up", || env.datasets().is_empty());
        let rows = cached.execute_and_collect().unwrap();
        assert_recomputed(&rows, "doubled", "it gave no heartbeat for 50000 ms");
        assert_eq!(rows.sorted(), doubles(600));
        assert_eq!(calls.get(), 600 * (round + 1));
        drop(paused);
        until("what comes back removes its files", || is_gone(&home(&cluster, silent)));
        assert_eq!(cluster.heartbeat(silent), None, "and is not known any more");
        assert!(cached.execute_and_collect().unwrap().report().cache("doubled").unwrap().is_hit());
    }
    env.close().unwrap();
}

/// Cut off for less than the time-out: what was said meanwhile comes late, and nothing is lost.
#[test]
fn a_worker_that_is_back_in_time_is_not_lost() {
    let (env, clock) = timed(2, 2);
    let calls = Calls::default();
    let cached = doubled(&env, 200, &calls).cache();
    cached.count().unwrap();
    let cluster = env.cluster().unwrap();
    let both = cluster.workers();
    let cut = cluster.cut_off(both[0]).unwrap();
    pass(&clock, INTERVAL, &cluster, &both[1..]);
    pass(&clock, TIMEOUT - INTERVAL, &cluster, &both[1..]);
    let before = cluster.heartbeat(both[0]);
    drop(cut);
    until("it answers late", || cluster.heartbeat(both[0]) > before);
    pass(&clock, TIMEOUT, &cluster, &both);
    assert_eq!(cluster.workers(), both);
    assert!(cached.execute_and_collect().unwrap().report().cache("doubled").unwrap().is_hit());
    assert_eq!(calls.get(), 200);
}

/// tC3: a worker is cut off in the middle of its task, another attempt runs elsewhere, and what the
/// first one says when it is back is of an attempt that is over. Twice in one job.
#[test]
fn what_a_cut_off_worker_says_late_is_dropped() {
    let (env, clock) = timed(1, 2);
    env.set(&options::RESTART_STRATEGY, Some(RestartStrategy::FixedDelay));
    let (begun, has_begun) = mpsc::channel();
    let (goes, may_go): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::channel::<()>()).unzip();
    let gates = Mutex::new(may_go.into_iter().map(Some).collect::<Vec<_>>());
    let attempts = Calls::default();
    let count = attempts.clone();
    let held = env.from_collection(0..50_u64).map(move |n| {
        if n == 10 {
            let attempt = usize::try_from(count.one_more()).unwrap() - 1;
            let gate = gates.lock().unwrap()[attempt].take().unwrap();
            begun.send(()).unwrap();
            gate.recv().unwrap();
        }
        n
    });
    std::thread::scope(|scope| {
        let job = scope.spawn(|| held.execute_and_collect().unwrap());
        let cluster = env.cluster().unwrap();
        has_begun.recv().unwrap();
        for go in &goes[..2] {
            pass(&clock, INTERVAL, &cluster, &cluster.workers());
            let [idle] = cluster.idle_workers().try_into().unwrap();
            let busy = cluster.workers().into_iter().find(|worker| *worker != idle).unwrap();
            let cut = cluster.cut_off(busy).unwrap();
            lose(&clock, &cluster, busy, idle);
            has_begun.recv().unwrap();
            // It ends its attempt, well by its own lights, and says so when it is heard again.
            go.send(()).unwrap();
            drop(cut);
            until("it has come to its end", || is_gone(&home(&cluster, busy)));
        }
        goes[2].send(()).unwrap();
        let rows = job.join().unwrap();
        assert_eq!(rows.report().recovered.len(), 2, "{:?}", rows.report().recovered);
        assert_eq!(rows.sorted(), (0..50).collect::<Vec<_>>());
    });
    assert_eq!(attempts.get(), 3);
}

/// tC9: a worker that was given up finishes its partitions in a store that outlives it; they come
/// after the job, which has them from another attempt, and are dropped.
#[test]
fn partitions_that_come_after_their_job_are_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let builder =
        StreamExecutionEnvironment::builder().shuffle(Elsewhere::below(directory.path(), true));
    let (env, clock) = timed_over(builder, 1, 2);
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let gate = Mutex::new(Some((begun, may_go)));
    // Behind an exchange: the task needs no mail to come to its end.
    let held = env.from_collection(0..50_u64).rebalance().map(move |n| {
        let gate = gate.lock().unwrap().take();
        if let Some((begun, may_go)) = gate {
            begun.send(()).unwrap();
            may_go.recv().unwrap();
        }
        n
    });
    let cached = held.name("held").cache();
    let files = || std::fs::read_dir(directory.path()).unwrap().count();
    std::thread::scope(|scope| {
        let job = scope.spawn(|| cached.stream().rebalance().execute_and_collect().unwrap());
        let cluster = env.cluster().unwrap();
        has_begun.recv().unwrap();
        pass(&clock, INTERVAL, &cluster, &cluster.workers());
        let [idle] = cluster.idle_workers().try_into().unwrap();
        let busy = cluster.workers().into_iter().find(|worker| *worker != idle).unwrap();
        let cut = cluster.cut_off(busy).unwrap();
        lose(&clock, &cluster, busy, idle);
        assert_eq!(job.join().unwrap().sorted(), (0..50).collect::<Vec<_>>());
        go.send(()).unwrap();
        until("both parts are whole, and its result for the consumer", || files() == 6);
        drop(cut);
        until("they are dropped", || files() == 2);
    });
    let hit = cached.execute_and_collect().unwrap();
    assert!(hit.report().cache("held").unwrap().is_hit());
    assert_eq!(hit.len(), 50);
    env.close().unwrap();
    assert_eq!(files(), 0);
}
