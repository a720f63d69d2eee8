//! What an operator says about itself, and all that planning knows of it.
//!
//! Payloads of nodes implement [`Describe`]; the rules of this crate read [`OperatorAttributes`].
//! Left out on purpose: types, closures, state: those stay inside the payload.

/// Whether a node makes records, changes them or takes them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperatorKind {
    /// Makes records; has no input.
    Source {
        /// Whether its input ends by itself.
        bounded: bool,
    },
    /// Takes records and makes records.
    Operator,
    /// Takes records and makes none.
    Sink,
}

/// With which neighbours an operator may share a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ChainingPolicy {
    /// With those before and after it.
    #[default]
    Always,
    /// Only with those after it: it starts a chain.
    Head,
    /// With none: it has a task of its own.
    Never,
}

/// What a rolling aggregate emits over a sorted backlog (decision D9). The last value of a key is the
/// same either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum BacklogEmission {
    /// Of each key its last value, once a phase; partial results are combined before any sort.
    #[default]
    LastOfKey,
    /// Every value, as in stream mode: records are sorted one by one, and nothing is combined.
    EveryUpdate,
}

/// What planning knows of an operator.
///
/// Made by one of its constructors, such as [`keyed`](OperatorAttributes::keyed) or
/// [`sink`](OperatorAttributes::sink), and changed by field.
///
/// Source: FLIP-327, "operator attributes"; FLIP-331, "output only after end of stream".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorAttributes {
    /// Source, operator or sink.
    pub kind: OperatorKind,
    /// Whether it reads its input by key; its keyed inputs come over [`Partitioner::KeyGroup`].
    ///
    /// [`Partitioner::KeyGroup`]: crate::Partitioner::KeyGroup
    pub keyed: bool,
    /// Whether it keeps keyed state or timers; without them nothing is gained by sorting.
    pub uses_state_or_timers: bool,
    /// Whether it owns sorters of its own, which then get the memory of a sorted input (M8).
    pub sorts_internally: bool,
    /// Whether it is an associative aggregate whose partial results can be combined.
    pub combines: bool,
    /// Whether its producers combine, too, before anything moves. Of meaning only where it combines.
    pub producers_combine: bool,
    /// What it emits over a backlog, if it combines. Batch mode emits final values either way.
    pub backlog_emission: BacklogEmission,
    /// Whether it emits nothing before the end of its input (FLIP-331).
    pub output_only_at_end: bool,
    /// Whether its subtasks all store the same, and each is given all of it back.
    pub broadcast_state: bool,
    /// Its wish about chains.
    pub chaining: ChainingPolicy,
    /// Share of managed memory that it asks for beside its sorters; 0 for none.
    pub memory_weight: u32,
}

impl OperatorAttributes {
    const PLAIN: Self = Self {
        kind: OperatorKind::Operator,
        keyed: false,
        uses_state_or_timers: false,
        sorts_internally: false,
        combines: false,
        producers_combine: false,
        backlog_emission: BacklogEmission::LastOfKey,
        output_only_at_end: false,
        broadcast_state: false,
        chaining: ChainingPolicy::Always,
        memory_weight: 0,
    };

    /// A source whose input ends by itself.
    #[must_use]
    pub const fn bounded_source() -> Self {
        Self { kind: OperatorKind::Source { bounded: true }, ..Self::PLAIN }
    }

    /// A source whose input never ends.
    #[must_use]
    pub const fn unbounded_source() -> Self {
        Self { kind: OperatorKind::Source { bounded: false }, ..Self::PLAIN }
    }

    /// An operator without key, state or wishes.
    #[must_use]
    pub const fn operator() -> Self {
        Self::PLAIN
    }

    /// A keyed operator with state.
    #[must_use]
    pub const fn keyed() -> Self {
        Self { keyed: true, uses_state_or_timers: true, ..Self::PLAIN }
    }

    /// A sink.
    #[must_use]
    pub const fn sink() -> Self {
        Self { kind: OperatorKind::Sink, ..Self::PLAIN }
    }

    /// Whether it is a source.
    #[must_use]
    pub const fn is_source(&self) -> bool {
        matches!(self.kind, OperatorKind::Source { .. })
    }

    /// Whether it is a source whose input never ends.
    #[must_use]
    pub const fn is_unbounded(&self) -> bool {
        matches!(self.kind, OperatorKind::Source { bounded: false })
    }
}

/// What a node's payload must be able to say.
///
/// Implemented by the operator factories of `runtime` and by stand-ins of tests; called by
/// [`plan`](crate::plan()), once for each node that the sinks need, on the caller's thread.
pub trait Describe {
    /// What planning needs to know; the same at every call.
    fn attributes(&self) -> OperatorAttributes;
}

impl<T: Describe + ?Sized> Describe for std::sync::Arc<T> {
    fn attributes(&self) -> OperatorAttributes {
        (**self).attributes()
    }
}

impl<T: Describe + ?Sized> Describe for Box<T> {
    fn attributes(&self) -> OperatorAttributes {
        (**self).attributes()
    }
}
