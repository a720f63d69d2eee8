//! [`BlockingReader`]: subpartitions of a finished partition, as a channel.
//!
//! Opened at its first poll and closed at its end, so a gate over thousands of partitions does not
//! hold thousands of files before it reads. Holds one decoded block at most.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use element::{Control, Record, RecordAttributes, StreamElement};

use crate::packer::unpack;
use crate::{
    ChannelEvent, ChannelReader, PartitionDescriptor, ReadError, ResultPartitionReader,
    ShuffleError, ShuffleService,
};

/// Reads one subpartition, or one range of them, of a finished partition.
///
/// Of one subpartition all elements come in the order of emission, controls included. Of several the
/// batches of each come in order and those of different ones mixed; controls are left out, for they
/// belong to one subpartition's order.
pub struct BlockingReader<T> {
    descriptor: PartitionDescriptor,
    subpartitions: Range<u32>,
    state: State,
    as_backlog: bool,
    /// The elements of the last block that were not given yet.
    decoded: VecDeque<StreamElement<T>>,
    records: PhantomData<fn() -> T>,
}

enum State {
    Closed(Arc<dyn ShuffleService>),
    Open(Box<dyn ResultPartitionReader>),
    /// All blocks are read; the end of the input is not given yet.
    Drained,
    Ended,
}

impl<T: Record> BlockingReader<T> {
    /// A reader of `subpartitions` of the partition that `descriptor` names. Touches no file.
    #[must_use]
    pub fn new(
        service: Arc<dyn ShuffleService>,
        descriptor: PartitionDescriptor,
        subpartitions: Range<u32>,
    ) -> Self {
        let (state, records) = (State::Closed(service), PhantomData);
        Self {
            descriptor,
            subpartitions,
            state,
            as_backlog: false,
            decoded: VecDeque::new(),
            records,
        }
    }

    /// Counts as backlog until it has been read through: says so before its first element, and leaves
    /// out what its producer said about itself, which is over (FLIP-331; R9).
    #[must_use]
    pub fn as_backlog(mut self) -> Self {
        self.as_backlog = true;
        self.decoded
            .push_back(StreamElement::Control(Control::Attributes(RecordAttributes::BACKLOG)));
        self
    }

    /// Reads blocks until there is an element, or none is left.
    fn fill(&mut self) -> Result<(), ShuffleError> {
        if let State::Closed(service) = &self.state {
            let reader = service.reader(&self.descriptor, self.subpartitions.clone())?;
            self.state = State::Open(reader);
        }
        let several = self.subpartitions.len() > 1;
        while self.decoded.is_empty() {
            let State::Open(reader) = &mut self.state else {
                return Ok(());
            };
            let Some(block) = reader.next()? else {
                self.state = State::Drained;
                return Ok(());
            };
            unpack(block, &mut self.decoded).map_err(|source| ShuffleError::Undecodable {
                partition: self.descriptor.identity,
                source,
            })?;
            if several {
                self.decoded.retain(|element| matches!(element, StreamElement::Batch(_)));
            } else if self.as_backlog {
                let said =
                    |element: &_| matches!(element, StreamElement::Control(Control::Attributes(_)));
                self.decoded.retain(|element| !said(element));
            }
        }
        Ok(())
    }
}

impl<T: Record> ChannelReader<T> for BlockingReader<T> {
    fn poll(&mut self) -> Result<ChannelEvent<T>, ReadError> {
        if self.decoded.is_empty() {
            self.fill()?;
        }
        if let Some(element) = self.decoded.pop_front() {
            return Ok(ChannelEvent::Element(element));
        }
        if matches!(self.state, State::Drained) {
            self.state = State::Ended;
            return Ok(ChannelEvent::Element(StreamElement::Control(Control::EndOfInput)));
        }
        Ok(ChannelEvent::Ended)
    }
}

impl<T> std::fmt::Debug for BlockingReader<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockingReader")
            .field("partition", &self.descriptor.identity)
            .field("subpartitions", &self.subpartitions)
            .finish_non_exhaustive()
    }
}
