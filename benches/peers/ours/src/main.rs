//! Slackwater on the jobs that its peers run: `ours JOB [k=v ...]` prints one JSON line.
//!
//! Jobs, generator and checksums are those of `slackwater-benches`; here stand only options and the
//! result line. Options of all jobs: `mode` (stream, mixed, batch), `state` (heap, disk, rocksdb), `p`
//! (parallelism), `sortmem` (MiB of each sorter), `cache` (keys in the write-back cache), `checkpoint`
//! (ms between checkpoints, 0: none), `tmp` (directory for temporary files).

#![forbid(unsafe_code)]

mod arguments;
mod external_sort;
mod memory;
mod result_line;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use slackwater::Result;
use slackwater_benches::jobs::cache::{Jobs, KEYS};
use slackwater_benches::jobs::exchange::{self, By};
use slackwater_benches::jobs::latency::{Live, quantile, split_at};
use slackwater_benches::jobs::running_sum::{Emit, RunningSum, backlog_counts};
use slackwater_benches::jobs::{
    co_group as co_groups, distinct_groups, keyed_reduce, word_count as words,
};
use slackwater_benches::sinks::{Arrival, CheckSum};
use slackwater_benches::{Mode, Order, Setting, Store};

use arguments::Arguments;
use result_line::ResultLine;

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ours: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ResultLine> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    match arguments.job() {
        "J1" => running_sum(&arguments),
        "J2" => co_group(&arguments),
        "J3" => word_count(&arguments),
        "J4" => cache(&arguments),
        "J5" => external_sort::run(&arguments),
        "J6" => exchange(&arguments),
        "J7" => latency(&arguments),
        "B1" => flip_327(&arguments),
        "B2" => flip_331(&arguments),
        other => Err(arguments::refused("job", other)),
    }
}

fn setting(arguments: &Arguments, mode: Mode) -> Result<Setting> {
    let mode = match arguments.text("mode").unwrap_or(mode.name()) {
        "stream" => Mode::Stream,
        "mixed" => Mode::Mixed,
        "batch" => Mode::Batch,
        other => return Err(arguments::refused("mode", other)),
    };
    let state = arguments.text("state").unwrap_or("disk");
    let store = Store::BUILT_IN.iter().find(|store| store.name() == state);
    let store = *store.ok_or_else(|| arguments::refused("state", state))?;
    let mut setting = Setting::new(mode, store);
    setting.parallelism = u32::try_from(arguments.number("p", 2)?)?;
    setting.sort_memory = arguments.maybe_number("sortmem")?.map(|mib| mib << 20);
    setting.cache_entries = arguments.maybe_number("cache")?;
    setting.directories = arguments.text("tmp").map(str::to_owned);
    let interval = arguments.number("checkpoint", 10_000)?;
    setting.checkpoints = (interval > 0).then(|| Duration::from_millis(interval));
    Ok(setting)
}

fn name(setting: &Setting) -> String {
    match setting.mode {
        Mode::Batch => "slackwater-batch".to_owned(),
        mode => format!("slackwater-{}-{}", mode.name(), setting.store.name()),
    }
}

