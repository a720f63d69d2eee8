//! [`Handle`]: how a user's state handle finds its slot in the backend, and what it declares.
//!
//! A handle is made with a name, anywhere and cheaply, and binds itself to the backend on its first
//! use; after that its slot is a number. A handle used with another backend binds itself again.

use std::borrow::Cow;
use std::cell::Cell as StdCell;
use std::fmt;

use element::Schema;

use crate::cell::Cell;
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

/// Name and slot of a user's handle.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: StateKind,
    pub(crate) ttl: Option<TtlConfig>,
    /// The backend's id and the slot in it; backends count from 1.
    bound: StdCell<(u64, usize)>,
}

impl Handle {
    pub(crate) fn new(name: Cow<'static, str>, kind: StateKind) -> Self {
        Self { name, kind, ttl: None, bound: StdCell::new((0, 0)) }
    }

    /// The slot in `backend`, whose cells are `C`.
    #[inline]
    pub(crate) fn slot<C: Cell>(
        &self,
        backend: &mut KeyedStateBackend,
    ) -> Result<usize, StateError> {
        let (id, slot) = self.bound.get();
        if id == backend.id() { Ok(slot) } else { self.bind::<C>(backend) }
    }

    #[cold]
    fn bind<C: Cell>(&self, backend: &mut KeyedStateBackend) -> Result<usize, StateError> {
        let slot = backend.declare::<C>(self.descriptor::<C>())?;
        self.bound.set((backend.id(), slot));
        Ok(slot)
    }

    pub(crate) fn descriptor<C: Cell>(&self) -> StateDescriptor {
        let name = self.name.clone().into_owned();
        StateDescriptor { name, kind: self.kind, schema: C::schema(), ttl: self.ttl }
    }
}
