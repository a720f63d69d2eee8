//! The registry of data sets, fed by hand with what workers report (FLIP-67).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use crossbeam_channel::Receiver;
use element::{Attempt, DataSetId, Generation, MemoryStore, SubtaskIndex, TaskManagerId};
use shuffle::{FileShuffle, PartitionDescriptor, PartitionIdentity};
use slackwater_runtime::cluster::{
    DataSetPart, DataSets, Deletion, TaskManagerHandle, TaskManagerMessage, WorkerReport,
};

const SET: DataSetId = DataSetId(7);

fn worker(data_sets: &DataSets, id: u64) -> Receiver<TaskManagerMessage> {
    let (sender, mailbox) = crossbeam_channel::unbounded();
    let service = Arc::new(FileShuffle::new(Arc::new(MemoryStore::default())));
    data_sets.register(&TaskManagerHandle { id: TaskManagerId(id), slots: 1, sender, service });
    mailbox
}

fn part(worker: u64, generation: u32, producer: u32) -> DataSetPart {
    let identity = PartitionIdentity::DataSet {
        data_set: SET,
        generation: Generation(generation),
        attempt: Attempt(0),
        producer: SubtaskIndex(producer),
    };
    DataSetPart {
        worker: TaskManagerId(worker),
        descriptor: PartitionDescriptor::new(identity, 1),
        of: 2,
        bytes: 100,
        rows: 10,
        external: false,
    }
}

fn report(worker: u64, sequence: u64, parts: Vec<DataSetPart>) -> WorkerReport {
    WorkerReport {
        worker: TaskManagerId(worker),
        sequence,
        heartbeat: 0,
        answers: None,
        parts,
        failures: Vec::new(),
        tasks: 0,
    }
}

/// P6, P7: a registry that is started anew learns from reports alone what is complete.
#[test]
fn a_restarted_registry_learns_from_reports_what_is_complete() {
    let data_sets = DataSets::new();
    let _mailboxes = [worker(&data_sets, 0), worker(&data_sets, 1)];
    data_sets.reported(report(0, 1, vec![part(0, 3, 0)]));
    assert!(!data_sets.is_complete(SET));
    let listed = data_sets.get(SET).unwrap();
    assert_eq!((listed.is_complete, listed.partitions, listed.bytes), (false, 1, 100));
    data_sets.reported(report(1, 1, vec![part(1, 3, 1)]));
    assert!(data_sets.is_complete(SET));
    assert_eq!(data_sets.locate(SET).unwrap().len(), 2);
    assert_eq!(data_sets.get(SET).unwrap().generation, Generation(3));
}

/// tC17: a part of another making, reported late, is no part of the one that is kept.
#[test]
fn parts_of_two_makings_are_never_mixed() {
    let data_sets = DataSets::new();
    let mailbox = worker(&data_sets, 0);
    data_sets.reported(report(0, 1, vec![part(0, 3, 0), part(0, 2, 1)]));
    assert!(!data_sets.is_complete(SET));
    let TaskManagerMessage::ReleaseDataSets { partitions, .. } = mailbox.try_recv().unwrap() else {
        panic!("the stray is to be dropped");
    };
    assert_eq!(partitions, [part(0, 2, 1).descriptor.identity]);
}

/// P6: a whole report that lacks a part means that the part is lost, and its data set with it.
#[test]
fn a_part_that_is_reported_no_more_is_lost() {
    let data_sets = DataSets::new();
    let mailboxes = [worker(&data_sets, 0), worker(&data_sets, 1)];
    data_sets.reported(report(0, 1, vec![part(0, 1, 0)]));
    data_sets.reported(report(1, 1, vec![part(1, 1, 1)]));
    data_sets.reported(report(0, 1, Vec::new()));
    assert!(data_sets.is_complete(SET), "that report was overtaken");
    data_sets.reported(report(0, 2, Vec::new()));
    assert!(!data_sets.is_complete(SET));
    assert!(matches!(mailboxes[1].try_recv(), Ok(TaskManagerMessage::ReleaseDataSets { .. })));
}

/// P9, P11: a worker that is gone owes no answer.
#[test]
fn a_deletion_does_not_wait_for_a_worker_that_is_gone() {
    let data_sets = DataSets::new();
    let _mailbox = worker(&data_sets, 0);
    data_sets.reported(report(0, 1, vec![part(0, 1, 0), part(0, 1, 1)]));
    let request = data_sets.delete(SET);
    assert_eq!(data_sets.deletion(request), Some(Deletion::Pending));
    data_sets.worker_lost(TaskManagerId(0), "was lost");
    assert_eq!(data_sets.deletion(request), Some(Deletion::Done));
}
