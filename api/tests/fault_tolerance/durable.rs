//! A backlog that survives crashes: sealed runs and the positions that they cover are in checkpoints,
//! so what is read again is what came since the last of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{ByteSize, JobHandle, JobProgress, ScriptStep, ScriptedSource, options};

use crate::program::{ALL, HOME, Home, files_below, run};
use crate::support::{Recorded, TwoPhase, mixed, streaming, wait_for};

type Pair = (u32, i64);

const KEYS: u32 = 10;
const HISTORY: i64 = 2_000;
const LIVE: i64 = 200;

/// What tests share with the program: how it goes on, what it reads, where it fails.
#[derive(Clone, Default)]
struct World {
    progress: Arc<OnceLock<Arc<JobProgress>>>,
    read: Arc<AtomicU64>,
    /// Counts of reads at which the next failures come, last first.
    failures: Arc<Mutex<Vec<u64>>>,
    /// Pauses that are over: those before a record of a greater number are not.
    passed: Arc<AtomicU64>,
    at: Arc<AtomicU64>,
}

impl World {
    fn failing_at(failures: &[u64]) -> Self {
        let world = Self::default();
        world.failures.lock().unwrap().extend(failures.iter().rev());
        world.passed.store(u64::MAX, Ordering::SeqCst);
        world
    }

    /// A step that waits until a checkpoint is complete that was begun when it was reached, and then
    /// until it may be passed.
    fn pause(&self, at: u64) -> ScriptStep<Pair> {
        let world = self.clone();
        let reached = OnceLock::new();
        ScriptStep::until(move || {
            let Some(progress) = world.progress.get() else { return false };
            let before = *reached.get_or_init(|| progress.checkpoints());
            // The next one may have been under way.
            let stored = progress.checkpoints() >= before + 2;
            if stored {
                world.at.store(at, Ordering::SeqCst);
            }
            stored && world.passed.load(Ordering::SeqCst) >= at
        })
    }

    fn reads(&self) -> Result<()> {
        let read = self.read.fetch_add(1, Ordering::SeqCst) + 1;
        let mut failures = self.failures.lock().unwrap();
        if failures.last().is_some_and(|at| read >= *at) {
            failures.pop();
            return Err(slackwater::Error::msg("the injected failure"));
        }
        Ok(())
    }

    fn comes_to(&self, at: u64) {
        wait_for("the pause", || self.at.load(Ordering::SeqCst) == at);
    }

    fn passes(&self, at: u64) {
        self.passed.store(at, Ordering::SeqCst);
    }
}

struct Sum(ValueState<i64>);

impl KeyedProcessFunction<u32, Pair, Pair> for Sum {
    fn process(&mut self, pair: Pair, context: &mut KeyedContext<'_, u32, Pair>) -> Result<()> {
        let sum = self.0.update(context, |sum| {
            let sum = sum.get_or_insert(0);
            *sum += pair.1;
            *sum
        })?;
        context.collect((pair.0, sum));
        Ok(())
    }
}

/// How the backlog is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Sort,
    Combine,
}

/// Options of a durable backlog with runs of about a hundred records.
fn durable(env: &StreamExecutionEnvironment) {
    env.set(&options::BACKLOG_DURABLE, true)
        .set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(1)))
        .set(&options::SORTED_INPUTS_MEMORY, ByteSize::kib(8))
        .set(&options::RESTART_ATTEMPTS, 10)
        .set(&options::PARALLELISM, Some(2));
}

