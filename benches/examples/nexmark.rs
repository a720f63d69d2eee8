//! All queries of Nexmark in stream, mixed and batch mode, each held against plain loops.
//!
//!     cargo run --release -p slackwater-benches --example nexmark            # 100,000 events
//!     cargo run --release -p slackwater-benches --example nexmark -- 1000000

use std::time::Instant;

use slackwater::Result;
use slackwater_benches::nexmark::{Query, by_hand, source};
use slackwater_benches::{Mode, Setting, Store};

fn main() -> Result<()> {
    let events = std::env::args().nth(1).map_or(Ok(100_000), |number| number.parse())?;
    let all = source::all(events);
    for query in Query::ALL {
        let start = Instant::now();
        let expected = by_hand::answer(query, &all);
        print!("{}: {} rows; by hand {:.0?}", query.name(), expected.1, start.elapsed());
        for mode in Mode::ALL {
            let start = Instant::now();
            let outcome = query.run(&Setting::new(mode, Store::Disk), events)?;
            print!(", {} {:.0?}", mode.name(), start.elapsed());
            let found = (outcome.checksum, outcome.outputs);
            assert_eq!(found, expected, "{} in {} mode", query.name(), mode.name());
        }
        println!();
    }
    Ok(())
}
