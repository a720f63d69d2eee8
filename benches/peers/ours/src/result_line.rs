//! [`ResultLine`]: one run as one line of JSON, with the fields that all programs print.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

/// One run. Fields beyond the common ones are appended in the order given.
#[derive(Debug)]
pub(crate) struct ResultLine {
    text: String,
}

impl ResultLine {
    /// The common fields: records and keys, seconds in the job, checksum, and the process's peak memory.
    pub(crate) fn new(
        peer: &str,
        job: &str,
        (records, keys): (u64, u64),
        took: Duration,
        checksum: u64,
    ) -> Self {
        let seconds = took.as_secs_f64();
        let rate = records as f64 / seconds;
        let peak = slackwater_benches::peak_memory();
        let text = format!(
            "\"peer\":\"{peer}\",\"job\":\"{job}\",\"records\":{records},\"keys\":{keys},\
             \"seconds\":{seconds:.3},\"records_per_s\":{rate:.0},\"checksum\":\"{checksum:016x}\",\
             \"peak_rss\":{peak}"
        );
        Self { text }
    }

    /// Appends a number.
    pub(crate) fn number(&mut self, key: &str, value: u64) {
        self.append(key, &value.to_string());
    }

    /// Appends a number with three decimals.
    pub(crate) fn decimal(&mut self, key: &str, value: f64) {
        self.append(key, &format!("{value:.3}"));
    }

    /// Appends numbers with three decimals.
    pub(crate) fn decimals(&mut self, key: &str, values: &[f64]) {
        let values: Vec<String> = values.iter().map(|value| format!("{value:.3}")).collect();
        self.append(key, &format!("[{}]", values.join(",")));
    }

    /// Appends pairs of numbers.
    pub(crate) fn series(&mut self, key: &str, pairs: &[(f64, f64)]) {
        let pairs: Vec<String> = pairs.iter().map(|(x, y)| format!("[{x:.3},{y:.3}]")).collect();
        self.append(key, &format!("[{}]", pairs.join(",")));
    }

    fn append(&mut self, key: &str, value: &str) {
        // Writing to a string does not fail.
        let _ = write!(self.text, ",\"{key}\":{value}");
    }
}

impl fmt::Display for ResultLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.text)
    }
}
