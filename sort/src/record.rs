//! How one record lies in a page and in the block of a run: the same bytes in both.
//!
//! ```text
//! narrow  | u16 key length, bit 15: has timestamp | u16 payload length | [i64] | key | payload |
//! wide    | u16 0x7fff, bit 15 as above | u16 0 | u32 key | u32 payload | [i64] | key | payload |
//! ```
//!
//! All numbers little-endian. A timestamp of `i64::MIN` ([`NO_TIMESTAMP`]) takes no bytes. A record
//! is moved from page to block to page by one copy, never taken apart.

use crate::{SortError, SortedRecord};

/// The timestamp of a record that has none. Sorts before all others; costs no bytes.
pub const NO_TIMESTAMP: i64 = i64::MIN;

const HAS_TIMESTAMP: u16 = 1 << 15;
const WIDE: u16 = HAS_TIMESTAMP - 1;
const NARROW_PAYLOAD: usize = u16::MAX as usize;

/// Where the parts of a record lie, from the record's first byte on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) timestamp: i64,
    pub(crate) key_at: usize,
    pub(crate) payload_at: usize,
    /// One past the record's last byte; the record's length.
    pub(crate) end: usize,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

/// Reads the layout of the record at the front of `bytes`; `None` if it is cut.
#[inline]
pub(crate) fn parse(bytes: &[u8]) -> Option<Layout> {
    let head = u32_at(bytes, 0)?;
    let (mut at, mut key, mut payload) =
        (4, (head & u32::from(WIDE)) as usize, (head >> 16) as usize);
    if key == usize::from(WIDE) {
        (at, key, payload) = (12, u32_at(bytes, 4)? as usize, u32_at(bytes, 8)? as usize);
    }
    let mut timestamp = NO_TIMESTAMP;
    if head & u32::from(HAS_TIMESTAMP) != 0 {
        timestamp = i64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        at += 8;
    }
    let payload_at = at + key;
    let end = payload_at + payload;
    (end <= bytes.len()).then_some(Layout { timestamp, key_at: at, payload_at, end })
}

/// The length of the record at the front of `bytes`; 0 if it is cut.
#[inline]
pub(crate) fn length(bytes: &[u8]) -> usize {
    match u32_at(bytes, 0) {
        Some(head) if head & u32::from(WIDE) != u32::from(WIDE) => {
            let stamp = (head & u32::from(HAS_TIMESTAMP)) >> 12;
            let length = (4 + stamp + (head & u32::from(WIDE)) + (head >> 16)) as usize;
            if length <= bytes.len() { length } else { 0 }
        }
        _ => parse(bytes).map_or(0, |layout| layout.end),
    }
}

/// The record at the front of `bytes`; `None` if it is cut.
#[inline(always)]
pub(crate) fn split(bytes: &[u8]) -> Option<SortedRecord<'_>> {
    let (head, mut rest) = bytes.split_first_chunk()?;
    let head = u32::from_le_bytes(*head);
    let (mut key, mut payload) = ((head & u32::from(WIDE)) as usize, (head >> 16) as usize);
    if key == usize::from(WIDE) {
        (key, payload) = (u32_at(rest, 0)? as usize, u32_at(rest, 4)? as usize);
        rest = rest.get(8..)?;
    }
    let mut timestamp = NO_TIMESTAMP;
    if head & u32::from(HAS_TIMESTAMP) != 0 {
        let (bytes, behind) = rest.split_first_chunk()?;
        (timestamp, rest) = (i64::from_le_bytes(*bytes), behind);
    }
    let (key, rest) = rest.split_at_checked(key)?;
    Some(SortedRecord { key, timestamp, payload: rest.get(..payload)? })
}

/// The key of a record whose key has eight bytes, as numbers have, and that has no timestamp.
#[inline]
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
    let [low, high, _, _, key @ ..] = bytes.first_chunk::<12>()?;
    (u16::from_le_bytes([*low, *high]) == 8).then_some(u64::from_ne_bytes(*key))
}

/// Bytes of a record with this key and payload.
///
/// # Errors
///
/// [`SortError::TooLong`] if one of them has 4 GiB, or both together.
#[inline]
pub(crate) fn encoded_len(timestamp: i64, key: usize, payload: usize) -> Result<usize, SortError> {
    let head = if is_narrow(key, payload) { 4 } else { 12 };
    let total = head + usize::from(timestamp != NO_TIMESTAMP) * 8 + key + payload;
    // A record must fit into one block, whose length is a u32; a little is left for its header.
    if total < u32::MAX as usize - 64 {
        Ok(total)
    } else {
        Err(SortError::TooLong { bytes: (key + payload) as u64 })
    }
}

/// Whether these lengths fit the narrow form.
#[inline]
pub(crate) fn is_narrow(key: usize, payload: usize) -> bool {
    key < WIDE as usize && payload <= NARROW_PAYLOAD
}

