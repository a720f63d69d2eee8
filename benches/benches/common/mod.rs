//! [`Comparison`]: candidates over one input, timed in turns, then by criterion.
//!
//! ```text
//!   in turns:    A B C  A B C  A B C      medians, ratios to A, checksums equal or the bench fails
//!   criterion:   A A A.. B B B.. C C C..  statistics and change since the last run, of quick ones only
//! ```
//!
//! The first candidate is the reference. Ratios are rates: above 1 is faster than the reference.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use slackwater_benches::{Measured, Shape, is_smoke, median};

/// Rounds in turns.
const ROUNDS: usize = 3;

/// Runs longer than this are timed in turns alone.
const QUICK: Duration = Duration::from_millis(250);

struct Candidate<'a> {
    name: String,
    run: Box<dyn FnMut() -> u64 + 'a>,
    rounds: Vec<Measured>,
}

impl Candidate<'_> {
    fn times(&self) -> Vec<Duration> {
        self.rounds.iter().map(|round| round.took).collect()
    }
}

/// Candidates that must come to the same checksum.
pub(crate) struct Comparison<'a> {
    title: String,
    shape: Shape,
    candidates: Vec<Candidate<'a>>,
}

impl<'a> Comparison<'a> {
    /// Nothing to compare yet.
    pub(crate) fn new(title: &str, shape: Shape) -> Self {
        Self { title: title.to_owned(), shape, candidates: Vec::new() }
    }

    /// Adds a candidate; `run` returns its checksum. The first one is the reference.
    pub(crate) fn with(mut self, name: impl Into<String>, run: impl FnMut() -> u64 + 'a) -> Self {
        let run = Box::new(run);
        self.candidates.push(Candidate { name: name.into(), run, rounds: Vec::new() });
        self
    }

    /// Times all, prints the table, and hands the quick ones to criterion.
    pub(crate) fn run(mut self, criterion: &mut Criterion) {
        if !is_wanted(&self.title) {
            return;
        }
        for _ in 0..if is_smoke() { 1 } else { ROUNDS } {
            for candidate in &mut self.candidates {
                candidate.rounds.push(Measured::of(&mut candidate.run));
            }
        }
        self.print();
        self.check();
        if !is_smoke() {
            self.sample(criterion);
        }
    }

    fn print(&self) {
        println!("\n{}: {}", self.title, self.shape);
        println!(
            "  {:<34} {:>12} {:>9} {:>21} {:>7} {:>9}",
            "", "M records/s", "MiB/s", "ms (min .. max)", "ratio", "peak MiB"
        );
        let reference = self.candidates.first().map(|first| median(&first.times()));
        for candidate in &self.candidates {
            let times = candidate.times();
            let middle = median(&times);
            let (least, most) = (times.iter().min(), times.iter().max());
            let [least, most] = [least, most].map(|time| millis(time.copied().unwrap_or_default()));
            let peak = candidate.rounds.iter().map(|round| round.peak_added).max().unwrap_or(0);
            println!(
                "  {:<34} {:>12.2} {:>9.0} {:>21} {:>7.2} {:>9.0}",
                candidate.name,
                self.shape.records as f64 / middle.as_secs_f64() / 1e6,
                self.shape.mebibytes() / middle.as_secs_f64(),
                format!("{:.1} ({least:.1} .. {most:.1})", millis(middle)),
                reference.unwrap_or_default().as_secs_f64() / middle.as_secs_f64(),
                peak as f64 / f64::from(1 << 20),
            );
        }
    }

    fn check(&self) {
        let mut rounds = self.candidates.iter().flat_map(|candidate| {
            candidate.rounds.iter().map(|round| (&candidate.name, round.checksum))
        });
        let Some((first, expected)) = rounds.next() else { return };
        for (name, found) in rounds {
            let title = &self.title;
            assert_eq!(found, expected, "{title}: `{name}` and `{first}` differ: {found:016x}");
        }
        println!("  checksum {expected:016x}");
    }

    fn sample(self, criterion: &mut Criterion) {
        let mut group = criterion.benchmark_group(self.title);
        group.sample_size(10).sampling_mode(SamplingMode::Flat);
        group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(1));
        group.throughput(Throughput::Elements(self.shape.records));
        let shape = format!("{} records, {} keys", self.shape.records, self.shape.distinct_keys);
        for mut candidate in self.candidates {
            if median(&candidate.times()) < QUICK {
                let id = BenchmarkId::new(&candidate.name, &shape);
                group.bench_function(id, |bencher| bencher.iter(&mut candidate.run));
            }
        }
        group.finish();
    }
}

/// Whether the command line asks for a comparison of this title: by a part of it, as criterion does.
fn is_wanted(title: &str) -> bool {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    wanted.is_none_or(|wanted| title.contains(&wanted))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
