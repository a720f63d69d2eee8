//! Several sources, channels, operators and inputs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use slackwater::prelude::*;
use slackwater::{
    CollectionSource, GeneratorSource, HybridSource, JobProgress, KeyedCoProcessFunction,
    ScriptStep, ScriptedSource, TwoInputBacklog, options,
};

use crate::support::{Recorded, Switch, mixed, streaming};

type Pair = (u32, i64);

fn pairs(n: i64) -> Vec<ScriptStep<Pair>> {
    (0..n).map(|i| ScriptStep::at(i, (u32::try_from(i % 10).unwrap(), 1))).collect()
}

/// A condition of a script that the test's own thread makes true.
fn told(flag: &Arc<AtomicBool>) -> ScriptStep<Pair> {
    let flag = Arc::clone(flag);
    ScriptStep::until(move || flag.load(Ordering::Acquire))
}

/// Waits until operator `sum` has collected so many records in backlog.
fn until_collected(progress: &JobProgress, records: u64) {
    let collected = || -> u64 {
        let operators = progress.operators();
        let of_sum = operators.iter().filter(|operator| operator.name == "sum");
        of_sum.flat_map(|operator| &operator.subtasks).map(|subtask| subtask.backlog_records).sum()
    };
    let begun = Instant::now();
    while collected() < records {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} of {records}", collected());
        std::thread::yield_now();
    }
}

/// R8, M20, tB7: a union of a backlog and a live source is in backlog until the former is live or has
/// ended; then the live one's records come too, and nothing is late. The live source begins once the
/// operator collects, for what comes before any channel speaks of backlog is live (D2).
#[test]
fn a_union_stays_in_backlog_until_its_last_source_leaves_it() {
    for ends_in_backlog in [false, true] {
        let outputs = Recorded::new();
        let (collects, all_there) = (Arc::default(), Arc::default());
        let env = mixed();
        env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)));
        let mut steps = vec![ScriptStep::Backlog(true)];
        steps.extend(pairs(1_000));
        steps.push(told(&all_there));
        if !ends_in_backlog {
            steps.push(ScriptStep::Backlog(false));
        }
        let mut live = vec![told(&collects)];
        live.extend(pairs(500));
        live.push(outputs.reaches(10));
        live.push(ScriptStep::at(2_000, (3, 1)));
        let strategy = WatermarkStrategy::monotonous;
        let history = env.from_source(ScriptedSource::new(steps), strategy(), "history");
        let live = env.from_source(ScriptedSource::new(live), strategy(), "live");
        let seen = outputs.clone();
        history
            .union(live)
            .key_by(|pair: &Pair| pair.0)
            .sum(|pair: &Pair| pair.1)
            .name("sum")
            .for_each(move |pair| seen.push(pair));
        let job = env.submit("union").unwrap();
        let progress = job.progress();
        until_collected(&progress, 1);
        collects.store(true, Ordering::Release);
        until_collected(&progress, 1_500);
        all_there.store(true, Ordering::Release);
        let report = job.wait().unwrap();
        let phase = &report.operator("sum").unwrap().phases[0];
        assert_eq!((phase.records, phase.keys), (1_500, 10), "{phase:?}");
        assert_eq!(outputs.all().last(), Some(&(3, 151)));
        assert_eq!(outputs.len(), 11);
        assert!(!report.checkpoints.is_empty(), "the switch is followed by a checkpoint");
    }
}