/// Writes the front of a record: up to its key. Lengths must have passed [`encoded_len`].
#[inline]
pub(crate) fn append_head(out: &mut Vec<u8>, timestamp: i64, key: usize, payload: usize) {
    let flag = if timestamp == NO_TIMESTAMP { 0 } else { HAS_TIMESTAMP };
    if is_narrow(key, payload) {
        let head = (key as u32 | u32::from(flag)) | (payload as u32) << 16;
        out.extend_from_slice(&head.to_le_bytes());
    } else {
        out.extend_from_slice(&u32::from(WIDE | flag).to_le_bytes());
        out.extend_from_slice(&(key as u32).to_le_bytes());
        out.extend_from_slice(&(payload as u32).to_le_bytes());
    }
    if flag != 0 {
        out.extend_from_slice(&timestamp.to_le_bytes());
    }
}

/// Appends a record. Lengths must have passed [`encoded_len`].
#[inline]
pub(crate) fn append(out: &mut Vec<u8>, timestamp: i64, key: &[u8], payload: &[u8]) {
    append_head(out, timestamp, key.len(), payload.len());
    append_bytes(out, key);
    append_bytes(out, payload);
}

/// Appends bytes; eight, as numbers have, without a call.
#[inline]
fn append_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match <&[u8; 8]>::try_from(bytes) {
        Ok(word) => out.extend_from_slice(word),
        Err(_) => out.extend_from_slice(bytes),
    }
}

/// Writes a record into a place of its length. Lengths must have passed [`encoded_len`].
#[inline]
pub(crate) fn write(place: &mut [u8], timestamp: i64, key: &[u8], payload: &[u8]) {
    let flag = if timestamp == NO_TIMESTAMP { 0 } else { HAS_TIMESTAMP };
    let is_narrow = is_narrow(key.len(), payload.len());
    let lengths = (key.len() as u32 | u32::from(flag)) | (payload.len() as u32) << 16;
    let word = if is_narrow { lengths } else { u32::from(WIDE | flag) };
    let Some((head, mut rest)) = place.split_first_chunk_mut() else { return };
    *head = word.to_le_bytes();
    if !is_narrow {
        for length in [key.len(), payload.len()] {
            let Some((place, tail)) = rest.split_first_chunk_mut() else { return };
            *place = (length as u32).to_le_bytes();
            rest = tail;
        }
    }
    if flag != 0 {
        let Some((place, tail)) = rest.split_first_chunk_mut() else { return };
        *place = timestamp.to_le_bytes();
        rest = tail;
    }
    let Some((place, rest)) = rest.split_at_mut_checked(key.len()) else { return };
    place.copy_from_slice(key);
    if let Some(place) = rest.get_mut(..payload.len()) {
        place.copy_from_slice(payload);
    }
}

/// Sets the lengths of the record at `start`, whose head was written for the narrow form, once they
/// are known; they must fit it ([`is_narrow`]).
#[inline]
pub(crate) fn set_lengths(
    out: &mut [u8],
    start: usize,
    timestamp: i64,
    key: usize,
    payload: usize,
) {
    let flag = if timestamp == NO_TIMESTAMP { 0 } else { HAS_TIMESTAMP };
    let head = (key as u32 | u32::from(flag)) | (payload as u32) << 16;
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&head.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(timestamp: i64, key: usize, payload: usize) {
        let (key, payload) = (vec![7; key], vec![9; payload]);
        let mut direct = Vec::new();
        append(&mut direct, timestamp, &key, &payload);
        assert_eq!(direct.len(), encoded_len(timestamp, key.len(), payload.len()).unwrap());
        let mut placed = vec![5; direct.len()];
        write(&mut placed, timestamp, &key, &payload);
        assert_eq!(placed, direct);
        let layout = parse(&direct).unwrap();
        assert_eq!(layout.timestamp, timestamp);
        assert_eq!(&direct[layout.key_at..layout.payload_at], key);
        assert_eq!(&direct[layout.payload_at..layout.end], payload);
        assert_eq!(layout.end, direct.len());
        assert!(parse(&direct[..direct.len() - 1]).is_none(), "a cut record is noticed");
        assert!(split(&direct[..direct.len() - 1]).is_none(), "a cut record is noticed");
        assert_eq!((length(&direct), length(&direct[..direct.len() - 1])), (direct.len(), 0));
        assert_eq!(split(&direct), Some(SortedRecord { key: &key, timestamp, payload: &payload }));
        let is_number =
            timestamp == NO_TIMESTAMP && key.len() == 8 && payload.len() <= NARROW_PAYLOAD;
        assert_eq!(number(&direct), is_number.then_some(u64::from_ne_bytes([7; 8])));

        if !is_narrow(key.len(), payload.len()) {
            return;
        }
        let mut patched = vec![1, 2, 3];
        append_head(&mut patched, timestamp, 0, 0);
        patched.extend_from_slice(&key);
        patched.extend_from_slice(&payload);
        set_lengths(&mut patched, 3, timestamp, key.len(), payload.len());
        assert_eq!(patched[3..], direct);
    }

    #[test]
    fn a_record_reads_back_around_every_width() {
        for timestamp in [NO_TIMESTAMP, -1, 0, i64::MAX] {
            for key in [0, 1, 8, 32_766, 32_767, 32_768, 70_000] {
                for payload in [0, 1, 65_535, 65_536, 70_000] {
                    check(timestamp, key, payload);
                }
            }
        }
    }

    #[test]
    fn a_record_of_four_gib_is_refused() {
        assert!(matches!(encoded_len(0, u32::MAX as usize, 0), Err(SortError::TooLong { .. })));
    }
}
