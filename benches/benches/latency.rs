//! From due to the sink: latency of live records after a backlog (J7), over each store.
//!
//! 50,000 live records a second, a checkpoint each second; the first five seconds after the switch
//! stand apart. Percentiles, not means; criterion has no part in this one. Latency is counted from
//! when a record was due, so a source that stalls hides nothing.

use std::time::Duration;

use slackwater_benches::jobs::latency::{Live, quantile, split_at};
use slackwater_benches::sinks::Arrival;
use slackwater_benches::{Mode, Setting, Store, is_smoke, records};

fn line(name: &str, when: &str, arrivals: &[Arrival]) {
    if arrivals.is_empty() {
        return;
    }
    let shown = |share| quantile(arrivals, share).unwrap_or(f64::NAN);
    println!(
        "  {name:<10} {when:<14} {:>9} records, ms: p50 {:.2}, p90 {:.2}, p99 {:.2}, p99.9 {:.2}, \
         most {:.2}",
        arrivals.len(),
        shown(0.5),
        shown(0.9),
        shown(0.99),
        shown(0.999),
        shown(1.0),
    );
}

fn main() {
    let (rate, seconds) = if is_smoke() { (1_000, 1) } else { (50_000, 12) };
    let first = if is_smoke() { 0 } else { 5 };
    let keys = if is_smoke() { 100 } else { 1_000_000 };
    let live = Live { backlog: records(2_000_000), rate, seconds, keys };
    println!(
        "latency: {} records of backlog, then {rate} a second for {seconds} s, 8 + 8 bytes, {keys} \
         keys, uniform, parallelism 2, a checkpoint a second",
        live.backlog
    );
    let mut checksums = Vec::new();
    for store in Store::BUILT_IN {
        let checkpoints = Some(Duration::from_secs(1));
        let setting = Setting { checkpoints, ..Setting::new(Mode::Mixed, *store) };
        let outcome = live.run(&setting).expect("the job ends well");
        assert_eq!(outcome.arrivals.len() as u64, rate * seconds, "every live record arrives");
        let (switch, steady) = split_at(&outcome.arrivals, first);
        line(store.name(), "at the switch", switch);
        line(store.name(), "steady", steady);
        checksums.push(outcome.checksum);
    }
    assert!(checksums.windows(2).all(|two| two[0] == two[1]), "{checksums:x?}");
}
