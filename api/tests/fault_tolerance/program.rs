//! The program that tests kill: this test binary, started again as a child process.
//!
//! A history in backlog, then live records, running sums per key, committed as text files exactly
//! once. It pauses before the records that its home names, until a file is there, and goes on from
//! its last checkpoint if there is one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{ScriptStep, ScriptedSource, TextFiles, options};

use crate::support::{mixed, wait_for};

/// Set for a child: where it works.
pub(crate) const HOME: &str = "SLACKWATER_TEST_HOME";

/// Records of the history, and all of them.
pub(crate) const HISTORY: i64 = 1_000;
pub(crate) const ALL: i64 = 3_000;
const KEYS: i64 = 10;

type Pair = (u32, i64);

/// Where the program pauses, by the number of the record that comes next.
pub(crate) const PAUSES: [i64; 5] = [10, 900, 1_100, 2_000, 2_990];

pub(crate) struct Sum(ValueState<i64>);

impl Sum {
    pub(crate) fn new() -> Self {
        Self(ValueState::new("sum"))
    }
}

impl KeyedProcessFunction<u32, Pair, String> for Sum {
    fn process(&mut self, pair: Pair, context: &mut KeyedContext<'_, u32, String>) -> Result<()> {
        let sum = self.0.update(context, |sum| {
            let sum = sum.get_or_insert(0);
            *sum += pair.1;
            *sum
        })?;
        context.collect(format!("{} {sum}", pair.0));
        Ok(())
    }
}

fn pause(home: &Path, at: i64) -> ScriptStep<Pair> {
    let (reached, go_on) = (home.join(format!("reached-{at}")), home.join(format!("pass-{at}")));
    ScriptStep::until(move || {
        go_on.exists() || {
            std::fs::write(&reached, "").unwrap();
            false
        }
    })
}

/// The child: runs until the end of its input, unless it is killed; then says how it ended.
pub(crate) fn run(home: &Path, durable: bool) {
    let checkpoints = home.join("checkpoints");
    let env = mixed();
    env.suspend_on_signals().unwrap();
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)))
        .set(&options::CHECKPOINT_DIR, Some(checkpoints.display().to_string()))
        .set(&options::BACKLOG_DURABLE, durable)
        .set(&options::PARALLELISM, Some(2))
        .set(&options::STATE_BACKEND, options::StateBackendKind::Disk);
    let earlier = slackwater::newest_checkpoint(&checkpoints.join("program"));
    env.set(&options::SAVEPOINT_PATH, earlier.map(|path| path.display().to_string()));
    let mut steps = vec![ScriptStep::Backlog(true)];
    for i in 0..ALL {
        if i == HISTORY {
            steps.push(ScriptStep::Backlog(false));
        }
        if PAUSES.contains(&i) {
            steps.push(pause(home, i));
        }
        steps.push(ScriptStep::at(i, (u32::try_from(i % KEYS).unwrap(), 1)));
    }
    env.from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script")
        .uid("source")
        .parallelism(1)
        .key_by(|pair: &Pair| pair.0)
        .process(Sum::new)
        .uid("sums")
        .sink_to(TextFiles::exactly_once(home.join("rows")))
        .uid("sink");
    let outcome = env.submit("program").unwrap();
    let progress = outcome.progress();
    let ended = outcome.wait();
    let read = progress.records_read();
    let text = ended.map_or_else(|error| error.to_string(), |_| "finished".to_owned());
    std::fs::write(home.join("ended"), format!("{text}\n{read}")).unwrap();
}

/// All files below a directory, by path.
pub(crate) fn files_below(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        if entry.path().is_dir() {
            files.extend(files_below(&entry.path()));
        } else {
            files.push(entry.path().display().to_string());
        }
    }
    files
}

/// A home of the program, as its parent sees it.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Starts the program: the test of this binary that has this name.
    pub(crate) fn start(&self, test: &str) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--test-threads", "1"])
            .env(HOME, self.path())
            .spawn()
            .unwrap()
    }

    fn file(&self, name: &str, at: i64) -> PathBuf {
        self.path().join(format!("{name}-{at}"))
    }

    /// Lets the program pass every pause before `at`, and waits until it has come there.
    pub(crate) fn comes_to(&self, at: i64) {
        for pause in PAUSES.into_iter().filter(|pause| *pause < at) {
            std::fs::write(self.file("pass", pause), "").unwrap();
        }
        wait_for("the pause", || self.file("reached", at).exists());
        std::fs::remove_file(self.file("reached", at)).unwrap();
    }

    /// Lets the program pass every pause.
    pub(crate) fn passes_all(&self) {
        for pause in PAUSES {
            std::fs::write(self.file("pass", pause), "").unwrap();
        }
    }

    /// The files below the job's checkpoints, by path.
    pub(crate) fn files(&self) -> Vec<String> {
        files_below(&self.path().join("checkpoints/program"))
    }

    /// Waits until a checkpoint is complete that was begun after this call.
    pub(crate) fn takes_a_checkpoint(&self) {
        let newest = || {
            let folder = slackwater::newest_checkpoint(&self.path().join("checkpoints/program"))?;
            folder.file_name()?.to_str()?.strip_prefix("chk-")?.parse::<u64>().ok()
        };
        // The first may be complete already, if it was listed while the one before it was removed; the
        // second may be under way. Ids say nothing: those of checkpoints that were given up are missing.
        let mut last = newest();
        for _ in 0..3 {
            wait_for("a checkpoint", || newest() > last);
            last = last.max(newest());
        }
    }

    /// How the program said that it ended, and the records that its last attempt read.
    pub(crate) fn ended(&self) -> (String, u64) {
        let text = std::fs::read_to_string(self.path().join("ended")).unwrap();
        let (ended, read) = text.split_once('\n').unwrap();
        (ended.to_owned(), read.parse().unwrap())
    }

    /// Rows that readers see.
    pub(crate) fn rows(&self) -> Vec<Pair> {
        let Ok(entries) = std::fs::read_dir(self.path().join("rows")) else { return Vec::new() };
        let mut rows = Vec::new();
        for entry in entries {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_str().unwrap().starts_with("part-") {
                for line in std::fs::read_to_string(path).unwrap().lines() {
                    let (key, sum) = line.split_once(' ').unwrap();
                    rows.push((key.parse().unwrap(), sum.parse().unwrap()));
                }
            }
        }
        rows.sort_unstable();
        rows
    }

    /// Every running sum is there once.
    #[track_caller]
    pub(crate) fn check(&self) {
        let mut expected: Vec<Pair> = Vec::new();
        for key in 0..u32::try_from(KEYS).unwrap() {
            expected.extend((1..=ALL / KEYS).map(|sum| (key, sum)));
        }
        let rows = self.rows();
        assert_eq!(rows.len(), expected.len(), "rows are missing or doubled");
        assert_eq!(rows, expected);
    }
}
