//! Which output of an operator an edge reads, and which subtask each record goes to.
//!
//! Written by the program's transformations; settled by `translate`, where a forward edge between
//! unlike parallelisms becomes another kind; read by `runtime`, which makes selectors of them.

use std::fmt;

/// An output of an operator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum OutputTag {
    /// Its ordinary output.
    #[default]
    Main,
    /// A side output, by name.
    Side(String),
}

impl fmt::Display for OutputTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main => f.write_str("main"),
            Self::Side(name) => write!(f, "side `{name}`"),
        }
    }
}

/// Which subtask of the consumer a record goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Partitioner {
    /// To the subtask with the producer's index; between unlike parallelisms it becomes
    /// [`Rescale`](Self::Rescale) (one divides the other) or [`Rebalance`](Self::Rebalance).
    #[default]
    Forward,
    /// As [`Forward`](Self::Forward), but unlike parallelisms are an error. Never in a job graph.
    ForwardStrict,
    /// To the subtask that owns the key group.
    KeyGroup,
    /// To all subtasks in turn.
    Rebalance,
    /// To the consumer subtasks that belong to the producer's, in turn.
    Rescale,
    /// To a subtask drawn at random, from a seed.
    Shuffle,
    /// To every subtask.
    Broadcast,
    /// To the first subtask.
    Global,
    /// By a function of the user's, which the edge's payload holds.
    Custom,
}

impl Partitioner {
    /// Whether a producer subtask reaches only some consumer subtasks.
    #[must_use]
    pub const fn is_pointwise(self) -> bool {
        matches!(self, Self::Forward | Self::ForwardStrict | Self::Rescale)
    }

    /// Its name in plans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward | Self::ForwardStrict => "forward",
            Self::KeyGroup => "key group",
            Self::Rebalance => "rebalance",
            Self::Rescale => "rescale",
            Self::Shuffle => "shuffle",
            Self::Broadcast => "broadcast",
            Self::Global => "global",
            Self::Custom => "custom",
        }
    }
}

impl fmt::Display for Partitioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
