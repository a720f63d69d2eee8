//! Stages of batch jobs: fewer slots than tasks, and what a failure runs again (FLIP-134).

use slackwater::options::RestartStrategy;
use slackwater::prelude::*;

use crate::support::*;

/// T2: stages come one behind the other, on fewer slots than there are tasks.
#[test]
fn a_job_with_fewer_slots_than_tasks_finishes() {
    let (env, calls) = (env(6, 1), Calls::default());
    env.set(&options::TASK_SLOTS, Some(1));
    let counts = doubled(&env, 600, &calls)
        .key_by(|n| n % 10)
        .count()
        .key_by(|(_, count)| *count)
        .count()
        .rebalance()
        .execute_and_collect()
        .unwrap();
    assert_eq!(counts.sorted(), [(120, 5)]);
}

/// T7: a consumer that fails reads its input again; its producers do not run again.
#[test]
fn a_failing_consumer_runs_alone_again() {
    let (env, calls) = (env(3, 1), Calls::default());
    let tries = Calls::default();
    let count = tries.clone();
    let sums = doubled(&env, 300, &calls)
        .key_by(|n| n % 3)
        .count()
        .rebalance()
        .try_map(move |pair| match count.one_more() {
            1 => Err(slackwater::Error::msg("the first time")),
            _ => Ok(pair),
        })
        .parallelism(1)
        .execute_and_collect()
        .unwrap();
    assert_eq!(sums.report().recovered.len(), 1);
    assert_eq!(sums.sorted(), [(0, 100), (1, 100), (2, 100)]);
    assert_eq!(calls.get(), 300, "each source record once");
}

/// T7, tC12: a worker is lost with finished results while their consumers run: those results alone
/// are produced again.
#[test]
fn a_lost_worker_has_its_results_produced_again() {
    let (env, calls) = (env(4, 2), Calls::default());
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(Some((begun, may_go)));
    let counts = doubled(&env, 4_000, &calls).key_by(|n| n % 8).count().map(move |pair| {
        if let Some((begun, may_go)) = gate.lock().unwrap().take() {
            begun.send(()).unwrap();
            may_go.recv().unwrap();
        }
        pair
    });
    std::thread::scope(|scope| {
        let job = scope.spawn(|| counts.execute_and_collect().unwrap());
        has_begun.recv().unwrap();
        let before = calls.get();
        let cluster = env.cluster().unwrap();
        cluster.kill(cluster.workers()[0]).unwrap();
        go.send(()).unwrap();
        let expected: Vec<(u64, u64)> = [0, 2, 4, 6].map(|key| (key, 1_000)).to_vec();
        assert_eq!(job.join().unwrap().sorted(), expected);
        assert_eq!(before, 4_000);
        assert!(calls.get() < 8_000, "what the other worker holds is not produced again");
    });
}

/// Restart strategies: as often as they say, and not once more.
#[test]
fn restart_strategies_say_how_often_a_job_is_tried() {
    for (strategy, tries) in [(RestartStrategy::None, 1), (RestartStrategy::FixedDelay, 3)] {
        let (env, calls) = (env(1, 1), Calls::default());
        env.set(&options::RESTART_STRATEGY, Some(strategy)).set(&options::RESTART_ATTEMPTS, 2);
        let count = calls.clone();
        let failing = env.from_collection([1_u64]).try_map(move |_| {
            count.one_more();
            Err::<u64, _>(slackwater::Error::msg("always"))
        });
        failing.execute_and_collect().unwrap_err();
        assert_eq!(calls.get(), tries);
    }
}
