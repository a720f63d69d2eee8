//! Sorts 16-byte entries by their prefix, in place.
//!
//! A most-significant-digit radix sort: find the highest bits in which the entries differ, count,
//! swap every entry into its part, repeat in each part; small parts go to the standard library. It is
//! not stable: `at` restores the order of arrival where that matters (see [`crate::sorting`]). In
//! place, for a second buffer would halve the records that fit into the budget. Source: McIlroy,
//! Bostic, McIlroy, "Engineering radix sort", 1993.

/// A record, seen from the sort: the bytes that decide, and where it lies.
///
/// `at` grows with the order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) prefix: u64,
    pub(crate) at: u64,
}

/// Parts up to this length are left to the standard library.
const SMALL: usize = 96;

/// Bits of one step at most: so many places are written to in turns.
const MOST_BITS: u32 = 8;

/// The same for entries that are in the cache as a whole, up to [`CACHED`] of them.
const MOST_BITS_CACHED: u32 = 11;

const CACHED: usize = 1 << 16;

/// Sorts by prefix; entries of equal prefix end in any order.
pub(crate) fn sort_by_prefix(entries: &mut [Entry]) {
    if entries.len() <= SMALL {
        sort_small(entries);
        return;
    }
    let (least, greatest) = entries
        .iter()
        .fold((u64::MAX, 0), |(low, high), entry| (low.min(entry.prefix), high.max(entry.prefix)));
    if least == greatest {
        return;
    }
    // All prefixes agree above this bit, for the least and the greatest do.
    let top = 64 - (least ^ greatest).leading_zeros();
    let bits = bits_for(entries.len()).min(top);
    let ends = split(entries, top - bits, bits);
    let mut rest = entries;
    let mut start = 0;
    for end in ends {
        let (part, tail) = rest.split_at_mut(end - start);
        if part.len() > 1 {
            sort_by_prefix(part);
        }
        rest = tail;
        start = end;
    }
}

/// Sorts by prefix, and by arrival where prefixes are equal, entries of which the first bits of the
/// prefix are the same.
///
/// Two stable passes, least significant digit first, order nearly all entries without a branch that
/// could be guessed wrong; insertion does the rest. How often each digit is there is counted as the
/// entries are made.
#[derive(Debug)]
pub(crate) struct TwoDigits<const VALUES: usize> {
    /// Of the digit behind the known bits, and of the one behind that.
    heads: [[u32; VALUES]; 2],
    known: u32,
}

/// Digits of so many values for parts of up to [`FEW`] entries.
pub(crate) const OF_FEW: usize = 1 << 6;

/// And for longer ones.
pub(crate) const OF_MANY: usize = 1 << MOST_BITS_CACHED;

pub(crate) const FEW: usize = 1 << 11;

impl<const VALUES: usize> TwoDigits<VALUES> {
    /// For entries whose prefixes have the same first `known` bits.
    pub(crate) fn new(known: u32) -> Self {
        Self { heads: [[0; VALUES]; 2], known }
    }

    /// Sees the prefix of an entry.
    #[inline]
    pub(crate) fn count(&mut self, prefix: u64) {
        let [first, second] = &mut self.heads;
        first[digit::<VALUES>(prefix << self.known, 1)] += 1;
        second[digit::<VALUES>(prefix << self.known, 2)] += 1;
    }

    /// Sorts. In: the entries in the order of arrival, in `aside`, of whose prefixes `seen` is what was
    /// counted; the result is in `entries`.
    pub(crate) fn sort(
        mut self,
        aside: &mut Vec<Entry>,
        entries: &mut Vec<Entry>,
        seen: impl Fn(u64) -> u64,
    ) {
        let (known, [first, second]) = (self.known, &mut self.heads);
        scatter(aside, entries, second, |prefix| digit::<VALUES>(seen(prefix) << known, 2));
        scatter(entries, aside, first, |prefix| digit::<VALUES>(seen(prefix) << known, 1));
        std::mem::swap(aside, entries);
        insert_all(entries);
    }
}

/// The first digit of so many values, or the second.
#[inline]
fn digit<const VALUES: usize>(prefix: u64, which: u32) -> usize {
    (prefix >> (64 - which * VALUES.ilog2())) as usize & (VALUES - 1)
}

/// Puts entries into the order of a digit, of which `heads` says how often each value is there; stable.
fn scatter<const VALUES: usize>(
    from: &[Entry],
    into: &mut Vec<Entry>,
    heads: &mut [u32; VALUES],
    digit: impl Fn(u64) -> usize,
) {
    into.resize(from.len(), Entry::default());
    let mut sum = 0;
    for head in heads.iter_mut() {
        sum += std::mem::replace(head, sum);
    }
    let into = into.as_mut_slice();
    for entry in from {
        let head = &mut heads[digit(entry.prefix)];
        into[*head as usize] = *entry;
        *head += 1;
    }
}

