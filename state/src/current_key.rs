//! [`CurrentKey`]: the key that handles work on, as tables and caches see it.

use crate::entry_key::{EntryKey, Word};

/// The current key, as tables see it.
#[derive(Debug)]
pub(crate) struct CurrentKey {
    pub(crate) hash: u64,
    /// Changes with every change of the key; 0 while there is none.
    pub(crate) epoch: u64,
    pub(crate) key: EntryKey,
}

impl CurrentKey {
    /// No key.
    pub(crate) fn none() -> Self {
        Self { hash: 0, epoch: 0, key: EntryKey::plain(&[]) }
    }

    /// Becomes this key, if it is not that.
    #[inline]
    pub(crate) fn enter(&mut self, hash: u64, key: &[u8]) {
        match <[u8; 8]>::try_from(key) {
            Ok(word) => _ = self.enter_word(hash, word),
            Err(_) if self.is(key) => {}
            Err(_) => {
                self.hash = hash;
                self.epoch += 1;
                self.key = EntryKey::plain(key);
            }
        }
    }

    /// Becomes this key of eight bytes. False if it is that.
    // Hash and word are written either way: who comes next need not wait to read them from here.
    #[inline]
    pub(crate) fn enter_word(&mut self, hash: u64, word: [u8; 8]) -> bool {
        self.hash = hash;
        let EntryKey::Word(own) = &mut self.key else {
            self.leave_long(word);
            return true;
        };
        let is_new = *own != Word(word);
        *own = Word(word);
        if is_new {
            self.epoch += 1;
        }
        is_new
    }

    #[cold]
    #[inline(never)]
    fn leave_long(&mut self, word: [u8; 8]) {
        self.key = EntryKey::Word(Word(word));
        self.epoch += 1;
    }

    /// Whether it is this key.
    #[inline]
    pub(crate) fn is(&self, key: &[u8]) -> bool {
        match <[u8; 8]>::try_from(key) {
            Ok(word) => self.key.is_word(Word(word)),
            Err(_) => self.epoch > 0 && self.key.is_plain(key),
        }
    }
}
