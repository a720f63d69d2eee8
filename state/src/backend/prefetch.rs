//! Looking at what coming keys hold before they come.
//!
//! A table that is larger than the caches costs a wait for memory a key. Looks that do not depend on each
//! other wait together, so the runtime tells the keys of a block of records before the first of them is
//! current. Nothing is changed or remembered by it: what is found is near when it is looked up.

use element::KeyHash;

use super::KeyedStateBackend;
use super::engine::Engine;

/// Entries of a state in memory from which on they lie beyond the caches that are near.
const FAR: usize = 1 << 15;

/// One look in so many must be of use, else they are not worth their cost.
const WORTH: usize = 4;

/// Times that nobody is asked to tell keys after it was of no use.
const PAUSE: u32 = 64;

/// Keys that come next.
#[derive(Clone, Copy, Debug)]
pub enum ComingKeys<'a> {
    /// Keys of eight bytes, with their hashes.
    Words(&'a [([u8; 8], KeyHash)]),
    /// The hashes of other keys.
    Hashes(&'a [KeyHash]),
}

impl ComingKeys<'_> {
    fn len(self) -> usize {
        match self {
            Self::Words(words) => words.len(),
            Self::Hashes(hashes) => hashes.len(),
        }
    }
}

impl KeyedStateBackend {
    /// Keys to be told at once: so many entries stay in the innermost cache between look and use.
    pub const PREFETCHED: usize = 64;

    /// Whether telling keys before they come is likely to pay: asked once a batch.
    pub fn wants_prefetch(&mut self) -> bool {
        let Engine::Heap(_) = &self.engine else { return false };
        if self.prefetch_pause > 0 {
            self.prefetch_pause -= 1;
            return false;
        }
        self.slots.iter().any(|slot| slot.estimated_len() >= FAR)
    }

    /// Looks at what these keys hold without a namespace, in the states that are large, and
    /// answers how many looks are of use: one at a key that is not there is, too, where it may come to be.
    pub fn prefetch(&mut self, keys: ComingKeys<'_>) -> usize {
        let large = self.slots.iter().filter(|slot| slot.estimated_len() >= FAR);
        let found = large.map(|slot| slot.prefetch(keys)).sum::<usize>();
        if found.saturating_mul(WORTH) < keys.len() {
            self.prefetch_pause = PAUSE;
        }
        found
    }
}
