//! [`InputGate`]: the channels of one input, read as one stream.
//!
//! Reads channels in turn, combines what they say ([`crate::ChannelStatus`]), and aligns barriers
//! ([`alignment`]). Each task has one gate an input and polls it until it says empty.
//!
//! Channels that had something are *hot* and polled in turn; those that had nothing are *cold* and
//! looked at after as many elements as there are channels ([`COLD_EVERY`] at least) and before the
//! gate says empty. So one busy channel among many costs two polls an element at most, and no channel
//! waits for more than a bounded number of elements of the others.
//!
//! Left out on purpose: waiting. A channel wakes the task when it has something.

mod alignment;

use std::collections::VecDeque;

use element::{Barrier, Batch, CheckpointId, Control, RecordAttributes, StreamElement, Timestamp};

use crate::{ChannelEvent, ChannelReader, ChannelStatus, ReadError};
use alignment::{Alignment, Arrival};

/// Elements between two looks at the cold channels, at least.
const COLD_EVERY: usize = 64;

/// What an input has.
#[derive(Clone, Debug, PartialEq)]
pub enum GateEvent<T> {
    /// Records of one channel.
    Batch {
        /// The channel, as numbered when the gate was made.
        channel: usize,
        /// The records.
        batch: Batch<T>,
    },
    /// The combined watermark has grown. [`Timestamp::MAX`] comes before the end of the input.
    Watermark(Timestamp),
    /// The combined attributes have changed; with `is_backlog == false` the watermark to drain with,
    /// which also follows as a [`GateEvent::Watermark`] if it is news.
    Attributes(RecordAttributes),
    /// All channels that have not ended are idle.
    Idle,
    /// Not idle any more.
    Active,
    /// The barrier has come on all channels that have not ended. If it is aligned, all records before
    /// it have been given and none behind it.
    Barrier(Barrier),
    /// A checkpoint will not be completed here: a later barrier came first, or it was cancelled.
    Cancelled(CheckpointId),
    /// Every channel has ended. Comes once, last.
    EndOfInput,
    /// Nothing for now.
    Empty,
}

/// Reads many channels as one stream.
///
/// A barrier of an aligning kind holds its channel until the barrier has come on every other one, or
/// the channel has ended; a barrier [`AtLeastOnce`](element::BarrierKind::AtLeastOnce) holds nobody.
/// A later barrier cancels an earlier one that is not complete.
pub struct InputGate<T> {
    channels: Vec<Box<dyn ChannelReader<T>>>,
    status: ChannelStatus,
    alignment: Alignment,
    /// Channels to be polled, next one first. Each channel that is neither held nor ended is in
    /// `hot` or in `cold`.
    hot: VecDeque<usize>,
    cold: Vec<usize>,
    /// Elements since the cold channels were looked at.
    since_cold: usize,
    /// Events that follow from the last element, not given yet.
    pending: VecDeque<GateEvent<T>>,
}

impl<T> InputGate<T> {
    /// A gate over `channels`, which keep their numbers.
    #[must_use]
    pub fn new(channels: Vec<Box<dyn ChannelReader<T>>>) -> Self {
        let count = channels.len();
        let mut gate = Self {
            channels,
            status: ChannelStatus::new(count),
            alignment: Alignment::new(count),
            hot: (0..count).collect(),
            cold: Vec::with_capacity(count),
            since_cold: 0,
            pending: VecDeque::new(),
        };
        if count == 0 {
            gate.pending.extend([GateEvent::Watermark(Timestamp::MAX), GateEvent::EndOfInput]);
        }
        gate
    }

