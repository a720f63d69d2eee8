//! Events by number, the same in every run: from the `nexmark` crate's generator.

use std::cell::RefCell;

use nexmark::EventGenerator;
use nexmark::config::NexmarkConfig;
use slackwater::prelude::*;
use slackwater::{GeneratorSource, HybridSource};

use super::Event;
use crate::Mode;

/// Events in a second of event time.
pub const EVENTS_PER_SECOND: usize = 1_000;

/// The event time of the first event: a whole ten seconds.
const BASE_TIME: u64 = 1_700_000_000_000;

thread_local! {
    /// Making a generator costs far more than an event.
    static GENERATOR: RefCell<Option<EventGenerator>> = const { RefCell::new(None) };
}

/// Event `number`.
#[must_use]
pub fn event(number: u64) -> Event {
    GENERATOR.with_borrow_mut(|held| {
        let generator = held.take().unwrap_or_else(generator).with_offset(number);
        let made = held.insert(generator).next();
        made.map_or_else(|| unreachable!("the generator has no end"), Event::from)
    })
}

/// The first events, in order.
#[must_use]
pub fn all(events: u64) -> Vec<Event> {
    (0..events).map(event).collect()
}

/// The first events as a stream; outside of batch mode the last tenth is live.
pub fn events(env: &StreamExecutionEnvironment, mode: Mode, events: u64) -> DataStream<Event> {
    let by_time = WatermarkStrategy::monotonous().with_timestamps(Event::timestamp);
    let history = if mode == Mode::Mixed { events / 10 * 9 } else { events };
    let past = GeneratorSource::bounded(history, |i| (event(i), None));
    if mode != Mode::Mixed {
        return env.from_source(past, by_time, "events");
    }
    let live = GeneratorSource::bounded(events - history, move |i| (event(history + i), None));
    env.from_source(HybridSource::starting_with(past).then(live), by_time, "events")
}

fn generator() -> EventGenerator {
    EventGenerator::new(NexmarkConfig {
        base_time: BASE_TIME,
        first_rate: EVENTS_PER_SECOND,
        next_rate: EVENTS_PER_SECOND,
        ..NexmarkConfig::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_by_number_and_in_order_of_time() {
        let events = all(2_000);
        assert_eq!(event(1_234), events[1_234]);
        assert!(events.is_sorted_by_key(Event::timestamp));
        let of = |number: usize| events[number].timestamp();
        assert_eq!(of(1_000), of(0) + 1.secs());
    }
}
