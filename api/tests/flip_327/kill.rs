//! `kill -9` of a whole program, and a second run that goes on from its last checkpoint.
//!
//! The test starts its own binary again as the program. Rows are committed as files; a commit that
//! comes again finds its file.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{ScriptStep, ScriptedSource, Sink, SinkContext, SinkWriter, options};

use crate::support::{mixed, wait_for};

const HOME: &str = "SLACKWATER_TEST_HOME";

type Pair = (u32, i64);

/// Commits rows as files of a directory.
struct Files(PathBuf);

struct FilesWriter {
    directory: PathBuf,
    pending: Vec<Pair>,
    written: u64,
}

impl Sink<Pair> for Files {
    fn writer(&self, _: &SinkContext, _: &[Vec<u8>]) -> Result<Box<dyn SinkWriter<Pair>>> {
        let directory = self.0.clone();
        Ok(Box::new(FilesWriter { directory, pending: Vec::new(), written: 0 }))
    }
}

impl SinkWriter<Pair> for FilesWriter {
    fn write(&mut self, pair: Pair, _: Option<Timestamp>) -> Result<()> {
        self.pending.push(pair);
        Ok(())
    }

    fn prepare_commit(&mut self) -> Result<Vec<Vec<u8>>> {
        if self.pending.is_empty() {
            return Ok(Vec::new());
        }
        self.written += 1;
        let name = format!("{}-{}", std::process::id(), self.written);
        Ok(vec![element::encode_to_vec(&(name, std::mem::take(&mut self.pending)))])
    }

    fn commit(&mut self, committable: &[u8]) -> Result<()> {
        let (name, pairs) = element::decode_exact::<(String, Vec<Pair>)>(committable)?;
        let text: String = pairs.iter().map(|(key, sum)| format!("{key} {sum}\n")).collect();
        let part = self.directory.join(format!("{name}.part"));
        std::fs::write(&part, text)?;
        std::fs::rename(part, self.directory.join(format!("{name}.rows")))?;
        Ok(())
    }
}

/// The program: a backlog, live records, a pause until a file is there, more live records.
fn program(home: &Path) {
    let checkpoints = home.join("checkpoints");
    let env = mixed();
    env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)))
        .set(&options::CHECKPOINT_DIR, Some(checkpoints.display().to_string()))
        .set(&options::STATE_BACKEND, options::StateBackendKind::Disk);
    let earlier = checkpoints.join("program");
    if earlier.exists() {
        env.set(&options::SAVEPOINT_PATH, Some(earlier.display().to_string()));
    }
    let row = |i: i64| ScriptStep::at(i, (u32::try_from(i % 10).unwrap(), 1));
    let go_on = home.join("go-on");
    let mut steps = vec![ScriptStep::Backlog(true)];
    steps.extend((0..1_000).map(row));
    steps.push(ScriptStep::Backlog(false));
    steps.extend((1_000..1_500).map(row));
    steps.push(ScriptStep::until(move || go_on.exists()));
    steps.extend((1_500..2_000).map(row));
    env.from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script")
        .uid("source")
        .key_by(|pair: &Pair| pair.0)
        .sum(|pair: &Pair| pair.1)
        .uid("sums")
        .sink_to(Files(home.join("rows")))
        .uid("sink");
    env.execute("program").unwrap();
}

fn rows(home: &Path) -> Vec<Pair> {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(home.join("rows")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rows") {
            for line in std::fs::read_to_string(path).unwrap().lines() {
                let (key, sum) = line.split_once(' ').unwrap();
                rows.push((key.parse().unwrap(), sum.parse().unwrap()));
            }
        }
    }
    rows.sort_unstable();
    rows
}

fn start(home: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::a_program_killed_goes_on_from_its_last_checkpoint"])
        .env(HOME, home)
        .spawn()
        .unwrap()
}

/// tK15: what a checkpoint names is whole after `kill -9`; the next run doubles and loses nothing.
#[test]
fn a_program_killed_goes_on_from_its_last_checkpoint() {
    if let Some(home) = std::env::var_os(HOME) {
        return program(Path::new(&home));
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("rows")).unwrap();
    let mut killed = start(home.path());
    wait_for("the rows before the pause", || rows(home.path()).len() == 10 + 500);
    killed.kill().unwrap();
    killed.wait().unwrap();

    std::fs::write(home.path().join("go-on"), "").unwrap();
    assert!(start(home.path()).wait().unwrap().success());
    let mut expected: Vec<Pair> = Vec::new();
    for key in 0..10 {
        expected.extend((100..=200).map(|sum| (key, sum)));
    }
    assert_eq!(rows(home.path()), expected);
}
