//! Savepoints that are restored at other parallelisms, also of single operators, and in other modes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use slackwater::prelude::*;
use slackwater::{KeyedCoProcessFunction, ScriptStep, ScriptedSource, options};

use crate::support::{Recorded, TwoPhase, mixed, streaming, wait_for};

type Pair = (u32, i64);

const KEYS: u32 = 20;
const HALF: i64 = 500;

/// Records `0..2 * HALF` of value 1, with a pause in the middle for the first of two runs. The pause
/// takes a step in both, so that positions are the same.
fn script(waits: bool) -> Vec<ScriptStep<Pair>> {
    let record = |i: i64| ScriptStep::at(i, (u32::try_from(i).unwrap() % KEYS, 1));
    let mut steps: Vec<_> = (0..HALF).map(record).collect();
    steps.push(ScriptStep::until(move || !waits));
    steps.extend((HALF..2 * HALF).map(record));
    steps
}

struct Sum(ValueState<i64>);

fn add(
    state: &mut ValueState<i64>,
    pair: Pair,
    context: &mut KeyedContext<'_, u32, Pair>,
) -> Result<()> {
    let sum = state.update(context, |sum| {
        let sum = sum.get_or_insert(0);
        *sum += pair.1;
        *sum
    })?;
    context.collect((pair.0, sum));
    Ok(())
}

impl KeyedProcessFunction<u32, Pair, Pair> for Sum {
    fn process(&mut self, pair: Pair, context: &mut KeyedContext<'_, u32, Pair>) -> Result<()> {
        add(&mut self.0, pair, context)
    }
}

impl KeyedCoProcessFunction<u32, Pair, Pair, Pair> for Sum {
    fn process_left(
        &mut self,
        pair: Pair,
        context: &mut KeyedContext<'_, u32, Pair>,
    ) -> Result<()> {
        add(&mut self.0, pair, context)
    }

    fn process_right(
        &mut self,
        pair: Pair,
        context: &mut KeyedContext<'_, u32, Pair>,
    ) -> Result<()> {
        add(&mut self.0, (pair.0, 100 * pair.1), context)
    }
}

/// Runs a program twice, with a savepoint between that stops the first run.
fn twice(
    records: i64,
    environments: [StreamExecutionEnvironment; 2],
    program: impl Fn(&StreamExecutionEnvironment, usize, &Recorded<Pair>),
) -> Vec<Pair> {
    let home = tempfile::tempdir().unwrap();
    let visible = Recorded::new();
    let mut from: Option<PathBuf> = None;
    for (run, env) in environments.iter().enumerate() {
        let text = |path: &Path| path.display().to_string();
        env.set(&options::SAVEPOINT_PATH, from.as_deref().map(text));
        program(env, run, &visible);
        let job = env.submit("twice").unwrap();
        if run == 0 {
            let progress = job.progress();
            let read = u64::try_from(records).unwrap();
            wait_for("the first half", || progress.records_read() >= read);
            // In mixed mode savepoints begin behind the switch.
            let taken = RefCell::new(None);
            wait_for("a savepoint", || {
                *taken.borrow_mut() = job.stop_with_savepoint(home.path()).ok();
                taken.borrow().is_some()
            });
            from = taken.take();
        }
        job.wait().unwrap();
    }
    visible.all()
}

/// Every running sum of every key once, in order.
#[track_caller]
fn check(rows: &[Pair], expected: impl Fn(u32) -> Vec<i64>) {
    let mut sums: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for (key, sum) in rows {
        sums.entry(*key).or_default().push(*sum);
    }
    assert_eq!(sums.len(), KEYS as usize);
    for (key, sums) in sums {
        assert_eq!(sums, expected(key), "key {key}");
    }
}

fn running(step: i64) -> Vec<i64> {
    (1..=2 * HALF / i64::from(KEYS)).map(|n| n * step).collect()
}

/// tK12: an operator without state stands alone between two with state; all three change their
/// parallelism, each its own way.
#[test]
fn rescaling_works_around_an_operator_without_state() {
    let subtasks = [[3, 2, 1], [2, 4, 3]];
    let rows = twice(HALF, [streaming(), streaming()], |env, run, visible| {
        let [sums, middle, sums_of_sums] = subtasks[run];
        env.from_source(ScriptedSource::new(script(run == 0)), WatermarkStrategy::none(), "script")
            .uid("source")
            .key_by(|pair: &Pair| pair.0)
            .process(|| Sum(ValueState::new("sum")))
            .uid("sums")
            .parallelism(sums)
            // By key, so that the sums of a key stay in order.
            .partition_custom(|pair: &Pair, subtasks| pair.0 % subtasks)
            .map(|pair: Pair| (pair.0, pair.1 % 2))
            .uid("middle")
            .parallelism(middle)
            .key_by(|pair: &Pair| pair.0)
            .process(|| Sum(ValueState::new("sum")))
            .uid("sums of sums")
            .parallelism(sums_of_sums)
            .sink_to(TwoPhase::new(visible))
            .uid("sink")
            .parallelism(1);
    });
    check(&rows, |_| (1..=2 * HALF / i64::from(KEYS)).map(|n| (n + 1) / 2).collect());
}

