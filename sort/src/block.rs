//! The frame around the records of a run that are written and read together.
//!
//! ```text
//! block := | u32 checksum | u32 stored bytes | u32 raw bytes | u32 records | u32 form | body |
//! form  := 0 raw | 1 lz4
//! ```
//!
//! All little-endian. The checksum covers the head behind it, the body, and the block's identity,
//! which is not written: sorter, run, position. So a block that was cut, flipped, zeroed, swapped
//! with another or left by an earlier run does not pass. Records in the body lie as in a page
//! ([`crate::record`]).

use crc32fast::Hasher;

use crate::BlockCompression;

/// Bytes in front of a body.
pub(crate) const HEAD: usize = 20;

const RAW: u32 = 0;
const LZ4: u32 = 1;

/// Which block of which run of which sorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// A number drawn by the sorter.
    pub(crate) sorter: u64,
    pub(crate) run: u64,
    pub(crate) block: u64,
}

/// The head of a block, as read; nothing in it is proven before [`open`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    checksum: u32,
    pub(crate) stored: u32,
    pub(crate) raw: u32,
    pub(crate) records: u32,
    form: u32,
}

impl Head {
    pub(crate) fn parse(bytes: &[u8; HEAD]) -> Self {
        let word = |index: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[index * 4..index * 4 + 4]);
            u32::from_le_bytes(word)
        };
        Self { checksum: word(0), stored: word(1), raw: word(2), records: word(3), form: word(4) }
    }

    /// Whether the body is the records as they are.
    pub(crate) fn is_raw(&self) -> bool {
        self.form == RAW
    }

    fn words(&self) -> [u8; HEAD - 4] {
        let mut bytes = [0; HEAD - 4];
        let words = [self.stored, self.raw, self.records, self.form];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

fn checksum(head: &Head, body: &[u8], identity: Identity) -> u32 {
    let mut hasher = Hasher::new();
    for word in [identity.sorter, identity.run, identity.block] {
        hasher.update(&word.to_le_bytes());
    }
    hasher.update(&head.words());
    hasher.update(body);
    hasher.finalize()
}

/// Completes a block: `raw` holds [`HEAD`] free bytes, then the records. Gives the bytes to write,
/// which lie in `raw` or, packed, in `packed`.
pub(crate) fn seal<'a>(
    raw: &'a mut [u8],
    packed: &'a mut Vec<u8>,
    records: u32,
    compression: BlockCompression,
    identity: Identity,
) -> &'a [u8] {
    let body = raw.get(HEAD..).unwrap_or_default();
    let raw_bytes = body.len() as u32;
    let mut head = Head { checksum: 0, stored: raw_bytes, raw: raw_bytes, records, form: RAW };
    if compression == BlockCompression::Lz4 {
        // Never shortened: what has once been made zero is not made so for every block.
        let most = HEAD + lz4_flex::block::get_maximum_output_size(body.len());
        packed.resize(most.max(packed.len()), 0);
        // The buffer has the greatest size that there can be, so packing cannot fail.
        let place = packed.get_mut(HEAD..).unwrap_or_default();
        let stored = lz4_flex::block::compress_into(body, place).unwrap_or(body.len());
        if stored < body.len() {
            head.stored = stored as u32;
            head.form = LZ4;
        }
    }
    let out: &'a mut [u8] = if head.form == LZ4 { packed } else { raw };
    let (out, _) = out.split_at_mut(HEAD + head.stored as usize);
    head.checksum = checksum(&head, out.get(HEAD..).unwrap_or_default(), identity);
    let (place, _) = out.split_at_mut(HEAD);
    place[..4].copy_from_slice(&head.checksum.to_le_bytes());
    place[4..].copy_from_slice(&head.words());
    out
}

/// The head of a block whose body is too long to be copied or packed.
pub(crate) fn head_of(body: &[u8], records: u32, identity: Identity) -> [u8; HEAD] {
    let bytes = body.len() as u32;
    let mut head = Head { checksum: 0, stored: bytes, raw: bytes, records, form: RAW };
    head.checksum = checksum(&head, body, identity);
    let mut out = [0; HEAD];
    out[..4].copy_from_slice(&head.checksum.to_le_bytes());
    out[4..].copy_from_slice(&head.words());
    out
}

