//! [`Front`]: from the number of a key to its bucket, in front of a table of few keys.
//!
//! Where a key is a number, a table need not see its bytes: neither written, hashed nor compared are they, but
//! for the first record of a key. Open addressing, twice as many places as the table has buckets, nothing ever
//! removed; emptied when the table's buckets change.
//!
//! Filled and read by [`CombiningSorter::update_numbered`](crate::CombiningSorter::update_numbered).

use element::Record;

use crate::account::Account;
use crate::table::Table;

/// Buckets of the largest table that has a front: beyond, places lie as far away as the table's own slots.
const MOST_BUCKETS: usize = 1 << 14;

/// Places looked at for a number: numbers that were chosen to meet are found by their bytes.
const PROBES: usize = 8;

/// No bucket of any table that has a front.
const EMPTY: u32 = u32::MAX;

/// Where the slot of a key is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    number: u64,
    pub(crate) bucket: u32,
    pub(crate) key_len: u32,
}

impl Place {
    /// That of a number which is not there.
    pub(crate) const NONE: Self = Self { number: 0, bucket: EMPTY, key_len: 0 };
}

/// Buckets by number. What it takes of memory is in use in the account that is passed in.
#[derive(Debug, Default)]
pub(crate) struct Front {
    places: Vec<Place>,
    shift: u32,
    /// [`Table::moves`] for which buckets are of meaning.
    moves: u64,
}

impl Front {
    /// Forgets what is not so any more, and takes the size that the table wants.
    #[inline]
    pub(crate) fn follow<A: Record>(&mut self, table: &Table<A>, account: &mut Account) {
        if self.moves != table.moves() {
            self.begin(table, account);
        }
    }

    #[cold]
    fn begin<A: Record>(&mut self, table: &Table<A>, account: &mut Account) {
        self.moves = table.moves();
        let wanted = match table.buckets() {
            buckets @ 1..=MOST_BUCKETS => 2 * buckets.next_power_of_two(),
            _ => 0,
        };
        if wanted != self.places.len() {
            self.release(account);
            if !account.take((wanted * size_of::<Place>()) as u64) {
                return;
            }
            self.places = Vec::with_capacity(wanted);
            self.shift = u64::BITS - wanted.trailing_zeros();
        }
        self.places.clear();
        self.places.resize(wanted, Place::NONE);
    }

    /// Gives the memory back to the account; false if there is none.
    pub(crate) fn release(&mut self, account: &mut Account) -> bool {
        let places = std::mem::take(&mut self.places).capacity();
        account.give((places * size_of::<Place>()) as u64);
        places > 0
    }

    /// The place of a number; one without a bucket of the table where it has none.
    #[inline(always)]
    pub(crate) fn find(&self, number: u64) -> Place {
        let at = self.first(number);
        match self.places.get(at) {
            Some(place) if place.number == number => *place,
            Some(place) if place.bucket != EMPTY => self.find_after(at, number),
            _ => Place::NONE,
        }
    }

    /// The place of a number that is not in its first one.
    fn find_after(&self, first: usize, number: u64) -> Place {
        let mut at = first;
        for _ in 1..PROBES {
            at = self.after(at);
            match self.places.get(at) {
                Some(place) if place.number == number || place.bucket == EMPTY => return *place,
                Some(_) => {}
                None => break,
            }
        }
        Place::NONE
    }

    /// Adds a number that is not there, unless all of its places are taken.
    pub(crate) fn insert(&mut self, number: u64, bucket: usize, key_len: usize) {
        let (Ok(bucket), Ok(key_len)) = (u32::try_from(bucket), u32::try_from(key_len)) else {
            return;
        };
        let mut at = self.first(number);
        for _ in 0..PROBES {
            let next = self.after(at);
            match self.places.get_mut(at) {
                Some(place) if place.bucket == EMPTY => {
                    *place = Place { number, bucket, key_len };
                    return;
                }
                Some(_) => at = next,
                None => return,
            }
        }
    }

    #[inline]
    fn first(&self, number: u64) -> usize {
        // The golden ratio: numbers that follow each other come to lie far apart.
        (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (self.shift & 63)) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 < self.places.len() { at + 1 } else { 0 }
    }
}
