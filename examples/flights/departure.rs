//! A departure, its route, and how one is made from a number.

use std::fmt;

use serde::{Deserialize, Deserializer};
use slackwater::{Key, Record};

/// A carrier's or airport's code: up to four letters, held without an allocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Record)]
pub(crate) struct Code([u8; 4]);

impl Code {
    /// A code of letters `A` to `Z` for a number: the same for the same number.
    fn of_number(mut number: u64, letters: usize) -> Self {
        let mut code = [0; 4];
        for letter in code.iter_mut().take(letters) {
            *letter = b'A' + u8::try_from(number % 26).unwrap_or(0);
            number /= 26;
        }
        Self(code)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.0.iter().take_while(|b| **b != 0).map(|b| char::from(*b)).collect();
        f.pad(&text)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut code = [0; 4];
        match code.get_mut(..text.len()) {
            Some(letters) if text.is_ascii() && !text.is_empty() => {
                letters.copy_from_slice(text.as_bytes());
                Ok(Self(code))
            }
            _ => Err(serde::de::Error::custom(format!("`{text}` is no code of 1 to 4 letters"))),
        }
    }
}

/// Who flies where.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Record)]
pub(crate) struct Route {
    /// The carrier.
    pub(crate) carrier: Code,
    /// The airport left.
    pub(crate) origin: Code,
    /// The airport flown to.
    pub(crate) dest: Code,
}

/// One departure.
#[derive(Clone, Copy, Deserialize, Record)]
pub(crate) struct Departure {
    carrier: Code,
    origin: Code,
    dest: Code,
    /// Minutes behind schedule; none for a flight that did not leave.
    pub(crate) dep_delay: Option<i32>,
}

impl Departure {
    /// Who flew where.
    pub(crate) fn route(&self) -> Route {
        Route { carrier: self.carrier, origin: self.origin, dest: self.dest }
    }

    /// Departure number `i` of `keys` routes: a few routes have most flights, most delays are small,
    /// and one flight in fifty does not leave.
    pub(crate) fn generated(i: u64, keys: u64) -> Self {
        let random = mix(i);
        // The square of a uniform number: the lower half of the routes has 70 % of the flights.
        let uniform = random >> 32;
        let skewed = (uniform * uniform) >> 32;
        let key = (skewed * keys) >> 32;
        let delay = mix(random) % 1_000;
        let dep_delay = match delay {
            0..20 => None,
            20..900 => Some(i32::try_from(delay % 40).unwrap_or(0) - 10),
            _ => Some(i32::try_from(delay % 400).unwrap_or(0)),
        };
        Self {
            carrier: Code::of_number(key % 16, 2),
            origin: Code::of_number(key / 16 % 400, 3),
            dest: Code::of_number(key / 6_400, 4),
            dep_delay,
        }
    }
}

/// Scrambles a number (splitmix64).
fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What is kept per route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Record)]
pub(crate) struct Delays {
    /// Departures, those that did not leave included.
    pub(crate) flights: u64,
    /// Departures with a delay.
    pub(crate) with_delay: u64,
    /// All delays, in minutes.
    pub(crate) sum: i64,
    /// The worst delay, in minutes.
    pub(crate) worst: Option<i32>,
}

impl Delays {
    /// The mean delay of the departures that have one.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.with_delay > 0).then(|| self.sum as f64 / self.with_delay as f64)
    }

    fn add(&mut self, other: &Self) {
        self.flights += other.flights;
        self.with_delay += other.with_delay;
        self.sum += other.sum;
        self.worst = self.worst.max(other.worst);
    }
}

impl From<Departure> for Delays {
    fn from(departure: Departure) -> Self {
        let delay = departure.dep_delay;
        Self {
            flights: 1,
            with_delay: u64::from(delay.is_some()),
            sum: delay.map_or(0, i64::from),
            worst: delay,
        }
    }
}

/// Flights, mean and worst delay: an associative aggregate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelaysOfRoute;

impl slackwater::Aggregator<Departure> for DelaysOfRoute {
    type Accumulator = Delays;
    type Output = Delays;

    fn first(&self, departure: Departure) -> Delays {
        departure.into()
    }

    fn add(&self, delays: &mut Delays, departure: Departure) {
        delays.add(&departure.into());
    }

    fn merge(&self, delays: &mut Delays, later: Delays) {
        delays.add(&later);
    }

    fn result(&self, delays: &Delays) -> Delays {
        *delays
    }
}
