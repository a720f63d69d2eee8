//! The data of all jobs, byte for byte the same in every program that runs them.
//!
//! Unsigned 64-bit arithmetic that wraps. `mix` is splitmix64: `mix(i)` is its first output for the
//! seed `i`. Checksums are wrapping sums over all outputs, so the order of outputs is of no matter.

/// The golden-ratio increment.
pub const G: u64 = 0x9E37_79B9_7F4A_7C15;

/// Where the second input of a join begins.
pub const RIGHT: u64 = 1 << 40;

/// A number as good as random that belongs to `x`.
#[inline(always)]
#[must_use]
pub fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(G);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The key of record `i`: uniform in `[0, keys)`, `keys` at most 2^32.
#[inline(always)]
#[must_use]
pub fn key(i: u64, keys: u64) -> u64 {
    ((mix(i) >> 32) * keys) >> 32
}

/// As [`key`], skewed: half of the records have a sixteenth of the keys.
#[inline(always)]
#[must_use]
pub fn skewed_key(i: u64, keys: u64) -> u64 {
    let place = mix(i) >> 32;
    let squared = (place * place) >> 32;
    (((squared * squared) >> 32) * keys) >> 32
}

/// The value of a record of the running sum: a function of its key, so that running sums do not depend
/// on the order of records.
#[inline(always)]
#[must_use]
pub fn val(key: u64) -> u64 {
    (key.wrapping_mul(G) >> 48) + 1
}

/// A value of 16 bits.
#[inline(always)]
#[must_use]
pub fn val16(h: u64) -> u64 {
    h & 0xffff
}

/// What one output adds to a checksum.
#[inline(always)]
#[must_use]
pub fn check(key: u64, state: u64) -> u64 {
    mix(key.wrapping_add(state.wrapping_mul(G)))
}

/// What one group of a co-group adds up to: counts and sums of either side.
#[inline(always)]
#[must_use]
pub fn co_group((n1, sum1): (u64, u64), (n2, sum2): (u64, u64)) -> u64 {
    let sums = sum1.wrapping_mul(31).wrapping_add(sum2.wrapping_mul(37));
    n1.wrapping_mul(n2).wrapping_add(sums)
}

/// FNV-1a, 64 bits.
#[must_use]
pub fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The rank of word `t` of the text: a stepwise Zipf law with exponent 1 over 2^17 - 1 words.
#[must_use]
pub fn rank(t: u64) -> u64 {
    let h = mix(t + 2 * RIGHT);
    let b = ((h >> 32) * 17) >> 32;
    (1 << b) + (h & ((1 << b) - 1))
}

/// Writes the word of a rank: four base-26 letters, lowest first, then up to four letters more.
pub fn word(rank: u64, into: &mut Vec<u8>) {
    into.clear();
    let mut rest = rank;
    for _ in 0..4 {
        into.push(b'a' + (rest % 26) as u8);
        rest /= 26;
    }
    let h = mix(rank);
    into.extend((0..h % 5).map(|j| b'a' + ((h >> (8 + 5 * j)) & 15) as u8));
}

/// Record `i` of the external sort: ten key characters, a space, `i` as 20 digits, 68 letters, newline.
#[must_use]
pub fn sort_record(i: u64) -> [u8; 100] {
    let mut record = [b'A' + (i % 26) as u8; 100];
    let hashes = [mix(2 * i + 3 * RIGHT), mix(2 * i + 1 + 3 * RIGHT)];
    for (j, byte) in record.iter_mut().take(10).enumerate() {
        let twelve = (hashes[j / 5] >> (12 * (j % 5))) & 4_095;
        *byte = b' ' + ((twelve * 95) >> 12) as u8;
    }
    record[10] = b' ';
    let mut rest = i;
    for byte in record[11..31].iter_mut().rev() {
        *byte = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    record[99] = b'\n';
    record
}

/// Record `i` of the exchange: a number of 8 bytes, then 92 times the low byte of `i`.
#[inline(always)]
#[must_use]
pub fn exchange_record(i: u64) -> [u8; 100] {
    let mut record = [i as u8; 100];
    record[..8].copy_from_slice(&mix(i).to_le_bytes());
    record
}

/// The number in front of an exchange record.
#[inline(always)]
#[must_use]
pub fn exchange_key(record: &[u8; 100]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *record;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// What one exchange record adds to a checksum.
#[inline(always)]
#[must_use]
pub fn exchange_check(record: &[u8; 100]) -> u64 {
    exchange_key(record) ^ i64::from(record[99].cast_signed()).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_output_of_splitmix_is_the_published_one() {
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn keys_stay_below_their_number_and_reach_its_ends() {
        let keys: Vec<u64> = (0..10_000).map(|i| key(i, 100)).collect();
        assert_eq!(keys.iter().min(), Some(&0));
        assert_eq!(keys.iter().max(), Some(&99));
        assert!((0..10_000).all(|i| skewed_key(i, 100) < 100));
        let low = (0..10_000).filter(|i| skewed_key(*i, 160) < 10).count();
        assert!((4_700..5_300).contains(&low), "{low} of 10000 in a sixteenth");
    }

    #[test]
    fn a_sort_record_is_a_line_of_a_hundred_bytes_with_its_number() {
        let record = sort_record(27);
        assert_eq!(&record[10..33], b" 00000000000000000027BB");
        assert_eq!(record[99], b'\n');
        assert!(record[..10].iter().all(|byte| (b' '..=b'~').contains(byte)));
    }

    #[test]
    fn a_word_begins_with_its_rank_lowest_letter_first() {
        let mut text = Vec::new();
        word(27, &mut text);
        assert_eq!(&text[..4], b"bbaa");
        assert!((0..1_000).all(|t| (1..1 << 17).contains(&rank(t))));
    }

    #[test]
    fn an_exchange_record_checks_as_its_number_and_its_signed_last_byte() {
        let record = exchange_record(200);
        assert_eq!(exchange_key(&record), mix(200));
        assert_eq!(exchange_check(&record), mix(200) ^ u64::MAX.wrapping_sub(55));
    }
}
