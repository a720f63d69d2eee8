//! Options: where values come from, which of them wins, and what a mistake is told.

use std::collections::HashSet;
use std::time::Duration;

use element::option_table::{
    CHECKPOINT_INTERVAL, MANAGED_MEMORY, PARALLELISM, RUNTIME_MODE, RestartStrategy, RuntimeMode,
};
use element::{ByteSize, ConfigError, Configuration, OptionValue, all_options};

fn environment(name: &str, value: &str) -> Vec<(String, String)> {
    vec![("PATH".into(), "/bin".into()), (format!("SLACKWATER_{name}"), value.into())]
}

#[test]
fn code_wins_over_the_environment_which_wins_over_the_file() {
    let mut options = Configuration::new();
    assert_eq!(options.get(&RUNTIME_MODE), Ok(RuntimeMode::Automatic));
    options.merge_toml("parallelism.default = 2\n[execution]\nruntime-mode = \"batch\"").unwrap();
    assert_eq!(options.get(&RUNTIME_MODE), Ok(RuntimeMode::Batch));
    assert_eq!(options.get(&PARALLELISM), Ok(Some(2)));
    options.merge_environment(environment("EXECUTION_RUNTIME_MODE", "STREAMING")).unwrap();
    assert_eq!(options.get(&RUNTIME_MODE), Ok(RuntimeMode::Streaming));
    options.set(&RUNTIME_MODE, RuntimeMode::Automatic);
    assert_eq!(options.get(&RUNTIME_MODE), Ok(RuntimeMode::Automatic));
    assert_eq!(options.get(&PARALLELISM), Ok(Some(2)));
    options.unset(&PARALLELISM);
    assert!(!options.is_set(&PARALLELISM));
}

#[test]
fn an_unknown_key_is_an_error_that_suggests_the_nearest() {
    #[track_caller]
    fn check(result: Result<&mut Configuration, ConfigError>, message: &str) {
        assert_eq!(result.unwrap_err().to_string(), message);
    }
    let mut options = Configuration::new();
    let suggestion = "did you mean `execution.checkpointing.interval`?";
    check(
        options.set_text("execution.checkpointing.intervall", "1s"),
        &format!("unknown option `execution.checkpointing.intervall`, {suggestion}"),
    );
    check(
        options.merge_environment(environment("EXECUTION_CHECKPOINTING_INTERVALL", "1s")),
        &format!("unknown option `SLACKWATER_EXECUTION_CHECKPOINTING_INTERVALL`, {suggestion}"),
    );
    check(options.set_text("colour", "blue"), "unknown option `colour`");
    check(
        options.merge_toml("[execution.sorted-inputs]\nmemmory = 1"),
        "unknown option `execution.sorted-inputs.memmory`, \
         did you mean `execution.sorted-inputs.memory`?",
    );
    assert_eq!(options, Configuration::new());
}

#[test]
fn a_bad_value_is_an_error_that_names_key_value_and_kind() {
    #[track_caller]
    fn check(key: &str, value: &str, message: &str) {
        let error = Configuration::new().set_text(key, value).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    check(
        "execution.checkpointing.interval",
        "soon",
        "option `execution.checkpointing.interval`: `soon` is not \
         a duration such as `10s`, `500ms` or `1min`",
    );
    check("parallelism.default", "-1", "option `parallelism.default`: `-1` is not a whole number");
    check(
        "execution.runtime-mode",
        "fast",
        "option `execution.runtime-mode`: `fast` is not `streaming`, `batch` or `automatic`",
    );
}

#[test]
fn every_default_reads_back_by_key_and_from_the_environment() {
    for option in all_options() {
        let default = (option.default)();
        let mut options = Configuration::new();
        options.set_text(option.key, &default).unwrap();
        let variable = option.key.to_uppercase().replace(['.', '-'], "_");
        options.merge_environment(environment(&variable, &default)).unwrap();
        assert_eq!(options.iter().collect::<Vec<_>>(), [(option.key, default.as_str())]);
        assert!(
            !option.doc.trim().is_empty() && option.doc.trim().ends_with('.'),
            "{}",
            option.key
        );
    }
}

#[test]
fn no_two_options_share_a_key_or_a_variable() {
    let variable = |key: &str| key.to_uppercase().replace(['.', '-'], "_");
    let variables: HashSet<_> = all_options().iter().map(|option| variable(option.key)).collect();
    assert_eq!(variables.len(), all_options().len());
}

#[test]
fn durations_and_sizes_read_with_units_and_read_back() {
    #[track_caller]
    fn check<T: OptionValue + PartialEq + std::fmt::Debug>(text: &str, value: Option<T>) {
        assert_eq!(T::parse(text), value);
        if let Some(value) = value {
            assert_eq!(T::parse(&value.format()), Some(value));
        }
    }
    check("10s", Some(Duration::from_secs(10)));
    check(" 2 min ", Some(Duration::from_secs(120)));
    check("250", Some(Duration::from_millis(250)));
    check("3d", Some(Duration::from_secs(259_200)));
    check("0", Some(Duration::ZERO));
    check::<Duration>("1.5s", None);
    check::<Duration>("", None);
    check::<Duration>("99999999999999999999999999999999999999999d", None);
    check("256mb", Some(ByteSize::mib(256)));
    check("64k", Some(ByteSize::kib(64)));
    check("12", Some(ByteSize(12)));
    check::<ByteSize>("99999999999t", None);
    check::<Option<Duration>>("none", Some(None));
    check::<Option<Duration>>("unset", Some(None));
    check::<Option<RestartStrategy>>("none", Some(Some(RestartStrategy::None)));
    check::<Option<RestartStrategy>>("unset", Some(None));
    assert_eq!(<Option<RestartStrategy>>::parse(&None::<RestartStrategy>.format()), Some(None));
    assert_eq!(Duration::parse(&Duration::MAX.format()), Some(Duration::MAX));
}

#[test]
fn values_are_written_in_the_greatest_unit_that_leaves_no_rest() {
    let durations = ["0", "1ns", "100ms", "90s", "10min", "36h", "2d"];
    for text in durations {
        assert_eq!(Duration::parse(text).map(|value| value.format()).as_deref(), Some(text));
    }
    for text in ["0", "12", "64kb", "128mb", "1536mb", "2gb"] {
        assert_eq!(ByteSize::parse(text).map(|value| value.format()).as_deref(), Some(text));
    }
    assert_eq!(Duration::from_millis(60_000).format(), "1min");
    assert_eq!(None::<Duration>.format(), "unset");
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("slackwater.toml");
    let mut options = Configuration::new();
    let error = options.merge_file(&path).unwrap_err().to_string();
    assert!(error.contains("slackwater.toml"), "{error}");
    std::fs::write(&path, "a = = b").unwrap();
    let error = options.merge_file(&path).unwrap_err();
    assert!(
        matches!(&error, ConfigError::File { path, .. } if path.contains("slackwater.toml")),
        "{error}"
    );
    std::fs::write(
        &path,
        "taskmanager.memory.managed.size = \"1g\"\nexecution.checkpointing.interval = 500",
    )
    .unwrap();
    options.merge_file(&path).unwrap();
    assert_eq!(options.get(&MANAGED_MEMORY), Ok(Some(ByteSize::mib(1_024))));
    assert_eq!(options.get(&CHECKPOINT_INTERVAL), Ok(Some(Duration::from_millis(500))));
}
