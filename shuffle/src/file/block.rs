//! One block of a data file: its header, its checksum, its compression.
//!
//! ```text
//! stored:u32  raw:u32  codec:u8 0 0 0  crc:u32  stored bytes
//! ```
//!
//! Little-endian. The CRC-32 begins with the partition's identity and covers subpartition, position in
//! the subpartition, header and stored bytes: a block that was cut, flipped, zeroed, moved, or that
//! belongs to another partition or another making of it has another one.

use crc32fast::Hasher;
use element::option_table::Compression;

use crate::{Damage, PartitionIdentity, ShuffleError, supports_compression};

pub(super) const HEADER: usize = 16;

/// The most a block may have: lengths are 32 bits, and compression may look beyond.
pub(super) const LIMIT: u64 = 1 << 31;

/// In place of a subpartition: the block belongs to all.
pub(super) const EVERY: u32 = u32::MAX;

const RAW: u8 = 0;
const LZ4: u8 = 1;
const ZSTD: u8 = 2;

pub(super) type Header = [u8; HEADER];

/// Where a block stands, beyond its file offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// CRC-32 of the partition's identity.
    pub(super) identity: u32,
    /// Its subpartition, or [`EVERY`].
    pub(super) subpartition: u32,
    /// Its number in the subpartition, from 0.
    pub(super) number: u32,
}

impl Place {
    fn checksum(self, header: &Header, stored: &[u8]) -> u32 {
        // Short updates cost more than their bytes: what stands before the stored bytes is one.
        let mut front = [0; 20];
        let (subpartition, rest) = front.split_at_mut(4);
        let (number, lengths) = rest.split_at_mut(4);
        subpartition.copy_from_slice(&self.subpartition.to_le_bytes());
        number.copy_from_slice(&self.number.to_le_bytes());
        lengths.copy_from_slice(&header[..12]);
        let mut hasher = Hasher::new_with_initial(self.identity);
        hasher.update(&front);
        hasher.update(stored);
        hasher.finalize()
    }
}

/// Errors unless this build knows the compression.
pub(super) fn check_supported(
    partition: &PartitionIdentity,
    compression: Compression,
) -> Result<(), ShuffleError> {
    if supports_compression(compression) {
        Ok(())
    } else {
        Err(ShuffleError::NoCompression { partition: *partition, compression })
    }
}

/// Seals a block: its header, and the bytes to store, which are `block` itself or lie in `scratch`.
pub(super) fn seal<'a>(
    place: Place,
    block: &'a [u8],
    compression: Compression,
    scratch: &'a mut Vec<u8>,
) -> (Header, u32, &'a [u8]) {
    let codec = compress(block, compression, scratch);
    let stored = if codec == RAW { block } else { scratch.as_slice() };
    let mut header = [0; HEADER];
    // Both lengths are below LIMIT: the writer has checked the one, the other is no longer.
    let lengths = [stored.len() as u32, block.len() as u32];
    for (into, length) in header.chunks_exact_mut(4).zip(lengths) {
        into.copy_from_slice(&length.to_le_bytes());
    }
    header[8] = codec;
    let checksum = place.checksum(&header, stored);
    header[12..].copy_from_slice(&checksum.to_le_bytes());
    (header, checksum, stored)
}

/// Compresses into `scratch`; raw where that would not be smaller.
fn compress(block: &[u8], compression: Compression, scratch: &mut Vec<u8>) -> u8 {
    let codec = match compression {
        Compression::Lz4 => {
            scratch.resize(lz4_flex::block::get_maximum_output_size(block.len()), 0);
            match lz4_flex::block::compress_into(block, scratch) {
                Ok(written) => {
                    scratch.truncate(written);
                    LZ4
                }
                Err(_) => RAW,
            }
        }
        #[cfg(feature = "zstd")]
        Compression::Zstd => match zstd::bulk::compress(block, 1) {
            Ok(compressed) => {
                *scratch = compressed;
                ZSTD
            }
            Err(_) => RAW,
        },
        _ => RAW,
    };
    if scratch.len() < block.len() { codec } else { RAW }
}

/// The stored length that a header gives; not checked yet.
pub(super) fn stored_length(header: &Header) -> usize {
    number(header, 0) as usize
}

fn number(header: &Header, at: usize) -> u32 {
    let bytes = header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_le_bytes)
}

/// Checks a block against its place and gives the bytes that were written: `stored` itself, or
/// `scratch` where it was compressed.
///
/// # Errors
///
/// [`ShuffleError::Corrupt`] if it is not what was written there.
pub(super) fn open<'a>(
    partition: &PartitionIdentity,
    place: Place,
    header: &Header,
    stored: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], ShuffleError> {
    let corrupt = |expected: u32, found: u32| ShuffleError::Corrupt {
        partition: *partition,
        damage: Damage::Block,
        expected: u64::from(expected),
        found: u64::from(found),
    };
    let (expected, found) = (number(header, 12), place.checksum(header, stored));
    if expected != found {
        return Err(corrupt(expected, found));
    }
    let raw = number(header, 4) as usize;
    // A block whose checksum is right was written by us: what is refused below cannot be read here.
    match header[8] {
        RAW => Ok(stored),
        LZ4 => {
            scratch.resize(raw, 0);
            match lz4_flex::block::decompress_into(stored, scratch) {
                Ok(length) if length == raw => Ok(scratch),
                _ => Err(corrupt(expected, found)),
            }
        }
        #[cfg(feature = "zstd")]
        ZSTD => match zstd::bulk::decompress(stored, raw) {
            Ok(bytes) if bytes.len() == raw => {
                *scratch = bytes;
                Ok(scratch)
            }
            _ => Err(corrupt(expected, found)),
        },
        #[cfg(not(feature = "zstd"))]
        ZSTD => Err(ShuffleError::NoCompression {
            partition: *partition,
            compression: Compression::Zstd,
        }),
        _ => Err(corrupt(expected, found)),
    }
}