/// Insertion into what is nearly in order. Where digits of few bits have left too much to do, the
/// standard library goes on.
fn insert_all(entries: &mut [Entry]) {
    let mut moves = 4 * entries.len();
    for at in 1..entries.len() {
        if entries[at - 1].prefix <= entries[at].prefix {
            continue;
        }
        moves = moves.saturating_sub(insert(entries, at));
        if moves == 0 {
            entries.sort_unstable_by_key(|entry| (entry.prefix, entry.at));
            return;
        }
    }
}

fn sort_small(entries: &mut [Entry]) {
    if entries.len() > 20 {
        entries.sort_unstable_by_key(|entry| entry.prefix);
        return;
    }
    for at in 1..entries.len() {
        insert(entries, at);
    }
}

/// Puts an entry to its place among those before it, which are in order; gives how many it passes.
#[inline]
fn insert(entries: &mut [Entry], at: usize) -> usize {
    let entry = entries[at];
    let mut hole = at;
    while hole > 0 && entries[hole - 1].prefix > entry.prefix {
        entries[hole] = entries[hole - 1];
        hole -= 1;
    }
    entries[hole] = entry;
    at - hole
}

/// Bits of one step, so that a uniform input leaves parts of some ten entries.
fn bits_for(entries: usize) -> u32 {
    let most = if entries <= CACHED { MOST_BITS_CACHED } else { MOST_BITS };
    entries.ilog2().saturating_sub(3).clamp(4, most)
}

/// Swaps every entry into the part of its digit; gives the ends of the parts.
fn split(entries: &mut [Entry], shift: u32, bits: u32) -> Vec<usize> {
    let mask = (1_usize << bits) - 1;
    let digit = |entry: Entry| (entry.prefix >> shift) as usize & mask;
    let mut heads = vec![0_usize; mask + 1];
    for entry in entries.iter() {
        heads[digit(*entry)] += 1;
    }
    let mut ends = vec![0; mask + 1];
    let mut sum = 0;
    for (head, end) in heads.iter_mut().zip(&mut ends) {
        let count = *head;
        *head = sum;
        sum += count;
        *end = sum;
    }
    // Every round sends each entry that is not yet in its part there, so the work halves at least;
    // swaps of one round do not wait for each other, as those along one cycle would.
    let mut open: Vec<usize> = (0..=mask).filter(|part| heads[*part] < ends[*part]).collect();
    while open.len() > 1 {
        for part in &open {
            for at in heads[*part]..ends[*part] {
                let target = digit(entries[at]);
                entries.swap(at, heads[target]);
                heads[target] += 1;
            }
        }
        open.retain(|part| heads[*part] < ends[*part]);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(x: u64) -> u64 {
        let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn by_digits<const VALUES: usize>(entries: &[Entry], known: u32) -> Vec<Entry> {
        let mut digits = TwoDigits::<VALUES>::new(known);
        entries.iter().for_each(|entry| digits.count(entry.prefix));
        let (mut aside, mut sorted) = (entries.to_vec(), Vec::new());
        digits.sort(&mut aside, &mut sorted, |prefix| prefix);
        sorted
    }

    #[track_caller]
    fn check(prefix: impl Fn(u64) -> u64) {
        for count in [0, 1, 2, 20, 21, SMALL as u64, SMALL as u64 + 1, 1_000, 70_000] {
            let mut entries: Vec<Entry> =
                (0..count).map(|at| Entry { prefix: prefix(at), at }).collect();
            let mut expected = entries.clone();
            expected.sort_unstable_by_key(|entry| (entry.prefix, entry.at));
            sort_by_prefix(&mut entries);
            assert!(entries.is_sorted_by_key(|entry| entry.prefix), "{count}");
            entries.sort_unstable_by_key(|entry| (entry.prefix, entry.at));
            assert_eq!(entries, expected, "an entry is lost or doubled");

            entries.sort_unstable_by_key(|entry| entry.at);
            for (known, top) in [(0, 0), (9, 0x155 << 55)] {
                let within =
                    |entry: &Entry| Entry { prefix: top | entry.prefix >> known, ..*entry };
                let from: Vec<Entry> = entries.iter().map(within).collect();
                let mut expected = from.clone();
                expected.sort_by_key(|entry| entry.prefix);
                assert_eq!(by_digits::<OF_FEW>(&from, known), expected);
                assert_eq!(by_digits::<OF_MANY>(&from, known), expected);
            }
        }
    }

    #[test]
    fn entries_of_every_shape_come_in_order() {
        check(mix);
        check(|at| at);
        check(|at| !at);
        check(|_| 7);
        check(|at| mix(at) % 3);
        check(|at| mix(at) << 56);
        check(|at| if at % 10 == 0 { mix(at) } else { 1 << 63 });
        check(|at| 0xabcd << 48 | mix(at) >> 20);
    }
}
