//! Order, state and signals over backlog phases.

use element::option_table::StateBackendKind;
use element::{ByteSize, SpillStore};
use graph::InputTreatment;
use slackwater_runtime::events::TaskEvent;
use slackwater_runtime::operator::aggregate::{Aggregator, KeyAndResult, RollingAggregate};
use slackwater_runtime::operator::keyed_context::KeyedContext;
use slackwater_runtime::operator::process::{KeyedProcessFunction, Process};
use state::ValueState;

use crate::harness::{Harness, Row, Seen, Setting, by_key, runs_of_keys};

/// Hands records on with their timestamps.
struct Echo;

impl KeyedProcessFunction<u32, Row, Row> for Echo {
    fn process(
        &mut self,
        row: Row,
        context: &mut KeyedContext<'_, u32, Row>,
    ) -> anyhow::Result<()> {
        context.collect(row);
        Ok(())
    }
}

/// A running sum in value state.
pub(crate) struct Sum(ValueState<i64>);

impl Sum {
    pub(crate) fn new() -> Self {
        Self(ValueState::new("sum"))
    }
}

impl KeyedProcessFunction<u32, Row, Row> for Sum {
    fn process(
        &mut self,
        row: Row,
        context: &mut KeyedContext<'_, u32, Row>,
    ) -> anyhow::Result<()> {
        let sum = self.0.update(context, |sum| {
            let sum = sum.get_or_insert(0);
            *sum += row.1;
            *sum
        })?;
        context.collect((row.0, sum));
        Ok(())
    }
}

pub(crate) struct Total;

impl Aggregator<Row> for Total {
    type Accumulator = i64;
    type Output = i64;

    fn first(&self, row: Row) -> i64 {
        row.1
    }

    fn add(&self, sum: &mut i64, row: Row) {
        *sum += row.1;
    }

    fn merge(&self, sum: &mut i64, later: i64) {
        *sum += later;
    }

    fn result(&self, sum: &i64) -> i64 {
        *sum
    }
}

fn echo(setting: Setting) -> Harness<Process<Echo, Row>, Row> {
    Harness::new(setting, Process::new(Echo))
}

fn sum(setting: Setting) -> Harness<Process<Sum, Row>, Row> {
    Harness::new(setting, Process::new(Sum::new()))
}

fn total(setting: Setting) -> Harness<RollingAggregate<Total, Row, KeyAndResult>, (u32, i64)> {
    let setting = Setting { combines: true, treatment: InputTreatment::Combine, ..setting };
    Harness::new(setting, RollingAggregate::new(std::sync::Arc::new(Total)))
}

/// M3, M4, M10, D8: nothing before the switch; then key by key, by time, equal times as they came.
#[test]
fn a_backlog_comes_key_by_key_in_order_of_time_then_arrival() {
    let mut harness = echo(Setting::mixed());
    harness.backlog();
    harness.push_at(&[
        (5, (1, 0)),
        (3, (2, 1)),
        (5, (1, 2)),
        (4, (1, 3)),
        (3, (2, 4)),
        (1, (3, 5)),
    ]);
    assert_eq!(harness.take(), [Seen::Backlog(true)]);
    harness.live(None);
    let records = harness.take_records();
    assert_eq!(runs_of_keys(&records), 3, "{records:?}");
    let keys = by_key(&records);
    assert_eq!(keys[&1], [3, 0, 2]);
    assert_eq!(keys[&2], [1, 4]);
    assert_eq!(keys[&3], [5]);
}

/// tS13: records without a timestamp come in order of arrival within their key, before those with.
#[test]
fn records_without_timestamps_come_in_order_of_arrival() {
    let mut harness = echo(Setting::mixed());
    harness.backlog();
    harness.push_at(&[(i64::MIN + 1, (1, 9))]);
    harness.push(&[(1, 0), (2, 1), (1, 2), (2, 3), (1, 4)]);
    harness.live(None);
    let keys = by_key(&harness.take_records());
    assert_eq!(keys[&1], [0, 2, 4, 9]);
    assert_eq!(keys[&2], [1, 3]);
}

/// M17, M18, D11: no watermark in backlog; then drained records, the flag, the greatest watermark.
#[test]
fn the_switch_says_records_then_the_flag_then_the_greatest_watermark() {
    let mut harness = echo(Setting::mixed());
    harness.backlog();
    harness.push_at(&[(1, (1, 10))]);
    harness.watermark(7);
    harness.watermark(20);
    harness.live(Some(15));
    let expected = [
        Seen::Backlog(true),
        Seen::Record((1, 10), Some(1)),
        Seen::Backlog(false),
        Seen::Watermark(20),
    ];
    assert_eq!(harness.take(), expected);
    assert_eq!(harness.told(|event| matches!(event, TaskEvent::Drained)), 1);
}

