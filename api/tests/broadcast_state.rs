//! Broadcast state: keyed and not, in all modes, and over a restore at another parallelism.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{
    BroadcastContext, BroadcastProcessFunction, BroadcastState, JobHandle, KeyedBroadcastContext,
    KeyedBroadcastProcessFunction, KeyedReadOnlyContext, ReadOnlyContext, ScriptStep,
    ScriptedSource,
};

type Pair = (u64, u64);

/// Tells each value with the rules known by then.
struct Rules {
    rules: BroadcastState<u64, u64>,
}

impl Rules {
    fn new() -> Self {
        Self { rules: BroadcastState::new("rules") }
    }
}

impl BroadcastProcessFunction<u64, Pair, (u64, usize)> for Rules {
    fn process(&mut self, value: u64, out: &mut ReadOnlyContext<'_, (u64, usize)>) -> Result<()> {
        let known = self.rules.entries(out)?.len();
        out.collect((value, known));
        Ok(())
    }

    fn process_broadcast(
        &mut self,
        (key, rule): Pair,
        out: &mut BroadcastContext<'_, (u64, usize)>,
    ) -> Result<()> {
        Ok(self.rules.put(out, &key, rule)?)
    }
}

/// T4: in batch mode every broadcast record comes before the first one of a stream without key, also
/// where all exchanges are pipelined and one source feeds both sides; records keep their order.
#[test]
fn in_batch_mode_the_broadcast_input_comes_before_a_plain_one() {
    for shuffle in [
        options::BatchShuffleMode::AllExchangesBlocking,
        options::BatchShuffleMode::AllExchangesPipelined,
    ] {
        let env = StreamExecutionEnvironment::new();
        env.set(&options::PARALLELISM, Some(2))
            .set(&options::BATCH_SHUFFLE_MODE, shuffle)
            .set(&options::SORTED_INPUTS_MEMORY, slackwater::ByteSize::kib(64));
        let numbers = env.generate(40_000, |i| i);
        let rules = numbers.clone().filter(|i| i % 40 == 0).map(|i| (i, i)).broadcast_state();
        let seen = numbers
            .filter(|i| i % 2 == 1)
            .connect(rules)
            .process(Rules::new)
            .execute_and_collect()
            .unwrap();
        assert_eq!(seen.len(), 20_000, "{shuffle:?}");
        assert!(seen.iter().all(|(_, known)| *known == 1_000), "{shuffle:?}");
        let values: BTreeSet<u64> = seen.iter().map(|(value, _)| *value).collect();
        assert_eq!(values.len(), 20_000);
    }
}

/// Adds up what a rule makes of each value of a key; a rule 0 asks every key for its sum.
struct Sums {
    rules: BroadcastState<u64, u64>,
    sum: ValueState<u64>,
    taken: Arc<AtomicU64>,
}

impl Sums {
    fn new(taken: &Arc<AtomicU64>) -> Self {
        let (rules, sum) = (BroadcastState::new("rules"), ValueState::new("sum"));
        Self { rules, sum, taken: Arc::clone(taken) }
    }
}

impl KeyedBroadcastProcessFunction<u64, Pair, Pair, Pair> for Sums {
    fn process(
        &mut self,
        (key, value): Pair,
        out: &mut KeyedReadOnlyContext<'_, '_, u64, Pair>,
    ) -> Result<()> {
        let factor = self.rules.get(out, &1)?.unwrap_or(0);
        let sum = self.sum.get(out)?.unwrap_or(0) + value * factor;
        self.sum.set(out, sum)?;
        out.collect((key, sum));
        Ok(())
    }

    fn process_broadcast(
        &mut self,
        (rule, factor): Pair,
        out: &mut KeyedBroadcastContext<'_, u64, Pair>,
    ) -> Result<()> {
        if rule == 0 {
            let sums = &self.sum;
            out.apply_to_keyed_state(sums, |key| {
                let sum = sums.get(key)?.unwrap_or(0);
                sums.clear(key)?;
                let name = *key.key();
                key.collect((name, sum + factor));
                Ok(())
            })?;
        } else {
            self.rules.put(out, &rule, factor)?;
        }
        self.taken.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// T4: the same for a keyed stream; a walk over keyed state finds nothing before it.
#[test]
fn in_batch_mode_the_broadcast_input_comes_before_a_keyed_one() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(3));
    let rules = env.from_collection([(1, 5), (1, 10), (0, 0)]).broadcast_state();
    let taken = Arc::default();
    let sums = env
        .generate(1_000, |i| (i % 10, 1))
        .key_by(|pair: &Pair| pair.0)
        .connect(rules)
        .process(move || Sums::new(&taken))
        .execute_and_collect()
        .unwrap();
    assert_eq!(sums.len(), 1_000);
    let greatest = sums.iter().map(|(_, sum)| *sum).max();
    assert_eq!(greatest, Some(1_000), "each value counted ten times");
}

struct Run {
    job: JobHandle,
    taken: Arc<AtomicU64>,
    visible: Arc<Mutex<Vec<Pair>>>,
    _env: StreamExecutionEnvironment,
}

#[track_caller]
fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::yield_now();
    }
}

