//! What windows cost, in accesses of state: backlogs combine before them, and the overlap of sliding
//! windows does not show.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{Aggregator, CountTrigger, ScriptStep, ScriptedSource, WindowAssigner};

type Pair = (u64, u64);

const KEYS: u64 = 20;
const SECONDS: u64 = 400;
const EACH: u64 = 3;

/// Records of every key in every second, in order of time, all of them backlog.
fn script() -> Vec<ScriptStep<Pair>> {
    let mut steps = vec![ScriptStep::Backlog(true)];
    for second in 0..SECONDS {
        for i in 0..KEYS * EACH {
            steps.push(ScriptStep::at((second * 1_000 + i) as i64, (i % KEYS, 1)));
        }
    }
    steps
}

/// A sum that counts its merges.
struct Merged(Arc<AtomicU64>);

impl Aggregator<Pair> for Merged {
    type Accumulator = u64;
    type Output = u64;

    fn first(&self, pair: Pair) -> u64 {
        pair.1
    }

    fn add(&self, sum: &mut u64, pair: Pair) {
        *sum += pair.1;
    }

    fn merge(&self, sum: &mut u64, later: u64) {
        self.0.fetch_add(1, Ordering::Relaxed);
        *sum += later;
    }

    fn result(&self, sum: &u64) -> u64 {
        *sum
    }
}

struct Cost {
    results: Vec<(u64, i64, u64)>,
    treatment: &'static str,
    keys: u64,
    accesses: u64,
    store: u64,
    merges: u64,
}

fn cost(mixed: bool, assigner: impl WindowAssigner<Pair>, custom: bool) -> Cost {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(1))
        .set(&options::STATE_BACKEND, options::StateBackendKind::Disk)
        .set(&options::BACKLOG_STRATEGY, options::BacklogStrategy::Sort);
    if mixed {
        env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
            .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO));
    }
    let source = ScriptedSource::new(script());
    let windows = env
        .from_source(source, WatermarkStrategy::monotonous(), "script")
        .key_by(|pair: &Pair| pair.0)
        .window(assigner);
    let windows = if custom { windows.trigger(CountTrigger::of(EACH)) } else { windows };
    let rows: Arc<std::sync::Mutex<Vec<(u64, i64, u64)>>> = Default::default();
    let seen = Arc::clone(&rows);
    let merges = Arc::new(AtomicU64::new(0));
    windows
        .aggregate_with(Merged(Arc::clone(&merges)), |sum, window, out| {
            let key = *out.key();
            out.collect((key, window.start().as_millis(), sum));
        })
        .name("windows")
        .for_each(move |row| seen.lock().unwrap().push(row));
    let job = env.submit("windows").unwrap();
    let progress = job.progress();
    let report = job.wait().unwrap();
    let report = report.operator("windows").unwrap();
    let operators = progress.operators();
    let windows = operators.iter().find(|operator| operator.name == "windows").unwrap();
    let accesses = windows.subtasks.iter().map(|s| s.state.hits + s.state.misses).sum();
    let phase = &report.phases[0];
    let mut results = rows.lock().unwrap().clone();
    results.sort_unstable();
    Cost {
        results,
        treatment: phase.treatment,
        keys: phase.keys,
        accesses,
        store: report.state_reads + report.state_writes,
        merges: merges.load(Ordering::Relaxed),
    }
}

/// A backlog's records combine by key and pane before they reach state: each costs one access a pane
/// and not one a record; with a trigger that wants to see records they do not.
#[test]
fn a_backlog_combines_by_pane_before_it_reaches_state() {
    for mixed in [false, true] {
        let tumbling = cost(mixed, TumblingEventTime::of(1.secs()), false);
        assert_eq!(tumbling.treatment, "combine", "mixed: {mixed}");
        assert_eq!(tumbling.keys, KEYS);
        assert_eq!(tumbling.results.len() as u64, KEYS * SECONDS);
        assert!(tumbling.results.iter().all(|row| row.2 == EACH));
        // To put the partial, to read it when the window fires, to clear it; triggers have no state.
        let windows = KEYS * SECONDS;
        assert!(tumbling.accesses <= 4 * windows, "{} for {windows} windows", tumbling.accesses);
        assert_eq!(tumbling.store, 0);
        let counted = cost(mixed, TumblingEventTime::of(1.secs()), true);
        assert_eq!(counted.treatment, "sort");
        assert_eq!(counted.results, tumbling.results);
    }
}

/// Sliding windows cost the same whatever their overlap: with 40 times as many windows a record as
/// with 10, accesses of state by window stay the same; a window writes one aggregate at most. It takes
/// six accesses: a partial comes to its pane, how far the key has come is read and set, the last pane
/// is read, the first one taken out, and one given its suffix; and three merges.
#[test]
fn the_overlap_of_sliding_windows_costs_nothing() {
    for mixed in [false, true] {
        let tumbling = cost(mixed, TumblingEventTime::of(1.secs()), false);
        let few = cost(mixed, SlidingEventTime::of(10.secs(), 1.secs()), false);
        let many = cost(mixed, SlidingEventTime::of(400.secs(), 1.secs()), false);
        assert_eq!(few.treatment, "combine");
        assert_eq!(many.results.len() as u64, KEYS * (SECONDS + 399));
        let per_window = |cost: &Cost| cost.accesses as f64 / cost.results.len() as f64;
        assert!(
            per_window(&many) <= per_window(&few) * 1.05,
            "{} and {}",
            per_window(&many),
            per_window(&few)
        );
        let accesses = per_window(&many) / per_window(&tumbling);
        assert!(accesses <= 3.5, "{accesses} times those of a tumbling window");
        assert!(per_window(&few) <= 6.0, "{} accesses a window", per_window(&few));
        for cost in [&few, &many] {
            let (merges, windows) = (cost.merges, cost.results.len() as u64);
            assert!(merges <= 3 * windows, "{merges} merges for {windows} windows");
        }
        // What comes and goes within the phase is not written, but for one aggregate a window.
        assert_eq!(tumbling.store, 0);
        assert!(many.store <= many.results.len() as u64, "{}", many.store);
    }
}
