//! Golden plans: what `explain` says about programs that show a rule each.
//!
//! The files are in `tests/plans`; `UPDATE_GOLDEN=1` rewrites them, and a changed one is read like
//! code.

use std::path::Path;

use element::option_table::{BacklogStrategy, StateBackendKind};
use slackwater_graph::{OperatorAttributes, OutputTag, Partitioner, PlanSettings};

use crate::program::*;

/// Compares with `tests/plans/<name>.txt`, or rewrites it.
#[track_caller]
pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("the folder of goldens can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{} differs; UPDATE_GOLDEN=1 rewrites it", path.display());
}

#[track_caller]
fn check(name: &str, program: &Program, change: impl FnOnce(&mut PlanSettings<'_>)) {
    golden(&format!("{name}.txt"), &program.plan(change).explain());
}

/// Departures by carrier and by route, from history and then live.
pub(crate) fn departures(combines: bool) -> Program {
    let mut program = Program::new();
    let source = program.source("departures", UNBOUNDED);
    let parse = program.step("parse", PLAIN, [forward(source)]);
    for name in ["by carrier", "by route"] {
        let delays = OperatorAttributes { combines, producers_combine: combines, ..KEYED };
        let delays = program.step(name, delays, [keyed(parse)]);
        program.sink("table", delays);
    }
    program.step("bad rows", SINK, [side(parse, "bad")]);
    program
}

#[test]
fn the_main_job_in_mixed_mode_decides_at_run_time() {
    check("mixed_auto", &departures(false), |settings| {
        mixed(settings);
        settings.state_backend = StateBackendKind::Disk;
    });
}

#[test]
fn the_main_job_in_mixed_mode_combines() {
    check("mixed_combine", &departures(true), mixed);
}

#[test]
fn the_main_job_in_mixed_mode_sorts_if_it_is_told_to() {
    check("mixed_sort", &departures(false), |settings| {
        mixed(settings);
        settings.backlog_strategy = BacklogStrategy::Sort;
    });
}

#[test]
fn the_main_job_in_streaming_mode_sorts_nothing() {
    check("streaming", &departures(false), streaming);
}

#[test]
fn a_batch_join_sorts_by_itself_after_blocking_exchanges() {
    let mut program = Program::new();
    let (orders, payments) =
        (program.source("orders", BOUNDED), program.source("payments", BOUNDED));
    let rates = program.source("rates", BOUNDED);
    program.parallelism(rates, 1);
    let convert =
        program.step("convert", PLAIN, [forward(payments), by(Partitioner::Broadcast, rates)]);
    let join = OperatorAttributes { sorts_internally: true, ..KEYED };
    let join = program.step("join", join, [keyed(orders), keyed(convert)]);
    let top = program.step("top", PLAIN, [by(Partitioner::Global, join)]);
    program.parallelism(top, 1);
    let print = program.sink("print", top);
    program.parallelism(print, 1);
    check("batch_join", &program, |_| {});
}

#[test]
fn an_aggregate_over_the_whole_input_blocks_before_its_consumers() {
    let mut program = Program::new();
    let source = program.source("history", BOUNDED);
    let total = OperatorAttributes { output_only_at_end: true, combines: true, ..KEYED };
    let total = program.step("totals", total, [keyed(source)]);
    let live = program.source("live", UNBOUNDED);
    let share = program.step("share", KEYED, [keyed(total), keyed(live)]);
    program.sink("print", share);
    check("end_of_stream", &program, streaming);
}

/// clean is cached as 1, its dropped rows as 2.
fn cached() -> Program {
    let mut program = Program::new();
    let rows = program.source("rows", BOUNDED);
    let clean = program.step("clean", PLAIN, [forward(rows)]);
    program.cache(clean, OutputTag::Main, 1);
    program.cache(clean, OutputTag::Side("dropped".to_owned()), 2);
    let sum = program.step("sum", KEYED, [keyed(clean)]);
    program.sink("print", sum);
    program.step("audit", SINK, [side(clean, "dropped")]);
    program
}

#[test]
fn a_first_job_computes_and_keeps_its_caches() {
    check("cache_computed", &cached(), |_| {});
}

#[test]
fn a_later_job_reads_its_caches() {
    let mut program = cached();
    program.complete(1);
    program.complete(2);
    check("cache_hit", &program, |_| {});
}

#[test]
fn a_job_with_one_of_two_caches_reads_the_one_and_makes_the_other() {
    let mut program = cached();
    program.complete(1);
    check("cache_half", &program, |_| {});
}

#[test]
fn a_streaming_job_may_run_uncached() {
    check("cache_uncached", &cached(), |settings| {
        streaming(settings);
        settings.cache_outside_batch = element::option_table::CacheOutsideBatch::Recompute;
    });
}

#[test]
fn the_same_program_has_the_same_plan_and_fingerprint() {
    let (a, b) = (departures(false).plan(mixed), departures(false).plan(mixed));
    assert_eq!(a.explain(), b.explain());
    assert_eq!(a.fingerprint(), b.fingerprint());
    let other = departures(true).plan(mixed);
    assert_ne!(a.fingerprint(), other.fingerprint());
}

#[test]
fn a_fingerprint_counts_uids() {
    let mut program = departures(false);
    let plain = program.plan(mixed).fingerprint();
    program.graph.node_mut(element::NodeId(2)).unwrap().uid = Some("carriers".to_owned());
    assert_ne!(program.plan(mixed).fingerprint(), plain);
}
