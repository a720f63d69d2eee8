//! Elements to blocks and back: the typed layer's encoding inside the blocks of a partition.
//!
//! Written by [`crate::BlockingWriter`], read by [`crate::BlockingReader`]; a shuffle service sees
//! blocks only. A block can be read without the ones before it, and no record is cut in two.
//!
//! ```text
//! block   := frame*
//! frame   := 0 count:u32 record*               records without timestamps
//!          | 1 count:u32 (time:i64 record)*    records with timestamps
//!          | 2 time:i64                        watermark
//!          | 3                                 attributes: backlog
//!          | 4 0 | 4 1 time:i64                attributes: live, without or with a watermark
//!          | 5 | 6                             idle, active
//!          | 7 kind:u8 checkpoint:u64          barrier
//! ```
//!
//! Little-endian. The end of the input has no frame: it is the end of a complete partition.

use std::collections::VecDeque;

use element::{
    BATCH_RECORDS, Barrier, BarrierKind, Batch, CheckpointId, CodecError, Control, Record,
    RecordAttributes, StreamElement, Timestamp,
};

const UNSTAMPED: u8 = 0;
const STAMPED: u8 = 1;
const WATERMARK: u8 = 2;
const BACKLOG: u8 = 3;
const LIVE: u8 = 4;
const IDLE: u8 = 5;
const ACTIVE: u8 = 6;
const BARRIER: u8 = 7;

/// A frame of records that is still open at the end of the bytes.
#[derive(Debug)]
struct OpenFrame {
    /// Where its count stands.
    count_at: usize,
    count: u32,
    stamped: bool,
}

/// Packs the elements of one subpartition into blocks.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    bytes: Vec<u8>,
    open: Option<OpenFrame>,
    /// Ends of finished blocks in `bytes`, rising.
    cuts: Vec<usize>,
    /// Where the block at the end begins: the last of `cuts`.
    start: usize,
}

impl Packer {
    /// Appends a record to the block at the end.
    #[inline]
    pub(crate) fn push<T: Record>(&mut self, value: &T, stamp: Option<Timestamp>) {
        match &mut self.open {
            Some(open) if open.stamped == stamp.is_some() && open.count < u32::MAX => {
                open.count += 1;
            }
            _ => self.open_frame(stamp.is_some()),
        }
        if let Some(stamp) = stamp {
            self.bytes.extend_from_slice(&stamp.0.to_le_bytes());
        }
        value.encode(&mut self.bytes);
    }

    /// Appends a control element. The end of the input leaves no trace.
    pub(crate) fn control(&mut self, control: Control) {
        self.close_frame();
        match control {
            Control::Watermark(watermark) => {
                self.bytes.push(WATERMARK);
                watermark.0.encode(&mut self.bytes);
            }
            Control::Attributes(RecordAttributes { is_backlog: true, .. }) => {
                self.bytes.push(BACKLOG);
            }
            Control::Attributes(RecordAttributes { is_backlog: false, watermark }) => {
                self.bytes.push(LIVE);
                watermark.map(|watermark| watermark.0).encode(&mut self.bytes);
            }
            Control::Idle => self.bytes.push(IDLE),
            Control::Active => self.bytes.push(ACTIVE),
            Control::Barrier(Barrier { id, kind }) => {
                self.bytes.push(BARRIER);
                self.bytes.push(match kind {
                    BarrierKind::ExactlyOnce => 0,
                    BarrierKind::AtLeastOnce => 1,
                    BarrierKind::Savepoint => 2,
                    BarrierKind::StopWithSavepoint => 3,
                    BarrierKind::DrainWithSavepoint => 4,
                });
                id.0.encode(&mut self.bytes);
            }
            Control::EndOfInput => {}
        }
    }

    /// Bytes of the block at the end.
    #[inline]
    pub(crate) fn open_bytes(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Ends the block at the end, if it has a byte.
    pub(crate) fn cut(&mut self) {
        self.close_frame();
        if self.open_bytes() > 0 {
            self.start = self.bytes.len();
            self.cuts.push(self.start);
        }
    }

    /// The finished blocks, in order.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.cuts.iter().copied());
        starts.zip(&self.cuts).filter_map(|(start, end)| self.bytes.get(start..*end))
    }

