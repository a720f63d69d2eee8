//! Only what is lost is made again: `execution.cache.recovery = partitions`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use slackwater::options::CacheRecovery;
use slackwater::prelude::*;
use slackwater::{CacheOutcome, CachedDataStream, Collected, GeneratorSource, JobError};

use crate::support::*;

const ROWS: u64 = 1_600;
const KEYS: u64 = 64;

fn mending(parallelism: u32, workers: u32) -> StreamExecutionEnvironment {
    let env = env(parallelism, workers);
    env.set(&options::CACHE_RECOVERY, CacheRecovery::Partitions);
    env
}

/// Counts of so many keys, four parts on two workers: calls above the exchange, and behind it.
fn counted(env: &StreamExecutionEnvironment) -> (CachedDataStream<(u64, u64)>, Calls, Calls) {
    let (above, behind) = (Calls::default(), Calls::default());
    let count = behind.clone();
    let counts = doubled(env, ROWS, &above).key_by(|n| n % KEYS).count().map(move |pair| {
        count.one_more();
        pair
    });
    (counts.name("counted").cache(), above, behind)
}

fn counts() -> Vec<(u64, u64)> {
    let of = |key| (0..ROWS).filter(|i| i * 2 % KEYS == key).count() as u64;
    (0..KEYS).map(|key| (key, of(key))).filter(|(_, count)| *count > 0).collect()
}

#[track_caller]
fn assert_repaired<T>(rows: &Collected<T>, name: &str, made: u32, why: &str) {
    match outcome(rows, name) {
        CacheOutcome::Repaired { reason, parts } => {
            assert!(reason.contains(why), "{reason}");
            assert_eq!(parts, made);
        }
        other => panic!("{other:?}"),
    }
}

/// One part damaged: its producer runs again, and all that it reads; and a second time.
#[test]
fn the_producer_of_a_damaged_part_runs_again_alone() {
    let env = mending(4, 2);
    let (cached, above, behind) = counted(&env);
    assert_eq!(cached.execute_and_collect().unwrap().sorted(), counts());
    let (rows, keys) = (above.get(), behind.get());
    let mut made_again = 0;
    for (round, producer) in (1..).zip([1, 1, 2]) {
        if round == 2 {
            flip(&data_file(&env, cached.data_set(), producer));
        } else {
            remove(&env, &cached, producer);
        }
        let read = cached.execute_and_collect().unwrap();
        assert_repaired(&read, "counted", 1, "data set");
        // Four readers that failed; four subtasks above and one producer; readers and collector.
        assert_eq!(read.report().tasks, 4 + (4 + 4 + 1) + 5);
        assert_eq!(read.sorted(), counts());
        assert_eq!(above.get(), rows * (round + 1), "what is above runs whole");
        let of_part = behind.get() - keys - made_again;
        assert!(of_part > 0 && of_part < keys / 2, "{of_part} of {keys} keys");
        made_again += of_part;
        let hit = cached.execute_and_collect().unwrap();
        assert_eq!((outcome(&hit, "counted"), hit.report().tasks), (CacheOutcome::Hit, 5));
        assert_eq!(hit.sorted(), counts());
        let [set] = env.datasets().try_into().unwrap();
        assert_eq!((set.generation.0, set.partitions), (1, 4), "one making all along");
    }
    env.close().unwrap();
}

/// P11 by parts: a lost worker takes its parts along and no others; the next job begins with them.
#[test]
fn the_parts_of_a_lost_worker_are_made_again_and_the_others_stay() {
    let env = mending(4, 2);
    let (cached, above, _) = counted(&env);
    cached.execute_and_collect().unwrap();
    let cluster = env.cluster().unwrap();
    for round in 2..4 {
        let before = env.datasets()[0].clone();
        let lost = before.workers[0];
        cluster.kill(lost).unwrap();
        cluster.quiesce();
        let [left] = env.datasets().try_into().unwrap();
        assert!(!left.is_complete && !left.workers.contains(&lost));
        assert!(left.partitions > 0 && left.partitions < 4, "{left:?}");
        let read = cached.execute_and_collect().unwrap();
        assert_repaired(&read, "counted", 4 - left.partitions, "was lost");
        let repair = 4 + 4 + u64::from(4 - left.partitions);
        assert_eq!(read.report().tasks, repair + 5, "no reader has failed");
        assert_eq!(read.sorted(), counts());
        assert_eq!(above.get(), ROWS * round);
    }
}

