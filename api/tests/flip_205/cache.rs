//! Kept, read instead of computed, given up.

use slackwater::prelude::*;
use slackwater::{CacheOutcome, KeyedStream};

use crate::support::*;

/// A1: marking a stream runs nothing.
#[test]
fn marking_a_stream_as_cached_runs_nothing() {
    let (env, calls) = (env(2, 1), Calls::default());
    let cached = doubled(&env, 100, &calls).cache();
    assert_eq!(calls.get(), 0);
    assert!(env.datasets().is_empty());
    assert!(!cached.is_cached());
}

/// A2, P1: the second job reads what the first has kept.
#[test]
fn the_second_job_reads_what_the_first_has_kept() {
    let (env, calls) = (env(2, 2), Calls::default());
    let cached = doubled(&env, 5_000, &calls).cache();
    let first = cached.execute_and_collect().unwrap();
    assert_eq!(outcome(&first, "doubled"), CacheOutcome::Computed);
    let second = cached.execute_and_collect().unwrap();
    let report = second.report().cache("doubled").unwrap().clone();
    assert!(report.is_hit());
    assert_eq!(report.rows, 5_000);
    assert!(report.bytes > 0 && report.saved.is_some());
    assert!(second.report().operator("generator").is_none(), "nothing upstream runs");
    assert_eq!(first.sorted(), doubles(5_000));
    assert_eq!(second.sorted(), doubles(5_000));
    assert_eq!(calls.get(), 5_000);
}

/// A3, A26, A14: other keys and any parallelism read every part of one data set.
#[test]
fn two_keyings_at_any_parallelism_read_one_data_set_whole() {
    let (env, calls) = (env(3, 2), Calls::default());
    let cached = doubled(&env, 999, &calls).cache();
    for (parallelism, modulus) in [(1, 7), (2, 5), (5, 3), (8, 2)] {
        let counts = cached
            .key_by(move |n| n % modulus)
            .count()
            .parallelism(parallelism)
            .execute_and_collect()
            .unwrap();
        let expected: Vec<(u64, u64)> = (0..modulus)
            .map(|key| (key, doubles(999).iter().filter(|n| *n % modulus == key).count() as u64))
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(counts.sorted(), expected);
    }
    assert_eq!(calls.get(), 999);
    let [listed] = env.datasets().try_into().unwrap();
    assert_eq!(listed.partitions, 3, "one part a subtask of the producer");
}

/// A13: nothing is chained over the kept edge, which the plan names persistent and blocking.
#[test]
fn the_plan_says_where_a_cache_is_kept_and_where_it_cuts() {
    let (env, calls) = (env(2, 1), Calls::default());
    let cached = doubled(&env, 10, &calls).cache();
    cached.for_each(|_| {}).name("first");
    let plan = env.explain().unwrap();
    assert!(plan.contains("blocking and persistent, written by these subtasks"), "{plan}");
    env.execute("first").unwrap();
    cached.for_each(|_| {}).name("second");
    let plan = env.explain().unwrap();
    assert!(plan.contains("hit, read by vertex"), "{plan}");
    assert!(!plan.contains("generator"), "{plan}");
}

/// A4: a side output is kept by itself.
#[test]
fn a_side_output_is_kept_and_the_main_output_is_unaffected() {
    struct Split(SideTag<u64>);
    impl slackwater::KeyedProcessFunction<u64, u64, u64> for Split {
        fn process(
            &mut self,
            value: u64,
            context: &mut KeyedContext<'_, u64, u64>,
        ) -> slackwater::Result<()> {
            match value % 3 {
                0 => context.side_output(&self.0, value),
                _ => context.collect(value),
            }
            Ok(())
        }
    }
    let (env, calls) = (env(2, 2), Calls::default());
    let tag = SideTag::<u64>::new("thirds");
    let of = tag.clone();
    let split =
        doubled(&env, 30, &calls).key_by(|n| *n).process(move || Split(of.clone())).name("split");
    let thirds = split.side_output(&tag).cache();
    let expected: Vec<u64> = doubles(30).into_iter().filter(|n| n % 3 == 0).collect();
    assert_eq!(thirds.execute_and_collect().unwrap().sorted(), expected);
    let again = thirds.execute_and_collect().unwrap();
    assert_eq!(outcome(&again, "split/thirds"), CacheOutcome::Hit);
    assert_eq!(again.sorted(), expected);
    assert_eq!(calls.get(), 30);
    let main = split.execute_and_collect().unwrap();
    assert!(main.report().caches.is_empty());
    assert_eq!(main.len(), 20);
}

/// A5: two caches in one job, and a cache over a cache.
#[test]
fn caches_nest_and_stand_side_by_side() {
    let (env, calls) = (env(2, 1), Calls::default());
    let outer = doubled(&env, 100, &calls).cache();
    let halves = Calls::default();
    let count = halves.clone();
    let inner = outer
        .map(move |n| {
            count.one_more();
            n / 2
        })
        .name("halved")
        .cache();
    let both = inner.union(&outer).execute_and_collect().unwrap();
    assert_eq!(both.report().caches.len(), 2);
    assert_eq!(both.len(), 200);
    let again = inner.execute_and_collect().unwrap();
    assert_eq!(again.report().caches.len(), 1, "the outer one is not needed");
    assert_eq!(again.sorted(), (0..100).collect::<Vec<_>>());
    inner.invalidate().unwrap();
    let from_outer = inner.execute_and_collect().unwrap();
    assert_eq!(outcome(&from_outer, "doubled"), CacheOutcome::Hit);
    assert_eq!(outcome(&from_outer, "halved"), CacheOutcome::Computed);
    assert_eq!((calls.get(), halves.get()), (100, 200));
}

