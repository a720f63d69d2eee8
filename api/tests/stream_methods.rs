//! What holds a stream has its methods: results of windows, attempts, and cached streams.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slackwater::prelude::*;
use slackwater::{Count, EndOfStreamWindows, ProcessContext, ProcessFunction};

/// Methods that each holder means in its own way.
const OWN: [&str; 7] =
    ["name", "uid", "parallelism", "max_parallelism", "side_output", "cache", "cache_named"];

fn environment() -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(2));
    env
}

/// The names of the public methods in the blocks of a text that begin with `opening`.
fn methods(text: &str, opening: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    let mut inside = false;
    let mut names = BTreeSet::new();
    for line in text.lines() {
        match line {
            "}" => inside = false,
            line if opening(line) => inside = true,
            _ => {}
        }
        if let Some(method) = line.trim_start().strip_prefix("pub fn ").filter(|_| inside) {
            names.extend(method.split(['<', '(']).next());
        }
    }
    names
}

#[test]
fn what_holds_a_stream_has_all_of_its_methods() -> Result<()> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut of_a_stream = BTreeSet::new();
    for entry in std::fs::read_dir(&sources)? {
        let path = entry?.path();
        if path.is_file() {
            let text = std::fs::read_to_string(path)?;
            let of_this =
                |line: &str| line.starts_with("impl") && line.ends_with(" DataStream<T> {");
            of_a_stream.extend(methods(&text, of_this).into_iter().map(str::to_owned));
        }
    }
    assert!(of_a_stream.len() > 30, "{of_a_stream:?}");
    let text = std::fs::read_to_string(sources.join("stream_methods.rs"))?;
    let mut forwarded = methods(&text, |line| line.starts_with("macro_rules!"));
    forwarded.extend(OWN);
    assert_eq!(forwarded.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), of_a_stream);
    Ok(())
}

/// Lets even numbers through.
struct Even;

impl ProcessFunction<u64, u64> for Even {
    fn process(&mut self, value: u64, context: &mut ProcessContext<'_, u64>) -> Result<()> {
        if value.is_multiple_of(2) {
            context.collect(value);
        }
        Ok(())
    }
}

#[test]
fn two_steps_read_the_results_of_windows() -> Result<()> {
    let env = environment();
    let counts = env
        .generate(100, |i| i)
        .key_by(|n| n % 10)
        .window(EndOfStreamWindows)
        .aggregate_with(Count, |count, _, out| {
            let digit = *out.key();
            out.collect((digit, count));
        })
        .name("counts")
        .max_parallelism(8);
    let seen = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&seen);
    counts.clone().try_for_each(move |(_, records)| {
        count.fetch_add(records, Ordering::Relaxed);
        Ok(())
    });
    counts.clone().rebalance().for_each(|_| ());
    env.execute("two readers")?;
    assert_eq!(seen.load(Ordering::Relaxed), 100);

    let twice = counts.clone().union(counts.clone()).key_by_ref(|(digit, _)| digit).count();
    let twice = twice.execute_and_collect()?;
    assert_eq!(twice.sorted(), (0..10).map(|digit| (digit, 2)).collect::<Vec<_>>());
    assert_eq!(twice.report().operator("counts").map(|windows| windows.records_in), Some(100));
    let even = counts.try_map(|(digit, _)| Ok(digit)).process(|| Even).execute_and_collect()?;
    assert_eq!(even.sorted(), [0, 2, 4, 6, 8]);
    Ok(())
}

#[test]
fn a_cached_stream_is_partitioned_processed_and_failed_over_as_any() -> Result<()> {
    let env = environment();
    let numbers = env.generate(10, |i| i).name("numbers").uid("numbers").cache();
    assert_eq!(numbers.process(|| Even).execute_and_collect()?.sorted(), [0, 2, 4, 6, 8]);
    let all_to_one = numbers.partition_custom(|_, _| 1).map_partition(|records, out| {
        out.collect(records.count());
        Ok(())
    });
    let collected = all_to_one.execute_and_collect()?;
    assert_eq!(collected.sorted(), [0, 10]);
    assert!(collected.report().cache("numbers").is_some_and(|cache| cache.is_hit()));
    let lines = numbers.connect(numbers.stream()).map(|n| n, |n| n + 100).execute_and_collect()?;
    assert_eq!(lines.len(), 20);
    let (kept, dead) = numbers
        .skip_failures()
        .try_map(|n| if n < 7 { Ok(n) } else { Err(Error::msg("too great")) })
        .with_dead_letters();
    kept.for_each(|_| ());
    let dead = dead.map(|letter| letter.record).execute_and_collect()?;
    assert_eq!(dead.sorted(), [7, 8, 9]);
    Ok(())
}

#[test]
fn an_attempt_goes_on_as_a_stream() -> Result<()> {
    let numbers = environment()
        .from_collection(["1", "two", "3"])
        .skip_failures()
        .try_map(|text| Ok(text.parse::<u64>()?))
        .name("parse")
        .map(|n| n * 10)
        .execute_and_collect()?;
    assert_eq!(numbers.sorted(), [10, 30]);
    assert_eq!(numbers.report().operator("parse").map(|parse| parse.skipped), Some(1));
    Ok(())
}