/// M33, tB1: at parallelism 3 and 4 channels that hear of a very short backlog at different moments;
/// nothing is lost and no state is stuck.
#[test]
fn a_very_short_backlog_over_many_channels_loses_nothing() {
    for round in 0..10 {
        let env = mixed();
        env.set(&options::PARALLELISM, Some(3));
        let mut scripts: Vec<Vec<ScriptStep<Pair>>> = (0..4).map(|_| pairs(100 + round)).collect();
        scripts[0].insert(0, ScriptStep::Backlog(true));
        for at in [3, 5, 9] {
            scripts[0].insert(at, ScriptStep::Backlog(at != 3 && at != 9));
        }
        let source = ScriptedSource::parts(scripts);
        let sums = env
            .from_source(source, WatermarkStrategy::none(), "script")
            .parallelism(4)
            .key_by(|pair: &Pair| pair.0)
            .sum(|pair: &Pair| pair.1)
            .execute_and_collect()
            .unwrap();
        let last: BTreeMap<u32, i64> = sums.iter().fold(BTreeMap::new(), |mut last, pair| {
            let sum = last.entry(pair.0).or_insert(0);
            *sum = pair.1.max(*sum);
            last
        });
        assert_eq!(last.values().sum::<i64>(), 4 * (100 + round));
    }
}

/// M34: two keyed operators in a row: each sorts its own input, the second one behind the first.
#[test]
fn two_keyed_operators_in_a_row_each_sort_their_input() {
    for parallelism in [1, 3] {
        let env = mixed();
        env.set(&options::PARALLELISM, Some(parallelism));
        let mut steps = vec![ScriptStep::Backlog(true)];
        steps.extend(pairs(2_000));
        steps.push(ScriptStep::Backlog(false));
        steps.push(ScriptStep::at(9_000, (4, 1)));
        let rows = env
            .from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script")
            .parallelism(1)
            .key_by(|pair: &Pair| pair.0)
            .sum(|pair: &Pair| pair.1)
            .name("first")
            .key_by(|pair: &Pair| pair.0 % 2)
            .max(|pair: &Pair| pair.1)
            .name("second")
            .execute_and_collect()
            .unwrap();
        let report = rows.report().clone();
        let second = &report.operator("second").unwrap().phases[0];
        // The live record may come while another channel is still in backlog.
        assert!((10..=11).contains(&second.records) && second.keys == 2, "{second:?}");
        let greatest: BTreeMap<u32, i64> = rows.into_vec().into_iter().collect();
        assert_eq!(greatest, BTreeMap::from([(0, 201), (1, 200)]));
    }
}

/// M1: not without interval 0, however much backlog there is.
#[test]
fn without_interval_0_nothing_is_sorted() {
    let env = streaming();
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_secs(1)))
        .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::from_secs(2)));
    let mut steps = vec![ScriptStep::Backlog(true)];
    steps.extend(pairs(100));
    let sums = env
        .from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), "script")
        .key_by(|pair: &Pair| pair.0)
        .sum(|pair: &Pair| pair.1)
        .name("sum")
        .execute_and_collect()
        .unwrap();
    assert_eq!(sums.len(), 100);
    assert!(sums.report().operator("sum").unwrap().phases.is_empty());
}

/// M5: an operator without a key sees records of a backlog at once, in order of arrival.
#[test]
fn an_operator_without_key_sees_a_backlog_at_once() {
    let outputs = Recorded::new();
    let env = mixed();
    let steps = [
        ScriptStep::Backlog(true),
        ScriptStep::at(5, 1),
        ScriptStep::at(3, 2),
        outputs.reaches(2),
        ScriptStep::at(4, 3),
    ];
    let seen = outputs.clone();
    env.from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), "script")
        .map(|n: i32| n * 10)
        .for_each(move |n| seen.push(n));
    env.execute("plain").unwrap();
    assert_eq!(outputs.all(), [10, 20, 30]);
}

