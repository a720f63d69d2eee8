//! Temporary files by whole programs: several directories, a limit, compression, what a killed process
//! left; case 19.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use slackwater::prelude::*;
use slackwater::{ByteSize, JobError, options};

/// Names of everything below a directory, links not followed, sorted.
fn names_below(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let inner = names_below(&entry.path());
            names.extend(inner.into_iter().map(|inner| format!("{name}/{inner}")));
        }
        names.push(name);
    }
    names.sort();
    names
}

fn environment(directories: &[PathBuf], memory: u64) -> StreamExecutionEnvironment {
    let directories: Vec<String> =
        directories.iter().map(|path| path.display().to_string()).collect();
    let env = StreamExecutionEnvironment::new();
    env.set(&options::TMP_DIRS, Some(directories.join(",")))
        .set(&options::SORTED_INPUTS_MEMORY, ByteSize(memory))
        .set(&options::RESTART_STRATEGY, Some(options::RestartStrategy::None));
    env
}

/// The generator of case 16, seeded with the key, each draw mod 256.
fn payload(key: u64) -> Vec<u8> {
    let mut x = key;
    let step = |_| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) as u8
    };
    (0..1_000).map(step).collect()
}

/// The rows, and the sum of position * key over the sorted output.
fn sort_job(env: &StreamExecutionEnvironment, rows: u64) -> Result<(u64, u64), JobError> {
    let sorted = env
        .generate(rows, move |n| {
            let key = n * 7_919 % rows;
            (key, payload(key))
        })
        .global()
        .sort_partition(|(key, _)| *key)
        .parallelism(1)
        .execute_and_collect()?;
    for (key, bytes) in sorted.iter() {
        assert_eq!(*bytes, payload(*key));
    }
    let weighed = sorted.iter().enumerate().map(|(at, (key, _))| at as u64 * key % 1_000_003);
    Ok((sorted.len() as u64, weighed.sum()))
}

