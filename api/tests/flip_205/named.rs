//! Named caches: kept from one run of a program to the next, and made anew when what they are made of
//! has changed.

use std::path::Path;
use std::process::Command;

use slackwater::prelude::*;
use slackwater::{Boundedness, CacheOutcome, CachedDataStream, HybridSource, JobError, TextSource};

use crate::support::*;

/// Where the program below finds its files, when it runs as a process of its own.
const HOME: &str = "SLACKWATER_TEST_NAMED_HOME";

fn environment(home: &Path) -> StreamExecutionEnvironment {
    let shelf = home.join("shelf").to_str().unwrap().to_owned();
    let env = env(2, 2);
    env.set(&options::CACHE_DIR, Some(shelf));
    env
}

/// The lengths of a file's lines, under a name.
fn lengths(env: &StreamExecutionEnvironment, home: &Path) -> CachedDataStream<u64> {
    let lines = TextSource::new(home.join("lines.txt"));
    env.from_source(lines, WatermarkStrategy::none(), "lines")
        .rebalance()
        .map(|line| line.len() as u64)
        .name("lengths")
        .cache_named("lengths")
        .unwrap()
}

/// Says what became of the cache, and which rows it has.
fn run(home: &Path) -> String {
    let env = environment(home);
    let rows = lengths(&env, home).execute_and_collect().unwrap();
    let outcome = match outcome(&rows, "lengths") {
        CacheOutcome::Recomputed { reason } => format!("recomputed, {reason}"),
        other => format!("{other:?}"),
    };
    let said = format!("{outcome}: {:?}", rows.sorted());
    env.close().unwrap();
    said
}

/// The program: does nothing unless another test runs it as a process.
#[test]
fn a_program_with_a_named_cache() {
    if let Some(home) = std::env::var_os(HOME) {
        let home = Path::new(&home);
        std::fs::write(home.join("said"), run(home)).unwrap();
    }
}

/// Runs a binary of these tests as the program, and answers what it said.
fn process(binary: &Path, home: &Path) -> String {
    let output = Command::new(binary)
        .args(["--exact", "named::a_program_with_a_named_cache"])
        .env(HOME, home)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    std::fs::read_to_string(home.join("said")).unwrap()
}

fn home_with(lines: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("lines.txt"), lines).unwrap();
    home
}

