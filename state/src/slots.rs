//! [`Slots`]: the states of one backend, each of cells of its own type. The one place with `unsafe`.
//!
//! A handle reaches its slot on every access. What it has of it is a [`SlotRef`], which is typed and says
//! whose slot it is, so that nothing but that is asked. Asking `Any` for the slot's type takes a call, whose
//! answer is written in two halves and read as a whole: the processor waits there for all that it has under
//! way. A fold over 1,000 keys in memory took 33 ns a record with it and 23 without (bench `state`, "in
//! memory"). Builds with debug assertions, the tests' among them, ask `Any` again on every access.

#![expect(unsafe_code, reason = "asking `Any` on every access costs a third of a record")]

use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cell::Cell;
use crate::slot::{AnySlot, Slot};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Which slot of which [`Slots`].
///
/// **Invariant:** that slot is a [`Slot`] of cells `C`, unless the id is 0, which nobody has.
pub(crate) struct SlotRef<C> {
    /// The id of the slots.
    of: u64,
    index: usize,
    cells: PhantomData<fn() -> C>,
}

impl<C> SlotRef<C> {
    /// No slot.
    pub(crate) fn none() -> Self {
        Self { of: 0, index: 0, cells: PhantomData }
    }
}

impl<C> Clone for SlotRef<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for SlotRef<C> {}

/// A slot, and the type of its cells.
struct Noted {
    cells: TypeId,
    slot: Box<dyn AnySlot>,
}

/// All states of a backend, in the order of their declaration.
///
/// **Invariant:** no other has the same id. A slot is put in by [`Slots::push`] and never replaced.
pub(crate) struct Slots {
    id: u64,
    all: Vec<Noted>,
}

impl Slots {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), all: Vec::new() }
    }

    /// A number that no other has in this process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The number of slots.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds a slot, whose index is the number of those before it.
    pub(crate) fn push<C: Cell>(&mut self, slot: Slot<C>) -> SlotRef<C> {
        self.all.push(Noted { cells: TypeId::of::<C>(), slot: Box::new(slot) });
        SlotRef { of: self.id, index: self.all.len() - 1, cells: PhantomData }
    }

    /// The slot of that index, if its cells are `C`.
    pub(crate) fn find<C: Cell>(&self, index: usize) -> Option<SlotRef<C>> {
        let noted = self.all.get(index)?;
        let at = SlotRef { of: self.id, index, cells: PhantomData };
        (noted.cells == TypeId::of::<C>()).then_some(at)
    }

    /// Whether the slot is one of these.
    #[inline]
    pub(crate) fn has<C>(&self, at: SlotRef<C>) -> bool {
        at.of == self.id
    }

    /// The slot, if it is one of these.
    #[inline]
    pub(crate) fn get_mut<C: Cell>(&mut self, at: SlotRef<C>) -> Option<&mut Slot<C>> {
        if !self.has(at) {
            return None;
        }
        let slot = self.all.get_mut(at.index)?.slot.as_mut();
        debug_assert!((slot as &dyn Any).is::<Slot<C>>(), "a `SlotRef` is of its slot's cells");
        // SAFETY: `at` is one of these slots, for nobody else has the id; so the slot there is a `Slot` of
        // cells `C`, as a `SlotRef<C>` says. The borrow is that of `self`.
        Some(unsafe { &mut *std::ptr::from_mut(slot).cast::<Slot<C>>() })
    }

    /// A slot of any cells.
    ///
    /// # Panics
    ///
    /// If there is none of that index.
    pub(crate) fn any(&self, index: usize) -> &dyn AnySlot {
        self.all[index].slot.as_ref()
    }

    /// All slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn AnySlot> {
        self.all.iter().map(|noted| noted.slot.as_ref())
    }

    /// All slots, to work on, but not to be replaced.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut dyn AnySlot> {
        self.all.iter_mut().map(|noted| noted.slot.as_mut() as &mut dyn AnySlot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::One;
    use crate::handle::StateKind;
    use crate::slot::{Body, Meta};
    use crate::store_key::StateId;

    fn slot<V: element::Record + Clone>(name: &str) -> Slot<One<V>> {
        let schema = <One<V> as Cell>::schema();
        let id = StateId::of(name);
        let meta = Meta { name: name.into(), id, kind: StateKind::Value, schema, ttl: None };
        Slot { meta, body: Body::Cached(Vec::new()) }
    }

    #[test]
    fn a_slot_is_found_as_what_it_is_and_as_nothing_else() {
        let (mut slots, mut others) = (Slots::new(), Slots::new());
        let number = slots.push(slot::<u64>("number"));
        let text = slots.push(slot::<String>("text"));
        others.push(slot::<String>("of others"));
        for _ in 0..2 {
            let name = |slot: Option<&mut Slot<One<u64>>>| slot.map(|s| s.meta.name.to_string());
            assert_eq!(name(slots.get_mut(number)), Some("number".to_owned()));
            assert_eq!(name(slots.get_mut(SlotRef::none())), None);
            assert_eq!(name(others.get_mut(number)), None);
            assert_eq!(slots.get_mut(text).expect("it is there").meta.name.as_ref(), "text");
            let found = slots.find::<One<String>>(1).expect("it is there");
            assert_eq!(slots.get_mut(found).expect("it is there").meta.name.as_ref(), "text");
        }
        assert!(slots.find::<One<i64>>(0).is_none() && slots.find::<One<u64>>(2).is_none());
    }
}
