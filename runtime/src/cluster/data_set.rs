//! [`ClusterDataSet`]: the life of a cached result, from `cache()` until its environment closes.
//!
//! ```text
//!            a job begins              ended well             all parts are reported
//!  Declared -------------> Producing ------------> Promoting -----------------------> Kept
//!     ^                        |                       |                               |
//!     |<-- all jobs failed ----'                       |                               |
//!     |<-- a worker is lost, a part is not kept -------'                               |
//!     |<-- invalidated, evicted, a part lost or damaged, its worker gone --------------|
//!     |                                                                                |
//!     '<-- invalidated, evicted, made anew -- Damaged <-- some parts lost, if asked for'
//!                                                '------> Promoting, when they are made again
//! ```
//!
//! Moved by [`super::DataSets`] alone. Left out on purpose: who is told, and when.
//!
//! Source: FLIP-67, "cluster partitions"; FLIP-205, "Fault tolerance".

use std::collections::{BTreeMap, BTreeSet};

use element::{DataSetId, Generation, SubtaskIndex, TaskManagerId};
use shuffle::{PartitionDescriptor, PartitionIdentity};

/// A part of a data set, as the worker reports it that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSetPart {
    /// Who wrote it. It may be gone where partitions outlive their workers.
    pub worker: TaskManagerId,
    /// Which part it is, with its checksum.
    pub descriptor: PartitionDescriptor,
    /// How many parts the data set has: the producer's subtasks, at least 1.
    pub of: u32,
    /// Bytes at rest.
    pub bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Whether it rests apart from its worker, so that the loss of the worker is not its own.
    pub external: bool,
}

impl DataSetPart {
    /// Data set, generation and place; `None` for a result within one job.
    #[must_use]
    pub fn place(&self) -> Option<(DataSetId, Generation, SubtaskIndex)> {
        place_of(&self.descriptor.identity)
    }
}

/// Data set, generation and place of a partition; `None` for a result within one job.
pub(crate) fn place_of(
    identity: &PartitionIdentity,
) -> Option<(DataSetId, Generation, SubtaskIndex)> {
    match identity {
        PartitionIdentity::DataSet { data_set, generation, producer, .. } => {
            Some((*data_set, *generation, *producer))
        }
        PartitionIdentity::Result(_) => None,
    }
}

/// Parts by the subtask that wrote them.
pub type Parts = BTreeMap<SubtaskIndex, DataSetPart>;

/// Where a data set stands. See the drawing above.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ClusterDataSet {
    /// Nothing is kept and no job makes it.
    #[default]
    Declared,
    /// Jobs make it; each has a generation of its own.
    Producing {
        /// The generations under way; never empty.
        open: BTreeSet<Generation>,
    },
    /// A job that made it has ended well; its workers are asked to keep their parts.
    Promoting {
        /// The making that counts.
        generation: Generation,
        /// Parts reported so far; fewer than the data set has.
        parts: Parts,
    },
    /// Every part of one making is there: jobs may read it.
    Kept {
        /// Which making.
        generation: Generation,
        /// All of its parts.
        parts: Parts,
    },
    /// Some parts are lost; the others are kept, so that only those are made again.
    Damaged {
        /// Which making.
        generation: Generation,
        /// The parts that are left; never empty.
        parts: Parts,
        /// Whether a job makes the others now.
        repairing: bool,
    },
}

/// What becomes of a part that a worker reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// It is one of those waited for, or known already.
    Taken,
    /// It was the last one: the data set is complete.
    Completes,
    /// Nobody wants it: of another making, or after its data set was given up.
    Stray,
}

impl ClusterDataSet {
    /// A job begins to make it.
    pub fn begin(&mut self, generation: Generation) {
        match self {
            Self::Declared => *self = Self::Producing { open: BTreeSet::from([generation]) },
            Self::Producing { open } => {
                open.insert(generation);
            }
            // Another job was quicker: what this one makes will be turned away.
            Self::Promoting { .. } | Self::Kept { .. } | Self::Damaged { .. } => {}
        }
    }

    /// Gives some parts up; they are handed back to be released. If none is left nothing is kept.
    pub fn lose_parts(&mut self, is_lost: impl Fn(&DataSetPart) -> bool) -> Parts {
        let (Self::Kept { generation, parts } | Self::Damaged { generation, parts, .. }) = self
        else {
            return Parts::new();
        };
        let generation = *generation;
        let (lost, left): (Parts, Parts) =
            std::mem::take(parts).into_iter().partition(|(_, part)| is_lost(part));
        let repairing = matches!(self, Self::Damaged { repairing: true, .. });
        *self = match (left.is_empty(), lost.is_empty()) {
            (true, _) => Self::Declared,
            (false, true) if self.is_complete() => Self::Kept { generation, parts: left },
            // A repair under way makes too few parts, and is turned away.
            (false, _) => Self::Damaged { generation, parts: left, repairing },
        };
        lost
    }

    /// A job has ended without keeping what it made.
    pub fn abandon(&mut self, generation: Generation) {
        match self {
            Self::Producing { open } => {
                open.remove(&generation);
                if open.is_empty() {
                    *self = Self::Declared;
                }
            }
            // A job that makes it whole, and was begun before, does not end the repair of another.
            Self::Damaged { generation: of, repairing, .. } if *of == generation => {
                *repairing = false;
            }
            Self::Damaged { .. } => {}
            Self::Declared | Self::Promoting { .. } | Self::Kept { .. } => {}
        }
    }

