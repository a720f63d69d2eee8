//! What the coordinator decides, carried out.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;
use element::{
    Barrier, BarrierKind, CheckpointId, FileRole, SpillStore, SubtaskIndex, VertexId, option_table,
};
use graph::{Exchange, InputTreatment, ResolvedMode};
use state::SnapshotHandle;

use super::{CompletedCheckpoint, JobMaster, JobRequest, SavepointRequest, UnitState};
use crate::checkpoint::{
    Decision, Manifest, OperatorEntry, Participant, RestorePoint, stored_manifests,
};
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
                    self.uncover(id);
                    self.answer_savepoint(id, Err(reason));
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
    pub(super) fn trigger(&mut self, barrier: Barrier) {
        if let Some(reason) = self.lacks_tasks() {
            // What does not run cannot store its part, and without it nothing is whole.
            return self.answer_savepoint(barrier.id, Err(reason));
        }
        let now = self.now();
        let running = self.running_tasks();
        let sources: Vec<_> = running
            .iter()
            .copied()
            .filter(|task| self.enumerators.is_source(task.vertex))
            .collect();
        if sources.is_empty() {
            return self.answer_savepoint(barrier.id, Err("the sources have ended".to_owned()));
        }
        let owing: BTreeSet<Participant> = running
            .iter()
            .filter(|task| !self.awaiting.contains_key(task))
            .map(|task| (task.vertex, task.subtask))
            .collect();
        match self.enumerators.snapshot() {
            Ok(enumerators) => {
                self.coordinator.begun(barrier, owing, enumerators, now);
                self.note_runs(barrier.id);
                let waiting = self.parts_of_waiting(barrier.id);
                self.coordinator.add_parts(barrier.id, waiting);
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

    /// A client asks for a savepoint.
    pub(super) fn savepoint(
        &mut self,
        kind: BarrierKind,
        directory: PathBuf,
        answer: Sender<Result<PathBuf, JobError>>,
    ) {
        let request = SavepointRequest { directory, answer };
        match self.next_savepoint(kind) {
            Ok(barrier) => {
                self.savepoints.insert(barrier.id, request);
                self.trigger(barrier);
            }
            Err(reason) => self.answer(&request, Err(reason)),
        }
    }

    /// The barrier of a savepoint that can be taken at this moment, or why there is none (D13).
    pub(super) fn next_savepoint(&mut self, kind: BarrierKind) -> Result<Barrier, String> {
        if self.is_batch() {
            return Err("a batch job keeps no state to save".to_owned());
        }
        match self.lacks_tasks() {
            Some(reason) => Err(reason),
            None => self.coordinator.savepoint(kind),
        }
    }

    /// Why some part of the job could not take part in a checkpoint, by name, if one could not: it
    /// waits for a blocking result or is about to be restarted.
    fn lacks_tasks(&self) -> Option<String> {
        self.states.iter().enumerate().find_map(|(unit, state)| {
            let what = match state {
                UnitState::Waiting { .. } if !self.inputs_finished(unit) => {
                    "waits for a blocking result that is not complete"
                }
                UnitState::Waiting { .. } => "is not deployed",
                UnitState::Running(running) if running.failure.is_some() => "has failed",
                UnitState::Running(_) | UnitState::Finished => return None,
            };
            let (vertex, _) = self.units.get(unit)?.tasks.first()?;
            let name = &self.request.plan.vertex(*vertex)?.name;
            Some(format!("`{name}` {what}"))
        })
    }

    /// Whoever asked for a savepoint learns that there is none; nothing happens for a checkpoint.
    fn answer_savepoint(&mut self, id: CheckpointId, result: Result<PathBuf, String>) {
        if let (Err(reason), true) = (&result, self.suspending == Some(id)) {
            self.end_without_checkpoint(reason);
        }
        if let Some(request) = self.savepoints.remove(&id) {
            self.answer(&request, result);
        }
    }

    fn answer(&self, request: &SavepointRequest, result: Result<PathBuf, String>) {
        let job = self.request.name.clone();
        let result = result.map_err(|reason| JobError::SavepointDeclined { job, reason });
        if request.answer.send(result).is_err() {
            tracing::debug!("nobody waits for a savepoint any more");
        }
    }

    /// The files of a savepoint go where they were asked for, and away from the checkpoints.
    fn export(&self, manifest: &Manifest, directory: &std::path::Path) -> Result<PathBuf, String> {
        let name = format!("savepoint-{}-{}", self.request.id, manifest.id);
        let target = directory.join(name);
        crate::checkpoint::export(manifest, &*self.request.storage.store(), &target)?;
        self.discard(manifest.id);
        Ok(target)
    }

    /// Tasks behind a source that begins a backlog will say when they have drained: until then no
    /// checkpoint is due (decision D4), also if they have not yet heard of the backlog.
    pub(super) fn expect_drains(&mut self, source: VertexId) {
        let plan = Arc::clone(&self.request.plan);
        if plan.mode != ResolvedMode::Mixed {
            return;
        }
        let mut reached = BTreeSet::from([source]);
        let mut open = vec![source];
        while let Some(from) = open.pop() {
            let edges = plan.edges.iter().filter(|edge| edge.from.vertex == from);
            for edge in edges.filter(|edge| edge.exchange == Exchange::Pipelined) {
                if reached.insert(edge.to.vertex) {
                    open.push(edge.to.vertex);
                }
            }
        }
        let now = self.now();
        let running = self.running_tasks();
        for vertex in plan.vertices.iter().filter(|vertex| reached.contains(&vertex.id)) {
            let Some(head) = vertex.chain.first() else { continue };
            if head.treatment == InputTreatment::Direct || head.attributes.output_only_at_end {
                continue;
            }
            for subtask in (0..vertex.parallelism).map(SubtaskIndex) {
                let who = (vertex.id, subtask);
                if running.iter().any(|task| (task.vertex, task.subtask) == who) {
                    let decisions = self.coordinator.collecting(who, true, now);
                    self.carry_out_decisions(decisions);
                }
            }
        }
    }

    pub(super) fn complete(&mut self, barrier: Barrier, manifest: Manifest, took: Duration) {
        if let Some(request) = self.savepoints.remove(&barrier.id) {
            let exported = self.export(&manifest, &request.directory);
            if let Err(reason) = &exported {
                tracing::warn!(%reason, "a savepoint could not be written");
                self.discard(barrier.id);
                self.coordinator.goes_on(barrier.id, self.now());
            }
            self.stopped |= exported.is_ok() && barrier.kind.stops();
            for task in self.running_tasks() {
                match exported {
                    Ok(_) if barrier.kind.stops() => {
                        self.mail(task, TaskMail::Complete(barrier.id));
                    }
                    // Nothing is committed for it: a failure goes back to the checkpoint before it, and
                    // what is read again would be committed twice (FLIP-203).
                    Ok(_) => {}
                    Err(_) => self.mail(task, TaskMail::Aborted(barrier.id)),
                }
            }
            return self.answer(&request, exported);
        }
        if let Err(error) = self.request.storage.complete(&manifest) {
            let reason = crate::report::chain_of(&error);
            self.discard(barrier.id);
            let job = self.request.name.clone();
            return self.give_up(JobError::Checkpoint { job, id: barrier.id, reason });
        }
        let bytes = manifest.operators.iter().map(bytes_of).sum();
        self.checkpoints.push(CompletedCheckpoint { id: barrier.id, took, bytes });
        self.request.progress.checkpoint_completed();
        let store = self.request.storage.store();
        self.shared.keep(&manifest);
        self.latest = Some(RestorePoint { manifest, store });
        self.retain(barrier.id);
        self.release_runs(barrier.id);
        self.stopped |= barrier.kind.stops();
        for task in self.running_tasks() {
            self.mail(task, TaskMail::Complete(barrier.id));
        }
        self.release_covered(barrier.id);
    }

    /// Notes the runs that lie there before a checkpoint that is taken behind a backlog. One that was given
    /// up as the backlog ended has sealed some that no other names; all that is still needed of them
    /// this checkpoint names, for its barrier comes to every sorter behind them.
    fn note_runs(&mut self, id: CheckpointId) {
        if self.coordinator.is_backlog() || !super::keeps_runs(&self.request.plan) {
            return;
        }
        match self.request.storage.runs() {
            Ok(runs) => self.runs_before = Some((id, runs)),
            Err(error) => tracing::warn!(%error, "sealed runs could not be listed"),
        }
    }

    /// Removes what was noted for a checkpoint that is complete, and that no checkpoint names.
    fn release_runs(&mut self, id: CheckpointId) {
        let noted = self.runs_before.take_if(|(noted, _)| *noted == id);
        if let Some((_, runs)) = noted
            && let Err(error) = self.request.storage.release_runs(runs)
        {
            tracing::warn!(%error, "sealed runs could not be removed");
        }
    }

    /// Keeps the newest checkpoints and removes those before them.
    fn retain(&mut self, id: CheckpointId) {
        self.retained.push(id);
        let option = &option_table::CHECKPOINTS_RETAINED;
        let keep = self.request.config.get(option).unwrap_or(1).max(1) as usize;
        while self.retained.len() > keep {
            let oldest = self.retained.remove(0);
            self.shared.release(oldest, self.coordinator.next_id());
            self.discard(oldest);
        }
        let due = self.shared.take_due(id);
        self.delete_shared(due);
    }

    fn delete_shared(&self, names: BTreeSet<String>) {
        let store = self.request.storage.store();
        for name in names {
            match store.delete(FileRole::Snapshot, &name) {
                Err(error) if !error.is_not_found() => {
                    tracing::warn!(%error, "a shared file could not be removed");
                }
                _ => {}
            }
        }
    }

    pub(super) fn discard(&self, id: CheckpointId) {
        if let Err(error) = self.request.storage.discard(id, &self.shared.in_use()) {
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
                self.shared.release(id, id);
                self.discard(id);
            }
        }
        let doomed = self.shared.take_doomed();
        self.delete_shared(doomed);
        self.sweep_checkpoints();
    }

    /// While no task runs: what belongs to no whole checkpoint is of no use to anybody.
    pub(super) fn sweep_checkpoints(&self) {
        let runs = |state: &UnitState| matches!(state, UnitState::Running(_));
        if self.is_batch() || self.states.iter().any(runs) {
            return;
        }
        if let Err(error) = self.request.storage.sweep() {
            tracing::warn!(%error, "leftovers of checkpoints could not be removed");
        }
    }
}

fn bytes_of(entry: &OperatorEntry) -> u64 {
    entry.state.keyed.as_ref().map_or(0, SnapshotHandle::written_bytes)
}

/// Checkpoints of an earlier run that this one takes over, oldest first: those in its own directory,
/// if it goes on from one of them. They are then discarded as its own are. The second list is of the
/// others there, which are nobody's to discard.
pub(super) fn claimed(request: &JobRequest) -> (Vec<Manifest>, Vec<Manifest>) {
    let store = request.storage.store();
    let root = |store: &dyn SpillStore| store.local_path("")?.canonicalize().ok();
    match &request.restore {
        Some(point) if root(&*point.store).is_some() && root(&*point.store) == root(&*store) => {
            let (newest, stored) = (point.manifest.id, stored_manifests(&*store));
            if stored.iter().any(|manifest| manifest.id == newest) {
                stored.into_iter().partition(|manifest| manifest.id <= newest)
            } else {
                (Vec::new(), stored)
            }
        }
        _ => (Vec::new(), Vec::new()),
    }
}