/// M19, tB18: a phase below the watermark from before, or without one, never sets it back.
#[test]
fn a_later_phase_never_sets_the_watermark_back() {
    let mut harness = echo(Setting::mixed());
    harness.live(None);
    harness.watermark(100);
    harness.backlog();
    harness.push_at(&[(5, (1, 1))]);
    harness.live(None);
    harness.watermark(90);
    harness.watermark(110);
    let marks: Vec<_> =
        harness.take().into_iter().filter(|seen| matches!(seen, Seen::Watermark(_))).collect();
    assert_eq!(marks, [Seen::Watermark(100), Seen::Watermark(110)]);
}

/// M11, D16, tB2: the end of input in backlog drains, then says the greatest watermark, then the end.
#[test]
fn the_end_of_input_in_backlog_drains() {
    let mut harness = sum(Setting::mixed());
    harness.backlog();
    harness.push_at(&[(2, (1, 4)), (1, (1, 3))]);
    harness.end();
    let expected = [
        Seen::Backlog(true),
        Seen::Record((1, 3), Some(1)),
        Seen::Record((1, 7), Some(2)),
        Seen::Watermark(i64::MAX),
        Seen::End,
    ];
    assert_eq!(harness.take(), expected);
}

/// M12, M14: behind the switch records pass one by one, over the state of the backlog.
#[test]
fn live_records_pass_at_once_over_the_state_of_the_backlog() {
    for state in [StateBackendKind::Heap, StateBackendKind::Disk] {
        let mut harness = sum(Setting { state, ..Setting::mixed() });
        harness.backlog();
        harness.push_at(&[(1, (1, 5)), (2, (2, 1)), (3, (1, 6))]);
        harness.live(None);
        let _drained = harness.take();
        harness.push_at(&[(4, (2, 10)), (5, (1, 100)), (6, (3, 7))]);
        assert_eq!(harness.take_records(), [(2, 11), (1, 111), (3, 7)]);
    }
}

/// D7, M29, tB3: a second and third phase have sorters of their own, over the state so far.
#[test]
fn later_phases_are_sorted_over_the_state_so_far() {
    for state in [StateBackendKind::Heap, StateBackendKind::Disk] {
        let mut harness = sum(Setting { state, ..Setting::mixed() });
        let mut expected = 0;
        for phase in 0..3 {
            harness.backlog();
            harness.push_at(&[(2, (1, 1)), (1, (2, 1)), (3, (1, 1)), (9, (2, 1))]);
            assert!(harness.take_records().is_empty());
            harness.live(None);
            let records = harness.take_records();
            assert_eq!(runs_of_keys(&records), 2, "phase {phase}");
            harness.push_at(&[(10, (1, 1))]);
            expected += 3;
            assert_eq!(harness.take_records(), [(1, expected)]);
        }
        assert_eq!(harness.context.metrics.read().phases.len(), 3);
    }
}

/// M30, M31: an empty backlog, and one of one record.
#[test]
fn an_empty_and_a_tiny_backlog_work() {
    let mut harness = sum(Setting::mixed());
    harness.backlog();
    harness.live(Some(3));
    assert_eq!(harness.take(), [Seen::Backlog(true), Seen::Backlog(false), Seen::Watermark(3)]);
    harness.backlog();
    harness.push_at(&[(4, (1, 2))]);
    harness.live(None);
    assert_eq!(harness.take_records(), [(1, 2)]);
}

/// M32: without a backlog the output is that of stream mode, signal by signal.
#[test]
fn a_source_that_is_never_in_backlog_gives_the_output_of_stream_mode() {
    let run = |setting| {
        let mut harness = sum(setting);
        harness.live(None);
        harness.push_at(&[(5, (1, 1)), (3, (2, 2)), (4, (1, 3))]);
        harness.watermark(3);
        harness.push_at(&[(6, (2, 4))]);
        harness.end();
        harness.take()
    };
    assert_eq!(run(Setting::mixed()), run(Setting::streaming()));
}

/// R11: in stream mode the flag passes and nothing else changes.
#[test]
fn in_stream_mode_the_flag_passes_and_records_do_not_wait() {
    let mut harness = sum(Setting::streaming());
    harness.backlog();
    harness.push_at(&[(5, (1, 1))]);
    harness.watermark(4);
    harness.live(Some(4));
    let expected = [
        Seen::Backlog(true),
        Seen::Record((1, 1), Some(5)),
        Seen::Watermark(4),
        Seen::Backlog(false),
    ];
    assert_eq!(harness.take(), expected);
}

/// M15, M16: one read and one write of the store a key, with the cache at 1 and at 100.
#[test]
fn a_sorted_backlog_costs_one_read_and_one_write_a_key() {
    for cache in [None, Some(100)] {
        let state = StateBackendKind::Disk;
        let mut harness = sum(Setting { state, cache, ..Setting::mixed() });
        for phase in 0..2 {
            harness.backlog();
            for round in 0..20 {
                let rows: Vec<(i64, Row)> = (0..50).map(|key| (round, (key * 7 % 50, 1))).collect();
                harness.push_at(&rows);
            }
            harness.live(None);
            let report = harness.context.metrics.read().phases[phase].clone();
            assert_eq!((report.records, report.keys), (1_000, 50));
            assert!(report.state_reads <= 50, "{report:?}");
            assert!(report.state_writes <= 50, "{report:?}");
        }
    }
}