/// R1, R2: flag and watermark travel through side outputs as well.
#[test]
fn a_side_output_carries_the_flag_and_barriers() {
    struct Split;
    let tag = SideTag::<Pair>::new("odd");
    impl KeyedProcessFunction<u32, Pair, Pair> for Split {
        fn process(&mut self, pair: Pair, context: &mut KeyedContext<'_, u32, Pair>) -> Result<()> {
            if pair.0 % 2 == 1 {
                context.side_output(&SideTag::new("odd"), pair);
            } else {
                context.collect(pair);
            }
            Ok(())
        }
    }
    let env = mixed();
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)));
    let switch = Recorded::new();
    let mut steps = vec![ScriptStep::Backlog(true)];
    steps.extend(pairs(100));
    steps.push(ScriptStep::Backlog(false));
    steps.push(switch.reaches(5));
    let split = env
        .from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script")
        .key_by(|pair: &Pair| pair.0)
        .process(|| Split);
    let odd = split.side_output(&tag);
    split.for_each(|_| {});
    odd.key_by(|pair: &Pair| pair.0)
        .sum(|pair: &Pair| pair.1)
        .name("odd")
        .for_each(move |pair| switch.push(pair));
    let report = env.execute("side").unwrap();
    let phase = &report.operator("odd").unwrap().phases[0];
    assert_eq!((phase.records, phase.keys), (50, 5));
    assert!(!report.checkpoints.is_empty());
}

/// K8, E-less end: a hybrid source is in backlog for all but its last part.
#[test]
fn a_hybrid_source_is_in_backlog_until_its_last_part() {
    let env = mixed();
    env.set(&options::PARALLELISM, Some(2));
    let part = |n: u64| GeneratorSource::bounded(n, |i| ((i % 5, 1_u64), None)).splits(4);
    let live = CollectionSource::new((0..5_u64).map(|key| (key, 1_u64)));
    let source = HybridSource::starting_with(part(500)).then(part(300)).then(live);
    let sums = env
        .from_source(source, WatermarkStrategy::none(), "hybrid")
        // Of two readers one may be live while the other is still in backlog.
        .parallelism(1)
        .key_by(|pair: &(u64, u64)| pair.0)
        .sum(|pair: &(u64, u64)| pair.1)
        .name("sum")
        .execute_and_collect()
        .unwrap();
    let phases = sums.report().operator("sum").unwrap().phases.clone();
    assert_eq!(phases.iter().map(|phase| phase.records).sum::<u64>(), 800);
    assert_eq!(sums.len(), 10);
    assert!(sums.iter().filter(|pair| pair.1 == 161).count() == 5);
}

/// What a two-input function saw, in order.
struct Log;

impl KeyedCoProcessFunction<u32, Pair, Pair, (u32, char, i64)> for Log {
    fn process_left(
        &mut self,
        pair: Pair,
        context: &mut KeyedContext<'_, u32, (u32, char, i64)>,
    ) -> Result<()> {
        context.collect((pair.0, 'l', pair.1));
        Ok(())
    }

    fn process_right(
        &mut self,
        pair: Pair,
        context: &mut KeyedContext<'_, u32, (u32, char, i64)>,
    ) -> Result<()> {
        context.collect((pair.0, 'r', pair.1));
        Ok(())
    }
}

fn numbered(keys: u32, stamps: &[i64]) -> Vec<ScriptStep<Pair>> {
    stamps.iter().flat_map(|at| (0..keys).map(|key| ScriptStep::at(*at, (key, *at)))).collect()
}

fn co_process(
    left: Vec<ScriptStep<Pair>>,
    right: Vec<ScriptStep<Pair>>,
    rule: TwoInputBacklog,
    outputs: &Recorded<(u32, char, i64)>,
) -> JobReport {
    let env = mixed();
    let keyed = |steps, name| {
        env.from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), name)
            .key_by(|pair: &Pair| pair.0)
    };
    let seen = outputs.clone();
    keyed(left, "left")
        .connect(keyed(right, "right"))
        .backlog(rule)
        .process(|| Log)
        .name("log")
        .for_each(move |row| seen.push(row));
    env.execute("co-process").unwrap()
}

