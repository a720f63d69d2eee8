//! `execution.backlog.strategy = auto`: by the store, the keys seen so far, and the memory.

use element::option_table::StateBackendKind;
use element::{ByteSize, FileRole, SpillStore};
use graph::InputTreatment;
use slackwater_runtime::metrics::PhaseReport;
use slackwater_runtime::operator::aggregate::{KeyAndResult, RollingAggregate};
use slackwater_runtime::operator::process::Process;

use crate::harness::{Harness, Row, Seen, Setting, by_key};
use crate::phases::{Sum, Total};
use crate::timers::{Event, timers};

fn auto(state: StateBackendKind, memory: ByteSize) -> Setting {
    Setting { treatment: InputTreatment::Auto, state, memory, ..Setting::mixed() }
}

fn sum(setting: Setting) -> Harness<Process<Sum, Row>, Row> {
    Harness::new(setting, Process::new(Sum::new()))
}

fn report_of(harness: &Harness<Process<Sum, Row>, Row>) -> PhaseReport {
    let phases = harness.context.metrics.read().phases;
    assert_eq!(phases.len(), 1, "one phase is one report: {phases:?}");
    phases[0].clone()
}

/// `records` records in batches of 100, each with a key below `keys` and the value 1.
fn push(harness: &mut Harness<Process<Sum, Row>, Row>, records: u32, keys: u32) {
    for batch in 0..records / 100 {
        let rows: Vec<Row> = (0..100).map(|i| ((batch * 100 + i) % keys, 1)).collect();
        harness.push(&rows);
    }
}

const MEMORY: ByteSize = ByteSize::kib(64);

/// A few keys fill the memory again and again: each time they are handed over, at one read
/// and one write a key, and not one byte is spilled.
#[test]
fn a_few_keys_are_handed_over_and_never_spilled() {
    let mut harness = sum(auto(StateBackendKind::Disk, MEMORY));
    harness.backlog();
    push(&mut harness, 40_000, 8);
    harness.live(None);
    let report = report_of(&harness);
    assert_eq!((report.treatment, report.records, report.keys), ("sort", 40_000, 8));
    assert!(report.hand_overs > 5, "{report:?}");
    assert_eq!((report.runs, report.bytes_spilled), (0, 0), "{report:?}");
    assert!(report.state_reads <= 8 * (report.hand_overs + 1), "{report:?}");
    assert!(report.state_writes <= 8 * (report.hand_overs + 1), "{report:?}");
    assert!(report.sort_memory <= MEMORY.0, "{report:?}");
    assert!(report.reason.contains("its keys are few: handed over"), "{}", report.reason);
    let sums = by_key(&harness.take_records());
    assert!(sums.values().all(|sums| *sums == (1..=5_000).collect::<Vec<i64>>()));
    harness.push(&[(3, 1)]);
    assert_eq!(harness.take_records(), [(3, 5_001)]);
}

/// M9: many keys are spilled, in one phase, and each costs one read and one write.
#[test]
fn many_keys_are_spilled() {
    let mut harness = sum(auto(StateBackendKind::Disk, MEMORY));
    harness.backlog();
    push(&mut harness, 40_000, 10_000);
    assert_eq!(harness.take_records(), []);
    harness.live(None);
    let report = report_of(&harness);
    assert_eq!((report.records, report.keys, report.hand_overs), (40_000, 10_000, 0));
    assert!(report.bytes_spilled > 5 * MEMORY.0, "{report:?}");
    assert!(report.state_reads <= 10_000 && report.state_writes <= 10_000, "{report:?}");
    assert!(report.reason.ends_with("its keys are many: spilled"), "{}", report.reason);
    assert!(harness.spill.list(FileRole::SortRun, "").unwrap().is_empty());
}

/// What fits in memory stays there, whatever its keys.
#[test]
fn a_backlog_that_fits_is_held_in_memory() {
    for keys in [1, 1_000] {
        let mut harness = sum(auto(StateBackendKind::Disk, ByteSize::mib(1)));
        harness.backlog();
        push(&mut harness, 2_000, keys);
        assert_eq!(harness.take_records(), []);
        harness.live(None);
        let report = report_of(&harness);
        assert_eq!((report.runs, report.hand_overs, report.keys), (0, 0, u64::from(keys)));
        assert!(report.reason.ends_with("it fits in memory"), "{}", report.reason);
    }
}

/// In front of state in memory a sort costs more than it saves: records pass, and the report says so.
#[test]
fn in_front_of_state_in_memory_records_pass_as_they_come() {
    let mut harness = sum(auto(StateBackendKind::Heap, MEMORY));
    harness.backlog();
    push(&mut harness, 200, 10);
    assert_eq!(harness.take_records().len(), 200, "before the switch");
    harness.live(None);
    push(&mut harness, 100, 10);
    let report = report_of(&harness);
    assert_eq!((report.treatment, report.records), ("stream", 200));
    // A second phase, that ends with the input.
    harness.backlog();
    push(&mut harness, 300, 10);
    harness.end();
    let phases = harness.context.metrics.read().phases;
    assert_eq!((phases.len(), phases[1].records), (2, 300));
}

/// D11, D12, M21: a hand-over is no switch: no timer fires and no watermark leaves before the phase is
/// over, and the watermark that came before it is not forgotten.
#[test]
fn no_timer_fires_at_a_hand_over() {
    let mut harness = timers(auto(StateBackendKind::Disk, ByteSize::kib(16)), None);
    harness.backlog();
    harness.watermark(50);
    for _ in 0..40 {
        harness.push(&[(1, 40); 50]);
    }
    let timer =
        |seen: &Seen<Event>| matches!(seen, Seen::Record(Event::Timer(..), _) | Seen::Watermark(_));
    let before = harness.take();
    assert!(before.len() > 100, "it was handed over");
    assert!(!before.iter().any(timer), "{before:?}");
    harness.live(None);
    let fired: Vec<Seen<Event>> = harness.take().into_iter().filter(timer).collect();
    assert_eq!(fired.len(), 2, "{fired:?}");
    assert_eq!(fired[1], Seen::Watermark(50));
}

/// D9: an aggregate that is to emit every update gives each value over a sorted backlog, in the order
/// of time, and the last one is that of stream mode.
#[test]
fn every_update_of_an_aggregate_comes_out_of_a_sorted_backlog() {
    for (treatment, state) in [
        (InputTreatment::Sort, StateBackendKind::Heap),
        (InputTreatment::Auto, StateBackendKind::Disk),
    ] {
        let setting = Setting { treatment, state, combines: true, ..Setting::mixed() };
        let total = RollingAggregate::<Total, Row, KeyAndResult>::new(std::sync::Arc::new(Total));
        let mut harness: Harness<_, (u32, i64)> = Harness::new(setting, total);
        harness.backlog();
        harness.push_at(&[(9, (1, 4)), (2, (2, 5)), (4, (1, 1)), (3, (1, 2))]);
        assert_eq!(harness.take_records(), []);
        harness.live(None);
        let keys = by_key(&harness.take_records());
        assert_eq!((&keys[&1], &keys[&2]), (&vec![2, 3, 7], &vec![5]));
    }
}
