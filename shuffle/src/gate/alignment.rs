//! Barriers across the channels of one input: which checkpoint is under way, who is held for it.
//!
//! Pure bookkeeping; the gate asks after each barrier and each end of a channel.

use std::collections::VecDeque;

use element::{Barrier, BarrierKind, CheckpointId};

/// What came of a barrier or of an end.
#[derive(Debug, Default)]
pub(super) struct Arrival {
    /// Checkpoints given up, oldest first.
    pub(super) cancelled: Vec<CheckpointId>,
    /// Barriers that have come on all channels, oldest first.
    pub(super) complete: Vec<Barrier>,
}

#[derive(Debug)]
struct Open {
    barrier: Barrier,
    arrived: Vec<bool>,
    /// Channels that have neither ended nor brought the barrier; at least 1.
    missing: usize,
}

impl Open {
    fn holds(&self) -> bool {
        self.barrier.kind != BarrierKind::AtLeastOnce
    }
}

#[derive(Debug)]
pub(super) struct Alignment {
    ended: Vec<bool>,
    /// Barriers on the way, by id. At most one of them holds channels; it is the last then.
    open: VecDeque<Open>,
    /// Channels that brought the barrier that holds.
    held: Vec<usize>,
    /// Channels that were held and not yet been taken back by the gate.
    released: Vec<usize>,
    /// The greatest checkpoint that is complete or given up: barriers up to it are dropped.
    settled: Option<CheckpointId>,
}

impl Alignment {
    pub(super) fn new(channels: usize) -> Self {
        Self {
            ended: vec![false; channels],
            open: VecDeque::new(),
            held: Vec::new(),
            released: Vec::new(),
            settled: None,
        }
    }

    pub(super) fn arrived(&mut self, channel: usize, barrier: Barrier) -> Arrival {
        let mut arrival = Arrival::default();
        if self.settled.is_some_and(|settled| barrier.id <= settled) {
            return arrival;
        }
        let aligns = barrier.kind != BarrierKind::AtLeastOnce;
        // A channel that brings a later barrier skips the earlier one, which can never be complete:
        // but where nobody is held, it may only be ahead.
        while let Some(open) = self.open.front()
            && open.barrier.id < barrier.id
            && (aligns || open.holds())
        {
            arrival.cancelled.push(open.barrier.id);
            self.settle_first();
        }
        let open = self.open_for(barrier);
        if let Some(arrived) = open.arrived.get_mut(channel).filter(|arrived| !**arrived) {
            *arrived = true;
            open.missing -= 1;
        }
        if open.missing > 0 {
            if aligns {
                self.held.push(channel);
            }
            return arrival;
        }
        self.complete(&mut arrival);
        arrival
    }

    pub(super) fn ended(&mut self, channel: usize) -> Arrival {
        if let Some(ended) = self.ended.get_mut(channel) {
            *ended = true;
        }
        for open in &mut self.open {
            if open.arrived.get(channel) == Some(&false) {
                open.missing -= 1;
            }
        }
        let mut arrival = Arrival::default();
        self.complete(&mut arrival);
        arrival
    }

    /// Gives up all checkpoints up to `id`, begun or not; true if `id` was begun.
    pub(super) fn cancel(&mut self, id: CheckpointId) -> bool {
        let mut begun = false;
        while let Some(open) = self.open.front().filter(|open| open.barrier.id <= id) {
            begun |= open.barrier.id == id;
            self.settle_first();
        }
        self.settled = self.settled.max(Some(id));
        begun
    }

    pub(super) fn is_held(&self, channel: usize) -> bool {
        self.held.contains(&channel)
    }

    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    pub(super) fn under_way(&self) -> Option<CheckpointId> {
        self.open.back().map(|open| open.barrier.id)
    }

    /// Channels to be read again, once each.
    pub(super) fn take_released(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.released)
    }

    /// The entry of a barrier, made where its id belongs.
    fn open_for(&mut self, barrier: Barrier) -> &mut Open {
        let at = self.open.partition_point(|open| open.barrier.id < barrier.id);
        if self.open.get(at).is_none_or(|open| open.barrier.id != barrier.id) {
            let missing = self.ended.iter().filter(|ended| !**ended).count();
            let arrived = vec![false; self.ended.len()];
            self.open.insert(at, Open { barrier, arrived, missing });
        }
        self.open.get_mut(at).expect("an entry was found or made at this place")
    }

    /// Takes out what is complete, and what a later complete one has overtaken.
    fn complete(&mut self, arrival: &mut Arrival) {
        let Some(last) = self.open.iter().rposition(|open| open.missing == 0) else {
            return;
        };
        for _ in 0..=last {
            if let Some(open) = self.open.front() {
                if open.missing == 0 {
                    arrival.complete.push(open.barrier);
                } else {
                    arrival.cancelled.push(open.barrier.id);
                }
            }
            self.settle_first();
        }
    }

    /// Takes the first entry out and lets go whom it held.
    fn settle_first(&mut self) {
        if let Some(open) = self.open.pop_front() {
            self.settled = self.settled.max(Some(open.barrier.id));
            if open.holds() {
                self.released.append(&mut self.held);
            }
        }
    }
}
