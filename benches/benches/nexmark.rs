//! Nexmark's queries in each mode, against plain loops over events in memory.
//!
//! The loops read events that are made before the clock starts; the engine makes them inside the job.

mod common;

use common::Comparison;
use criterion::Criterion;
use slackwater_benches::nexmark::{Query, by_hand, source};
use slackwater_benches::{Mode, Order, Setting, Shape, Store, records};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let events = records(1_000_000);
    let all = source::all(events);
    for query in Query::ALL {
        let shape = Shape {
            records: events,
            key_bytes: 8,
            value_bytes: 200,
            distinct_keys: 0,
            order: Order::Counted,
            parallelism: 2,
            budget: None,
        };
        let mut table = Comparison::new(&format!("nexmark {}", query.name()), shape)
            .with("by hand", || by_hand::answer(query, &all).0);
        for mode in Mode::ALL {
            let setting = Setting::new(mode, Store::Disk);
            table = table.with(format!("{}, disk", mode.name()), move || {
                query.run(&setting, events).expect("the job ends well").checksum
            });
        }
        table.run(&mut criterion);
    }
    criterion.final_summary();
}
