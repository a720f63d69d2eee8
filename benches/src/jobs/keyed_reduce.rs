//! B1: the job by which FLIP-327 was judged: a keyed reduce that keeps the greatest time and sums counts.
//!
//! Record `i` has the key `i` modulo the number of keys, the time `i` and the count 1, so times are
//! monotone. All records but none are backlog; the live part is empty. In stream mode each record gives
//! an output, in mixed and batch mode each key (decision D9).

use slackwater::prelude::*;
use slackwater::{CollectionSource, GeneratorSource, HybridSource};

use super::Outcome;
use crate::sinks::CheckSum;
use crate::{Mode, Setting};

/// Key, time, count.
type Counted = (i32, i64, i64);

/// Runs it. The checksum is the sum of all counts that come out, which [`expected`] tells.
///
/// # Errors
///
/// What the engine says.
pub fn run(setting: &Setting, records: u64, keys: u64) -> Result<Outcome> {
    let env = setting.environment();
    let total = CheckSum::default();
    let record = move |i: u64| (((i % keys) as i32, i as i64, 1), None);
    let source = HybridSource::starting_with(GeneratorSource::bounded(records, record))
        .then(CollectionSource::new(Vec::<Counted>::new()));
    env.from_source(source, WatermarkStrategy::none(), "records")
        .key_by_ref(|record: &Counted| &record.0)
        .reduce(|(key, time, count), later: Counted| (key, time.max(later.1), count + later.2))
        .name("reduce")
        .sink_to(total.sink(|record: &Counted| record.2 as u64));
    let report = env.execute("FLIP-327's job")?;
    Ok(Outcome { checksum: total.sum(), outputs: total.records(), report })
}

/// Checksum and number of outputs.
#[must_use]
pub fn expected(mode: Mode, records: u64, keys: u64) -> (u64, u64) {
    if mode != Mode::Stream {
        return (records, records.min(keys));
    }
    // A key's counts are 1, 2, 3, ...; some keys have one record more than others.
    let (each, longer) = (records / keys, records % keys);
    let sum = |n: u64| n * (n + 1) / 2;
    (longer * sum(each + 1) + (keys - longer) * sum(each), records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn every_mode_counts_each_key() {
        for mode in Mode::ALL {
            let setting = Setting { parallelism: 1, ..Setting::new(mode, Store::Heap) };
            let outcome = run(&setting, 5_003, 70).unwrap();
            assert_eq!((outcome.checksum, outcome.outputs), expected(mode, 5_003, 70), "{mode:?}");
        }
    }
}