/// Running sums of a history and live records, with pauses before some of them.
fn sums(
    env: &StreamExecutionEnvironment,
    way: Way,
    pauses: &[i64],
    world: &World,
    visible: &Recorded<Pair>,
) -> JobHandle {
    let mut steps = vec![ScriptStep::Backlog(true)];
    for i in 0..HISTORY + LIVE {
        if i == HISTORY {
            steps.push(ScriptStep::Backlog(false));
        }
        if pauses.contains(&i) {
            steps.push(world.pause(i.unsigned_abs()));
        }
        steps.push(ScriptStep::at(i, (u32::try_from(i).unwrap() % KEYS, 1)));
    }
    let passes = world.clone();
    let keyed = env
        .from_source(ScriptedSource::new(steps), WatermarkStrategy::monotonous(), "script")
        .uid("source")
        .parallelism(1)
        .try_map(move |pair: Pair| passes.reads().map(|()| pair))
        // In the task of the source: reads and pauses are in one order.
        .parallelism(1)
        .key_by(|pair: &Pair| pair.0);
    let sums = match way {
        Way::Sort => keyed.process(|| Sum(ValueState::new("sum"))),
        Way::Combine => keyed.sum(|pair: &Pair| pair.1),
    };
    sums.uid("sums").sink_to(TwoPhase::new(visible)).uid("sink");
    let job = env.submit("sums").unwrap();
    // A second job of the same world has counters of its own.
    world.progress.set(job.progress()).ok();
    job
}

/// Every running sum once; where the history was combined, it is one output a key.
#[track_caller]
fn check(way: Way, visible: &Recorded<Pair>) {
    let mut sums: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for (key, sum) in visible.all() {
        sums.entry(key).or_default().push(sum);
    }
    assert_eq!(sums.len(), KEYS as usize);
    let keys = i64::from(KEYS);
    let first = if way == Way::Sort { 1 } else { HISTORY / keys };
    for (key, sums) in sums {
        let expected: Vec<i64> = (first..=(HISTORY + LIVE) / keys).collect();
        assert_eq!(sums, expected, "key {key}");
    }
}

/// F4: crashes at a tenth, at half and at nine tenths of a backlog: each time only what came since
/// the last checkpoint is read again, over either store, sorted or combined.
#[test]
fn a_crash_in_a_durable_backlog_reads_again_what_no_checkpoint_has() {
    for store in [options::StateBackendKind::Heap, options::StateBackendKind::Disk] {
        for way in [Way::Sort, Way::Combine] {
            // The pauses come 50 records before the failures; what was read again counts too.
            let world = World::failing_at(&[250, 1_100, 1_950]);
            let visible = Recorded::new();
            let env = mixed();
            durable(&env);
            env.set(&options::STATE_BACKEND, store);
            let job = sums(&env, way, &[200, 1_000, 1_800], &world, &visible);
            let report = job.wait().unwrap();
            check(way, &visible);
            assert_eq!(report.recovered.len(), 3, "{:?}", report.recovered);
            let again = world.read.load(Ordering::SeqCst) - (HISTORY + LIVE).unsigned_abs();
            assert!(again <= 3 * 50, "{again} records were read again");
        }
    }
}

/// A lost TaskManager takes no sealed run along: nothing that a checkpoint has is read again.
#[test]
fn a_lost_worker_takes_no_sealed_run_along() {
    let (world, visible) = (World::default(), Recorded::new());
    let env = mixed();
    durable(&env);
    let job = sums(&env, Way::Sort, &[1_800], &world, &visible);
    world.comes_to(1_800);
    let cluster = env.cluster().unwrap();
    assert!(cluster.kill(cluster.workers()[0]).unwrap());
    world.passes(1_800);
    let report = job.wait().unwrap();
    check(Way::Sort, &visible);
    assert!(!report.recovered.is_empty());
    // The attempt in between may have been given the lost worker, and have read the rest.
    let again = world.read.load(Ordering::SeqCst) - (HISTORY + LIVE).unsigned_abs();
    assert!(again <= (HISTORY + LIVE).unsigned_abs() - 1_800, "{again} records were read again");
}

