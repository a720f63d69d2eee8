//! [`Page`]: memory that records are put into, one behind the other.
//!
//! All its bytes are there from the start, so that a short record can be copied as one block, whatever
//! its length, and the bytes behind it along with it.

/// The least that a system maps.
const SYSTEM_PAGE: usize = 4 << 10;

/// Bytes that are copied without a call.
pub(crate) const BLOCK: usize = 32;

/// A page of records.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Of the page's whole length; what lies behind `filled` is of no meaning.
    bytes: Vec<u8>,
    filled: usize,
}

impl Page {
    /// A page of memory that the system has really given: zeroed memory that is read before it is
    /// written is mapped twice, and the second time all processors have to hear of it.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut bytes = vec![0; bytes];
        bytes.iter_mut().step_by(SYSTEM_PAGE).for_each(|byte| *byte = 1);
        Self { bytes, filled: 0 }
    }

    /// A full page of these records.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self { filled: bytes.len(), bytes }
    }

    /// Its memory, emptied.
    pub(crate) fn into_empty(mut self) -> Vec<u8> {
        self.bytes.clear();
        self.bytes
    }

    /// The page's whole length.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that are free.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.bytes.len() - self.filled
    }

    /// Its records.
    #[inline]
    pub(crate) fn records(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// The bytes from a record's first on; behind the last record they are of no meaning.
    #[inline]
    pub(crate) fn from(&self, offset: usize) -> &[u8] {
        self.bytes.get(offset..).unwrap_or_default()
    }

    /// The next `bytes`, to be written; empty if there is no room.
    #[inline]
    pub(crate) fn append(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.filled;
        let place = self.bytes.get_mut(start..start + bytes).unwrap_or_default();
        self.filled = start + place.len();
        place
    }

    /// Appends the first `length` bytes of `from`; false if there is no room. A short record is copied as
    /// one block, bytes behind it along with it, where both sides have them.
    #[inline]
    pub(crate) fn append_from(&mut self, from: &[u8], length: usize) -> bool {
        let Some(place) = self.bytes.get_mut(self.filled..) else { return false };
        if place.len() < length {
            return false;
        }
        match (place.first_chunk_mut(), from.first_chunk()) {
            (Some(place), Some(from)) if length <= BLOCK => copy_block(place, from),
            _ => match (place.get_mut(..length), from.get(..length)) {
                (Some(place), Some(from)) => place.copy_from_slice(from),
                _ => return false,
            },
        }
        self.filled += length;
        true
    }

    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }
}

/// Appends the first `length` bytes of `from` to a vector that has room for [`BLOCK`] more.
#[inline]
pub(crate) fn append_from(to: &mut Vec<u8>, from: &[u8], length: usize) {
    let end = to.len() + length;
    match from.first_chunk::<BLOCK>() {
        Some(block) if length <= BLOCK => {
            let mut copy = [0; BLOCK];
            copy_block(&mut copy, block);
            to.extend_from_slice(&copy);
            to.truncate(end);
        }
        _ => to.extend_from_slice(from.get(..length).unwrap_or_default()),
    }
}

/// In halves, as numbers: as bytes, the compiler joins this copy with the call for other lengths.
#[inline]
fn copy_block(place: &mut [u8; BLOCK], from: &[u8; BLOCK]) {
    let (halves, from) = (place.as_chunks_mut::<16>().0, from.as_chunks::<16>().0);
    for (place, from) in halves.iter_mut().zip(from) {
        *place = u128::from_ne_bytes(*from).to_ne_bytes();
    }
}
