//! [`Draft`]: a record that is written where it stays, before its length is known.
//!
//! A record that is put together elsewhere and copied to its page makes the copy wait for the stores
//! that made it, and those for the page of the record before, which is seldom in the cache. So the
//! payload's writer is given the page itself, if there is room for any short payload; a longer one is
//! taken out again, and goes the other way. Whatever the writer does, the records in front of the draft
//! stay, or the sorter is told that they are gone.

use crate::record;

/// Payloads up to this length are written in place.
pub(crate) const SHORT_PAYLOAD: usize = 256;

/// The head of a record in the narrow form, at most.
const HEAD: usize = 12;

/// Bytes that a page must have free for a draft with such a key.
pub(crate) fn room_for(key: usize) -> usize {
    HEAD + key + SHORT_PAYLOAD
}

/// The record that is being written at the end of a page. Taken out again if it is dropped.
pub(crate) struct Draft<'a> {
    page: &'a mut Vec<u8>,
    /// Set if bytes in front of the draft are gone.
    is_damaged: &'a mut bool,
    place: *const u8,
    capacity: usize,
    start: usize,
    payload_at: usize,
    timestamp: i64,
    key: usize,
    is_done: bool,
}

/// What became of a draft.
pub(crate) enum Drafted {
    /// The record is in its page; the length of its payload.
    Done(usize),
    /// The payload is too long to stay; the record is not in the page.
    TooLong(Vec<u8>),
    /// The writer took bytes that are not its own.
    Damaged,
}

impl<'a> Draft<'a> {
    /// Begins a record in a page that has [`room_for`] its key.
    #[inline]
    pub(crate) fn begin(
        page: &'a mut Vec<u8>,
        is_damaged: &'a mut bool,
        timestamp: i64,
        key: &[u8],
    ) -> Self {
        let (start, capacity, place) = (page.len(), page.capacity(), page.as_ptr());
        record::append_head(page, timestamp, key.len(), 0);
        append_words(page, key);
        let payload_at = page.len();
        let key = key.len();
        Self {
            page,
            is_damaged,
            place,
            capacity,
            start,
            payload_at,
            timestamp,
            key,
            is_done: false,
        }
    }

    /// Where the payload is to be appended.
    #[inline]
    pub(crate) fn page(&mut self) -> &mut Vec<u8> {
        self.page
    }

    /// Completes the record. Moving the draft would read it as it was not written: such a load waits for
    /// all stores, those to the page among them, which is half of a push.
    #[inline]
    pub(crate) fn end(&mut self) -> Drafted {
        let payload = self.page.len().wrapping_sub(self.payload_at);
        if payload > SHORT_PAYLOAD || self.place != self.page.as_ptr() {
            return self.take_out();
        }
        record::set_lengths(self.page, self.start, self.timestamp, self.key, payload);
        self.is_done = true;
        Drafted::Done(payload)
    }

    #[cold]
    fn take_out(&mut self) -> Drafted {
        let is_grown = self.page.len() > self.payload_at + SHORT_PAYLOAD;
        match self.page.get(self.payload_at..) {
            Some(payload) if is_grown => Drafted::TooLong(payload.to_vec()),
            _ => {
                *self.is_damaged = true;
                Drafted::Damaged
            }
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        if self.page.len() < self.payload_at {
            *self.is_damaged = true;
        }
        self.page.truncate(self.start);
        self.page.shrink_to(self.capacity);
    }
}

/// Appends a key word by word: one that was just written in words is read as it was written, without a
/// wait for its stores.
#[inline]
fn append_words(page: &mut Vec<u8>, key: &[u8]) {
    let mut rest = key;
    while let Some((word, tail)) = rest.split_first_chunk::<8>() {
        page.extend_from_slice(word);
        rest = tail;
    }
    page.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with one record in it, and what becomes of a draft behind it.
    #[track_caller]
    fn check(write: impl FnOnce(&mut Vec<u8>)) -> (Vec<u8>, bool, Drafted) {
        let mut page = Vec::with_capacity(1_000);
        record::append(&mut page, 7, b"before", b"payload");
        let (before, mut is_damaged) = (page.clone(), false);
        let mut draft = Draft::begin(&mut page, &mut is_damaged, 9, b"a key of words");
        write(draft.page());
        let drafted = draft.end();
        drop(draft);
        assert_eq!(page.capacity(), 1_000);
        if !is_damaged {
            assert_eq!(page[..before.len()], before);
        }
        let rest = page.get(before.len()..).unwrap_or_default().to_vec();
        (rest, is_damaged, drafted)
    }

    #[test]
    fn a_short_payload_stays_where_it_was_written() {
        for length in [0, 1, SHORT_PAYLOAD] {
            let (rest, is_damaged, drafted) = check(|page| page.resize(page.len() + length, 5));
            assert!(!is_damaged && matches!(drafted, Drafted::Done(done) if done == length));
            let mut expected = Vec::new();
            record::append(&mut expected, 9, b"a key of words", &vec![5; length]);
            assert_eq!(rest, expected);
        }
    }

    #[test]
    fn a_long_payload_is_taken_out_and_the_page_has_its_size_again() {
        for length in [SHORT_PAYLOAD + 1, 5_000] {
            let (rest, is_damaged, drafted) = check(|page| page.resize(page.len() + length, 5));
            assert!(!is_damaged && rest.is_empty());
            assert!(matches!(drafted, Drafted::TooLong(payload) if payload == vec![5; length]));
        }
    }

    #[test]
    fn a_writer_that_takes_what_is_not_its_own_is_noticed() {
        let (_, is_damaged, drafted) = check(Vec::clear);
        assert!(is_damaged && matches!(drafted, Drafted::Damaged));
        let mut page = vec![1; 100];
        let mut is_damaged = false;
        page.reserve_exact(900);
        let draft = Draft::begin(&mut page, &mut is_damaged, 0, b"key");
        drop(draft);
        assert_eq!((page.len(), is_damaged), (100, false), "a dropped draft is taken out");
    }
}
