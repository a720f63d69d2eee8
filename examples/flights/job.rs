//! The job: source, key, aggregate, sink; and what is measured around it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use slackwater::prelude::*;
use slackwater::{ConfigError, CsvSource, GeneratorSource, HybridSource, JobHandle};

use crate::arguments::{Arguments, Mode};
use crate::departure::{Delays, DelaysOfRoute, Departure, Route};
use crate::display::Display;
use crate::results::{Latest, LatestSink};

/// The job's name, and that of the directory of its checkpoints.
const JOB: &str = "flights";

/// Live departures a second.
const LIVE_RATE: u64 = 50_000;

/// One phase of a run.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// Rows read.
    pub(crate) rows: u64,
    /// From its first row to its last result.
    pub(crate) seconds: f64,
}

/// A finished run.
pub(crate) struct Run {
    /// How it ran.
    pub(crate) mode: Mode,
    /// The history.
    pub(crate) backlog: Phase,
    /// What came live.
    pub(crate) live: Phase,
    /// Results per route.
    pub(crate) routes: BTreeMap<Route, Delays>,
    /// The engine's report.
    pub(crate) report: JobReport,
}

fn environment(
    arguments: &Arguments,
    mode: Mode,
) -> Result<StreamExecutionEnvironment, ConfigError> {
    use options::RuntimeMode;
    let env = StreamExecutionEnvironment::from_env()?;
    let runtime = if mode == Mode::Batch { RuntimeMode::Batch } else { RuntimeMode::Streaming };
    env.set(&options::RUNTIME_MODE, runtime)
        .set(&options::STATE_BACKEND, arguments.state.backend())
        .set(&options::CHECKPOINT_INTERVAL, Some(10.secs()));
    if mode == Mode::Mixed {
        env.set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO));
    }
    if arguments.parallelism.is_some() {
        env.set(&options::PARALLELISM, arguments.parallelism);
    }
    if let Some(memory) = arguments.memory {
        env.set(&options::SORTED_INPUTS_MEMORY, memory);
    }
    if let Some(directory) = &arguments.checkpoints {
        env.set(&options::CHECKPOINT_DIR, Some(directory.display().to_string()));
        let newest =
            slackwater::newest_checkpoint(&directory.join(JOB)).filter(|_| arguments.resume);
        env.set(&options::SAVEPOINT_PATH, newest.map(|path| path.display().to_string()));
    }
    for option in &arguments.options {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        env.config().set_text(key, value)?;
    }
    Ok(env)
}

/// The departures: history, and in all modes but batch what is live behind it.
fn departures(
    env: &StreamExecutionEnvironment,
    arguments: &Arguments,
    mode: Mode,
) -> DataStream<Departure> {
    let (rows, keys) = (arguments.rows, arguments.keys);
    let live_rows = arguments.live_seconds() * LIVE_RATE;
    let generated = move |i| (Departure::generated(i, keys), None);
    let live = GeneratorSource::bounded(live_rows, move |i| generated(rows + i))
        .records_per_second(LIVE_RATE as f64);
    let none = WatermarkStrategy::none();
    match &arguments.input {
        Some(file) => {
            let history = CsvSource::<Departure>::new(file).null_values(["NA"]);
            match mode {
                Mode::Batch => env.from_source(history, none, "departures"),
                _ => {
                    let both = HybridSource::starting_with(history).then(live);
                    env.from_source(both, none, "departures")
                }
            }
        }
        None => {
            let history = GeneratorSource::bounded(rows, generated);
            match mode {
                Mode::Batch => env.from_source(history, none, "departures"),
                _ => {
                    let both = HybridSource::starting_with(history).then(live);
                    env.from_source(both, none, "departures")
                }
            }
        }
    }
}

/// Runs the job in a mode and waits for its end.
pub(crate) fn run(arguments: &Arguments, mode: Mode) -> Result<Run> {
    let env = environment(arguments, mode)?;
    env.suspend_on_signals()?;
    let latest = Latest::default();
    let mut sink = LatestSink::new(latest.clone());
    if arguments.checkpoints.is_some() {
        sink = sink.stored();
    }
    departures(&env, arguments, mode)
        .uid("departures")
        .key_by(Departure::route)
        .aggregate(DelaysOfRoute)
        .name("delays of route")
        .uid("delays-of-route")
        .sink_to(sink)
        .name("latest")
        .uid("latest");
    if arguments.json.is_none() {
        println!("{}", env.explain()?);
    }
    let begun = Instant::now();
    let handle = env.submit(JOB).context("the job did not start")?;
    let expected = arguments.input.is_none().then_some(arguments.rows);
    let turned = watch(&handle, mode, expected);
    let report = handle.wait()?;
    let total = begun.elapsed();
    let rows = report.operators.first().map_or(0, |source| source.records_in);
    let live_rows = if mode == Mode::Batch { 0 } else { arguments.live_seconds() * LIVE_RATE };
    let draining = report
        .operator("delays of route")
        .and_then(|operator| operator.phases.first())
        .map_or(Duration::ZERO, |phase| phase.draining);
    let backlog = match mode {
        Mode::Batch => total,
        _ if live_rows == 0 => total,
        _ => (turned.unwrap_or(total) + draining).min(total),
    };
    let routes = latest.take();
    env.close()?;
    Ok(Run {
        mode,
        backlog: Phase { rows: rows.saturating_sub(live_rows), seconds: backlog.as_secs_f64() },
        live: Phase { rows: live_rows.min(rows), seconds: (total - backlog).as_secs_f64() },
        routes,
        report,
    })
}

/// Shows progress until the job ends. The time at which the source left its backlog, if it did.
fn watch(handle: &JobHandle, mode: Mode, expected: Option<u64>) -> Option<Duration> {
    let begun = Instant::now();
    let progress = handle.progress();
    let mut display = Display::new(expected);
    let mut was_backlog = false;
    let mut turned = None;
    while !handle.is_finished() {
        let is_backlog = progress.is_backlog() || mode == Mode::Batch;
        if was_backlog && !is_backlog && turned.is_none() {
            turned = Some(begun.elapsed());
            display.tide_turns(progress.records_read());
        }
        was_backlog |= is_backlog;
        display.rows(progress.records_read());
        std::thread::sleep(Duration::from_millis(20));
    }
    display.finish();
    turned
}