fn run(
    subtasks: u32,
    store: options::StateBackendKind,
    from: Option<&Path>,
    values: Vec<ScriptStep<Pair>>,
    rules: Vec<ScriptStep<Pair>>,
    taken: &Arc<AtomicU64>,
) -> Run {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(subtasks))
        .set(&options::STATE_BACKEND, store)
        .set(&options::SAVEPOINT_PATH, from.map(|path| path.display().to_string()));
    let script = |steps, name: &str| {
        env.from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), name)
            .uid(name)
            .parallelism(1)
    };
    let rules = script(rules, "rules").broadcast_state();
    let visible: Arc<Mutex<Vec<Pair>>> = Arc::default();
    let (rows, count) = (Arc::clone(&visible), Arc::clone(taken));
    script(values, "values")
        .key_by(|pair: &Pair| pair.0)
        .connect(rules)
        .process(move || Sums::new(&count))
        .uid("sums")
        .for_each(move |row| rows.lock().unwrap().push(row));
    let job = env.submit("broadcast").unwrap();
    Run { job, taken: Arc::clone(taken), visible, _env: env }
}

/// Broadcast state is in a savepoint, and each subtask has all of it after a restore at a greater and
/// at a lesser parallelism; a broadcast record reaches the state of every key.
#[test]
fn broadcast_state_is_restored_to_every_subtask_at_another_parallelism() {
    for store in [options::StateBackendKind::Heap, options::StateBackendKind::Disk] {
        let home = tempfile::tempdir().unwrap();
        let values: Vec<_> = (0..100).map(|i| ScriptStep::at(1, (i, 1))).collect();
        let wait = || ScriptStep::until(|| false);

        // Two subtasks: the rule, then values.
        let taken: Arc<AtomicU64> = Arc::default();
        let count = Arc::clone(&taken);
        let mut steps = vec![ScriptStep::until(move || count.load(Ordering::SeqCst) == 2)];
        steps.extend(values.clone());
        steps.push(wait());
        let rules = vec![ScriptStep::at(0, (1, 10)), wait()];
        let first = run(2, store, None, steps, rules, &taken);
        wait_for("values", || first.visible.lock().unwrap().len() == 100);
        assert_eq!(first.taken.load(Ordering::SeqCst), 2, "once a subtask");
        let savepoint = first.job.stop_with_savepoint(home.path()).unwrap();
        first.job.wait().unwrap();

        // Four, then one: no rule comes again, and each of the keys finds it.
        let mut savepoint = savepoint;
        for (subtasks, sum) in [(4, 20), (1, 30)] {
            let taken: Arc<AtomicU64> = Arc::default();
            let skip = if subtasks == 4 { 101 } else { 202 };
            let mut steps: Vec<_> = (0..skip).map(|_| ScriptStep::until(|| true)).collect();
            steps.extend(values.clone());
            steps.push(wait());
            let rules = vec![ScriptStep::until(|| true), wait()];
            let next = run(subtasks, store, Some(&savepoint), steps, rules, &taken);
            wait_for("values", || next.visible.lock().unwrap().len() == 100);
            assert!(next.visible.lock().unwrap().iter().all(|row| row.1 == sum), "{subtasks}");
            savepoint = next.job.stop_with_savepoint(home.path()).unwrap();
            next.job.wait().unwrap();
        }

        // Three: a rule asks every key for its sum, and clears it.
        let taken: Arc<AtomicU64> = Arc::default();
        let count = Arc::clone(&taken);
        let mut steps: Vec<_> = (0..303).map(|_| ScriptStep::until(|| true)).collect();
        steps.push(ScriptStep::until(move || count.load(Ordering::SeqCst) == 3));
        steps.push(ScriptStep::at(2, (7, 1)));
        let rules = vec![ScriptStep::until(|| true), ScriptStep::at(2, (0, 1_000))];
        let last = run(3, store, Some(&savepoint), steps, rules, &taken);
        last.job.wait().unwrap();
        let rows = last.visible.lock().unwrap().clone();
        let asked: BTreeSet<Pair> = rows.iter().copied().filter(|row| row.1 == 1_030).collect();
        assert_eq!(asked.len(), 100, "every key once");
        assert_eq!(rows.len(), 101);
        assert!(rows.contains(&(7, 10)), "its sum was cleared: {rows:?}");
    }
}

/// In mixed mode the keyed side is sorted while it is in backlog, though the broadcast side is live:
/// rules are taken as they come, and every value of the backlog sees them.
#[test]
fn a_backlog_is_sorted_beside_a_live_broadcast_stream() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(2))
        .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO))
        .set(&options::BACKLOG_STRATEGY, options::BacklogStrategy::Sort);
    let taken: Arc<AtomicU64> = Arc::default();
    let (count, function) = (Arc::clone(&taken), Arc::clone(&taken));
    let mut steps = vec![ScriptStep::Backlog(true)];
    steps.extend((0..1_000).map(|i| ScriptStep::at(1, (i % 10, 1))));
    steps.push(ScriptStep::until(move || count.load(Ordering::SeqCst) == 2));
    steps.extend([ScriptStep::Backlog(false), ScriptStep::at(2, (3, 1))]);
    let none = WatermarkStrategy::none;
    let values = env.from_source(ScriptedSource::new(steps), none(), "values");
    let rules =
        env.from_source(ScriptedSource::new(vec![ScriptStep::at(0, (1, 10))]), none(), "rules");
    let sums = values
        .parallelism(1)
        .key_by(|pair: &Pair| pair.0)
        .connect(rules.parallelism(1).broadcast_state())
        .process(move || Sums::new(&function))
        .name("sums")
        .execute_and_collect()
        .unwrap();
    assert_eq!(sums.len(), 1_001);
    assert_eq!(sums.iter().rfind(|(key, _)| *key == 3), Some(&(3, 1_010)));
    let report = sums.report().operator("sums").unwrap();
    let collected: u64 = report.phases.iter().map(|phase| phase.records).sum();
    assert_eq!(collected, 1_000, "{:?}", report.phases);
}
