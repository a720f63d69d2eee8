//! File sinks: what is visible when, and what a failure, an old savepoint or a late notification does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{
    ByteSize, CsvFiles, FileSinkError, JobError, JsonFiles, ScriptStep, ScriptedSource, Sink,
    SinkContext, SinkWriter, SubtaskIndex, TextFiles,
};

/// Names and texts of a directory's files, visible or not.
fn files(directory: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return BTreeMap::new() };
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap_or_default())
        })
        .collect()
}

/// The lines of the visible files, sorted.
fn lines(directory: &Path) -> Vec<String> {
    let files = files(directory);
    let visible = files.iter().filter(|(name, _)| !name.starts_with('.'));
    let mut lines: Vec<String> =
        visible.flat_map(|(_, text)| text.lines()).map(str::to_owned).collect();
    lines.sort();
    lines
}

fn hidden(directory: &Path) -> Vec<String> {
    files(directory).into_keys().filter(|name| name.starts_with('.')).collect()
}

fn context(subtask: u32, attempt: u32, is_restored: bool) -> SinkContext {
    SinkContext {
        job: "test".to_owned(),
        subtask: SubtaskIndex(subtask),
        parallelism: 2,
        attempt: element::Attempt(attempt),
        checkpoints: true,
        is_restored,
    }
}

/// A subtask's writer, its commits and what a checkpoint stores of it.
struct Subtask {
    writer: Box<dyn SinkWriter<String>>,
    pending: Vec<Vec<u8>>,
}

impl Subtask {
    fn open(sink: &TextFiles, context: &SinkContext, restored: &[Vec<u8>]) -> Self {
        let mut writer = Sink::<String>::writer(sink, context, restored).unwrap();
        restored.iter().for_each(|item| writer.commit(item).unwrap());
        Self { writer, pending: Vec::new() }
    }

    fn write(&mut self, text: &str) {
        self.writer.write(text.to_owned(), None).unwrap();
    }

    /// A barrier: what the checkpoint stores.
    fn barrier(&mut self) -> Vec<Vec<u8>> {
        self.pending.extend(self.writer.prepare_commit().unwrap());
        let mut stored = self.pending.clone();
        stored.extend(self.writer.snapshot().unwrap());
        stored
    }

    /// The newest checkpoint is complete.
    fn complete(&mut self) {
        for item in std::mem::take(&mut self.pending) {
            self.writer.commit(&item).unwrap();
        }
    }
}

/// tK17: committing late, twice, or for an older checkpoint behind a newer one does nothing more.
#[test]
fn a_commit_that_comes_late_or_twice_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let sink = TextFiles::exactly_once(folder.path());
    let mut subtask = Subtask::open(&sink, &context(0, 0, false), &[]);
    subtask.write("a");
    let first = subtask.barrier();
    subtask.write("b");
    subtask.barrier();
    assert!(lines(folder.path()).is_empty());
    subtask.complete();
    assert_eq!(lines(folder.path()), ["a", "b"]);
    for item in first.iter().chain(&first) {
        subtask.writer.commit(item).unwrap();
    }
    assert_eq!(lines(folder.path()), ["a", "b"]);
    assert!(hidden(folder.path()).is_empty());
}

/// tK18: two pending checkpoints of each of two subtasks go on at parallelism 1 and 3.
#[test]
fn pending_commits_survive_another_parallelism() {
    for parallelism in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let before = TextFiles::exactly_once(folder.path());
        let mut stored = Vec::new();
        for number in 0..2 {
            let mut subtask = Subtask::open(&before, &context(number, 0, false), &[]);
            subtask.write(&format!("{number}a"));
            subtask.barrier();
            subtask.write(&format!("{number}b"));
            stored.extend(subtask.barrier());
            subtask.write("lost with the attempt");
        }
        let after = TextFiles::exactly_once(folder.path());
        for number in 0..parallelism {
            let share: Vec<Vec<u8>> =
                stored.iter().skip(number).step_by(parallelism).cloned().collect();
            let number = u32::try_from(number).unwrap();
            Subtask::open(&after, &context(number, 0, true), &share);
        }
        assert_eq!(lines(folder.path()), ["0a", "0b", "1a", "1b"]);
    }
}

