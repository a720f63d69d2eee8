//! Windows that keep their late data: prices by minute, and the trades that came too late for theirs.
//!
//! The watermark stays 5 seconds behind the latest trade; a window takes trades for 10 seconds more and
//! fires again for each of them. What comes even later goes to an output of its own.

use std::sync::mpsc::channel;

use slackwater::prelude::*;
use slackwater::{CollectionSource, Extreme, HybridSource};

#[derive(Record, Clone, Debug, PartialEq)]
struct Trade {
    symbol: String,
    cents: u64,
    second: i64,
}

fn main() -> Result<()> {
    let trade = |cents, second| Trade { symbol: "TIDE".to_owned(), cents, second };
    let in_order = [trade(100, 3), trade(130, 40), trade(90, 62), trade(120, 130)];
    let stragglers = [trade(140, 118), trade(999, 5)];
    let env = StreamExecutionEnvironment::from_env()?;
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(1));
    let source = HybridSource::starting_with(CollectionSource::new(in_order))
        .then(CollectionSource::new(stragglers));
    let by_second = WatermarkStrategy::bounded_out_of_orderness(5.secs())
        .with_timestamps(|trade: &Trade| Timestamp::from_millis(trade.second * 1_000));
    let (highest, late) = env
        .from_source(source, by_second, "trades")
        .key_by_ref(|trade| &trade.symbol)
        .window(TumblingEventTime::of(1.mins()))
        .allowed_lateness(10.secs())
        .aggregate_with(Extreme::greatest(|trade: &Trade| trade.cents), |cents, window, out| {
            out.collect((window.start().as_millis() / 60_000, cents));
        })
        .with_late_output();
    let (tell, seen) = channel();
    highest.for_each(move |bar| tell.send(bar).unwrap_or_default());
    let (put_aside, too_late) = channel();
    late.for_each(move |trade| put_aside.send(trade).unwrap_or_default());
    env.execute("trades")?;
    let seen: Vec<(i64, u64)> = seen.try_iter().collect();
    for (minute, cents) in &seen {
        println!("minute {minute}: at most {cents} cents");
    }
    // The straggler of the second minute fires it again; the one of the first is too late for it.
    assert_eq!(seen, [(0, 130), (1, 90), (1, 140), (2, 120)]);
    assert_eq!(too_late.try_iter().collect::<Vec<_>>(), [trade(999, 5)]);
    Ok(())
}
