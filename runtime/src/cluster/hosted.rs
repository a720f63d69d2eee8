//! [`HostedPartitions`]: every partition at rest that one TaskManager has written and not dropped.
//!
//! ```text
//!  a task ends -> of its job -(settle: keep)-> of the cluster -(release)-> dropped
//!                     '-------(settle: not named)----------------------------^
//! ```
//!
//! One owner of each release: a partition leaves this table when, and only when, it is dropped.
//! Touched by the TaskManager's thread alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use element::{JobId, TaskManagerId};
use shuffle::{PartitionIdentity, ShuffleService};

use super::data_set::DataSetPart;
use super::data_sets::ReleaseFailure;
use crate::events::FinishedOutput;

/// Who wants a partition.
enum Owner {
    /// The job that wrote it, until it is settled.
    Job(JobId),
    /// The cluster, until it is released.
    Cluster,
}

struct Hosted {
    owner: Owner,
    output: FinishedOutput,
    of: u32,
}

/// The partitions that one TaskManager holds.
pub(super) struct HostedPartitions {
    worker: TaskManagerId,
    service: Arc<dyn ShuffleService>,
    partitions: BTreeMap<PartitionIdentity, Hosted>,
}

impl HostedPartitions {
    pub(super) fn new(worker: TaskManagerId, service: Arc<dyn ShuffleService>) -> Self {
        Self { worker, service, partitions: BTreeMap::new() }
    }

    /// A task of `of` subtasks has finished partitions.
    pub(super) fn finished(&mut self, job: JobId, of: u32, outputs: Vec<FinishedOutput>) {
        for output in outputs {
            let hosted = Hosted { owner: Owner::Job(job), of, output };
            self.partitions.insert(hosted.output.descriptor.identity, hosted);
        }
    }

    /// A job is over: what is named belongs to the cluster, what else it wrote is dropped.
    pub(super) fn settle(&mut self, job: JobId, keep: &[PartitionIdentity]) -> Vec<ReleaseFailure> {
        for identity in keep {
            if let Some(hosted) = self.partitions.get_mut(identity) {
                hosted.owner = Owner::Cluster;
            }
        }
        let of_job = |hosted: &Hosted| matches!(hosted.owner, Owner::Job(of) if of == job);
        let rest: Vec<PartitionIdentity> = self
            .partitions
            .iter()
            .filter(|(_, hosted)| of_job(hosted))
            .map(|(identity, _)| *identity)
            .collect();
        self.release(&rest)
    }

    /// Drops partitions, over all errors. One that fails stays in the table.
    pub(super) fn release(&mut self, partitions: &[PartitionIdentity]) -> Vec<ReleaseFailure> {
        let mut failures = Vec::new();
        for identity in partitions {
            match self.service.release(identity) {
                Ok(()) => {
                    self.partitions.remove(identity);
                }
                Err(error) => {
                    tracing::warn!(%error, "a partition could not be released");
                    failures.push(ReleaseFailure::new(*identity, &error));
                }
            }
        }
        failures
    }

    /// Its worker is gone: what does not outlive it is dropped.
    pub(super) fn lose(&mut self) {
        let stays = |identity: &PartitionIdentity| self.service.outlives_worker(identity);
        let rest: Vec<PartitionIdentity> =
            self.partitions.keys().copied().filter(|identity| !stays(identity)).collect();
        self.release(&rest);
        self.partitions.clear();
    }

    /// Every part that the cluster keeps here.
    pub(super) fn parts(&self) -> Vec<DataSetPart> {
        let kept = self.partitions.values().filter(|hosted| matches!(hosted.owner, Owner::Cluster));
        kept.map(|hosted| DataSetPart {
            worker: self.worker,
            descriptor: hosted.output.descriptor.clone().as_finished(&hosted.output.finished),
            of: hosted.of,
            bytes: hosted.output.finished.bytes,
            rows: hosted.output.finished.records.unwrap_or(0),
            external: self.service.outlives_worker(&hosted.output.descriptor.identity),
        })
        .collect()
    }
}