/// D3, M6, M7, R6: two inputs in backlog are sorted by the operator itself and merged by key.
#[test]
fn two_inputs_in_backlog_are_merged_by_key() {
    let outputs = Recorded::new();
    let with_flag = |stamps: &[i64]| {
        let mut steps = vec![ScriptStep::Backlog(true)];
        steps.extend(numbered(20, stamps));
        steps
    };
    let (left, right) = (with_flag(&[5, 1, 9]), with_flag(&[4, 7, 2]));
    let report = co_process(left, right, TwoInputBacklog::UntilAllLive, &outputs);
    let rows = outputs.all();
    assert_eq!(rows.chunk_by(|a, b| a.0 == b.0).count(), 20, "key by key");
    for of_key in rows.chunk_by(|a, b| a.0 == b.0) {
        let seen: Vec<(char, i64)> = of_key.iter().map(|row| (row.1, row.2)).collect();
        assert_eq!(seen, [('l', 1), ('r', 2), ('r', 4), ('l', 5), ('r', 7), ('l', 9)]);
    }
    assert_eq!(report.operator("log").unwrap().phases[0].records, 120);
}

/// D3: the default drains when one input is live, and goes on record by record.
#[test]
fn the_first_live_input_ends_the_sorting_by_default() {
    let outputs = Recorded::new();
    let mut left = vec![ScriptStep::Backlog(true)];
    left.extend(numbered(3, &[2, 1]));
    let go_on = Switch::default();
    left.push(outputs.reaches(7));
    left.extend(numbered(3, &[3]));
    let right = vec![ScriptStep::at(1, (7, 1))];
    go_on.turn();
    co_process(left, right, TwoInputBacklog::UntilOneLive, &outputs);
    assert_eq!(outputs.len(), 10);
}

/// D3: asked to, the operator holds a live side's records until the history is through.
#[test]
fn asked_to_the_operator_sorts_until_all_inputs_are_live() {
    let outputs = Recorded::new();
    let through = Switch::default();
    let mut left = vec![ScriptStep::Backlog(true)];
    left.extend(numbered(3, &[2, 1]));
    let holds = outputs.clone();
    let held = through.clone();
    left.push(ScriptStep::until(move || {
        assert_eq!(holds.len(), 0, "nothing comes before the last input is live");
        held.is_on()
    }));
    left.push(ScriptStep::Backlog(false));
    let opened = through.clone();
    let right = vec![
        ScriptStep::at(1, (1, 50)),
        ScriptStep::until(move || {
            opened.turn();
            true
        }),
    ];
    co_process(left, right, TwoInputBacklog::UntilAllLive, &outputs);
    let rows = outputs.all();
    assert_eq!(rows.len(), 7);
    assert_eq!(rows.chunk_by(|a, b| a.0 == b.0).count(), 3, "{rows:?}");
}

/// T9, E1, E4: a co-group hands each key over once, when both inputs have ended, in every mode.
#[test]
fn a_co_group_hands_each_key_over_once_in_every_mode() {
    let modes = [options::RuntimeMode::Batch, options::RuntimeMode::Streaming];
    for (mode, interval) in modes.into_iter().zip([None, Some(Duration::ZERO)]) {
        let env = mixed();
        env.set(&options::RUNTIME_MODE, mode)
            .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, interval)
            .set(&options::PARALLELISM, Some(2))
            .set(&options::SORTED_INPUTS_MEMORY, slackwater::ByteSize::kib(8));
        let side = |steps: Vec<ScriptStep<Pair>>, name| {
            env.from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), name)
                .parallelism(1)
                .key_by(|pair: &Pair| pair.0)
        };
        let groups = side(numbered(500, &[2, 1]), "left")
            .connect(side(numbered(600, &[9]), "right"))
            .co_group(|left: Vec<Pair>, right: Vec<Pair>, context| {
                let key = *context.key();
                context.collect((key, left.iter().map(|p| p.1).collect::<Vec<_>>(), right.len()));
                Ok(())
            })
            .execute_and_collect()
            .unwrap();
        let mut groups = groups.into_vec();
        groups.sort();
        assert_eq!(groups.len(), 600);
        for (key, left, right) in groups {
            let expected: &[i64] = if key < 500 { &[1, 2] } else { &[] };
            assert_eq!((&*left, right), (expected, 1), "key {key}");
        }
    }
}
