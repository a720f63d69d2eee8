//! Nexmark: an auction house as a stream of people, auctions and bids, and questions to it.
//!
//! ```text
//!   model.rs      Event: Person | Auction | Bid      source.rs   the `nexmark` crate's generator, by number
//!   queries.rs    q0 q1 q2 q3 q5 q7 q8               winning.rs  q4: the bid that wins an auction
//!   by_hand.rs    the same answers by plain loops over all events
//! ```
//!
//! Answers are the rows of a query as numbers, so that modes, parallelisms and the loops can be held
//! against each other whatever the order in which rows come. Events bear event time and come in its
//! order; a second of event time has [`EVENTS_PER_SECOND`] of them. In mixed mode the first nine tenths
//! are backlog.

pub mod by_hand;
pub mod model;
pub mod queries;
pub mod source;
mod winning;

use element::encode_to_vec;
use slackwater::prelude::*;

pub use model::{Auction, Bid, Event, Person};
pub use source::EVENTS_PER_SECOND;

use crate::Setting;
use crate::generator::fnv;
use crate::jobs::Outcome;
use crate::sinks::CheckSum;

/// A question to the auction house.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// All events, passed on.
    Q0,
    /// Bids in another currency.
    Q1,
    /// Bids on some auctions.
    Q2,
    /// Who sells in one category in three states: an incremental join.
    Q3,
    /// The average winning price of each category.
    Q4,
    /// The auctions with the most bids of the last ten seconds, each two seconds.
    Q5,
    /// The highest bids of each ten seconds.
    Q7,
    /// People who opened an auction in the ten seconds in which they joined.
    Q8,
}

impl Query {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Q0, Self::Q1, Self::Q2, Self::Q3, Self::Q4, Self::Q5, Self::Q7, Self::Q8];

    /// As the benchmark calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Q0 => "q0",
            Self::Q1 => "q1",
            Self::Q2 => "q2",
            Self::Q3 => "q3",
            Self::Q4 => "q4",
            Self::Q5 => "q5",
            Self::Q7 => "q7",
            Self::Q8 => "q8",
        }
    }

    /// Runs it over the first `events` events; the checksum is the sum of [`row_hash`] of all rows.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn run(self, setting: &Setting, events: u64) -> Result<Outcome> {
        let env = setting.environment();
        let total = CheckSum::default();
        let stream = source::events(&env, setting.mode, events);
        match self {
            Self::Q0 => stream.sink_to(total.sink(row_hash)),
            Self::Q1 => queries::in_euros(stream).sink_to(total.sink(row_hash)),
            Self::Q2 => queries::some_auctions(stream).sink_to(total.sink(row_hash)),
            Self::Q3 => queries::local_sellers(stream).sink_to(total.sink(row_hash)),
            Self::Q4 => winning::average_prices(stream).sink_to(total.sink(row_hash)),
            Self::Q5 => queries::hot_auctions(stream).sink_to(total.sink(row_hash)),
            Self::Q7 => queries::highest_bids(stream).sink_to(total.sink(row_hash)),
            Self::Q8 => queries::new_sellers(stream).sink_to(total.sink(row_hash)),
        };
        let report = env.execute(self.name())?;
        Ok(Outcome { checksum: total.sum(), outputs: total.records(), report })
    }
}

/// A number of a row's bytes: rows are equal if it is, near enough for a check.
pub fn row_hash<T: Record>(row: &T) -> u64 {
    fnv(&encode_to_vec(row))
}

/// The sum of [`row_hash`] over rows, and their number.
#[must_use]
pub fn answer<T: Record>(rows: &[T]) -> (u64, u64) {
    let sum = rows.iter().fold(0_u64, |sum, row| sum.wrapping_add(row_hash(row)));
    (sum, rows.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Store};

    /// Twelve seconds: a window of ten closes by a watermark, others by the end.
    const EVENTS: u64 = 12_000;

    #[test]
    fn every_query_answers_as_plain_loops_do_in_every_mode() {
        let events = source::all(EVENTS);
        for query in Query::ALL {
            let expected = by_hand::answer(query, &events);
            assert!(expected.1 > 0, "{} has rows", query.name());
            for mode in Mode::ALL {
                let outcome = query.run(&Setting::new(mode, Store::Heap), EVENTS).unwrap();
                let found = (outcome.checksum, outcome.outputs);
                assert_eq!(found, expected, "{} as {mode:?}", query.name());
            }
        }
    }
}