    /// The next event. After [`GateEvent::EndOfInput`] only [`GateEvent::Empty`] comes.
    ///
    /// Costs one poll of one channel while a channel is ready, at worst one poll of each.
    ///
    /// # Errors
    ///
    /// [`ReadError`] of the channel that failed; the gate is of no use afterwards.
    pub fn poll(&mut self) -> Result<GateEvent<T>, ReadError> {
        let mut all_looked_at = false;
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            if self.since_cold >= self.channels.len().max(COLD_EVERY) {
                self.warm_all();
            }
            let Some(channel) = self.hot.pop_front() else {
                if all_looked_at || self.cold.is_empty() {
                    return Ok(GateEvent::Empty);
                }
                all_looked_at = true;
                self.warm_all();
                continue;
            };
            if let Some(event) = self.poll_channel(channel)? {
                return Ok(event);
            }
        }
    }

    /// Gives up the checkpoint `id` and all before it: channels held for it go on, and its barriers
    /// that come later are dropped. True if an alignment was under way for it.
    pub fn cancel_alignment(&mut self, id: CheckpointId) -> bool {
        let was_under_way = self.alignment.cancel(id);
        self.release_held();
        was_under_way
    }

    /// The checkpoint whose barrier has come on some channels and not on all.
    #[must_use]
    pub fn aligning(&self) -> Option<CheckpointId> {
        self.alignment.under_way()
    }

    /// Channels held for a barrier at this moment.
    #[must_use]
    pub fn held_channels(&self) -> usize {
        self.alignment.held()
    }

    /// The combined status of the channels.
    #[must_use]
    pub fn status(&self) -> &ChannelStatus {
        &self.status
    }

    /// The number of channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    fn warm_all(&mut self) {
        self.since_cold = 0;
        self.hot.extend(self.cold.drain(..));
    }

    /// Polls one channel and puts it where it belongs; `None`: look further.
    fn poll_channel(&mut self, channel: usize) -> Result<Option<GateEvent<T>>, ReadError> {
        let reader = self.channels.get_mut(channel).expect("channel numbers are below the count");
        match reader.poll()? {
            ChannelEvent::Empty => {
                self.cold.push(channel);
                Ok(None)
            }
            ChannelEvent::Ended => {
                self.control(channel, Control::EndOfInput);
                Ok(None)
            }
            ChannelEvent::Element(StreamElement::Control(control)) => {
                self.since_cold += 1;
                self.control(channel, control);
                Ok(None)
            }
            ChannelEvent::Element(StreamElement::Batch(batch)) => {
                self.since_cold += 1;
                self.hot.push_back(channel);
                let Self { status, pending, .. } = self;
                status.received_records(channel, &mut |control| pending.extend(event(control)));
                let batch = GateEvent::Batch { channel, batch };
                if self.pending.is_empty() {
                    return Ok(Some(batch));
                }
                self.pending.push_back(batch);
                Ok(None)
            }
        }
    }

    fn control(&mut self, channel: usize, control: Control) {
        if let Control::Barrier(barrier) = control {
            let arrival = self.alignment.arrived(channel, barrier);
            self.settle(arrival);
            if !self.alignment.is_held(channel) {
                self.hot.push_back(channel);
            }
            return;
        }
        if control == Control::EndOfInput {
            if self.status.has_ended(channel) {
                return;
            }
            // A barrier that waits for this channel alone is complete before the input ends.
            let arrival = self.alignment.ended(channel);
            self.settle(arrival);
        } else {
            self.hot.push_back(channel);
        }
        let Self { status, pending, .. } = self;
        status.receive(channel, control, &mut |control| pending.extend(event(control)));
    }

    /// Passes on what came of a barrier.
    fn settle(&mut self, arrival: Arrival) {
        self.pending.extend(arrival.cancelled.into_iter().map(GateEvent::Cancelled));
        self.pending.extend(arrival.complete.into_iter().map(GateEvent::Barrier));
        self.release_held();
    }

    /// Lets channels go on that nothing holds any more.
    fn release_held(&mut self) {
        self.hot.extend(self.alignment.take_released());
    }
}

/// A combined control element as an event; barriers come from the alignment.
fn event<T>(control: Control) -> Option<GateEvent<T>> {
    match control {
        Control::Watermark(watermark) => Some(GateEvent::Watermark(watermark)),
        Control::Attributes(attributes) => Some(GateEvent::Attributes(attributes)),
        Control::Idle => Some(GateEvent::Idle),
        Control::Active => Some(GateEvent::Active),
        Control::EndOfInput => Some(GateEvent::EndOfInput),
        Control::Barrier(_) => None,
    }
}

impl<T> std::fmt::Debug for InputGate<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InputGate")
            .field("status", &self.status)
            .field("alignment", &self.alignment)
            .finish_non_exhaustive()
    }
}