/// Runs go when a later checkpoint makes them unneeded: behind the switch there are none; and with
/// the job the last file goes (F9).
#[test]
fn sealed_runs_go_when_no_checkpoint_needs_them() {
    let home = tempfile::tempdir().unwrap();
    let (world, visible) = (World::failing_at(&[900]), Recorded::new());
    let live = (HISTORY + 100).unsigned_abs();
    let env = mixed();
    durable(&env);
    env.set(&options::CHECKPOINT_DIR, Some(home.path().display().to_string()));
    world.passes(1_000);
    let job = sums(&env, Way::Sort, &[500, 1_800, HISTORY + 100], &world, &visible);
    let runs = || files_below(&home.path().join("sums/runs"));
    world.comes_to(1_800);
    assert!(!runs().is_empty(), "the backlog has been recorded");
    world.passes(1_800);
    world.comes_to(live);
    wait_for("the sweep", || runs().is_empty());
    world.passes(live);
    job.wait().unwrap();
    check(Way::Sort, &visible);
    assert_eq!(files_below(home.path()), Vec::<String>::new());
}

/// What a checkpoint in backlog has is taken up at another parallelism and in another mode, also
/// from a directory that is not the new job's.
#[test]
fn a_stored_backlog_goes_on_at_another_parallelism_and_in_another_mode() {
    for way in [Way::Sort, Way::Combine] {
        for (mode, parallelism, moves) in
            [("mixed", 3, true), ("mixed", 1, false), ("streaming", 3, true)]
        {
            let home = tempfile::tempdir().unwrap();
            let (world, visible) = (World::default(), Recorded::new());
            let place = |env: &StreamExecutionEnvironment, directory: &Path| {
                durable(env);
                env.set(&options::CHECKPOINT_DIR, Some(directory.display().to_string()))
                    .set(&options::CHECKPOINT_RETAIN_ON_CANCEL, true);
            };
            let env = mixed();
            place(&env, home.path());
            let job = sums(&env, way, &[1_500], &world, &visible);
            world.comes_to(1_500);
            job.cancel();
            job.wait().unwrap_err();
            drop(env);

            let other = tempfile::tempdir().unwrap();
            let env = if mode == "mixed" { mixed() } else { streaming() };
            place(&env, if moves { other.path() } else { home.path() });
            let from = home.path().join("sums").display().to_string();
            env.set(&options::PARALLELISM, Some(parallelism))
                .set(&options::SAVEPOINT_PATH, Some(from));
            world.passes(1_500);
            let second = World { progress: Arc::default(), ..world.clone() };
            sums(&env, way, &[1_500], &second, &visible).wait().unwrap();
            if mode == "mixed" || way == Way::Sort {
                check(way, &visible);
            } else {
                // From the stored history on, record by record.
                let rows = visible.all().len() as i64;
                assert_eq!(rows, i64::from(KEYS) + HISTORY - 1_500 + LIVE);
            }
            assert_eq!(
                world.read.load(Ordering::SeqCst),
                (HISTORY + LIVE).unsigned_abs(),
                "{way:?}, then {mode}: nothing is read again"
            );
        }
    }
}

const NAME: &str = "durable::a_program_killed_in_a_durable_backlog_goes_on_where_it_was";

/// F4, tK15: `kill -9` in backlog, twice: the next program goes on with the runs of the one before.
#[test]
fn a_program_killed_in_a_durable_backlog_goes_on_where_it_was() {
    if let Some(home) = std::env::var_os(HOME) {
        return run(Path::new(&home), true);
    }
    let home = Home::new();
    for at in [10, 900] {
        let mut program = home.start(NAME);
        home.comes_to(at);
        home.takes_a_checkpoint();
        program.kill().unwrap();
        program.wait().unwrap();
        assert!(home.rows().is_empty(), "a backlog shows nothing");
        assert!(home.files().iter().any(|file| file.contains("/runs/")), "runs are kept");
    }
    home.passes_all();
    assert!(home.start(NAME).wait().unwrap().success());
    home.check();
    let left = u64::try_from(ALL).unwrap() - 900;
    assert_eq!(home.ended(), ("finished".to_owned(), left), "the rest is read, and the rest alone");
    assert_eq!(home.files(), Vec::<String>::new());
}
