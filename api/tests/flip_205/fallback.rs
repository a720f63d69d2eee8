//! A part lost or damaged, before and during the job that reads it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};

use slackwater::prelude::*;
use slackwater::{CacheOutcome, CachedDataStream, JobError};

use crate::support::*;

const ROWS: u64 = 4_000;

/// Three parts on two workers, kept.
fn kept() -> (StreamExecutionEnvironment, CachedDataStream<u64>, Calls) {
    let (env, calls) = (env(3, 2), Calls::default());
    let cached = doubled(&env, ROWS, &calls).cache();
    assert_eq!(cached.count().unwrap(), ROWS);
    assert_eq!(calls.get(), ROWS);
    (env, cached, calls)
}

/// One run without the cache, right rows, and the cache stands again.
#[track_caller]
fn recovers(cached: &CachedDataStream<u64>, calls: &Calls, why: &str) {
    let rows = cached.execute_and_collect().unwrap();
    assert_recomputed(&rows, "doubled", why);
    assert_eq!(rows.sorted(), doubles(ROWS));
    assert_eq!(calls.get(), 2 * ROWS, "exactly one run without the cache");
    let again = cached.execute_and_collect().unwrap();
    assert_eq!(outcome(&again, "doubled"), CacheOutcome::Hit);
    assert_eq!(again.sorted(), doubles(ROWS));
    assert_eq!(calls.get(), 2 * ROWS);
}

/// A19: whatever is done to a file, the next job is right and the one after reads the cache.
#[test]
fn every_kind_of_damage_is_noticed_and_made_good() {
    for damage in ["deleted", "flipped", "cut", "swapped", "emptied", "index flipped"] {
        let (env, cached, calls) = kept();
        let data = data_file(&env, cached.data_set(), 1);
        match damage {
            "deleted" => remove(&env, &cached, 1),
            "flipped" => flip(&data),
            "cut" => {
                let bytes = std::fs::read(&data).unwrap();
                std::fs::write(&data, &bytes[..bytes.len() / 2]).unwrap();
            }
            "swapped" => {
                let other = data_file(&env, cached.data_set(), 2);
                std::fs::copy(other, &data).unwrap();
            }
            "emptied" => std::fs::write(&data, []).unwrap(),
            _ => flip(&data_index(&env, &cached)),
        }
        recovers(&cached, &calls, "data set");
        env.close().unwrap();
    }
}

fn data_index(
    env: &StreamExecutionEnvironment,
    cached: &CachedDataStream<u64>,
) -> std::path::PathBuf {
    let files = files_of(env, cached.data_set(), 1);
    files.into_iter().find(|path| path.extension().is_some_and(|e| e == "index")).unwrap()
}

/// A16, A18, P10, P11: a worker is lost between two jobs; its data set goes everywhere, whole.
#[test]
fn a_lost_worker_costs_one_run_without_the_cache() {
    let (env, cached, calls) = kept();
    let cluster = env.cluster().unwrap();
    let [one, two] = cluster.workers().try_into().unwrap();
    assert!(cluster.kill(one).unwrap());
    assert!(!cluster.kill(one).unwrap(), "it is dead");
    cluster.quiesce();
    assert!(env.datasets().is_empty());
    assert!(cluster.partition_files(cached.data_set()).is_empty(), "released on the other one");
    assert!(cluster.workers().contains(&two) && cluster.workers().len() == 2);
    recovers(&cached, &calls, "was lost");
}

/// A17: the failing first run does not use the restart strategy.
#[test]
fn a_lost_cache_does_not_use_up_a_restart() {
    let (env, cached, calls) = kept();
    env.set(&options::RESTART_STRATEGY, Some(options::RestartStrategy::None));
    remove(&env, &cached, 0);
    recovers(&cached, &calls, "is lost");
}

/// A21, tC15: executing, submitting, collecting, taking and counting all have the fallback.
#[test]
fn every_way_to_run_a_job_has_the_fallback() {
    let (env, cached, calls) = kept();
    for way in 0..5 {
        remove(&env, &cached, 2);
        let report = match way {
            0 | 1 => {
                let sums = cached.key_by(|n| n % 2).count();
                sums.for_each(|(_, n)| assert!(n == ROWS));
                if way == 0 {
                    env.execute("executed").unwrap()
                } else {
                    let job = env.submit("submitted").unwrap();
                    job.wait().unwrap()
                }
            }
            2 => cached.execute_and_collect().unwrap().report().clone(),
            3 => {
                // Enough to come to the part that is lost.
                let taken = cached.take(ROWS).unwrap();
                assert_eq!(taken.len() as u64, ROWS);
                taken.report().clone()
            }
            _ => {
                assert_eq!(cached.count().unwrap(), ROWS);
                assert_eq!(calls.get(), (way + 2) * ROWS);
                continue;
            }
        };
        assert!(!report.cache("doubled").unwrap().is_hit(), "way {way}");
        assert_eq!(report.recovered.len(), 1, "{:?}", report.recovered);
        assert_eq!(calls.get(), (way + 2) * ROWS, "way {way}");
    }
}

