//! Two ways to do the same, timed in turns in one process; the ratio is the figure.
//!
//! Beside the ratio of times stands that of processor time over all threads, which other programs on
//! the machine disturb less. `SLACKWATER_BENCH_SMOKE=1` makes everything tiny, to see that it runs;
//! `SLACKWATER_BENCH_ONLY=ours` or `=reference` runs one side alone, for a profiler.

use std::time::{Duration, Instant};

/// Whether sizes are to be tiny.
pub(crate) fn is_smoke() -> bool {
    std::env::var_os("SLACKWATER_BENCH_SMOKE").is_some_and(|value| value == "1")
}

/// `full`, or a thousandth of it, or what `SLACKWATER_BENCH_RECORDS` says.
pub(crate) fn scaled(full: u64) -> u64 {
    let chosen = std::env::var("SLACKWATER_BENCH_RECORDS").ok().and_then(|n| n.parse().ok());
    if let Some(records) = chosen {
        return records;
    }
    if is_smoke() { (full / 1_000).max(1) } else { full }
}

/// The generator's mixing function.
pub(crate) fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Takes memory for `bytes` and gives it back. Free memory of a virtual machine may have gone back to
/// its host, and is many times slower to fill until it has been filled once; which side meets it would
/// be chance.
fn warm_memory(bytes: u64) {
    let mut memory = vec![0_u8; usize::try_from(bytes).expect("fits into memory")];
    memory.iter_mut().step_by(4_096).for_each(|page| *page = 1);
    std::hint::black_box(&memory);
}

/// Runs both in turns and prints rates and ratios. Both give a checksum, which must be equal. Before
/// each, untimed, memory for the `file_bytes` of its files is filled.
pub(crate) fn compare(
    shape: &str,
    records: u64,
    record_bytes: u64,
    file_bytes: u64,
    mut ours: impl FnMut() -> u64,
    mut reference: impl FnMut() -> u64,
) {
    let turns = if is_smoke() { 1 } else { 7 };
    let (mut times, mut ratios, mut work) = (Vec::new(), Vec::new(), (0, 0));
    match std::env::var("SLACKWATER_BENCH_ONLY").as_deref() {
        Ok("ours") => return alone(shape, turns, file_bytes, &mut ours),
        Ok("reference") => return alone(shape, turns, file_bytes, &mut reference),
        _ => {}
    }
    for _ in 0..turns {
        warm_memory(file_bytes);
        let (ours, ours_work, ours_sum) = timed(&mut ours);
        warm_memory(file_bytes);
        let (reference, reference_work, reference_sum) = timed(&mut reference);
        work = (work.0 + ours_work, work.1 + reference_work);
        assert_eq!(ours_sum, reference_sum, "{shape}: both do the same work");
        ratios.push(reference.as_secs_f64() / ours.as_secs_f64());
        times.push((ours, reference));
    }
    times.sort_unstable();
    ratios.sort_unstable_by(f64::total_cmp);
    let (ours, reference) = times[times.len() / 2];
    let rate = |time: Duration| records as f64 / 1e6 / time.as_secs_f64();
    let bytes = |time: Duration| rate(time) * record_bytes as f64 / 1e3;
    println!(
        "{shape}: ours {:.1} M/s ({:.2} GB/s), reference {:.1} M/s ({:.2} GB/s), \
         ratio min {:.2} median {:.2} max {:.2}, of processor time {:.2}",
        rate(ours),
        bytes(ours),
        rate(reference),
        bytes(reference),
        ratios[0],
        ratios[ratios.len() / 2],
        ratios[ratios.len() - 1],
        work.1 as f64 / work.0.max(1) as f64,
    );
}

/// One side over and over, for a profiler.
fn alone(shape: &str, turns: usize, file_bytes: u64, run: &mut impl FnMut() -> u64) {
    for _ in 0..turns {
        warm_memory(file_bytes);
        let (time, work, _) = timed(run);
        println!("{shape}: {time:?}, {work} ticks of processor time");
    }
}

/// Processor time of this process, user and system, in ticks of the system.
fn processor_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Time, processor time in ticks, and what came out.
fn timed(run: &mut impl FnMut() -> u64) -> (Duration, u64, u64) {
    let (ticks, start) = (processor_ticks(), Instant::now());
    let sum = run();
    let time = start.elapsed();
    (time, processor_ticks() - ticks, sum)
}
