//! What a cache costs and what it saves (FLIP-205): five jobs over one costly stream (J4), a first job
//! that keeps it against one that does not, and a second job against reading the same bytes by hand.
//!
//! The reference of the five jobs makes the records once in a plain loop on one thread and sums five
//! times. Beside the table, each job's time stands by itself: later jobs should cost little.

mod common;

use std::io::Write;
use std::path::Path;

use common::Comparison;
use criterion::Criterion;
use element::Record;
use slackwater_benches::generator::{exchange_check, exchange_record, mix};
use slackwater_benches::jobs::cache::{Jobs, KEYS};
use slackwater_benches::sinks::CheckSum;
use slackwater_benches::{Mode, Order, Setting, Shape, Store, is_smoke, records};

/// Threads that read by hand, each a file; as many subtasks read what a job has kept.
const READERS: u64 = 2;

fn run(jobs: Jobs) -> u64 {
    let env = Setting::new(Mode::Batch, Store::Heap).environment();
    let outcomes = jobs.run(&env).expect("the jobs end well");
    if jobs.jobs > 1 {
        let each: Vec<String> =
            outcomes.took.iter().map(|took| format!("{:.0}", took.as_secs_f64() * 1e3)).collect();
        let how = if jobs.cached { "kept by the first" } else { "made anew by each" };
        println!("  {how}: jobs took {} ms", each.join(", "));
    }
    outcomes.checksum
}

fn shape(records: u64, value_bytes: u64, distinct_keys: u64) -> Shape {
    let (order, parallelism) = (Order::Counted, READERS as u32);
    Shape { records, key_bytes: 0, value_bytes, distinct_keys, order, parallelism, budget: None }
}

fn five_jobs(criterion: &mut Criterion) {
    let rounds = if is_smoke() { 3 } else { 300 };
    let jobs = Jobs { rows: records(500_000), rounds, jobs: 5, cached: true };
    Comparison::new("cache, five jobs", shape(jobs.rows * jobs.jobs, 8, KEYS))
        .with("made once by hand, one thread", move || jobs.by_hand())
        .with("kept by the first", move || run(jobs))
        .with("made anew by each", move || run(Jobs { cached: false, ..jobs }))
        .run(criterion);
}

/// The job that makes the records: what keeping them adds to it.
fn first_job(criterion: &mut Criterion) {
    let rounds = if is_smoke() { 3 } else { 300 };
    let job = Jobs { rows: records(5_000_000), rounds, jobs: 1, cached: false };
    Comparison::new("cache, first job", shape(job.rows, 8, KEYS))
        .with("keeps nothing", move || run(job))
        .with("keeps its records", move || run(Jobs { cached: true, ..job }))
        .run(criterion);
}

/// A job that reads and sums what another has kept, against the same bytes decoded from files.
fn second_job<T>(criterion: &mut Criterion, title: &str, make: fn(u64) -> T, check: fn(&T) -> u64)
where
    T: Record + Clone + Sync,
{
    let n = records(10_000_000);
    let directory = tempfile::tempdir().expect("a directory is made");
    let paths: Vec<_> =
        (0..READERS).map(|part| directory.path().join(format!("part-{part}"))).collect();
    for (part, path) in (0..).zip(&paths) {
        write_by_hand(path, (part..n).step_by(READERS as usize).map(make));
    }
    let env = Setting::new(Mode::Batch, Store::Heap).environment();
    let kept = env.generate(n, make).cache();
    kept.count().expect("the first job ends well");
    let mut record = Vec::new();
    make(0).encode(&mut record);
    Comparison::new(title, shape(n, record.len() as u64, n))
        .with("decoded from files by hand", move || read_by_hand(&paths, check))
        .with("second job", || {
            let total = CheckSum::default();
            kept.sink_to(total.sink(check));
            env.execute("second").expect("the second job ends well");
            total.sum()
        })
        .run(criterion);
}

fn write_by_hand<T: Record>(path: &Path, records: impl Iterator<Item = T>) {
    let file = std::fs::File::create(path).expect("a file is made");
    let mut out = std::io::BufWriter::with_capacity(1 << 20, file);
    let mut bytes = Vec::new();
    for record in records {
        bytes.clear();
        record.encode(&mut bytes);
        out.write_all(&bytes).expect("written");
    }
    out.flush().expect("written");
}

/// A thread a file: read whole, then decoded record by record.
fn read_by_hand<T: Record>(paths: &[impl AsRef<Path> + Sync], check: fn(&T) -> u64) -> u64 {
    let sum_of = |path: &Path| {
        let bytes = std::fs::read(path).expect("read");
        let (mut rest, mut sum) = (bytes.as_slice(), 0_u64);
        while !rest.is_empty() {
            sum = sum.wrapping_add(check(&T::decode(&mut rest).expect("a record")));
        }
        sum
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> =
            paths.iter().map(|path| scope.spawn(move || sum_of(path.as_ref()))).collect();
        let sums = readers.into_iter().map(|reader| reader.join().expect("a reader ends well"));
        sums.fold(0, u64::wrapping_add)
    })
}

/// A visit: a number, a page's address of some 24 bytes, how long it took.
type Visit = (u64, String, f64);

fn visit(i: u64) -> Visit {
    (i, format!("/shop/items/{:012}", mix(i) % 1_000_000_000_000), (i % 1_000) as f64)
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    five_jobs(&mut criterion);
    first_job(&mut criterion);
    second_job(&mut criterion, "cache, second job, arrays", exchange_record, exchange_check);
    second_job(&mut criterion, "cache, second job, visits", visit, |(number, page, took)| {
        number ^ page.len() as u64 ^ took.to_bits()
    });
    criterion.final_summary();
}