    /// A job that made it has ended well. True if its making is the one that counts; then its parts
    /// are waited for. The first job wins; a making from before an invalidation does not count.
    pub fn promote(&mut self, generation: Generation) -> bool {
        let parts = match self {
            Self::Producing { open } if open.contains(&generation) => Parts::new(),
            Self::Damaged { generation: of, parts, repairing: true } if *of == generation => {
                std::mem::take(parts)
            }
            _ => return false,
        };
        *self = Self::Promoting { generation, parts };
        true
    }

    /// A worker says that it keeps a part.
    pub fn reported(&mut self, part: DataSetPart) -> Reported {
        let Some((_, generation, producer)) = part.place() else { return Reported::Stray };
        match self {
            Self::Kept { generation: kept, parts } if *kept == generation => {
                parts.insert(producer, part);
                Reported::Taken
            }
            Self::Promoting { generation: wanted, parts } if *wanted == generation => {
                let of = part.of as usize;
                parts.insert(producer, part);
                if parts.len() < of {
                    return Reported::Taken;
                }
                *self = Self::Kept { generation, parts: std::mem::take(parts) };
                Reported::Completes
            }
            Self::Damaged { parts, .. } if parts.get(&producer) == Some(&part) => Reported::Taken,
            _ => Reported::Stray,
        }
    }

    /// Takes up a part that a worker kept before this registry was there (P7).
    pub fn adopt(&mut self, part: DataSetPart) -> Reported {
        if let (Self::Declared, Some((_, generation, _))) = (&*self, part.place()) {
            *self = Self::Promoting { generation, parts: Parts::new() };
        }
        self.reported(part)
    }

    /// Gives it up, whole (P10); its parts are handed back to be released.
    pub fn give_up(&mut self) -> Parts {
        match std::mem::take(self) {
            Self::Promoting { parts, .. }
            | Self::Kept { parts, .. }
            | Self::Damaged { parts, .. } => parts,
            Self::Declared | Self::Producing { .. } => Parts::new(),
        }
    }

    /// Whether jobs may read it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Kept { .. })
    }

    /// The parts that workers have reported, and of which making.
    #[must_use]
    pub fn parts(&self) -> Option<(Generation, &Parts)> {
        match self {
            Self::Promoting { generation, parts }
            | Self::Kept { generation, parts }
            | Self::Damaged { generation, parts, .. } => Some((*generation, parts)),
            Self::Declared | Self::Producing { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(generation: u32, producer: u32, of: u32) -> DataSetPart {
        let identity = PartitionIdentity::DataSet {
            data_set: DataSetId(7),
            generation: Generation(generation),
            attempt: element::Attempt(0),
            producer: SubtaskIndex(producer),
        };
        DataSetPart {
            worker: TaskManagerId(0),
            descriptor: PartitionDescriptor::new(identity, 1),
            of,
            bytes: 10,
            rows: 1,
            external: false,
        }
    }

    #[test]
    fn a_data_set_is_complete_when_every_part_of_one_making_is_reported() {
        let mut set = ClusterDataSet::default();
        set.begin(Generation(1));
        assert!(set.promote(Generation(1)));
        assert_eq!(set.reported(part(1, 0, 2)), Reported::Taken);
        assert_eq!(set.reported(part(0, 1, 2)), Reported::Stray, "of an earlier making");
        assert!(!set.is_complete());
        assert_eq!(set.reported(part(1, 1, 2)), Reported::Completes);
        assert!(set.is_complete());
        assert_eq!(set.give_up().len(), 2);
        assert_eq!(set, ClusterDataSet::Declared);
    }

    /// A29: of two jobs that make one data set the first to end well counts.
    #[test]
    fn of_two_makings_the_first_to_end_well_counts() {
        let mut set = ClusterDataSet::default();
        set.begin(Generation(1));
        set.begin(Generation(2));
        assert!(set.promote(Generation(2)));
        assert!(!set.promote(Generation(1)));
        assert_eq!(set.reported(part(2, 0, 1)), Reported::Completes);
        assert_eq!(set.reported(part(1, 0, 1)), Reported::Stray);
    }

    #[test]
    fn a_data_set_that_has_lost_parts_is_complete_when_those_are_made_again() {
        let mut set = ClusterDataSet::default();
        set.begin(Generation(1));
        set.promote(Generation(1));
        let parts = [part(1, 0, 3), part(1, 1, 3), part(1, 2, 3)];
        for part in parts.clone() {
            assert_ne!(set.reported(part), Reported::Stray);
        }
        let is_second = |part: &DataSetPart| part.place().unwrap().2 == SubtaskIndex(1);
        assert_eq!(set.lose_parts(is_second).into_values().collect::<Vec<_>>(), [parts[1].clone()]);
        assert!(!set.is_complete());
        assert_eq!(set.reported(parts[1].clone()), Reported::Stray, "it was given up");
        assert_eq!(set.reported(parts[0].clone()), Reported::Taken);
        assert!(!set.promote(Generation(1)), "nobody repairs it");
        if let ClusterDataSet::Damaged { repairing, .. } = &mut set {
            *repairing = true;
        }
        set.abandon(Generation(2));
        assert!(set.promote(Generation(1)), "another job's making is none of the repair's");
        assert_eq!(set.reported(parts[1].clone()), Reported::Completes);
        assert_eq!(set.lose_parts(|_| true).len(), 3);
        assert_eq!(set, ClusterDataSet::Declared);
    }

    #[test]
    fn a_making_from_before_an_invalidation_does_not_count() {
        let mut set = ClusterDataSet::default();
        set.begin(Generation(1));
        assert!(set.give_up().is_empty());
        assert!(!set.promote(Generation(1)));
        set.begin(Generation(2));
        set.abandon(Generation(2));
        assert_eq!(set, ClusterDataSet::Declared);
    }
}