/// M9, F9: a backlog of many times the budget spills, is bounded, and leaves no file.
#[test]
fn a_backlog_far_larger_than_its_memory_spills_and_leaves_no_file() {
    let memory = ByteSize::kib(16);
    let mut harness = sum(Setting { memory, ..Setting::mixed() });
    harness.backlog();
    for round in 0..200 {
        let rows: Vec<(i64, Row)> = (0..100).map(|key| (round, (key, 1))).collect();
        harness.push_at(&rows);
    }
    harness.live(None);
    let records = harness.take_records();
    assert_eq!(records.len(), 20_000);
    assert_eq!(runs_of_keys(&records), 100);
    assert!(by_key(&records).values().all(|sums| sums.last() == Some(&200)));
    let report = harness.context.metrics.read().phases[0].clone();
    assert!(report.bytes_spilled > 10 * memory.0, "{report:?}");
    assert!(report.sort_memory <= memory.0 + 4_096, "{report:?}");
    let left = harness.spill.list(element::FileRole::SortRun, "").unwrap();
    assert!(left.is_empty(), "{left:?}");
}

/// M35, D9, tS8: one output a key, also of keys with one record, with the greatest timestamp; none
/// for an empty phase; then one a record.
#[test]
fn a_rolling_aggregate_gives_one_output_a_key_for_a_backlog() {
    let mut harness = total(Setting::mixed());
    harness.backlog();
    harness.push_at(&[
        (9, (1, 1)),
        (2, (2, 5)),
        (4, (1, 1)),
        (3, (3, 1)),
        (1, (3, 1)),
        (2, (3, 1)),
    ]);
    harness.live(None);
    let seen = harness.take();
    for expected in [((1, 2), 9), ((2, 5), 2), ((3, 3), 3)] {
        let record = Seen::Record(expected.0, Some(expected.1));
        assert_eq!(seen.iter().filter(|seen| **seen == record).count(), 1, "{seen:?}");
    }
    assert_eq!(seen.len(), 5);
    harness.backlog();
    harness.live(None);
    assert!(harness.take_records().is_empty());
    harness.push_at(&[(10, (2, 1)), (11, (2, 1))]);
    assert_eq!(harness.take_records(), [(2, 6), (2, 7)]);
}

/// T3: in batch mode a rolling aggregate gives its final values alone.
#[test]
fn in_batch_mode_an_aggregate_gives_final_values_alone() {
    let mut harness = total(Setting::batch());
    harness.push_at(&[(1, (1, 1)), (2, (2, 2)), (3, (1, 3))]);
    harness.end();
    let mut records = harness.take_records();
    records.sort_unstable();
    assert_eq!(records, [(1, 4), (2, 2)]);
}

/// T10: in batch mode state is forgotten at the next key, and a phase's flags change nothing.
#[test]
fn in_batch_mode_state_is_that_of_one_key_and_flags_change_nothing() {
    let mut harness = sum(Setting::batch());
    harness.live(None);
    harness.push_at(&[(1, (1, 1)), (2, (2, 2))]);
    harness.backlog();
    harness.live(None);
    harness.push_at(&[(3, (1, 3))]);
    assert!(harness.take_records().is_empty());
    harness.end();
    let keys = by_key(&harness.take_records());
    assert_eq!((&*keys[&1], &*keys[&2]), (&[1, 4][..], &[2][..]));
}

/// F1: a barrier among collected records is declined, for they are in no state yet.
#[test]
fn a_barrier_in_backlog_is_declined() {
    let mut harness = sum(Setting::mixed());
    harness.backlog();
    harness.push_at(&[(1, (1, 1))]);
    assert!(harness.barrier(1).is_none());
    assert_eq!(harness.told(|event| matches!(event, TaskEvent::Declined { .. })), 1);
    harness.live(None);
    assert!(harness.barrier(2).is_some());
}

/// M27: idleness in backlog passes and reorders nothing.
#[test]
fn idleness_in_backlog_passes_and_reorders_nothing() {
    let mut harness = sum(Setting::mixed());
    harness.backlog();
    harness.push_at(&[(1, (1, 1))]);
    harness.idle(true);
    harness.idle(false);
    harness.push_at(&[(2, (1, 1))]);
    harness.live(None);
    assert_eq!(harness.take_records(), [(1, 1), (1, 2)]);
}

/// E1, E4: what emits only at its end is sorted to its end in stream mode too.
#[test]
fn what_emits_only_at_the_end_is_sorted_to_its_end_in_stream_mode() {
    let treatment = InputTreatment::BatchSort;
    let mut harness = sum(Setting { at_end: true, treatment, ..Setting::streaming() });
    harness.live(None);
    harness.push_at(&[(2, (1, 1)), (1, (2, 1)), (1, (1, 1))]);
    harness.watermark(50);
    harness.backlog();
    harness.live(Some(60));
    assert!(harness.take_records().is_empty());
    harness.end();
    let records = harness.take_records();
    assert_eq!((records.len(), runs_of_keys(&records)), (3, 2));
}