fn files_on_shelf(home: &Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(home.join("shelf")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// A12, P12, their exception: a cache with a name is read by the next process, and by another program
/// or over another file it is made anew, with the reason.
#[test]
fn a_named_cache_outlives_its_process_and_notices_what_has_changed() {
    let home = home_with("a\nbb\nccc\n");
    let home = home.path();
    let binary = std::env::current_exe().unwrap();
    assert_eq!(process(&binary, home), "Computed: [1, 2, 3]");
    assert_eq!(process(&binary, home), "Hit: [1, 2, 3]");
    std::fs::write(home.join("lines.txt"), "a\nbb\nccc\ndddd\n").unwrap();
    let said = process(&binary, home);
    assert!(said.starts_with("recomputed, source `lines` has changed from `"), "{said}");
    assert!(said.ends_with(": [1, 2, 3, 4]"), "{said}");
    assert_eq!(process(&binary, home), "Hit: [1, 2, 3, 4]");
    // The same program, built otherwise.
    let other = home.join("other");
    let mut bytes = std::fs::read(&binary).unwrap();
    bytes.push(0);
    std::fs::copy(&binary, &other).unwrap();
    std::fs::write(&other, bytes).unwrap();
    let said = process(&other, home);
    assert_eq!(said, "recomputed, the program's binary has changed: [1, 2, 3, 4]");
    assert_eq!(process(&other, home), "Hit: [1, 2, 3, 4]");
    // All rows may lie in one of the parts: the larger one.
    let mut data = files_on_shelf(home);
    data.retain(|path| path.extension().is_some_and(|end| end == "data"));
    flip(data.iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap());
    let said = process(&other, home);
    assert!(said.starts_with("recomputed, "), "{said}");
    assert!(said.contains("corrupt") && said.ends_with(": [1, 2, 3, 4]"), "{said}");
    assert_eq!(files_on_shelf(home).len(), 5, "two parts of two files, and the manifest");
}

/// P12: listed and freed by name, from any program; closing an environment does neither.
#[test]
fn named_caches_are_listed_and_freed_by_name() {
    let home = home_with("a\nbb\n");
    let home = home.path();
    let env = environment(home);
    let cached = lengths(&env, home);
    assert!(env.named_caches().unwrap().is_empty());
    assert!(!env.free_named_cache("lengths").unwrap(), "there is none yet");
    cached.count().unwrap();
    let session = env.cluster().unwrap().directory().to_owned();
    env.close().unwrap();
    assert!(!session.exists());
    let other = environment(home);
    let [listed] = other.named_caches().unwrap().try_into().unwrap();
    assert_eq!((listed.name.as_str(), listed.rows, listed.partitions()), ("lengths", 2, 2));
    assert!(listed.bytes > 0);
    assert!(other.free_named_cache("lengths").unwrap());
    assert!(!other.free_named_cache("lengths").unwrap());
    assert!(files_on_shelf(home).is_empty());
    assert_eq!(run(home), "Computed: [1, 2]");
}

/// A22: a worker's loss does not touch what lies apart from it; giving up drops it everywhere.
#[test]
fn a_named_cache_survives_its_workers_and_not_its_invalidation() {
    let home = home_with("a\nbb\n");
    let home = home.path();
    let env = environment(home);
    let cached = lengths(&env, home);
    cached.count().unwrap();
    let cluster = env.cluster().unwrap();
    for worker in cluster.workers() {
        cluster.kill(worker).unwrap();
    }
    let rows = cached.execute_and_collect().unwrap();
    assert_eq!(outcome(&rows, "lengths"), CacheOutcome::Hit);
    cached.invalidate().unwrap();
    assert!(files_on_shelf(home).is_empty());
    assert_eq!(run(home), "Computed: [1, 2]");
    // The handle knows of no cache: it makes its own, in place of that one.
    let rows = cached.execute_and_collect().unwrap();
    assert_eq!(outcome(&rows, "lengths"), CacheOutcome::Computed);
    assert_eq!(rows.sorted(), [1, 2]);
}

/// By their content files are the same however often they are written; by their times they are not.
#[test]
fn a_source_is_told_by_its_times_or_by_its_content() {
    let rewritten = |home: &Path| {
        let path = home.join("lines.txt");
        let file = std::fs::File::options().append(true).open(path).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        file.set_modified(later).unwrap();
    };
    let home = home_with("a\nbb\n");
    let home = home.path();
    let by_content = || {
        let env = environment(home);
        env.set(&options::CACHE_SOURCE_IDENTITY, options::CacheSourceIdentity::Content);
        outcome(&lengths(&env, home).execute_and_collect().unwrap(), "lengths")
    };
    assert_eq!(by_content(), CacheOutcome::Computed);
    rewritten(home);
    assert_eq!(by_content(), CacheOutcome::Hit);
    std::fs::write(home.join("lines.txt"), "a\nbc\n").unwrap();
    assert!(matches!(by_content(), CacheOutcome::Recomputed { .. }));
    assert!(run(home).starts_with("recomputed, "), "told by another means");
    assert_eq!(run(home), "Hit: [1, 2]");
    rewritten(home);
    assert!(run(home).starts_with("recomputed, source `lines` has changed"));
}

/// What is changed while the program runs is noticed by its next job.
#[test]
fn a_change_between_two_jobs_of_a_program_is_noticed() {
    let home = home_with("a\n");
    let home = home.path();
    let env = environment(home);
    let cached = lengths(&env, home);
    assert_eq!(cached.count().unwrap(), 1);
    for lines in 2..4 {
        std::fs::write(home.join("lines.txt"), "a\n".repeat(lines)).unwrap();
        let rows = cached.execute_and_collect().unwrap();
        assert_recomputed(&rows, "lengths", "source `lines` has changed");
        assert_eq!(rows.len(), lines);
        let rows = cached.execute_and_collect().unwrap();
        assert_eq!(outcome(&rows, "lengths"), CacheOutcome::Hit);
    }
}

/// Steps and records are told apart too; names are taken once, and need a place.
#[test]
fn a_name_stands_for_one_stream_and_needs_a_directory() {
    let home = home_with("a\nbb\n");
    let home = home.path();
    assert_eq!(run(home), "Computed: [1, 2]");
    let env = environment(home);
    let lines = TextSource::new(home.join("lines.txt"));
    let lines = env.from_source(lines, WatermarkStrategy::none(), "lines");
    let texts = lines.rebalance().map(|line| line).name("lengths").cache_named("lengths").unwrap();
    let rows = texts.execute_and_collect().unwrap();
    assert_recomputed(&rows, "lengths", "its records have changed from u64 to ");
    let refused = texts.map(|text| text).cache_named("lengths").map(drop).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "named cache `lengths`: another stream of this environment has the name"
    );
    let refused = texts.stream().cache_named("other").map(drop).unwrap_err();
    assert_eq!(refused.to_string(), "named cache `other`: the stream is cached already");
    let without = StreamExecutionEnvironment::new();
    let cached = without.from_collection([1_u64]).cache_named("numbers").unwrap();
    let error = cached.count().unwrap_err();
    assert!(matches!(error, JobError::NamedCache { .. }));
    assert_eq!(error.to_string(), "named cache `numbers`: option `execution.cache.dir` is not set");
}

/// P12: a hybrid source is told from others by all of its parts. It was told by nothing, so a cache over
/// it was read on when its files had changed; no test had a source within a source.
#[test]
fn a_named_cache_over_a_hybrid_source_notices_a_change_of_any_part() {
    let home = home_with("a\nbb\n");
    let home = home.path();
    let more = home.join("more.txt");
    let run = |lines: &str| {
        std::fs::write(&more, lines).unwrap();
        let env = environment(home);
        env.set(&options::CACHE_SOURCE_IDENTITY, options::CacheSourceIdentity::Content);
        let first = TextSource::new(home.join("lines.txt"));
        let both = HybridSource::starting_with(first).then(TextSource::new(&more));
        let rows = env
            .from_source(both, WatermarkStrategy::none(), "both")
            .map(|line| line.len() as u64)
            .name("lengths")
            .cache_named("lengths of both")
            .unwrap()
            .execute_and_collect()
            .unwrap();
        let outcome = outcome(&rows, "lengths").clone();
        (outcome, rows.sorted())
    };
    assert_eq!(run("ccc\n"), (CacheOutcome::Computed, vec![1, 2, 3]));
    assert_eq!(run("ccc\n"), (CacheOutcome::Hit, vec![1, 2, 3]));
    let (outcome, rows) = run("ccc\ndddd\n");
    assert_eq!(rows, [1, 2, 3, 4]);
    assert!(matches!(outcome, CacheOutcome::Recomputed { .. }), "{outcome:?}");

    // What is only known at run time cannot be noticed, so such a source is refused.
    let env = environment(home);
    let part = more.clone();
    let both = HybridSource::starting_with(TextSource::new(home.join("lines.txt")))
        .then_from(Boundedness::Bounded, move |_| Ok(TextSource::new(&part)));
    let lines = env.from_source(both, WatermarkStrategy::none(), "both");
    let refused = lines.cache_named("lines").unwrap().count().unwrap_err();
    assert!(refused.to_string().contains("where part 1 of a hybrid source begins"), "{refused}");
}
