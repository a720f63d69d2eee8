//! [`Shape`]: what is measured, printed with every figure, so that two figures can be compared.
//!
//! Sizes follow `SLACKWATER_BENCH_RECORDS` (records of the large jobs) and `SLACKWATER_BENCH_SMOKE`
//! (tiny sizes, one round, no statistics: to see that all still runs).

use std::fmt;

/// Whether only to see that all still runs.
#[must_use]
pub fn is_smoke() -> bool {
    std::env::var_os("SLACKWATER_BENCH_SMOKE").is_some()
}

/// Records of a job: as `SLACKWATER_BENCH_RECORDS` says, else `usual`; a few in a smoke run.
#[must_use]
pub fn records(usual: u64) -> u64 {
    if is_smoke() {
        return usual.min(2_000);
    }
    let wanted = std::env::var("SLACKWATER_BENCH_RECORDS").ok();
    wanted.and_then(|text| text.replace('_', "").parse().ok()).unwrap_or(usual)
}

/// The order in which records come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each key as often as any other, in no order.
    Uniform,
    /// Half of the records have a sixteenth of the keys.
    Skewed,
    /// By number: each record once.
    Counted,
}

/// What is measured. Bytes are those of a record's own encoding.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Records of the input.
    pub records: u64,
    /// Bytes of a key; 0 without one.
    pub key_bytes: u64,
    /// Bytes of a record beside its key.
    pub value_bytes: u64,
    /// Keys that records are drawn from.
    pub distinct_keys: u64,
    /// Their order.
    pub order: Order,
    /// Subtasks of each operator, or threads of a reference that has them.
    pub parallelism: u32,
    /// Memory of each sorter, in bytes; `None` where nothing is sorted.
    pub budget: Option<u64>,
}

impl Shape {
    /// Mebibytes of all records.
    #[must_use]
    pub fn mebibytes(&self) -> f64 {
        (self.records * (self.key_bytes + self.value_bytes)) as f64 / f64::from(1 << 20)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { records, key_bytes, value_bytes, distinct_keys, order, parallelism, budget } =
            self;
        let order = match order {
            Order::Uniform => "uniform",
            Order::Skewed => "skewed",
            Order::Counted => "counted",
        };
        write!(
            f,
            "{records} records, {key_bytes} + {value_bytes} bytes, {distinct_keys} keys, {order}, \
             parallelism {parallelism}"
        )?;
        match budget {
            Some(bytes) => write!(f, ", {:.1} MiB a sorter", *bytes as f64 / f64::from(1 << 20)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_says_all_that_makes_a_figure_comparable() {
        let shape = Shape {
            records: 1_000,
            key_bytes: 8,
            value_bytes: 8,
            distinct_keys: 10,
            order: Order::Uniform,
            parallelism: 2,
            budget: Some(3 << 19),
        };
        let text = "1000 records, 8 + 8 bytes, 10 keys, uniform, parallelism 2, 1.5 MiB a sorter";
        assert_eq!(shape.to_string(), text);
    }
}
