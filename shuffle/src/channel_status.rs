//! [`ChannelStatus`]: backlog, watermark, idleness and end of many channels, combined into one.
//!
//! Pure: no channel, no clock. The gate tells it what a channel said and passes on what comes out.
//! What is combined is a function of the channels' present status and of the greatest watermark ever
//! sent, so the order in which channels go idle or end does not show in the outcome.
//!
//! ```text
//! backlog    any channel true -> true at once; false when all have reported or ended and none is true
//! watermark  least over channels that are neither idle nor done; if there are none, greatest of all
//! done       ended, or at the end of time; when all have ended: the end of time
//! idle       all channels that have not ended are idle, and there is one
//! ```
//!
//! Left out on purpose: barriers (they hold channels back, which is the gate's business), and what an
//! operator does in backlog.

use element::{Control, RecordAttributes, Timestamp};

/// What one channel has said of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Unknown,
    Backlog,
    Live,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    backlog: Phase,
    /// Its greatest watermark below the end of time, that of a phase included; `None`: none yet.
    watermark: Option<Timestamp>,
    /// It has sent [`Timestamp::MAX`]: it holds no time back.
    at_end_of_time: bool,
    idle: bool,
    ended: bool,
}

impl Channel {
    const fn is_done(&self) -> bool {
        self.ended || self.at_end_of_time
    }
}

/// The combined status of all channels of one input.
///
/// Starts with all channels unknown, also after a restore (decision D2). Costs a pass over the
/// channels for each control element that changes something, nothing for records.
///
/// Source: FLIP-327, "RecordAttributes"; FLIP-67 names no rule, decisions D2 and D11 do.
#[derive(Clone, Debug)]
pub struct ChannelStatus {
    channels: Vec<Channel>,
    /// What was sent last; unknown before the first.
    backlog: Phase,
    /// The greatest watermark sent.
    watermark: Option<Timestamp>,
    idle: bool,
    ended: bool,
}

impl ChannelStatus {
    /// The status of `channels` channels that have said nothing.
    #[must_use]
    pub fn new(channels: usize) -> Self {
        let channel = Channel {
            backlog: Phase::Unknown,
            watermark: None,
            at_end_of_time: false,
            idle: false,
            ended: false,
        };
        Self {
            channels: vec![channel; channels],
            backlog: Phase::Unknown,
            watermark: None,
            idle: false,
            ended: false,
        }
    }

    /// Takes in what `channel` said and calls `out` with each combined element that follows from it:
    /// attributes, then the watermark, then idleness, then the end. Only changes are sent.
    ///
    /// Barriers pass by unseen. What an ended or unknown channel says is ignored.
    pub fn receive(&mut self, channel: usize, said: Control, out: &mut impl FnMut(Control)) {
        let Some(status) = self.channels.get_mut(channel).filter(|status| !status.ended) else {
            return;
        };
        match said {
            Control::Watermark(Timestamp::MAX) => status.at_end_of_time = true,
            Control::Watermark(watermark) => {
                // Who has something to say about time is not idle, whatever it forgot to say.
                status.idle = false;
                status.watermark = status.watermark.max(Some(watermark));
            }
            Control::Attributes(attributes) => status.attributes(attributes),
            Control::Idle => status.idle = true,
            Control::Active => status.idle = false,
            Control::EndOfInput => status.ended = true,
            Control::Barrier(_) => return,
        }
        self.combine(out);
    }

    /// Notes that `channel` has records: it is not idle. Costs two loads when that is known.
    #[inline]
    pub fn received_records(&mut self, channel: usize, out: &mut impl FnMut(Control)) {
        if self.channels.get(channel).is_some_and(|status| status.idle) {
            self.receive(channel, Control::Active, out);
        }
    }

    /// Whether `channel` has ended.
    #[must_use]
    pub fn has_ended(&self, channel: usize) -> bool {
        self.channels.get(channel).is_none_or(|status| status.ended)
    }

    /// Whether all channels have ended.
    #[must_use]
    pub fn all_ended(&self) -> bool {
        self.channels.iter().all(|status| status.ended)
    }

    /// The combined backlog status as last sent; `None` before the first.
    #[must_use]
    pub fn is_backlog(&self) -> Option<bool> {
        match self.backlog {
            Phase::Unknown => None,
            Phase::Backlog => Some(true),
            Phase::Live => Some(false),
        }
    }

    /// The combined watermark as last sent; `None` before the first.
    #[must_use]
    pub fn watermark(&self) -> Option<Timestamp> {
        self.watermark
    }

    fn combine(&mut self, out: &mut impl FnMut(Control)) {
        let all_ended = self.all_ended();
        let watermark = self.combined_watermark().max(self.watermark);
        let backlog = self.combined_backlog();
        if backlog != self.backlog && backlog != Phase::Unknown {
            self.backlog = backlog;
            out(Control::Attributes(match backlog {
                Phase::Backlog => RecordAttributes::BACKLOG,
                Phase::Live | Phase::Unknown => RecordAttributes::live(watermark),
            }));
        }
        let watermark = if self.is_end_of_time() { Some(Timestamp::MAX) } else { watermark };
        if let Some(grown) = watermark.filter(|_| watermark > self.watermark) {
            self.watermark = watermark;
            out(Control::Watermark(grown));
        }
        let idle = self.is_idle();
        if idle != self.idle && !all_ended {
            self.idle = idle;
            out(if idle { Control::Idle } else { Control::Active });
        }
        if all_ended && !self.ended {
            self.ended = true;
            out(Control::EndOfInput);
        }
    }

    /// Unknown only as long as nothing can be said.
    fn combined_backlog(&self) -> Phase {
        let mut open = self.channels.iter().filter(|status| !status.ended);
        if open.clone().any(|status| status.backlog == Phase::Backlog) {
            return Phase::Backlog;
        }
        if open.any(|status| status.backlog == Phase::Unknown) {
            // Silence; and a `true` that was sent stands until everyone has reported.
            return self.backlog;
        }
        let nobody_spoke = self.channels.iter().all(|status| status.backlog == Phase::Unknown);
        if nobody_spoke { self.backlog } else { Phase::Live }
    }

    /// Below the end of time; `None` if a channel that counts has no watermark yet.
    fn combined_watermark(&self) -> Option<Timestamp> {
        let counts = |status: &&Channel| !status.idle && !status.is_done();
        match self.channels.iter().filter(counts).map(|status| status.watermark).min() {
            Some(least) => least,
            None => self.channels.iter().filter_map(|status| status.watermark).max(),
        }
    }

    /// No channel can hold time back any more, now or later.
    fn is_end_of_time(&self) -> bool {
        !self.channels.is_empty() && self.channels.iter().all(Channel::is_done)
    }

    fn is_idle(&self) -> bool {
        let mut open = self.channels.iter().filter(|status| !status.ended).peekable();
        open.peek().is_some() && open.all(|status| status.idle)
    }
}

impl Channel {
    fn attributes(&mut self, attributes: RecordAttributes) {
        self.backlog = if attributes.is_backlog { Phase::Backlog } else { Phase::Live };
        match attributes.watermark {
            Some(Timestamp::MAX) => self.at_end_of_time = true,
            // The watermark of the phase counts as the channel's own from here on: nobody waits for
            // one that never comes (decision D11).
            phase => self.watermark = self.watermark.max(phase),
        }
    }
}

#[cfg(test)]
mod tests;
