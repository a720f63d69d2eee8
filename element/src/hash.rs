//! The one hash: from canonical key bytes to 64 bits, the same on every machine and run, for ever.
//!
//! It is rapidhash version 3 with its default secrets and seed 0, which that algorithm promises to
//! keep stable. Routing, the backlog's sort order and the order of state on disk are all orders of
//! this hash; golden vectors in `tests/golden.rs` hold it fast. It is never an identity: keys with
//! equal hashes are told apart by their bytes.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

const SECRETS: RapidSecrets = RapidSecrets::seed(0);

/// The hash of a key: 64 bits, compared as an unsigned number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct KeyHash(pub u64);

/// Hashes canonical key bytes.
#[inline]
#[must_use]
pub fn hash_key_bytes(bytes: &[u8]) -> KeyHash {
    match <[u8; 8]>::try_from(bytes) {
        // Numbers: what depends on the length is then known when this is compiled.
        Ok(word) => hash_key_word(word),
        Err(_) => KeyHash(rapidhash_v3_seeded(bytes, &SECRETS)),
    }
}

/// As [`hash_key_bytes`], of a key of eight bytes.
#[inline]
#[must_use]
pub fn hash_key_word(word: [u8; 8]) -> KeyHash {
    KeyHash(rapidhash_v3_seeded(&word, &SECRETS))
}
