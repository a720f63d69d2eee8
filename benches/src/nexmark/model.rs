//! What the auction house tells: [`Event`].

use slackwater::{Record, Timestamp};

/// Somebody joined.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// Unique.
    pub id: u64,
    /// First and last name.
    pub name: String,
    /// Electronic address.
    pub email_address: String,
    /// Four groups of four digits.
    pub credit_card: String,
    /// City.
    pub city: String,
    /// Two letters.
    pub state: String,
    /// Milliseconds of event time.
    pub at: i64,
    /// Ballast.
    pub extra: String,
}

/// Something is for sale.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub struct Auction {
    /// Unique.
    pub id: u64,
    /// What.
    pub item_name: String,
    /// More of it.
    pub description: String,
    /// Cents.
    pub initial_bid: u64,
    /// Cents.
    pub reserve: u64,
    /// Milliseconds of event time.
    pub at: i64,
    /// The last millisecond at which bids count.
    pub expires: i64,
    /// The person who sells.
    pub seller: u64,
    /// One of five.
    pub category: u64,
    /// Ballast.
    pub extra: String,
}

/// Somebody offers a price.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub struct Bid {
    /// On which auction; it may not have begun.
    pub auction: u64,
    /// The person who bids.
    pub bidder: u64,
    /// Cents.
    pub price: u64,
    /// By which way.
    pub channel: String,
    /// From which page.
    pub url: String,
    /// Milliseconds of event time.
    pub at: i64,
    /// Ballast.
    pub extra: String,
}

/// One event.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody joined.
    Person(Person),
    /// Something is for sale.
    Auction(Auction),
    /// Somebody offers a price.
    Bid(Bid),
}

impl Event {
    /// Its event time.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::from_millis(match self {
            Self::Person(person) => person.at,
            Self::Auction(auction) => auction.at,
            Self::Bid(bid) => bid.at,
        })
    }
}

impl From<nexmark::event::Event> for Event {
    fn from(event: nexmark::event::Event) -> Self {
        use nexmark::event::Event as Made;
        match event {
            Made::Person(person) => Self::Person(Person {
                id: person.id as u64,
                name: person.name,
                email_address: person.email_address,
                credit_card: person.credit_card,
                city: person.city,
                state: person.state,
                at: person.date_time as i64,
                extra: person.extra,
            }),
            Made::Auction(auction) => Self::Auction(Auction {
                id: auction.id as u64,
                item_name: auction.item_name,
                description: auction.description,
                initial_bid: auction.initial_bid as u64,
                reserve: auction.reserve as u64,
                at: auction.date_time as i64,
                expires: auction.expires as i64,
                seller: auction.seller as u64,
                category: auction.category as u64,
                extra: auction.extra,
            }),
            Made::Bid(bid) => Self::Bid(Bid {
                auction: bid.auction as u64,
                bidder: bid.bidder as u64,
                price: bid.price as u64,
                channel: bid.channel,
                url: bid.url,
                at: bid.date_time as i64,
                extra: bid.extra,
            }),
        }
    }
}