/// tK13: only the parallelism upstream of a custom partitioner changes.
#[test]
fn changing_only_the_upstream_parallelism_restores() {
    let rows = twice(HALF, [streaming(), streaming()], |env, run, visible| {
        env.from_source(ScriptedSource::new(script(run == 0)), WatermarkStrategy::none(), "script")
            .uid("source")
            .partition_custom(|pair: &Pair, subtasks| pair.0 % subtasks)
            .map(|pair: Pair| pair)
            .uid("upstream")
            .parallelism([1, 3][run])
            .key_by(|pair: &Pair| pair.0)
            .process(|| Sum(ValueState::new("sum")))
            .uid("sums")
            .parallelism(2)
            .sink_to(TwoPhase::new(visible))
            .uid("sink")
            .parallelism(2);
    });
    check(&rows, |_| running(1));
}

/// tK14: an operator of two inputs, one behind a custom partitioner and one behind a rebalance, of
/// upstreams that change their parallelism differently, while it changes its own.
#[test]
fn two_inputs_behind_different_partitioners_are_mapped_each_by_its_own() {
    let rows = twice(2 * HALF, [streaming(), streaming()], |env, run, visible| {
        let input = |name: &str| {
            let source = ScriptedSource::new(script(run == 0));
            env.from_source(source, WatermarkStrategy::none(), name).uid(name)
        };
        let left = input("left")
            .partition_custom(|pair: &Pair, subtasks| pair.0 % subtasks)
            .map(|pair: Pair| pair)
            .uid("left map")
            .parallelism([2, 3][run]);
        let right = input("right")
            .rebalance()
            .map(|pair: Pair| pair)
            .uid("right map")
            .parallelism([3, 1][run]);
        left.key_by(|pair: &Pair| pair.0)
            .connect(right.key_by(|pair: &Pair| pair.0))
            .process(|| Sum(ValueState::new("sum")))
            .uid("sums")
            .parallelism([2, 4][run])
            .sink_to(TwoPhase::new(visible))
            .uid("sink")
            .parallelism(1);
    });
    assert_eq!(rows.len(), 4 * HALF as usize);
    let each = 2 * HALF / i64::from(KEYS);
    for key in 0..KEYS {
        let last = rows.iter().filter(|row| row.0 == key).map(|row| row.1).max();
        assert_eq!(last, Some(each + 100 * each), "key {key}");
    }
}

/// F8, F10: a savepoint of mixed mode is restored in stream mode and the reverse, at another
/// parallelism, over every store.
#[test]
fn a_savepoint_is_restored_in_another_mode_at_another_parallelism() {
    for store in [options::StateBackendKind::Heap, options::StateBackendKind::Disk] {
        for mixed_first in [true, false] {
            let environments =
                if mixed_first { [mixed(), streaming()] } else { [streaming(), mixed()] };
            let rows = twice(HALF, environments, |env, run, visible| {
                env.set(&options::STATE_BACKEND, store)
                    .set(&options::PARALLELISM, Some([2, 3][run]));
                // The flag takes a step in both runs, and a second backlog comes in the second one.
                let mut steps = script(run == 0);
                steps.insert(0, ScriptStep::Backlog(true));
                steps.insert(HALF as usize, ScriptStep::Backlog(false));
                steps.insert(HALF as usize + 10, ScriptStep::Backlog(true));
                steps.push(ScriptStep::Backlog(false));
                env.from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), "script")
                    .uid("source")
                    .parallelism(1)
                    .key_by(|pair: &Pair| pair.0)
                    .process(|| Sum(ValueState::new("sum")))
                    .uid("sums")
                    .sink_to(TwoPhase::new(visible))
                    .uid("sink");
            });
            check(&rows, |_| running(1));
        }
    }
}

/// A savepoint has one format for all stores: a job goes on from it over another one.
#[test]
fn a_savepoint_is_restored_over_another_store() {
    let (heap, disk) = (options::StateBackendKind::Heap, options::StateBackendKind::Disk);
    for stores in [[heap, disk], [disk, heap]] {
        let rows = twice(HALF, [streaming(), streaming()], |env, run, visible| {
            env.set(&options::STATE_BACKEND, stores[run]).set(&options::PARALLELISM, Some(2));
            env.from_source(
                ScriptedSource::new(script(run == 0)),
                WatermarkStrategy::none(),
                "script",
            )
            .uid("source")
            .parallelism(1)
            .key_by(|pair: &Pair| pair.0)
            .process(|| Sum(ValueState::new("sum")))
            .uid("sums")
            .sink_to(TwoPhase::new(visible))
            .uid("sink");
        });
        check(&rows, |_| running(1));
    }
}