/// Proves a body against its head, and leaves the records in `raw`. `stored` is taken as a vector so
/// that a raw block changes hands without a copy; bytes behind `head.stored` are cut off.
///
/// # Errors
///
/// What does not fit, in words.
pub(crate) fn open(
    head: &Head,
    stored: &mut Vec<u8>,
    raw: &mut Vec<u8>,
    identity: Identity,
) -> Result<(), &'static str> {
    stored.truncate(head.stored as usize);
    if stored.len() != head.stored as usize {
        return Err("the block is cut");
    }
    if checksum(head, stored, identity) != head.checksum {
        return Err("the checksum does not match");
    }
    match head.form {
        RAW if head.raw == head.stored => {
            std::mem::swap(stored, raw);
            Ok(())
        }
        LZ4 => {
            // Not cleared first: what is there is overwritten.
            raw.resize(head.raw as usize, 0);
            match lz4_flex::block::decompress_into(stored, raw) {
                Ok(bytes) if bytes == raw.len() => Ok(()),
                _ => Err("the block does not unpack"),
            }
        }
        _ => Err("the block has an unknown form"),
    }
}

/// Proves a body against its head, and appends the records to `into`.
///
/// # Errors
///
/// What does not fit, in words.
pub(crate) fn append(
    head: &Head,
    body: &[u8],
    into: &mut Vec<u8>,
    identity: Identity,
) -> Result<(), &'static str> {
    if checksum(head, body, identity) != head.checksum {
        return Err("the checksum does not match");
    }
    let start = into.len();
    match head.form {
        RAW if head.raw == head.stored => into.extend_from_slice(body),
        LZ4 => {
            into.resize(start + head.raw as usize, 0);
            let place = into.get_mut(start..).unwrap_or_default();
            let unpacked = lz4_flex::block::decompress_into(body, place);
            if unpacked.is_ok_and(|bytes| bytes == head.raw as usize) {
                return Ok(());
            }
            return Err("the block does not unpack");
        }
        _ => return Err("the block has an unknown form"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Identity = Identity { sorter: 1, run: 2, block: 3 };

    fn sealed(body: &[u8], compression: BlockCompression) -> Vec<u8> {
        let mut raw = vec![0; HEAD];
        raw.extend_from_slice(body);
        seal(&mut raw, &mut Vec::new(), 5, compression, HERE).to_vec()
    }

    fn opened(block: &[u8], identity: Identity) -> Result<Vec<u8>, &'static str> {
        let (head, body) = block.split_first_chunk().ok_or("the block is cut")?;
        let mut raw = Vec::new();
        let head = Head::parse(head);
        // A length that nothing backs must not be allocated, as the run's reader sees to.
        if head.raw as usize > 10_000 {
            return Err("the block is too long");
        }
        open(&head, &mut body.to_vec(), &mut raw, identity).map(|()| raw)
    }

    #[test]
    fn a_block_reads_back_packed_or_not() {
        for compression in [BlockCompression::None, BlockCompression::Lz4] {
            for body in [vec![], vec![1], vec![9; 5_000], (0..=255).collect()] {
                assert_eq!(opened(&sealed(&body, compression), HERE), Ok(body));
            }
        }
        assert!(sealed(&[9; 5_000], BlockCompression::Lz4).len() < 200);
        assert_eq!(
            sealed(&[1, 2, 3], BlockCompression::Lz4).len(),
            HEAD + 3,
            "raw if it would grow"
        );
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let body: Vec<u8> = (0..40).chain(0..40).chain(0..40).collect();
        for compression in [BlockCompression::None, BlockCompression::Lz4] {
            let block = sealed(&body, compression);
            for bit in 0..block.len() * 8 {
                let mut changed = block.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(opened(&changed, HERE).is_err(), "bit {bit}");
            }
            for end in 0..block.len() {
                assert!(opened(&block[..end], HERE).is_err(), "cut at {end}");
            }
        }
    }

    #[test]
    fn a_block_in_anothers_place_is_noticed() {
        let block = sealed(b"body", BlockCompression::None);
        assert!(opened(&block, Identity { sorter: 0, ..HERE }).is_err());
        assert!(opened(&block, Identity { run: 0, ..HERE }).is_err());
        assert!(opened(&block, Identity { block: 0, ..HERE }).is_err());
    }
}
