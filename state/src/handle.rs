//! [`Handle`]: how a user's state handle finds its slot in the backend, and what it declares.
//!
//! A handle is made with a name, anywhere and cheaply, and binds itself to the backend on its first
//! use; after that its slot is a [`SlotRef`]. A handle used with another backend binds itself again.
//! With a time to live it is a handle to cells of another type, which hold stamps.

use std::borrow::Cow;
use std::cell::Cell as StdCell;
use std::fmt;

use element::Schema;

use crate::cell::Cell;
use crate::slots::SlotRef;
use crate::{KeyedStateBackend, StateError, TtlConfig};

/// The kinds of state that a snapshot can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateKind {
    /// One value.
    Value,
    /// A list of values, in the order added.
    List,
    /// A map, each entry stored by itself.
    Map,
    /// A value that others are reduced into.
    Reducing,
    /// An accumulator.
    Aggregating,
}

impl fmt::Display for StateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value => "value",
            Self::List => "list",
            Self::Map => "map",
            Self::Reducing => "reducing",
            Self::Aggregating => "aggregating",
        })
    }
}

/// What a state is called, what kind it is, and what its values look like.
#[derive(Clone, Debug, PartialEq)]
pub struct StateDescriptor {
    /// Unique within the operator.
    pub name: String,
    /// The kind.
    pub kind: StateKind,
    /// The schema of the stored values; for a list, of the list; for a map, of the map's values.
    /// With a time to live each value stands behind its stamp.
    pub schema: Schema,
    /// How long values live; for ever without.
    pub ttl: Option<TtlConfig>,
}

/// What a user's handle holds: a binding to cells `P`, or, with a time to live, to cells `S`.
// With a tag of its own: it is looked at on every access.
#[repr(u8)]
pub(crate) enum Handle<P, S> {
    Plain(Binding<P>),
    Expiring(Binding<S>, TtlConfig),
}

impl<P: Cell, S: Cell> Handle<P, S> {
    pub(crate) fn new(name: Cow<'static, str>, kind: StateKind) -> Self {
        Self::Plain(Binding { name, kind, ttl: None, at: StdCell::new(SlotRef::none()) })
    }

    /// The same, with a time to live.
    pub(crate) fn with_ttl(self, ttl: TtlConfig) -> Self {
        let (name, kind) = match self {
            Self::Plain(Binding { name, kind, .. }) => (name, kind),
            Self::Expiring(Binding { name, kind, .. }, _) => (name, kind),
        };
        let at = StdCell::new(SlotRef::none());
        Self::Expiring(Binding { name, kind, ttl: Some(ttl), at }, ttl)
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Plain(binding) => &binding.name,
            Self::Expiring(binding, _) => &binding.name,
        }
    }

    pub(crate) fn descriptor(&self) -> StateDescriptor {
        match self {
            Self::Plain(binding) => binding.descriptor(),
            Self::Expiring(binding, _) => binding.descriptor(),
        }
    }

    /// Declares the state to `backend`.
    pub(crate) fn bind(&self, backend: &mut KeyedStateBackend) -> Result<(), StateError> {
        match self {
            Self::Plain(binding) => backend.slot(binding).map(|_| ()),
            Self::Expiring(binding, _) => backend.slot(binding).map(|_| ()),
        }
    }
}

impl<P, S> fmt::Debug for Handle<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, kind, ttl) = match self {
            Self::Plain(Binding { name, kind, ttl, .. }) => (name, kind, ttl),
            Self::Expiring(Binding { name, kind, ttl, .. }, _) => (name, kind, ttl),
        };
        f.debug_struct("Handle").field("name", name).field("kind", kind).field("ttl", ttl).finish()
    }
}

/// The name of a state of cells `C`, and its slot in the backend that it was last used with.
pub(crate) struct Binding<C> {
    name: Cow<'static, str>,
    kind: StateKind,
    ttl: Option<TtlConfig>,
    at: StdCell<SlotRef<C>>,
}

impl<C: Cell> Binding<C> {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The slot, which may be another backend's.
    #[inline]
    pub(crate) fn at(&self) -> SlotRef<C> {
        self.at.get()
    }

    pub(crate) fn set(&self, at: SlotRef<C>) {
        self.at.set(at);
    }

    pub(crate) fn descriptor(&self) -> StateDescriptor {
        let name = self.name.clone().into_owned();
        StateDescriptor { name, kind: self.kind, schema: C::schema(), ttl: self.ttl }
    }
}
