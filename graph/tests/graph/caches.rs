//! Cached streams in plans: read, written, or refused (FLIP-205).
//!
//! Which data sets are complete is said by the test. Left out on purpose: what is kept when a job
//! ends, and what happens when it is lost (`runtime`).

use std::cell::RefCell;

use element::option_table::{BatchShuffleMode, CacheOutsideBatch, RuntimeMode};
use element::{DataSetId, NodeId, VertexId};
use slackwater_graph::{CacheDecision, Exchange, OutputTag, PlanSettings, ResolvedMode, plan};

use crate::program::*;

/// numbers -> double (cached as 7) -> print
fn cached_line() -> (Program, NodeId) {
    let mut program = Program::new();
    let source = program.source("numbers", BOUNDED);
    let double = program.step("double", PLAIN, [forward(source)]);
    program.cache(double, OutputTag::Main, 7);
    program.sink("print", double);
    (program, double)
}

/// A13, A14, A23: written by the producer's own subtasks; consumers stay as they are.
#[test]
fn a_missing_cache_is_written_by_its_producers_own_vertex() {
    let (program, double) = cached_line();
    let job = program.plan(|_| {});
    assert_eq!(names(&job), ["numbers -> double -> print"]);
    let [kept] = job.vertices[0].persistent.as_slice() else { panic!("one kept output") };
    assert_eq!((kept.node, kept.data_set), (double, DataSetId(7)));
    assert_eq!(kept.payload, "writer");
    assert_eq!(job.caches[0].decision, CacheDecision::Computed { producer: VertexId(0) });
    assert_eq!(job.caches[0].name, "double");
}

/// A13: the kept output is no link: nothing is chained over it.
#[test]
fn nothing_is_chained_over_a_kept_output() {
    let (program, _) = cached_line();
    let job = program.plan(|_| {});
    assert_eq!(job.vertices[0].links.len(), 2);
    assert!(job.vertices[0].links.iter().all(|link| link.payload != "writer"));
    assert!(job.edges.is_empty());
}

/// A2: nothing upstream of a complete cache runs.
#[test]
fn a_complete_cache_replaces_everything_upstream() {
    let (mut program, _) = cached_line();
    program.complete(7);
    let job = program.plan(|_| {});
    assert_eq!(names(&job), ["cached double -> print"]);
    assert_eq!(job.caches[0].decision, CacheDecision::Hit { reader: VertexId(0) });
    assert!(job.vertices[0].persistent.is_empty());
    let reader = job.vertices[0].chain[0].node;
    assert_eq!(reader, NodeId(3), "an id past those of the program");
}

/// A3: two keyings of one cached stream read one data set.
#[test]
fn two_keyings_of_a_cached_stream_read_one_data_set() {
    let mut program = Program::new();
    let source = program.source("numbers", BOUNDED);
    program.cache(source, OutputTag::Main, 7);
    for name in ["by carrier", "by route"] {
        let sum = program.step(name, KEYED, [keyed(source)]);
        program.sink("print", sum);
    }
    let first = program.plan(|_| {});
    assert_eq!(first.vertices[0].persistent.len(), 1);
    program.complete(7);
    let second = program.plan(|_| {});
    assert_eq!(names(&second), ["cached numbers", "by carrier -> print", "by route -> print"]);
    assert_eq!(second.caches.len(), 1);
}

/// A4: a side output is cached by itself; the main output is not affected.
#[test]
fn a_cached_side_output_leaves_the_main_output_alone() {
    let mut program = Program::new();
    let source = program.source("numbers", BOUNDED);
    let split = program.step("split", PLAIN, [forward(source)]);
    program.cache(split, OutputTag::Side("odd".to_owned()), 7);
    program.sink("even", split);
    program.step("odd", SINK, [side(split, "odd")]);
    let first = program.plan(|_| {});
    assert_eq!(names(&first), ["numbers -> split -> (even, odd)"]);
    assert_eq!(first.vertices[0].persistent[0].output, OutputTag::Side("odd".to_owned()));
    program.complete(7);
    let second = program.plan(|_| {});
    assert_eq!(names(&second), ["numbers -> split -> even", "cached split/odd -> odd"]);
}

#[test]
fn a_cached_output_that_the_job_does_not_need_is_neither_read_nor_written() {
    let mut program = Program::new();
    let source = program.source("numbers", BOUNDED);
    program.cache(source, OutputTag::Side("odd".to_owned()), 7);
    program.sink("even", source);
    assert!(program.plan(|_| {}).caches.is_empty());
    program.complete(7);
    assert_eq!(names(&program.plan(|_| {})), ["numbers -> even"]);
}

/// A5: of nested caches the nearest complete one is read.
#[test]
fn of_nested_caches_the_nearest_wins() {
    let mut program = Program::new();
    let source = program.source("numbers", BOUNDED);
    let outer = program.step("outer", PLAIN, [forward(source)]);
    program.cache(outer, OutputTag::Main, 1);
    let inner = program.step("inner", PLAIN, [forward(outer)]);
    program.cache(inner, OutputTag::Main, 2);
    program.sink("print", inner);

    let both = program.plan(|_| {});
    assert_eq!(both.vertices[0].persistent.len(), 2);

    program.complete(1);
    let from_outer = program.plan(|_| {});
    assert_eq!(names(&from_outer), ["cached outer -> inner -> print"]);
    assert_eq!(
        from_outer.caches.iter().map(|cache| cache.decision).collect::<Vec<_>>(),
        [
            CacheDecision::Hit { reader: VertexId(0) },
            CacheDecision::Computed { producer: VertexId(0) },
        ]
    );

    program.complete(2);
    let from_inner = program.plan(|_| {});
    assert_eq!(names(&from_inner), ["cached inner -> print"]);
    assert_eq!(from_inner.caches.len(), 1, "the outer cache is not needed");
}