/// J1; `v=final`: one output a key. `order=skewed`: some keys come more often, which is another job by
/// its checksum. `memory=true`: the resident memory over time, too.
fn running_sum(arguments: &Arguments) -> Result<ResultLine> {
    let setting = setting(arguments, Mode::Mixed)?;
    let emit = match arguments.text("v").unwrap_or("") {
        "" => Emit::Each,
        "final" => Emit::Last,
        other => return Err(arguments::refused("v", other)),
    };
    let (records, keys) = (arguments.number("n", 20_000_000)?, arguments.number("k", 1_000_000)?);
    let (order, job_name) = match arguments.text("order").unwrap_or("uniform") {
        "uniform" => (Order::Uniform, "J1"),
        "skewed" => (Order::Skewed, "J1-skewed"),
        other => return Err(arguments::refused("order", other)),
    };
    let job = RunningSum { records, keys, order, emit };
    let env = setting.environment();
    let total = CheckSum::default();
    job.build(&env, &total)?;
    let watch = arguments.flag("memory").then(memory::Watch::start);
    let start = Instant::now();
    let report = env.execute("running sum")?;
    let took = start.elapsed();
    let mut name = name(&setting);
    if emit == Emit::Last {
        name.push_str("-final");
    }
    let mut line = ResultLine::new(&name, job_name, (records, keys), took, total.sum());
    line.number("emitted", total.records());
    line.number("p", u64::from(setting.parallelism));
    for (count, value) in backlog_counts(&report) {
        line.number(&count.replace(' ', "_"), value);
    }
    if let Some(phase) = report.operator("sum").and_then(|operator| operator.phases.first()) {
        line.decimal("collecting_s", phase.collecting.as_secs_f64());
        line.decimal("draining_s", phase.draining.as_secs_f64());
    }
    if let Some(watch) = watch {
        line.series("memory_mb", &watch.stop());
    }
    Ok(line)
}

/// J2, at the end of input in either mode.
fn co_group(arguments: &Arguments) -> Result<ResultLine> {
    let setting = setting(arguments, Mode::Batch)?;
    let (each, keys) = (arguments.number("n", 10_000_000)?, arguments.number("k", 1_000_000)?);
    let env = setting.environment();
    let start = Instant::now();
    let outcome = co_groups::run(&env, each, keys)?;
    let took = start.elapsed();
    let mut line = ResultLine::new(&name(&setting), "J2", (2 * each, keys), took, outcome.checksum);
    line.number("emitted", outcome.outputs);
    Ok(line)
}

/// J3 over `file`; batch mode, so one output a word.
fn word_count(arguments: &Arguments) -> Result<ResultLine> {
    let setting = setting(arguments, Mode::Batch)?;
    let file = arguments.text("file").unwrap_or("words.txt");
    let env = setting.environment();
    let start = Instant::now();
    let outcome = words::run(&env, std::path::Path::new(file))?;
    let took = start.elapsed();
    let size = (arguments.number("words", 1)?, 131_071);
    let mut line = ResultLine::new(&name(&setting), "J3", size, took, outcome.checksum);
    line.number("emitted", outcome.outputs);
    Ok(line)
}

/// J4; `v=cache`: the first job keeps the stream.
fn cache(arguments: &Arguments) -> Result<ResultLine> {
    let setting = setting(arguments, Mode::Batch)?;
    let jobs = Jobs {
        rows: arguments.number("n", 5_000_000)?,
        rounds: u32::try_from(arguments.number("rounds", 300)?)?,
        jobs: arguments.number("jobs", 5)?,
        cached: arguments.text("v") == Some("cache"),
    };
    let env = setting.environment();
    let start = Instant::now();
    let outcomes = jobs.run(&env)?;
    let how = if jobs.cached { "slackwater-cache" } else { "slackwater-no-cache" };
    let size = (jobs.rows, KEYS);
    let mut line = ResultLine::new(how, "J4", size, start.elapsed(), outcomes.checksum);
    let seconds: Vec<f64> = outcomes.took.iter().map(std::time::Duration::as_secs_f64).collect();
    line.decimals("jobs_s", &seconds);
    Ok(line)
}

