//! Inputs that are at rest before they are read, and what aggregates emit over a backlog.

use std::collections::BTreeMap;

use slackwater::prelude::*;
use slackwater::{BacklogEmission, CollectionSource, HybridSource, JobReport, options};

use crate::support::{Recorded, mixed};

type Pair = (u64, u64);

/// Counts what came, by key.
struct Seen(ValueState<u64>);

impl KeyedProcessFunction<u64, Pair, Pair> for Seen {
    fn process(&mut self, pair: Pair, context: &mut KeyedContext<'_, u64, Pair>) -> Result<()> {
        let count = self.0.update(context, |count| {
            *count.get_or_insert(0) += 1;
            count.unwrap_or(0)
        })?;
        context.collect((pair.0 % 2, count));
        Ok(())
    }
}

/// Numbers that are sorted as a whole at their end, then counted by two keys.
fn counts_at_rest(env: &StreamExecutionEnvironment) -> (Vec<Pair>, JobReport) {
    let out = Recorded::new();
    let seen = out.clone();
    let numbers = CollectionSource::new((0..120_u64).map(|i| (i % 12, i)));
    env.from_source(numbers, WatermarkStrategy::none(), "numbers")
        .sort_partition(|pair: &Pair| pair.0)
        .key_by(|pair: &Pair| pair.0 % 2)
        .process(|| Seen(ValueState::new("count")))
        .name("behind")
        .for_each(move |pair| seen.push(pair));
    let report = env.execute("at rest").unwrap();
    (out.all(), report)
}

/// R9: an input at rest is backlog until it has been read through: what is behind it is sorted, though
/// no source is in backlog; its end ends the backlog.
#[test]
fn an_input_at_rest_is_backlog_until_it_is_read_through() {
    let (out, report) = counts_at_rest(&mixed());
    let phases = &report.operator("behind").unwrap().phases;
    assert_eq!(phases.len(), 1);
    assert_eq!((phases[0].treatment, phases[0].records, phases[0].keys), ("sort", 120, 2));
    let mut last = BTreeMap::new();
    for (key, count) in out {
        last.insert(key, count);
    }
    assert_eq!(last, BTreeMap::from([(0, 60), (1, 60)]));
}

/// D9: every value of a running sum comes out of a sorted backlog if that is asked for, else the last.
#[test]
fn an_aggregate_emits_every_update_if_asked_to() {
    let run = |emission: BacklogEmission| {
        let env = mixed();
        let history = CollectionSource::new((0..30_u64).map(|i| (i % 3, 1)));
        let source = HybridSource::starting_with(history).then(CollectionSource::new([(0, 1)]));
        let sums = env
            .from_source(source, WatermarkStrategy::none(), "pairs")
            .key_by(|pair: &Pair| pair.0)
            .backlog_emission(emission)
            .sum(|pair: &Pair| pair.1)
            .name("sums");
        sums.execute_and_collect().unwrap().to_vec()
    };
    let every = run(BacklogEmission::EveryUpdate);
    let of_key = |key: u64| every.iter().filter(move |sum| sum.0 == key).map(|sum| sum.1);
    assert_eq!(of_key(0).collect::<Vec<u64>>(), (1..=11).collect::<Vec<u64>>());
    assert_eq!(of_key(1).collect::<Vec<u64>>(), (1..=10).collect::<Vec<u64>>());
    let last = run(BacklogEmission::LastOfKey);
    assert_eq!(last.len(), 3 + 1);
    assert_eq!(last.last(), Some(&(0, 11)));
}

/// What `auto` will do stands in the plan, and what it did in the report.
#[test]
fn the_choice_of_auto_is_in_the_plan_and_in_the_report() {
    for (state, planned, done) in [
        (
            options::StateBackendKind::Heap,
            "heap state: record by record, its accesses cost less than a sort",
            "stream (heap state: record by record, its accesses cost less than a sort): 30 records",
        ),
        (
            options::StateBackendKind::Disk,
            "disk state: held and sorted, spilled only if its keys are many",
            "held and sorted, spilled only if its keys are many; it fits in memory): 30 records of 3",
        ),
    ] {
        let env = mixed();
        env.set(&options::BACKLOG_STRATEGY, options::BacklogStrategy::Auto)
            .set(&options::STATE_BACKEND, state);
        let history = CollectionSource::new((0..30_u64).map(|i| (i % 3, 1)));
        let source = HybridSource::starting_with(history).then(CollectionSource::new([(0, 1)]));
        env.from_source(source, WatermarkStrategy::none(), "pairs")
            .key_by(|pair: &Pair| pair.0)
            .process(|| Seen(ValueState::new("count")))
            .for_each(|_| {});
        let explained = env.explain().unwrap().to_string();
        assert!(explained.contains(planned), "{explained}");
        let report = env.execute("auto").unwrap();
        assert!(report.backlog().to_string().contains(done), "{}", report.backlog());
    }
}