/// A5: two caches in one job, one complete, one not.
#[test]
fn two_caches_in_one_job_are_decided_each_by_itself() {
    let mut program = Program::new();
    let (a, b) = (program.source("a", BOUNDED), program.source("b", BOUNDED));
    program.cache(b, OutputTag::Main, 2);
    program.cache(a, OutputTag::Main, 1);
    program.complete(1);
    let both = program.step("join", KEYED, [keyed(a), keyed(b)]);
    program.sink("print", both);
    let job = program.plan(|_| {});
    assert_eq!(names(&job), ["cached a", "b", "join -> print"]);
    assert_eq!(job.caches[0].data_set, DataSetId(2), "in the order of the marks");
    assert_eq!(job.caches[0].decision, CacheDecision::Computed { producer: VertexId(1) });
    assert_eq!(job.caches[1].decision, CacheDecision::Hit { reader: VertexId(0) });
}

/// A7, D1: an error that names the stream and the option.
#[test]
fn a_missing_cache_outside_batch_mode_is_refused_by_name() {
    let (program, _) = cached_line();
    for mode in [streaming, mixed] {
        let error = program.try_plan(mode).unwrap_err().to_string();
        assert!(error.contains("stream `double` (node 1"), "{error}");
        assert!(error.contains("option `execution.runtime-mode` is `streaming`"), "{error}");
    }
    let pipelined = |settings: &mut PlanSettings<'_>| {
        settings.batch_shuffle_mode = BatchShuffleMode::AllExchangesPipelined;
    };
    let error = program.try_plan(pipelined).unwrap_err().to_string();
    assert!(
        error.contains("`execution.batch-shuffle-mode` is `all-exchanges-pipelined`"),
        "{error}"
    );
}

/// A9, D1: recomputed without making a cache when the user opts in.
#[test]
fn recompute_outside_batch_mode_runs_uncached() {
    let (program, _) = cached_line();
    let job = program.plan(|settings| {
        streaming(settings);
        settings.cache_outside_batch = CacheOutsideBatch::Recompute;
    });
    assert_eq!(names(&job), ["numbers -> double -> print"]);
    assert!(job.vertices[0].persistent.is_empty());
    assert_eq!(job.caches[0].decision, CacheDecision::Uncached { producer: VertexId(0) });
}

/// A8, D1: a complete cache may be read in every mode.
#[test]
fn a_complete_cache_is_read_in_every_mode() {
    let (mut program, _) = cached_line();
    program.complete(7);
    for mode in [streaming, mixed] {
        assert_eq!(names(&program.plan(mode)), ["cached double -> print"]);
    }
}

/// D1: the mode follows from the sources that are left.
#[test]
fn a_complete_cache_of_an_unbounded_part_leaves_a_batch_job() {
    let mut program = Program::new();
    let source = program.source("live", UNBOUNDED);
    program.cache(source, OutputTag::Main, 7);
    program.complete(7);
    program.sink("print", source);
    assert_eq!(program.plan(|_| {}).mode, ResolvedMode::Batch);
    assert!(program.try_plan(|settings| settings.mode = RuntimeMode::Batch).is_ok());
}

/// A26: a reader is as parallel as its producer was said to be, its consumers as they like.
#[test]
fn consumers_of_a_cache_may_have_any_parallelism() {
    let (mut program, double) = cached_line();
    program.complete(7);
    program.parallelism(double, 3);
    let job = program.plan(|_| {});
    assert_eq!(vertex(&job, "cached double").parallelism, 3);
    assert_eq!(vertex(&job, "print").parallelism, 2);
    assert_eq!(job.edges[0].exchange, Exchange::Blocking);
}

#[test]
fn a_second_wish_to_cache_an_output_keeps_the_first_data_set() {
    let (mut program, double) = cached_line();
    assert_eq!(program.cache(double, OutputTag::Main, 8), DataSetId(7));
    assert_eq!(program.graph.marks().len(), 1);
}

/// A1: a mark changes no plan of a job that does not need it, and asks only whether it is complete.
#[test]
fn each_data_set_is_asked_for_once_a_plan() {
    let (mut program, double) = cached_line();
    program.sink("again", double);
    let asked = RefCell::new(Vec::new());
    let available = |data_set: DataSetId| {
        asked.borrow_mut().push(data_set);
        false
    };
    let settings = PlanSettings { available: &available, ..PlanSettings::default() };
    plan(&program.graph, &program.sinks, &settings).unwrap();
    assert_eq!(*asked.borrow(), [DataSetId(7)]);
}

/// State is found again whether or not what is upstream was read from a cache.
#[test]
fn uids_downstream_of_a_cache_do_not_depend_on_whether_it_is_complete() {
    let (mut program, _) = cached_line();
    let uid = |program: &Program| {
        let job = program.plan(|_| {});
        job.vertices[0].chain.last().unwrap().uid.clone()
    };
    let missing = uid(&program);
    program.complete(7);
    assert_eq!(uid(&program), missing);
}
