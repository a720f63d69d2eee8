//! q4: the average of the winning prices of each category, over all auctions that have ended.
//!
//! A bid counts if it lies between the opening and the expiry of its auction, both included. It may come
//! before its auction does: it is held until the watermark has passed it, for an auction that comes
//! later opens later. One row a category comes at the end of input, not one for each change.

use slackwater::prelude::*;
use slackwater::{EndOfStreamWindows, ListState};

use super::{Auction, Bid, Event};

/// Category, sum of winning prices, number of auctions with a winner.
pub(super) fn average_prices(events: DataStream<Event>) -> DataStream<(u64, u64, u64)> {
    events
        .filter(|event| !matches!(event, Event::Person(_)))
        .key_by(|event| match event {
            Event::Auction(auction) => auction.id,
            Event::Bid(bid) => bid.auction,
            Event::Person(_) => 0,
        })
        .process(Winning::new)
        .key_by(|(category, _)| *category)
        .window(EndOfStreamWindows)
        .aggregate_with(Average, |(sum, count), _, out| {
            let category = *out.key();
            out.collect((category, sum, count));
        })
        .into_stream()
}

/// Sum and number of prices.
struct Average;

impl Aggregator<(u64, u64)> for Average {
    type Accumulator = (u64, u64);
    type Output = (u64, u64);

    fn first(&self, (_, price): (u64, u64)) -> (u64, u64) {
        (price, 1)
    }

    fn add(&self, sum: &mut (u64, u64), (_, price): (u64, u64)) {
        *sum = (sum.0 + price, sum.1 + 1);
    }

    fn merge(&self, sum: &mut (u64, u64), later: (u64, u64)) {
        *sum = (sum.0 + later.0, sum.1 + later.1);
    }

    fn result(&self, sum: &(u64, u64)) -> (u64, u64) {
        *sum
    }
}

/// An auction that is open.
#[derive(Record, Clone, Debug)]
struct Open {
    category: u64,
    at: i64,
    expires: i64,
}

impl Open {
    fn counts(&self, at: i64) -> bool {
        (self.at..=self.expires).contains(&at)
    }
}

/// Emits category and price when an auction with a bid ends.
struct Winning {
    open: ValueState<Open>,
    best: ValueState<u64>,
    early: ListState<(i64, u64)>,
}

type Context<'a> = KeyedContext<'a, u64, (u64, u64)>;

impl Winning {
    fn new() -> Self {
        let (open, best) = (ValueState::new("open"), ValueState::new("best"));
        Self { open, best, early: ListState::new("early bids") }
    }

    fn offer(&self, price: u64, context: &mut Context<'_>) -> Result<()> {
        Ok(self.best.update(context, |best| *best = Some(best.unwrap_or(0).max(price)))?)
    }

    fn auction(&self, auction: Auction, context: &mut Context<'_>) -> Result<()> {
        let Auction { category, at, expires, .. } = auction;
        let open = Open { category, at, expires };
        for (at, price) in self.early.get(context)? {
            if open.counts(at) {
                self.offer(price, context)?;
            }
        }
        self.early.clear(context)?;
        context.timers().register_event(Timestamp::from_millis(expires));
        Ok(self.open.set(context, open)?)
    }

    fn bid(&self, bid: &Bid, context: &mut Context<'_>) -> Result<()> {
        match self.open.get(context)? {
            Some(open) if open.counts(bid.at) => self.offer(bid.price, context),
            Some(_) => Ok(()),
            None => {
                context.timers().register_event(Timestamp::from_millis(bid.at));
                Ok(self.early.add(context, (bid.at, bid.price))?)
            }
        }
    }
}

impl KeyedProcessFunction<u64, Event, (u64, u64)> for Winning {
    fn process(&mut self, event: Event, context: &mut Context<'_>) -> Result<()> {
        match event {
            Event::Auction(auction) => self.auction(auction, context),
            Event::Bid(bid) => self.bid(&bid, context),
            Event::Person(_) => Ok(()),
        }
    }

    fn on_timer(&mut self, at: Timestamp, context: &mut Context<'_>) -> Result<()> {
        match self.open.get(context)? {
            Some(open) if open.expires == at.as_millis() => {
                if let Some(price) = self.best.get(context)? {
                    context.collect((open.category, price));
                }
                self.best.clear(context)?;
                Ok(self.open.clear(context)?)
            }
            Some(_) => Ok(()),
            None => Ok(self.early.retain(context, |(bid, _)| *bid > at.as_millis())?),
        }
    }
}