/// Every message of an error's chain.
fn chain_of(error: &JobError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// Case 19, tF19: an unusable directory, a linked one with somebody's file in it, and a limit.
#[test]
fn case_19_temp_dirs_and_quota() {
    let case = Path::new("tests/cases/19-temp-dirs-and-quota");
    let read = |name| -> Value {
        serde_json::from_str(&fs::read_to_string(case.join(name)).unwrap()).unwrap()
    };
    let (input, expected) = (read("input.json"), read("expected.json"));
    let home = tempfile::tempdir().unwrap();
    // A plain file, so that it is unusable for root too.
    fs::write(home.path().join("bad"), "").unwrap();
    fs::create_dir(home.path().join("real")).unwrap();
    fs::write(home.path().join("real/keep.txt"), "not ours").unwrap();
    symlink("real", home.path().join("link")).unwrap();

    let names = input["dirs"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let directories: Vec<PathBuf> = names.map(|name| home.path().join(name)).collect();
    let env = environment(&directories, input["sort_memory"].as_u64().unwrap());
    env.set(&options::TMP_QUOTA, input["quota"].as_u64().map(ByteSize));
    let mut steps = Vec::new();
    for step in input["steps"].as_array().unwrap() {
        steps.push(match sort_job(&env, step["rows"].as_u64().unwrap()) {
            Ok((rows, sum)) => json!({"result": [rows, sum]}),
            Err(error) if chain_of(&error).contains("the limit on temporary data is reached") => {
                json!({"error": "typed: limit on temporary data"})
            }
            Err(error) => panic!("{}", chain_of(&error)),
        });
    }
    assert_eq!(json!(steps), expected["steps"]);
    drop(env);

    let is_link = fs::symlink_metadata(home.path().join("link")).unwrap().is_symlink();
    assert_eq!(names_below(home.path()), ["bad", "link", "real", "real/keep.txt"]);
    let after = json!({
        "bad": Vec::<String>::new(),
        "link": if is_link { "symlink -> real" } else { "no link" },
        "real": names_below(&home.path().join("real")),
        "real/keep.txt": fs::read_to_string(home.path().join("real/keep.txt")).unwrap(),
    });
    assert_eq!(after, expected["after"]);
    assert_eq!(fs::read_to_string(home.path().join("bad")).unwrap(), "");
}

#[test]
fn if_no_directory_can_be_used_the_first_is_named() {
    let home = tempfile::tempdir().unwrap();
    let files = ["one", "two"].map(|name| home.path().join(name));
    files.iter().for_each(|file| fs::write(file, "").unwrap());
    let error = environment(&files, 1 << 14).from_collection([1]).execute_and_collect();
    let JobError::Directory { path, .. } = error.unwrap_err() else { panic!("another error") };
    assert_eq!(path, files[0]);
}

/// The limit holds in each directory: two hold what one may not.
#[test]
fn a_job_spreads_its_files_over_all_directories() {
    let home = tempfile::tempdir().unwrap();
    let directories = ["one", "two"].map(|name| home.path().join(name));
    let env = environment(&directories, 1 << 14);
    // The rows take about 1 MB.
    env.set(&options::TMP_QUOTA, Some(ByteSize::kib(700)));
    assert_eq!(sort_job(&env, 1_000).unwrap().0, 1_000);
    drop(env);
    for directory in directories {
        assert_eq!(names_below(&directory), Vec::<String>::new());
    }
}

/// T13: sorted inputs of batch mode stay within their option, and spill beyond it; tS1: and the
/// compression that is asked for is what runs are written with.
#[test]
fn sorted_inputs_spill_at_their_memory_and_compress_as_they_are_told() {
    let spilled = [options::SortCompression::None, options::SortCompression::Lz4].map(|lz4| {
        let home = tempfile::tempdir().unwrap();
        let env = environment(&[home.path().to_owned()], 64 << 10);
        env.set(&options::SORT_COMPRESSION, lz4)
            .set(&options::RUNTIME_MODE, options::RuntimeMode::Batch)
            .set(&options::PARALLELISM, Some(1));
        env.generate(20_000, |n| (n * 7_919 % 1_000, "the same words again".to_owned()))
            .key_by(|row| row.0)
            .map_with_state(|sum: &mut Option<u64>, (key, words): (u64, String)| {
                let sum = sum.get_or_insert(0);
                *sum += words.len() as u64;
                (key, *sum)
            })
            .name("sum")
            .for_each(|_| {});
        let report = env.execute("sums").unwrap();
        let phase = report.operator("sum").unwrap().phases[0].clone();
        assert_eq!((phase.treatment, phase.records, phase.keys), ("sort", 20_000, 1_000));
        assert!(phase.runs > 1 && phase.sort_memory <= 64 << 10, "{phase:?}");
        drop(env);
        assert_eq!(names_below(home.path()), Vec::<String>::new());
        phase.bytes_spilled
    });
    assert!(spilled[0] > 20_000 * 20, "{spilled:?}");
    assert!(spilled[1] * 4 < spilled[0] * 3, "{spilled:?}");
}

#[test]
fn what_a_killed_process_left_is_swept_when_the_next_job_starts() {
    let home = tempfile::tempdir().unwrap();
    let left = home.path().join("slackwater-spill-1-0");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("lock"), "1").unwrap();
    fs::write(left.join("job-1.run.spill"), "left").unwrap();
    let strangers = home.path().join("slackwater-spill-of-mine");
    fs::create_dir(&strangers).unwrap();
    fs::write(strangers.join("notes.spill"), "not ours").unwrap();
    let env = environment(&[home.path().to_owned()], 1 << 14);
    assert_eq!(sort_job(&env, 10).unwrap().0, 10);
    assert!(!left.exists());
    drop(env);
    let names = names_below(home.path());
    assert_eq!(names, ["slackwater-spill-of-mine", "slackwater-spill-of-mine/notes.spill"]);
}
