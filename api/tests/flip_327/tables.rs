//! Checkpoints over RocksDB, which share the store's tables, by whole programs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runtime::checkpoint::Manifest;
use slackwater::prelude::*;
use slackwater::{JobError, JobHandle, ScriptStep, ScriptedSource, options};

use crate::support::{Recorded, Row, TwoPhase, streaming, wait_for};

const KEYS: i64 = 300;
const ROUNDS: u64 = 12;

/// A row for each key, then one more key a round, each round behind another checkpoint.
fn script(completed: &Arc<AtomicU64>, ends: bool) -> Vec<ScriptStep<Row>> {
    let mut steps = Vec::new();
    for i in 0..KEYS {
        steps.push(ScriptStep::at(0, (format!("key {i}"), 1)));
    }
    for round in 0..ROUNDS {
        let completed = Arc::clone(completed);
        steps.push(ScriptStep::until(move || ends || completed.load(Ordering::SeqCst) > round));
        steps.push(ScriptStep::at(0, (format!("key {round}"), 1)));
    }
    steps.push(ScriptStep::until(move || ends));
    steps.push(ScriptStep::at(0, ("key 0".to_owned(), 1)));
    steps
}

fn sums(
    home: &Path,
    from: Option<&Path>,
    ends: bool,
    completed: &Arc<AtomicU64>,
    visible: &Recorded<Row>,
) -> (StreamExecutionEnvironment, JobHandle) {
    let env = streaming();
    env.set(&options::STATE_BACKEND, options::StateBackendKind::Rocksdb)
        .set(&options::SAVEPOINT_PATH, from.map(|path| path.display().to_string()))
        .set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)))
        .set(&options::CHECKPOINT_DIR, Some(home.display().to_string()))
        .set(&options::CHECKPOINTS_RETAINED, 2)
        .set(&options::CHECKPOINT_RETAIN_ON_CANCEL, true);
    env.from_source(
        ScriptedSource::new(script(completed, ends)),
        WatermarkStrategy::none(),
        "rows",
    )
    .uid("source")
    .key_by(|row: &Row| row.0.clone())
    .sum(|row: &Row| row.1)
    .uid("sums")
    .parallelism(2)
    .sink_to(TwoPhase::new(visible))
    .uid("sink")
    .parallelism(1);
    let job = env.submit("sums").unwrap();
    let progress = job.progress();
    if !ends {
        wait_for("checkpoints", || {
            completed.store(progress.checkpoints(), Ordering::SeqCst);
            job.is_finished() || progress.checkpoints() > ROUNDS
        });
    }
    (env, job)
}

/// Every file below a directory, relative to it.
fn files_below(directory: &Path, base: &str, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{base}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            files_below(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name);
        }
    }
}

fn manifests(home: &Path) -> Vec<(PathBuf, Manifest)> {
    let mut found = BTreeSet::new();
    files_below(home, "", &mut found);
    let names = found.iter().filter(|name| name.ends_with("/manifest"));
    let read = |name: &String| {
        let path = home.join(name);
        let manifest = Manifest::decode(&std::fs::read(&path).unwrap()).unwrap();
        (path.parent().unwrap().to_owned(), manifest)
    };
    let mut manifests: Vec<_> = names.map(read).collect();
    manifests.sort_by_key(|(_, manifest)| manifest.id);
    manifests
}

/// Traps tK5 and tK16: what two retained checkpoints name is there, and nothing else is; each of them
/// restores, also after a job that went on from it has taken checkpoints of its own and ended. One that
/// goes on in the directory of the checkpoint takes it and those before it over, and leaves the tables
/// that a newer one names.
#[test]
fn rocksdb_checkpoints_share_tables_and_leave_no_other_file_behind() {
    let home = tempfile::tempdir().unwrap();
    let (env, job) = sums(home.path(), None, false, &Arc::default(), &Recorded::new());
    job.cancel();
    let error = job.wait().unwrap_err();
    assert!(matches!(error, JobError::Cancelled { .. }), "{error:?}");
    drop(env);

    let directory = home.path().join("sums");
    let retained = manifests(&directory);
    assert_eq!(retained.len(), 2);
    let (mut named, mut earlier) = (BTreeSet::new(), 0);
    for (_, manifest) in &retained {
        let own = format!("chk-{}/", manifest.id);
        named.insert(format!("{own}manifest"));
        for entry in &manifest.operators {
            let Some(handle) = &entry.state.keyed else { continue };
            named.insert(handle.name.clone());
            named.extend(handle.files.iter().map(|file| file.name.clone()));
            earlier += handle.files.iter().filter(|file| !file.name.starts_with(&own)).count();
        }
    }
    let mut found = BTreeSet::new();
    files_below(&directory, "", &mut found);
    let part_of_a_later = |name: &String| {
        // The cancelled job may have been writing one more.
        retained
            .last()
            .is_some_and(|(_, last)| name.starts_with(&format!("chk-{}/", last.id.0 + 1)))
    };
    found.retain(|name| !part_of_a_later(name));
    assert_eq!(found, named);
    assert!(earlier > 0, "a table is written once");

    for in_its_own_directory in [false, true] {
        for (folder, _) in &retained {
            let other = tempfile::tempdir().unwrap();
            let place = if in_its_own_directory { home.path() } else { other.path() };
            let visible = Recorded::new();
            let (_env, job) = sums(place, Some(folder), true, &Arc::default(), &visible);
            job.wait().unwrap();
            assert!(visible.all().contains(&("key 0".to_owned(), 3)), "{:?}", visible.all());
        }
        let mut left = BTreeSet::new();
        files_below(&directory, "", &mut left);
        if in_its_own_directory {
            assert!(manifests(&directory).is_empty(), "taken over, and gone with the job's end");
        } else {
            let gone: Vec<&String> = named.difference(&left).collect();
            assert!(gone.is_empty(), "nobody deletes what he does not own: {gone:?}");
        }
    }
}