/// A part that a source's own subtask wrote is made of the splits that this subtask read.
#[test]
fn a_source_that_writes_its_part_itself_reads_the_same_splits_again() {
    let (env, calls) = (mending(3, 1), Calls::default());
    let count = calls.clone();
    let squares = env.generate(ROWS, |i| i).map(move |i| {
        count.one_more();
        i * i
    });
    let cached = squares.name("squares").cache();
    let expected: Vec<u64> = (0..ROWS).map(|i| i * i).collect();
    assert_eq!(cached.execute_and_collect().unwrap().sorted(), expected);
    for producer in [0, 2, 0] {
        let before = calls.get();
        remove(&env, &cached, producer);
        let read = cached.execute_and_collect().unwrap();
        assert_repaired(&read, "squares", 1, "is lost");
        assert_eq!(read.report().tasks, 3 + 1 + 4);
        assert_eq!(read.sorted(), expected);
        assert!(calls.get() - before <= ROWS);
    }
}

/// A subtask that came too late for a split has an empty part, which is made again as an empty one.
#[test]
fn a_part_of_a_source_that_read_nothing_is_made_again() {
    let env = mending(3, 1);
    let one_split = GeneratorSource::bounded(ROWS, |i| (i, None)).splits(1);
    let source = env.from_source(one_split, WatermarkStrategy::none(), "numbers");
    let cached = source.name("numbers").cache();
    cached.count().unwrap();
    for producer in [0, 1, 2, 1] {
        remove(&env, &cached, producer);
        let read = cached.execute_and_collect().unwrap();
        assert_repaired(&read, "numbers", 1, "is lost");
        assert_eq!(read.sorted(), (0..ROWS).collect::<Vec<_>>());
    }
}

/// tC8 by parts: two caches, one made of the other, both damaged: each is repaired, the upper one first.
#[test]
fn nested_caches_are_both_repaired_by_one_job() {
    let env = mending(3, 2);
    let calls = Calls::default();
    let outer = doubled(&env, ROWS, &calls).cache();
    let inner = outer.key_by(|n| n % KEYS).count().name("counted").cache();
    inner.execute_and_collect().unwrap();
    flip(&data_file(&env, inner.data_set(), 0));
    remove(&env, &outer, 2);
    let read = inner.execute_and_collect().unwrap();
    assert_repaired(&read, "counted", 1, "corrupt");
    assert_eq!(read.sorted(), counts());
    assert_eq!(calls.get(), ROWS + (0..ROWS).filter(|i| i % 3 == 2).count() as u64);
    assert!(outer.is_cached() && inner.is_cached());
}

/// A20 by parts: what is lost while the repair of a second run goes on is an error that names it.
#[test]
fn a_loss_in_the_repair_reaches_the_user_by_name() {
    let (env, calls) = (mending(3, 2), Calls::default());
    let healthy = doubled(&env, ROWS, &calls).cache();
    healthy.count().unwrap();
    // One reader at a time: later parts are opened when the first is read.
    env.set(&options::TASK_SLOTS, Some(1)).set(&options::PARALLELISM, Some(1));
    let doomed: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
    let take_away = Arc::clone(&doomed);
    let halves = healthy.map(move |n| {
        for file in std::mem::take(&mut *take_away.lock().unwrap()) {
            std::fs::remove_file(file).unwrap();
        }
        n / 2
    });
    let halves = halves.key_by(|n| n % KEYS).count().parallelism(2).name("halves").cache();
    halves.execute_and_collect().unwrap();
    remove(&env, &halves, 0);
    for producer in [1, 2] {
        doomed.lock().unwrap().extend(files_of(&env, healthy.data_set(), producer));
    }
    let error = halves.execute_and_collect().unwrap_err();
    assert!(matches!(error, JobError::CacheLost { .. }), "{error:?}");
    assert_eq!(error.to_string(), "job `collect` lost the cached data set `doubled`");
    assert_eq!(calls.get(), ROWS, "no third run");
}

