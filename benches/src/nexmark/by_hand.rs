//! The answers by plain loops over all events in memory.

use std::collections::BTreeMap;

use super::queries::{CATEGORY, EACH, SLIDE_SECONDS, STATES, WINDOW_SECONDS, euros};
use super::{Auction, Bid, Event, Person, Query};

const WINDOW: i64 = WINDOW_SECONDS as i64 * 1_000;
const SLIDE: i64 = SLIDE_SECONDS as i64 * 1_000;

/// Checksum and number of the rows of a query.
#[must_use]
pub fn answer(query: Query, events: &[Event]) -> (u64, u64) {
    match query {
        Query::Q0 => super::answer(events),
        Query::Q1 => {
            let row = |bid: &Bid| (bid.auction, bid.bidder, euros(bid.price), bid.at);
            super::answer(&bids(events).map(row).collect::<Vec<_>>())
        }
        Query::Q2 => {
            let some = bids(events).filter(|bid| bid.auction % EACH == 0);
            super::answer(&some.map(|bid| (bid.auction, bid.price)).collect::<Vec<_>>())
        }
        Query::Q3 => super::answer(&local_sellers(events)),
        Query::Q4 => super::answer(&average_prices(events)),
        Query::Q5 => super::answer(&hot_auctions(events)),
        Query::Q7 => super::answer(&highest_bids(events)),
        Query::Q8 => super::answer(&new_sellers(events)),
    }
}

fn bids(events: &[Event]) -> impl Iterator<Item = &Bid> {
    events.iter().filter_map(|event| match event {
        Event::Bid(bid) => Some(bid),
        _ => None,
    })
}

fn people(events: &[Event]) -> BTreeMap<u64, &Person> {
    let people = events.iter().filter_map(|event| match event {
        Event::Person(person) => Some((person.id, person)),
        _ => None,
    });
    people.collect()
}

fn auctions(events: &[Event]) -> BTreeMap<u64, &Auction> {
    let auctions = events.iter().filter_map(|event| match event {
        Event::Auction(auction) => Some((auction.id, auction)),
        _ => None,
    });
    auctions.collect()
}

fn local_sellers(events: &[Event]) -> Vec<(String, String, String, u64)> {
    let people = people(events);
    let mut rows = Vec::new();
    for auction in auctions(events).values().filter(|auction| auction.category == CATEGORY) {
        let Some(person) = people.get(&auction.seller) else { continue };
        if STATES.contains(&person.state.as_str()) {
            let Person { name, city, state, .. } = *person;
            rows.push((name.clone(), city.clone(), state.clone(), auction.id));
        }
    }
    rows
}

fn average_prices(events: &[Event]) -> Vec<(u64, u64, u64)> {
    let auctions = auctions(events);
    let mut best = BTreeMap::<u64, u64>::new();
    for bid in bids(events) {
        let Some(auction) = auctions.get(&bid.auction) else { continue };
        if (auction.at..=auction.expires).contains(&bid.at) {
            let price = best.entry(auction.id).or_insert(0);
            *price = bid.price.max(*price);
        }
    }
    let mut sums = BTreeMap::<u64, (u64, u64)>::new();
    for (auction, price) in best {
        let (sum, count) = sums.entry(auctions[&auction].category).or_default();
        *sum += price;
        *count += 1;
    }
    sums.into_iter().map(|(category, (sum, count))| (category, sum, count)).collect()
}

fn hot_auctions(events: &[Event]) -> Vec<(i64, u64, u64)> {
    let mut windows = BTreeMap::<i64, BTreeMap<u64, u64>>::new();
    for bid in bids(events) {
        let last = bid.at - bid.at.rem_euclid(SLIDE);
        for back in 0..WINDOW / SLIDE {
            let window = windows.entry(last - back * SLIDE).or_default();
            *window.entry(bid.auction).or_insert(0) += 1;
        }
    }
    let mut rows = Vec::new();
    for (start, counts) in windows {
        let most = counts.values().max().copied();
        let hot = counts.into_iter().filter(|(_, bids)| Some(*bids) == most);
        rows.extend(hot.map(|(auction, bids)| (start, auction, bids)));
    }
    rows
}

fn highest_bids(events: &[Event]) -> Vec<(i64, u64, u64, u64)> {
    let mut windows = BTreeMap::<i64, Vec<&Bid>>::new();
    for bid in bids(events) {
        let highest = windows.entry(bid.at - bid.at.rem_euclid(WINDOW)).or_default();
        let price = highest.first().map_or(0, |held| held.price);
        if bid.price > price {
            highest.clear();
        }
        if bid.price >= price {
            highest.push(bid);
        }
    }
    let row = |start, bid: &Bid| (start, bid.price, bid.auction, bid.bidder);
    let rows = windows.into_iter();
    rows.flat_map(|(start, bids)| bids.into_iter().map(move |bid| row(start, bid))).collect()
}

fn new_sellers(events: &[Event]) -> Vec<(u64, String, i64)> {
    let start = |at: i64| at - at.rem_euclid(WINDOW);
    let auctions = auctions(events);
    let sellers: std::collections::BTreeSet<(u64, i64)> =
        auctions.values().map(|auction| (auction.seller, start(auction.at))).collect();
    let people = people(events);
    let rows = people.values().filter(|person| sellers.contains(&(person.id, start(person.at))));
    rows.map(|person| (person.id, person.name.clone(), start(person.at))).collect()
}
