//! The queries that need no timer: a few lines each.

use slackwater::prelude::*;
use slackwater::{Count, KeyedCoProcessFunction, ListState};

use super::{Auction, Bid, Event, Person};

/// Length of a window.
pub(super) const WINDOW_SECONDS: u64 = 10;
/// Distance between windows that slide.
pub(super) const SLIDE_SECONDS: u64 = 2;
/// The category that q3 asks for.
pub(super) const CATEGORY: u64 = 10;
/// The states that q3 asks for.
pub(super) const STATES: [&str; 3] = ["or", "id", "ca"];
/// q2 asks for auctions whose number this divides.
pub(super) const EACH: u64 = 123;

/// Dollars to euros, in whole cents.
pub(super) fn euros(cents: u64) -> u64 {
    cents * 89 / 100
}

/// The bids alone.
pub(super) fn bids(events: DataStream<Event>) -> DataStream<Bid> {
    events.flat_map(|event, out| {
        if let Event::Bid(bid) = event {
            out.collect(bid);
        }
    })
}

fn people_and_auctions(events: DataStream<Event>) -> (DataStream<Person>, DataStream<Auction>) {
    let people = events.clone().flat_map(|event, out| {
        if let Event::Person(person) = event {
            out.collect(person);
        }
    });
    let auctions = events.flat_map(|event, out| {
        if let Event::Auction(auction) = event {
            out.collect(auction);
        }
    });
    (people, auctions)
}

/// q1: auction, bidder, price in euros, time.
pub fn in_euros(events: DataStream<Event>) -> DataStream<(u64, u64, u64, i64)> {
    bids(events).map(|bid| (bid.auction, bid.bidder, euros(bid.price), bid.at))
}

/// q2: auction and price.
pub fn some_auctions(events: DataStream<Event>) -> DataStream<(u64, u64)> {
    bids(events).filter(|bid| bid.auction % EACH == 0).map(|bid| (bid.auction, bid.price))
}

/// q3: name, city, state, auction. Each side waits for the other as long as the job runs.
pub fn local_sellers(events: DataStream<Event>) -> DataStream<(String, String, String, u64)> {
    let (people, auctions) = people_and_auctions(events);
    let people = people.filter(|person| STATES.contains(&person.state.as_str()));
    let auctions = auctions.filter(|auction| auction.category == CATEGORY);
    people
        .key_by(|person| person.id)
        .connect(auctions.key_by(|auction| auction.seller))
        .process(LocalSellers::new)
}

struct LocalSellers {
    person: ValueState<(String, String, String)>,
    waiting: ListState<u64>,
}

impl LocalSellers {
    fn new() -> Self {
        Self { person: ValueState::new("person"), waiting: ListState::new("auctions") }
    }
}

type Seller = (String, String, String, u64);

impl KeyedCoProcessFunction<u64, Person, Auction, Seller> for LocalSellers {
    fn process_left(
        &mut self,
        person: Person,
        context: &mut KeyedContext<'_, u64, Seller>,
    ) -> Result<()> {
        let Person { name, city, state, .. } = person;
        for auction in self.waiting.get(context)? {
            context.collect((name.clone(), city.clone(), state.clone(), auction));
        }
        self.waiting.clear(context)?;
        Ok(self.person.set(context, (name, city, state))?)
    }

    fn process_right(
        &mut self,
        auction: Auction,
        context: &mut KeyedContext<'_, u64, Seller>,
    ) -> Result<()> {
        match self.person.get(context)? {
            Some((name, city, state)) => context.collect((name, city, state, auction.id)),
            None => self.waiting.add(context, auction.id)?,
        }
        Ok(())
    }
}

/// q5: start of the window in milliseconds, auction, its bids.
pub fn hot_auctions(events: DataStream<Event>) -> DataStream<(i64, u64, u64)> {
    let sliding = SlidingEventTime::of(WINDOW_SECONDS.secs(), SLIDE_SECONDS.secs());
    let counts = bids(events).map(|bid| bid.auction).key_by(|auction| *auction);
    let counts = counts.window(sliding).aggregate_with(Count, |bids, window, out| {
        let auction = *out.key();
        out.collect((window.start().as_millis(), auction, bids));
    });
    // A result bears its window's last instant: those of one window lie in one slide.
    counts
        .key_by(|(start, _, _)| *start)
        .window(TumblingEventTime::of(SLIDE_SECONDS.secs()))
        .apply(|counts, _, out| {
            let most = counts.iter().map(|count| count.2).max();
            counts.into_iter().filter(|count| Some(count.2) == most).for_each(|c| out.collect(c));
        })
        .into_stream()
}

/// q7: start of the window in milliseconds, price, auction, bidder; all bids that share the price.
pub fn highest_bids(events: DataStream<Event>) -> DataStream<(i64, u64, u64, u64)> {
    bids(events)
        .map(|bid| (bid.price, bid.auction, bid.bidder))
        .key_by(|_| ())
        .window(TumblingEventTime::of(WINDOW_SECONDS.secs()))
        .aggregate_with(Highest, |bids, window, out| {
            for (price, auction, bidder) in bids {
                out.collect((window.start().as_millis(), price, auction, bidder));
            }
        })
        .into_stream()
}

/// Price, auction, bidder.
type Offer = (u64, u64, u64);

/// All offers of the highest price.
struct Highest;

impl Aggregator<Offer> for Highest {
    type Accumulator = Vec<Offer>;
    type Output = Vec<Offer>;

    fn first(&self, offer: Offer) -> Vec<Offer> {
        vec![offer]
    }

    fn add(&self, highest: &mut Vec<Offer>, offer: Offer) {
        match highest.first().map_or(0, |held| held.0) {
            price if offer.0 > price => *highest = vec![offer],
            price if offer.0 == price => highest.push(offer),
            _ => {}
        }
    }

    fn merge(&self, highest: &mut Vec<Offer>, later: Vec<Offer>) {
        later.into_iter().for_each(|offer| self.add(highest, offer));
    }

    fn result(&self, highest: &Vec<Offer>) -> Vec<Offer> {
        highest.clone()
    }
}

/// q8: person, name, start of the window in milliseconds.
pub fn new_sellers(events: DataStream<Event>) -> DataStream<(u64, String, i64)> {
    let (people, auctions) = people_and_auctions(events);
    let sellers = auctions.map(|auction| auction.seller).key_by(|seller| *seller);
    people
        .map(|person| (person.id, person.name))
        .key_by(|(id, _)| *id)
        .join(sellers)
        .window(TumblingEventTime::of(WINDOW_SECONDS.secs()))
        .co_group(|people, sales, window, out| {
            if !sales.is_empty() {
                let start = window.start().as_millis();
                people.into_iter().for_each(|(id, name)| out.collect((id, name, start)));
            }
        })
        .into_stream()
}
