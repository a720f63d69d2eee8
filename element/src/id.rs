//! Names for things: each index and each id is a type of its own.

use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}

ids! {
    /// One submission of a job to an environment.
    JobId(u64);
    /// A transformation, as the program wrote it; unique within an environment.
    NodeId(u32);
    /// A vertex of the job graph: one chain of operators.
    VertexId(u32);
    /// An edge of the job graph.
    EdgeId(u32);
    /// Which of the parallel subtasks of a vertex, from 0.
    SubtaskIndex(u32);
    /// Which part of a result partition, from 0.
    SubpartitionIndex(u32);
    /// How often a job has been started before: 0 for its first run.
    Attempt(u32);
    /// A checkpoint of one job, from 1 upwards.
    CheckpointId(u64);
    /// A worker of an environment, unique per start of it.
    TaskManagerId(u64);
    /// Which making of a data set: 0 for its first, one more after each loss or invalidation.
    Generation(u32);
}

/// The result of one subtask on one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The job that writes it.
    pub job: JobId,
    /// The attempt that writes it.
    pub attempt: Attempt,
    /// The edge it serves.
    pub edge: EdgeId,
    /// The subtask that writes it.
    pub producer: SubtaskIndex,
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}/{}/{}", self.job, self.attempt, self.edge, self.producer)
    }
}

/// A cached data set: unique in its environment, or named for ever by its fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataSetId(pub u128);

/// The bit that tells named data sets from those of one environment.
const NAMED: u128 = 1 << 63;

impl DataSetId {
    /// The data set of a name, the same in every program.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let half = |salt: u8| {
            let mut bytes = vec![salt];
            bytes.extend_from_slice(name.as_bytes());
            u128::from(crate::hash_key_bytes(&bytes).0)
        };
        Self(half(0) << 64 | half(1) | NAMED)
    }

    /// Whether it is one of a name.
    #[must_use]
    pub const fn is_named(self) -> bool {
        self.0 & NAMED != 0
    }
}

impl fmt::Display for DataSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