/// tK22: a run that goes on from an older savepoint of another run writes beside its files.
#[test]
fn a_run_from_an_older_savepoint_skips_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let before = TextFiles::exactly_once(folder.path());
    let mut subtask = Subtask::open(&before, &context(0, 0, false), &[]);
    subtask.write("a");
    let savepoint = subtask.barrier();
    subtask.complete();
    subtask.write("b of the first run");
    subtask.barrier();
    subtask.complete();
    let after = TextFiles::exactly_once(folder.path());
    let mut subtask = Subtask::open(&after, &context(0, 0, true), &savepoint);
    subtask.write("b of the second run");
    subtask.barrier();
    subtask.complete();
    assert_eq!(lines(folder.path()), ["a", "b of the first run", "b of the second run"]);
}

/// tK23: the files of a declined checkpoint are committed with the next one, as they were.
#[test]
fn what_a_declined_checkpoint_held_goes_with_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let sink = TextFiles::exactly_once(folder.path());
    let mut subtask = Subtask::open(&sink, &context(0, 0, false), &[]);
    subtask.write("a");
    subtask.barrier();
    subtask.write("b");
    let stored = subtask.barrier();
    // The attempt fails before the second checkpoint's notification.
    subtask.write("c, lost with the attempt");
    subtask.barrier();
    drop(subtask);
    let mut subtask = Subtask::open(&sink, &context(0, 1, true), &stored);
    subtask.write("c");
    subtask.barrier();
    subtask.complete();
    assert_eq!(lines(folder.path()), ["a", "b", "c"]);
    assert_eq!(files(folder.path()).len(), 3, "{:?}", files(folder.path()));
    assert!(hidden(folder.path()).is_empty());
}

/// What a checkpoint stored for one subtask may be dealt to another: it removes nothing that is covered.
#[test]
fn leftovers_are_removed_by_whoever_knows_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let sink = TextFiles::exactly_once(folder.path());
    let mut stored = Vec::new();
    for number in 0..2 {
        let mut subtask = Subtask::open(&sink, &context(number, 0, false), &[]);
        subtask.write(&format!("{number}a"));
        subtask.barrier();
        subtask.write(&format!("{number}b"));
        stored.extend(subtask.barrier());
        subtask.write(&format!("{number}c"));
        subtask.barrier();
        // Committed with the end of input, and then the attempt fails.
        subtask.complete();
        subtask.write("in progress");
    }
    stored.reverse();
    let mut subtasks: Vec<Subtask> = Vec::new();
    for number in 0..2 {
        let share: Vec<Vec<u8>> = stored.iter().skip(number).step_by(2).cloned().collect();
        let number = u32::try_from(number).unwrap();
        let mut subtask = Subtask::open(&sink, &context(number, 1, true), &share);
        subtask.write(&format!("{number}c again"));
        subtask.barrier();
        subtasks.push(subtask);
    }
    subtasks.iter_mut().for_each(Subtask::complete);
    assert_eq!(lines(folder.path()), ["0a", "0b", "0c again", "1a", "1b", "1c again"]);
    assert!(hidden(folder.path()).is_empty());
}

#[test]
fn a_prepared_file_that_is_gone_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let sink = TextFiles::exactly_once(folder.path());
    let mut subtask = Subtask::open(&sink, &context(0, 0, false), &[]);
    subtask.write("a");
    let stored = subtask.barrier();
    for name in hidden(folder.path()) {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let error = subtask.writer.commit(&stored[0]).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(FileSinkError::Lost { .. })), "{error:#}");
}

#[derive(serde::Serialize, serde::Deserialize, Record, Clone, Debug, PartialEq, PartialOrd)]
struct Row {
    id: u64,
    name: String,
    delay: Option<f64>,
}

fn rows(count: u64) -> Vec<Row> {
    (0..count)
        .map(|id| Row {
            id,
            name: format!("a \"{id}\", b"),
            delay: (id % 3 > 0).then_some(id as f64 / 2.0),
        })
        .collect()
}

