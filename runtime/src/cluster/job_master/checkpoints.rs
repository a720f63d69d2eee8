//! What the coordinator decides, carried out.

use std::collections::BTreeSet;
use std::time::Duration;

use element::{Barrier, BarrierKind, CheckpointId, option_table};

use super::{CompletedCheckpoint, JobMaster};
use crate::checkpoint::{Decision, Manifest, OperatorEntry, Participant};
use crate::error::JobError;
use crate::events::TaskMail;

impl JobMaster {
    pub(super) fn carry_out_decisions(&mut self, decisions: Vec<Decision>) {
        for decision in decisions {
            match decision {
                Decision::Trigger(barrier) => self.trigger(barrier),
                Decision::Complete { barrier, operators, enumerators, took } => {
                    let job = self.request.name.clone();
                    let manifest = Manifest { id: barrier.id, job, operators, enumerators };
                    self.complete(barrier, manifest, took);
                }
                Decision::Abort { id, reason } => {
                    tracing::info!(checkpoint = %id, reason, "a checkpoint was given up");
                    self.discard(id);
                    for task in self.running_tasks() {
                        self.mail(task, TaskMail::Aborted(id));
                    }
                }
                Decision::Fail { id, reason } => {
                    let job = self.request.name.clone();
                    self.give_up(JobError::Checkpoint { job, id, reason });
                }
            }
        }
    }

    /// Enumerators store first, then sources are told: a split is either not handed out yet, or in
    /// the reader's mailbox before the trigger.
    fn trigger(&mut self, barrier: Barrier) {
        let now = self.now();
        let running = self.running_tasks();
        let sources: Vec<_> =
            running.iter().copied().filter(|task| self.enumerators.is_source(task.vertex)).collect();
        if sources.is_empty() {
            return;
        }
        let owing: BTreeSet<Participant> =
            running.iter().map(|task| (task.vertex, task.subtask)).collect();
        match self.enumerators.snapshot() {
            Ok(enumerators) => {
                self.coordinator.begun(barrier, owing, enumerators, now);
                for task in sources {
                    self.mail(task, TaskMail::Trigger(barrier));
                }
            }
            Err(error) => {
                self.coordinator.begun(barrier, owing, Vec::new(), now);
                let reason = crate::report::chain_of(&error);
                let decisions = self.coordinator.failed(barrier.id, &reason, now);
                self.carry_out_decisions(decisions);
            }
        }
    }

    fn complete(&mut self, barrier: Barrier, manifest: Manifest, took: Duration) {
        if let Err(error) = self.request.storage.complete(&manifest) {
            let reason = crate::report::chain_of(&error);
            self.discard(barrier.id);
            let job = self.request.name.clone();
            return self.give_up(JobError::Checkpoint { job, id: barrier.id, reason });
        }
        let bytes = manifest.operators.iter().map(bytes_of).sum();
        self.checkpoints.push(CompletedCheckpoint { id: barrier.id, took, bytes });
        self.request.progress.checkpoint_completed();
        if matches!(barrier.kind, BarrierKind::ExactlyOnce | BarrierKind::AtLeastOnce) {
            self.latest = Some(manifest);
            self.retain(barrier.id);
        }
        for task in self.running_tasks() {
            self.mail(task, TaskMail::Complete(barrier.id));
        }
    }

    /// Keeps the newest checkpoints and removes those before them.
    fn retain(&mut self, id: CheckpointId) {
        self.retained.push(id);
        let option = &option_table::CHECKPOINTS_RETAINED;
        let keep = self.request.config.get(option).unwrap_or(1).max(1) as usize;
        while self.retained.len() > keep {
            let oldest = self.retained.remove(0);
            self.discard(oldest);
        }
    }

    fn discard(&self, id: CheckpointId) {
        if let Err(error) = self.request.storage.discard(id) {
            tracing::warn!(checkpoint = %id, %error, "a checkpoint could not be removed");
        }
    }

    /// At the job's end its checkpoints go, unless it failed or the user keeps them.
    pub(super) fn discard_checkpoints(&mut self, result: &Result<(), JobError>) {
        let option = &option_table::CHECKPOINT_RETAIN_ON_CANCEL;
        let kept = self.request.config.get(option).unwrap_or(false);
        let ended = match result {
            Ok(()) => true,
            Err(JobError::Cancelled { .. }) => !kept,
            Err(_) => false,
        };
        if ended {
            for id in std::mem::take(&mut self.retained) {
                self.discard(id);
            }
        }
    }
}

fn bytes_of(entry: &OperatorEntry) -> u64 {
    entry.state.keyed.as_ref().map_or(0, |handle| handle.bytes)
}