/// J6; `by=key` or `by=turn`. Stream mode is pipelined, batch mode blocking.
fn exchange(arguments: &Arguments) -> Result<ResultLine> {
    let setting = setting(arguments, Mode::Stream)?;
    let by = match arguments.text("by").unwrap_or("key") {
        "key" => By::Key,
        "turn" => By::Turn,
        other => return Err(arguments::refused("by", other)),
    };
    let records = arguments.number("n", 20_000_000)?;
    let env = setting.environment();
    let start = Instant::now();
    let outcome = exchange::run(&env, records, by)?;
    let took = start.elapsed();
    let way = if setting.mode == Mode::Batch { "blocking" } else { "pipelined" };
    let name = format!("slackwater-{way}-{}", arguments.text("by").unwrap_or("key"));
    let mut line = ResultLine::new(&name, "J6", (records, records), took, outcome.checksum);
    line.decimal("mb_per_s", records as f64 * 100.0 / 1e6 / took.as_secs_f64());
    Ok(line)
}

/// J7. `series=true`: the median of each tenth of a second, too.
fn latency(arguments: &Arguments) -> Result<ResultLine> {
    let setting = setting(arguments, Mode::Mixed)?;
    let live = Live {
        backlog: arguments.number("backlog", 10_000_000)?,
        rate: arguments.number("rate", 50_000)?,
        seconds: arguments.number("secs", 15)?,
        keys: arguments.number("k", 1_000_000)?,
    };
    let start = Instant::now();
    let outcome = live.run(&setting)?;
    let took = start.elapsed();
    let records = live.backlog + live.rate * live.seconds;
    let size = (records, live.keys);
    let mut line = ResultLine::new(&name(&setting), "J7", size, took, outcome.checksum);
    let (switch, steady) = split_at(&outcome.arrivals, 5);
    line.decimal("backlog_s", took.as_secs_f64() - live.seconds as f64);
    line.number("samples", steady.len() as u64);
    let quantiles = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];
    for (shown, share) in quantiles {
        line.decimal(&format!("{shown}_ms"), quantile(steady, share).unwrap_or(-1.0));
        line.decimal(&format!("switch_{shown}_ms"), quantile(switch, share).unwrap_or(-1.0));
    }
    line.number("checkpoints", outcome.report.checkpoints.len() as u64);
    if arguments.flag("series") {
        line.series("latency_ms", &by_tenths(&outcome.arrivals));
    }
    Ok(line)
}

/// B1: FLIP-327's own job; `p=1 cache=1` as upstream ran it.
fn flip_327(arguments: &Arguments) -> Result<ResultLine> {
    let setting = setting(arguments, Mode::Mixed)?;
    let (records, keys) = (arguments.number("n", 10_000_000)?, arguments.number("k", 1_000_000)?);
    let start = Instant::now();
    let outcome = keyed_reduce::run(&setting, records, keys)?;
    let took = start.elapsed();
    let found = (outcome.checksum, outcome.outputs);
    if found != keyed_reduce::expected(setting.mode, records, keys) {
        return Err(slackwater::Error::msg(format!("the counts are wrong: {found:?}")));
    }
    // One output a record, or one a key: modes have no checksum in common but the number of records.
    let mut line = ResultLine::new(&name(&setting), "B1", (records, keys), took, records);
    line.number("emitted", outcome.outputs);
    Ok(line)
}

/// B2: FLIP-331's own job; `p=1` as upstream ran it.
fn flip_331(arguments: &Arguments) -> Result<ResultLine> {
    let setting = setting(arguments, Mode::Stream)?;
    let groups = arguments.number("n", 10_000_000)?;
    let env = setting.environment();
    let start = Instant::now();
    let outcome = distinct_groups::run(&env, groups)?;
    let took = start.elapsed();
    Ok(ResultLine::new(&name(&setting), "B2", (2 * groups, groups), took, outcome.checksum))
}

/// Seconds since the switch, and the median latency of the tenth of a second that begins there.
fn by_tenths(arrivals: &[Arrival]) -> Vec<(f64, f64)> {
    let tenth = |arrival: &Arrival| arrival.due / 100_000_000;
    let of_one = arrivals.chunk_by(|a, b| tenth(a) == tenth(b));
    of_one
        .filter_map(|one| Some((tenth(one.first()?) as f64 / 10.0, quantile(one, 0.5)?)))
        .collect()
}
