//! The errors that a user meets first: each is typed, and names the thing.

use std::error::Error as _;

use slackwater::options;
use slackwater::prelude::*;
use slackwater::{ByteSize, JobError, TaskError};

/// An error and its causes on one line.
fn chain(error: &JobError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[track_caller]
fn names(error: &JobError, words: &[&str]) {
    let text = chain(error);
    for word in words {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
}

fn task_error(error: &JobError) -> &TaskError {
    match error {
        JobError::Failed { source, .. } => &source.source,
        other => panic!("not a failed task: {other:?}"),
    }
}

#[test]
fn a_job_without_a_sink_is_refused() {
    let env = StreamExecutionEnvironment::new();
    let unused = env.from_collection([1, 2, 3]).map(|n| n + 1);
    let error = env.execute("nothing").expect_err("there is no sink");
    assert!(matches!(error, JobError::Plan(_)), "{error:?}");
    names(&error, &["sink"]);
    drop(unused);
}

#[test]
fn a_closed_environment_runs_nothing_more() {
    let env = StreamExecutionEnvironment::new();
    env.from_collection([1]).execute_and_collect().expect("it is open");
    drop(env.close());
    drop(env.close());
    let error = env.from_collection([1]).execute_and_collect().expect_err("it is closed");
    assert!(matches!(error, JobError::Closed), "{error:?}");
}

#[test]
fn parallelism_zero_is_refused_by_name() {
    let env = StreamExecutionEnvironment::new();
    let doubled = env.from_collection([1]).map(|n| n * 2).name("double").parallelism(0);
    let error = doubled.execute_and_collect().expect_err("no subtask can run it");
    names(&error, &["double", "0"]);
}

#[test]
fn a_misspelt_option_names_the_right_one() {
    let env = StreamExecutionEnvironment::new();
    let error = env.config().set_text("execution.runtime.mod", "batch").err().expect("misspelt");
    assert!(error.to_string().contains("execution.runtime-mode"), "{error}");
    let error = env.config().set_text("execution.runtime-mode", "fast").err().expect("no mode");
    let text = error.to_string();
    assert!(text.contains("execution.runtime-mode") && text.contains("fast"), "{text}");
}

#[test]
fn a_temporary_directory_that_cannot_be_made_is_named() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::TMP_DIRS, Some("/proc/nowhere".to_owned()));
    let error = env.from_collection([1]).execute_and_collect().expect_err("no directory");
    assert!(matches!(error, JobError::Directory { .. }), "{error:?}");
    names(&error, &["/proc/nowhere"]);
}

#[test]
fn managed_memory_below_what_the_job_needs_is_refused_by_name() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::MANAGED_MEMORY, Some(ByteSize::kib(1)));
    let counts = env.from_collection([1_u64, 2]).key_by(|n| *n).count();
    let error = counts.execute_and_collect().expect_err("no memory to sort with");
    names(&error, &["taskmanager.memory.managed.size", "count"]);
}

#[test]
fn a_panic_in_a_function_names_operator_and_record_and_kills_nothing_else() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RESTART_STRATEGY, Some(options::RestartStrategy::None));
    env.set(&options::PARALLELISM, Some(1));
    let error = env
        .from_collection([1_u64, 2, 0, 4])
        .map(|n| 12 / n)
        .name("divide")
        .execute_and_collect()
        .expect_err("it divides by zero");
    match task_error(&error) {
        TaskError::Panic { operator, record, message } => {
            assert_eq!((operator.as_str(), *record), ("divide", Some(3)));
            assert!(message.contains("divide by zero"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let again = env.from_collection([1_u64, 2]).map(|n| 12 / n).execute_and_collect();
    assert_eq!(again.expect("the environment lives on"), [12, 6]);
}

#[test]
fn an_error_of_a_function_keeps_its_cause() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RESTART_STRATEGY, Some(options::RestartStrategy::None));
    let error = env
        .from_collection(["7", "x"])
        .try_map(|text: &str| Ok(text.parse::<u64>()?))
        .name("parse")
        .execute_and_collect()
        .expect_err("x is no number");
    assert!(matches!(task_error(&error), TaskError::User { record: Some(2), .. }), "{error:?}");
    names(&error, &["parse", "invalid digit"]);
}