/// A20 by parts: what a repair reads from may be lost too: then the job goes on without it, as one whose first run
/// finds a loss, and both are whole afterwards or not needed.
#[test]
fn a_repair_that_meets_another_lost_cache_goes_on_without_it() {
    let (env, calls) = (mending(4, 2), Calls::default());
    let count = calls.clone();
    let upper = env.generate(ROWS, |i| i).parallelism(1).map(move |i| {
        count.one_more();
        i * 2
    });
    let upper = upper.parallelism(1).name("upper").cache();
    let lower = upper.key_by(|n| n % KEYS).count().name("counted").cache();
    assert_eq!(lower.execute_and_collect().unwrap().sorted(), counts());
    let sets = env.datasets();
    let holders = |id| sets.iter().find(|set| set.id == id).unwrap().workers.clone();
    let holds_upper = holders(upper.data_set());
    let other = *holders(lower.data_set()).iter().find(|id| !holds_upper.contains(id)).unwrap();
    let cluster = env.cluster().unwrap();
    cluster.kill(other).unwrap();
    cluster.quiesce();
    remove(&env, &upper, 0);
    let read = lower.execute_and_collect().unwrap();
    assert_repaired(&read, "counted", 2, "was lost");
    let [reason] = read.report().recovered.as_slice() else { panic!("one loss was met") };
    assert!(reason.contains("is lost"), "{reason}");
    assert_eq!(read.sorted(), counts());
    assert_eq!(calls.get(), 2 * ROWS, "the upper one's rows are made again, once");
    assert!(lower.is_cached());
}

/// Consumers in the producer's own chain have no part in a repair: a sink gets no row of it.
#[test]
fn a_repair_writes_parts_and_no_sink() {
    let env = mending(2, 2);
    let (cached, _, behind) = counted(&env);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut keys = 0;
    for round in 1..4_usize {
        let sink = Arc::clone(&seen);
        cached.for_each(move |pair| sink.lock().unwrap().push(pair));
        let report = env.execute("seen").unwrap();
        let mut rows = seen.lock().unwrap().clone();
        rows.sort_unstable();
        let mut expected = counts().repeat(round);
        expected.sort_unstable();
        assert_eq!(rows, expected, "each job writes each row once");
        if round > 1 {
            let outcome = &report.cache("counted").unwrap().outcome;
            assert!(matches!(outcome, CacheOutcome::Repaired { parts: 1, .. }), "{outcome:?}");
            assert_eq!(report.tasks, (2 + 2 + 1) + 2);
            assert!(behind.get() < 2 * keys);
        } else {
            keys = behind.get();
        }
        let cluster = env.cluster().unwrap();
        assert!(cluster.kill(cluster.workers()[0]).unwrap());
        cluster.quiesce();
    }
}

/// Where a part depends on the order in which records came, all parts are made again.
#[test]
fn what_cannot_be_made_by_parts_is_made_again_as_a_whole() {
    let (env, calls) = (mending(3, 2), Calls::default());
    let spread = doubled(&env, ROWS, &calls).rebalance().map(|n| n).name("spread").cache();
    spread.count().unwrap();
    remove(&env, &spread, 1);
    let read = spread.execute_and_collect().unwrap();
    assert_recomputed(&read, "spread", "is lost");
    assert_eq!(read.sorted(), doubles(ROWS));
    assert_eq!(calls.get(), 2 * ROWS);
}