/// D15, tC14: only the damaged data sets are made again; all of them at once.
#[test]
fn healthy_caches_of_the_same_job_stay() {
    let env = env(2, 2);
    let counts = [Calls::default(), Calls::default(), Calls::default()];
    let caches: Vec<_> = ["a", "b", "c"]
        .iter()
        .zip(&counts)
        .map(|(name, calls)| doubled(&env, 500, calls).name(name).cache())
        .collect();
    let all = |caches: &[CachedDataStream<u64>]| {
        caches[0].union(&caches[1]).union(caches[2].stream()).execute_and_collect().unwrap()
    };
    all(&caches);
    flip(&data_file(&env, caches[0].data_set(), 0));
    remove(&env, &caches[2], 1);
    let healthy = caches[1].data_set();
    let rows = all(&caches);
    assert_eq!(rows.len(), 1_500);
    assert_recomputed(&rows, "a", "corrupt");
    assert_recomputed(&rows, "c", "is lost");
    assert_eq!(outcome(&rows, "b"), CacheOutcome::Hit);
    assert_eq!(counts.each_ref().map(Calls::get), [1_000, 500, 1_000]);
    assert!(env.datasets().iter().any(|set| set.id == healthy && set.generation.0 == 1));
    assert_eq!(env.datasets().len(), 3);
}

/// A20: a second loss, in the run that was to make it good, is an error that names what was lost.
#[test]
fn a_second_loss_reaches_the_user_by_name() {
    let (env, healthy, calls) = kept();
    // One reader at a time: later parts are opened when the first is read.
    env.set(&options::TASK_SLOTS, Some(1)).set(&options::PARALLELISM, Some(1));
    let doomed: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
    let take_away = Arc::clone(&doomed);
    let halved = healthy.map(move |n| {
        for file in std::mem::take(&mut *take_away.lock().unwrap()) {
            std::fs::remove_file(file).unwrap();
        }
        n / 2
    });
    let halved = halved.name("halved").cache();
    assert_eq!(halved.count().unwrap(), ROWS);
    remove(&env, &halved, 0);
    for producer in [1, 2] {
        doomed.lock().unwrap().extend(files_of(&env, healthy.data_set(), producer));
    }
    let error = halved.count().unwrap_err();
    assert!(matches!(error, JobError::CacheLost { .. }), "{error:?}");
    assert_eq!(error.to_string(), "job `collect` lost the cached data set `doubled`");
    assert_eq!(calls.get(), ROWS, "no third run");
}

/// tC8: of nested caches that are both damaged one more run makes both good.
#[test]
fn nested_caches_that_are_both_damaged_are_made_good_at_once() {
    let (env, outer, calls) = kept();
    // Dealt by number: each part has rows, whichever reader is the first.
    let dealt =
        outer.stream().partition_custom(|n, subtasks| u32::try_from(n / 2 % 3).unwrap() % subtasks);
    let inner = dealt.map(|n| n / 2).name("halved").cache();
    inner.count().unwrap();
    flip(&data_file(&env, inner.data_set(), 0));
    remove(&env, &outer, 2);
    let rows = inner.execute_and_collect().unwrap();
    assert_recomputed(&rows, "halved", "corrupt");
    assert_recomputed(&rows, "doubled", "is lost");
    assert_eq!(rows.sorted(), (0..ROWS).collect::<Vec<_>>());
    assert_eq!(calls.get(), 2 * ROWS);
}

/// A16, during the job: no row of the failed run is collected, whenever the worker goes.
#[test]
fn a_worker_lost_while_its_part_is_read_leaves_no_row_twice() {
    let (env, cached, calls) = kept();
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let gate = Mutex::new(Some((begun, may_go)));
    let read = cached.map(move |n| {
        if let Some((begun, may_go)) = gate.lock().unwrap().take() {
            begun.send(()).unwrap();
            may_go.recv().unwrap();
        }
        n
    });
    std::thread::scope(|scope| {
        let job = scope.spawn(|| read.execute_and_collect().unwrap());
        has_begun.recv().unwrap();
        let cluster = env.cluster().unwrap();
        for worker in cluster.workers() {
            cluster.kill(worker).unwrap();
        }
        go.send(()).unwrap();
        assert_eq!(job.join().unwrap().sorted(), doubles(ROWS));
    });
    assert!(calls.get() > ROWS);
    assert!(cached.is_cached());
}

/// Invalidated while a job reads it: the job gives the right rows all the same.
#[test]
fn a_cache_given_up_while_it_is_read_is_never_a_mixture() {
    let (env, cached, _) = kept();
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let gate = Mutex::new(Some((begun, may_go)));
    let read = cached.map(move |n| {
        if let Some((begun, may_go)) = gate.lock().unwrap().take() {
            begun.send(()).unwrap();
            may_go.recv().unwrap();
        }
        n
    });
    std::thread::scope(|scope| {
        let job = scope.spawn(|| read.execute_and_collect().unwrap());
        has_begun.recv().unwrap();
        cached.invalidate().unwrap();
        go.send(()).unwrap();
        assert_eq!(job.join().unwrap().sorted(), doubles(ROWS));
    });
    env.close().unwrap();
}