/// A6: a keyed view has no `cache()`: the method that is found is this trait's.
#[test]
fn a_keyed_view_cannot_be_cached_and_a_union_can() {
    struct NotCacheable;
    trait NoCache: Sized {
        fn cache(self) -> NotCacheable {
            NotCacheable
        }
    }
    impl<K, T> NoCache for KeyedStream<K, T> {}
    let (env, calls) = (env(2, 1), Calls::default());
    let NotCacheable = doubled(&env, 10, &calls).key_by(|n| *n).cache();
    let union = doubled(&env, 10, &calls).union(doubled(&env, 10, &calls)).cache();
    for _ in 0..2 {
        assert_eq!(union.execute_and_collect().unwrap().len(), 20);
    }
    assert_eq!(calls.get(), 20);
}

/// A10, A11: given up, it is computed anew; giving up twice or early does no harm.
#[test]
fn an_invalidated_cache_is_computed_anew() {
    let (env, calls) = (env(2, 1), Calls::default());
    let cached = doubled(&env, 10, &calls).cache();
    cached.invalidate().unwrap();
    assert_eq!(cached.count().unwrap(), 10);
    cached.invalidate().unwrap();
    cached.invalidate().unwrap();
    assert!(env.datasets().is_empty());
    let again = cached.execute_and_collect().unwrap();
    assert_eq!(outcome(&again, "doubled"), CacheOutcome::Computed);
    assert_eq!(again.sorted(), doubles(10));
    assert_eq!(calls.get(), 20);
}

/// A23: the job that makes a cache may itself use it, more than once.
#[test]
fn the_job_that_makes_a_cache_uses_it_too() {
    let (env, calls) = (env(2, 2), Calls::default());
    let cached = doubled(&env, 1_000, &calls).cache();
    let sums = cached.key_by(|n| n % 3).sum(|n| *n);
    let counts = cached.key_by(|n| n % 3).count();
    let sums = sums.union(counts).execute_and_collect().unwrap();
    let total: u64 = sums.iter().map(|(_, n)| n).sum();
    assert_eq!(total, doubles(1_000).iter().sum::<u64>() + 1_000);
    assert_eq!(cached.count().unwrap(), 1_000);
    assert_eq!(calls.get(), 1_000);
}

/// A28: an empty result is a result.
#[test]
fn an_empty_result_is_kept_and_is_not_the_same_as_nothing_kept() {
    let (env, calls) = (env(2, 1), Calls::default());
    let none = doubled(&env, 10, &calls).filter(|n| *n > 100).name("none").cache();
    assert!(none.execute_and_collect().unwrap().is_empty());
    assert!(none.is_cached());
    let again = none.execute_and_collect().unwrap();
    assert_eq!(outcome(&again, "none"), CacheOutcome::Hit);
    assert_eq!(calls.get(), 10);
    assert_eq!(none.count().unwrap(), 0);
}

/// D18: a job that stops early keeps the cached part whole.
#[test]
fn a_job_that_takes_a_few_keeps_all() {
    let (env, calls) = (env(2, 1), Calls::default());
    let cached = doubled(&env, 20_000, &calls).cache();
    assert_eq!(cached.take(3).unwrap().len(), 3);
    assert_eq!(calls.get(), 20_000);
    assert_eq!(env.datasets()[0].rows, 20_000);
    assert_eq!(cached.take(5).unwrap().len(), 5);
    assert_eq!(cached.count().unwrap(), 20_000);
    assert_eq!(calls.get(), 20_000);
}

/// D19: the environment owns what is kept; a handle does not.
#[test]
fn dropping_a_handle_keeps_the_cache_and_dropping_the_environment_does_not() {
    let (env, calls) = (env(2, 1), Calls::default());
    let cached = doubled(&env, 10, &calls).cache();
    cached.count().unwrap();
    let copy = cached.clone();
    drop(cached);
    assert_eq!(copy.count().unwrap(), 10);
    assert_eq!(calls.get(), 10);
    let directory = env.cluster().unwrap().directory().to_owned();
    assert!(directory.exists());
    drop(copy);
    drop(env);
    assert!(!directory.exists());
}

/// A29, tC17: of several jobs that make one cache at once one making is kept, whole.
#[test]
fn jobs_that_make_one_cache_at_once_leave_one_whole_making() {
    let (env, calls) = (env(2, 2), Calls::default());
    let cached = doubled(&env, 2_000, &calls).cache();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(cached.execute_and_collect().unwrap().sorted(), doubles(2_000));
            });
        }
    });
    let [listed] = env.datasets().try_into().unwrap();
    assert_eq!((listed.is_complete, listed.rows), (true, 2_000));
    let files = env.cluster().unwrap().partition_files(cached.data_set());
    assert_eq!(files.len(), 4, "data and index of two parts, of one making");
}

/// Two environments know nothing of each other's caches.
#[test]
fn two_environments_are_apart() {
    let calls = Calls::default();
    let (one, two) = (env(2, 1), env(2, 1));
    let (a, b) = (doubled(&one, 10, &calls).cache(), doubled(&two, 20, &calls).cache());
    assert_ne!(a.data_set(), b.data_set());
    assert_eq!((a.count().unwrap(), b.count().unwrap()), (10, 20));
    one.close().unwrap();
    assert_eq!(b.count().unwrap(), 20);
    assert_eq!(calls.get(), 30);
}
