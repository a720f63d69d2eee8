//! Times and memory of one run.
//!
//! Memory is the process's: resident pages as the system counts them. The peak can be set back
//! between two runs of one process where the system allows it (Linux); elsewhere it reads 0.

use std::time::{Duration, Instant};

/// One run: its checksum, how long it took, and how much memory it added at most.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// What came out.
    pub checksum: u64,
    /// From call to return.
    pub took: Duration,
    /// The most bytes resident during the run, less those at its start.
    pub peak_added: u64,
}

impl Measured {
    /// Runs once.
    pub fn of(run: impl FnOnce() -> u64) -> Self {
        reset_peak_memory();
        let before = resident_memory();
        let start = Instant::now();
        let checksum = run();
        let took = start.elapsed();
        Self { checksum, took, peak_added: peak_memory().saturating_sub(before) }
    }
}

/// The middle of some times, the upper one of two; zero without any.
#[must_use]
pub fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The most bytes resident since the start, or since [`reset_peak_memory`].
#[must_use]
pub fn peak_memory() -> u64 {
    status("VmHWM:")
}

/// Bytes resident at this moment.
#[must_use]
pub fn resident_memory() -> u64 {
    status("VmRSS:")
}

/// Lets the peak begin again from what is resident.
pub fn reset_peak_memory() {
    // Where the system refuses, the peak stays that of the whole process.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_upper_middle() {
        let times = [4, 1, 3, 2].map(Duration::from_secs);
        assert_eq!(median(&times), Duration::from_secs(3));
        assert_eq!(median(&[]), Duration::ZERO);
    }
}