    /// Forgets all blocks and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.cuts.clear();
        self.start = 0;
        self.open = None;
    }

    /// Takes memory for so many bytes. Called when there are no blocks.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes);
    }

    /// Bytes of all blocks, and bytes that there is room for.
    #[inline]
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (self.bytes.len(), self.bytes.capacity())
    }

    /// Gives memory beyond `bytes` back. Called when there are no blocks.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.bytes.shrink_to(bytes);
        self.cuts.shrink_to(0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes of memory that are filled, and all bytes of memory.
    pub(crate) fn memory(&self) -> (usize, usize) {
        let cuts = self.cuts.capacity() * size_of::<usize>();
        (self.bytes.len(), self.bytes.capacity() + cuts)
    }

    #[cold]
    fn open_frame(&mut self, stamped: bool) {
        self.close_frame();
        self.bytes.push(if stamped { STAMPED } else { UNSTAMPED });
        self.open = Some(OpenFrame { count_at: self.bytes.len(), count: 1, stamped });
        self.bytes.extend_from_slice(&[0; 4]);
    }

    fn close_frame(&mut self) {
        if let Some(open) = self.open.take()
            && let Some(count) = self.bytes.get_mut(open.count_at..open.count_at + 4)
        {
            count.copy_from_slice(&open.count.to_le_bytes());
        }
    }
}

/// Takes a block apart; batches have [`BATCH_RECORDS`] records at most.
///
/// # Errors
///
/// [`CodecError`]; what was appended to `out` is part of the block.
pub(crate) fn unpack<T: Record>(
    mut block: &[u8],
    out: &mut VecDeque<StreamElement<T>>,
) -> Result<(), CodecError> {
    let input = &mut block;
    while !input.is_empty() {
        let control = match u8::decode(input)? {
            UNSTAMPED => {
                unpack_unstamped(input, out)?;
                continue;
            }
            STAMPED => {
                unpack_stamped(input, out)?;
                continue;
            }
            WATERMARK => Control::Watermark(Timestamp(i64::decode(input)?)),
            BACKLOG => Control::Attributes(RecordAttributes::BACKLOG),
            LIVE => {
                let watermark = Option::<i64>::decode(input)?.map(Timestamp);
                Control::Attributes(RecordAttributes::live(watermark))
            }
            IDLE => Control::Idle,
            ACTIVE => Control::Active,
            BARRIER => Control::Barrier(unpack_barrier(input)?),
            other => return Err(CodecError::Tag { what: "frame", found: u64::from(other) }),
        };
        out.push_back(StreamElement::Control(control));
    }
    Ok(())
}

fn unpack_barrier(input: &mut &[u8]) -> Result<Barrier, CodecError> {
    let kind = match u8::decode(input)? {
        0 => BarrierKind::ExactlyOnce,
        1 => BarrierKind::AtLeastOnce,
        2 => BarrierKind::Savepoint,
        3 => BarrierKind::StopWithSavepoint,
        4 => BarrierKind::DrainWithSavepoint,
        other => return Err(CodecError::Tag { what: "barrier", found: u64::from(other) }),
    };
    Ok(Barrier { id: CheckpointId(u64::decode(input)?), kind })
}

/// Records of the next batch of a frame, and room for as many, but no more than the input could hold.
fn batch_of(left: usize, input: &[u8]) -> (usize, usize) {
    let records = left.min(BATCH_RECORDS);
    (records, records.min(input.len().max(1)))
}

fn unpack_unstamped<T: Record>(
    input: &mut &[u8],
    out: &mut VecDeque<StreamElement<T>>,
) -> Result<(), CodecError> {
    let mut left = u32::decode(input)? as usize;
    while left > 0 {
        let records = left.min(BATCH_RECORDS);
        let values = T::decode_list(records, input)?;
        left -= records;
        out.push_back(StreamElement::Batch(Batch::unstamped(values)));
    }
    Ok(())
}

fn unpack_stamped<T: Record>(
    input: &mut &[u8],
    out: &mut VecDeque<StreamElement<T>>,
) -> Result<(), CodecError> {
    let mut left = u32::decode(input)? as usize;
    while left > 0 {
        let (records, room) = batch_of(left, input);
        let (mut values, mut stamps) = (Vec::with_capacity(room), Vec::with_capacity(room));
        for _ in 0..records {
            stamps.push(Timestamp(i64::decode(input)?));
            values.push(T::decode(input)?);
        }
        left -= records;
        out.push_back(StreamElement::Batch(Batch::stamped(values, stamps)));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