#[test]
fn files_read_back_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let (json, csv) = (folder.path().join("json"), folder.path().join("csv"));
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(2));
    let stream = env.from_collection(rows(5_000));
    stream.clone().sink_to(JsonFiles::exactly_once(&json).roll_size(ByteSize(20_000)));
    stream.sink_to(CsvFiles::at_least_once(&csv).roll_size(ByteSize(20_000)));
    env.execute("write").unwrap();
    assert!(files(&csv).len() > 1);
    assert!(hidden(&json).is_empty() && hidden(&csv).is_empty());
    let sorted = |rows: slackwater::Collected<Row>| {
        let mut rows = rows.into_vec();
        rows.sort_by_key(|row| row.id);
        rows
    };
    assert_eq!(sorted(env.read_json(&json).execute_and_collect().unwrap()), rows(5_000));
    assert_eq!(sorted(env.read_csv(&csv).execute_and_collect().unwrap()), rows(5_000));
}

#[test]
fn a_failure_behind_a_checkpoint_writes_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (seen, failed) = (out.clone(), Arc::new(AtomicBool::new(false)));
    let mut script: Vec<ScriptStep<u32>> = Vec::new();
    script.extend((0..100).map(|i| ScriptStep::Record(i, None)));
    // Goes on when a checkpoint has made the first file visible.
    script.push(ScriptStep::until(move || !lines(&seen).is_empty()));
    script.extend((100..200).map(|i| ScriptStep::Record(i, None)));
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(20)))
        .set(&options::RESTART_STRATEGY, Some(options::RestartStrategy::FixedDelay))
        .set(&options::RESTART_DELAY, Duration::from_millis(1))
        .set(&options::PARALLELISM, Some(1));
    env.from_source(ScriptedSource::new(script), WatermarkStrategy::none(), "script")
        .try_map(move |i| {
            if i == 150 && !failed.swap(true, Ordering::Relaxed) {
                return Err(Error::msg("once"));
            }
            Ok(format!("{i:03}"))
        })
        .sink_to(TextFiles::exactly_once(&out));
    let report = env.execute("fails once").unwrap();
    assert_eq!(report.recovered.len(), 1, "{:?}", report.recovered);
    assert!(!report.checkpoints.is_empty());
    assert_eq!(lines(&out), (0..200).map(|i| format!("{i:03}")).collect::<Vec<_>>());
    assert!(hidden(&out).is_empty());
}

#[test]
fn a_cloned_sink_writes_beside_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let sink = TextFiles::exactly_once(folder.path());
    let env = StreamExecutionEnvironment::new();
    env.from_collection(["a"]).sink_to(sink.clone());
    env.from_collection(["b"]).sink_to(sink);
    env.execute("write").unwrap();
    assert_eq!(lines(folder.path()), ["a", "b"]);
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let env = StreamExecutionEnvironment::new();
    env.from_collection(["a"]).sink_to(TextFiles::exactly_once(file.join("out")));
    let error = env.execute("write").unwrap_err();
    assert!(matches!(error, JobError::Failed { .. }));
    let error = Error::from(error);
    assert!(error.chain().any(|cause| cause.is::<FileSinkError>()));
    let text = format!("{error:#}");
    assert!(
        text.contains(&format!("cannot write to the directory `{}/out`", file.display())),
        "{text}"
    );
}

/// Pipelines that nothing joins come one after the other where there is a slot for one: a sink whose input
/// has ended does not hold its slot for those that have not begun.
#[test]
fn unconnected_pipelines_end_one_after_the_other_in_one_slot() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(1))
        .set(&options::WORKERS, 1)
        .set(&options::TASK_SLOTS, Some(1))
        .set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_secs(3600)));
    for (folder, word) in folders.iter().zip(["ebb", "flow"]) {
        let words = env.from_collection([word.to_owned()]);
        words.sink_to(TextFiles::exactly_once(folder.path()));
    }
    let job = env.submit("two").unwrap();
    // The limit is there for a job that hangs.
    let begun = std::time::Instant::now();
    while !job.is_finished() {
        assert!(begun.elapsed() < Duration::from_secs(60), "a pipeline waits for another's slot");
        std::thread::yield_now();
    }
    job.wait().unwrap();
    assert_eq!(folders.each_ref().map(|folder| lines(folder.path())), [["ebb"], ["flow"]]);
}
