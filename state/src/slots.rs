//! [`Slots`]: the states of one backend, each of cells of its own type. The one place with `unsafe`.
//!
//! A handle reaches its slot on every access. `Any` asks the slot for its type by a call, whose answer is
//! written in two halves and read as a whole: the processor waits there for all that it has under way. A
//! fold over 1,000 keys in memory took 33 ns a record with it and 23 without (bench `state`, "in memory").
//! So the type of each slot is noted beside it. Builds with debug assertions, the tests' among them, ask
//! `Any` again on every access.

#![expect(unsafe_code, reason = "asking `Any` on every access costs a third of a record")]

use std::any::{Any, TypeId};

use crate::cell::Cell;
use crate::slot::{AnySlot, Slot};

/// A slot, and the type of its cells.
///
/// **Invariant:** the slot is a [`Slot`] of cells of that type. It is put in by [`Slots::push`] and never
/// replaced.
struct Noted {
    cells: TypeId,
    slot: Box<dyn AnySlot>,
}

/// All states of a backend, in the order of their declaration.
#[derive(Default)]
pub(crate) struct Slots {
    all: Vec<Noted>,
}

impl Slots {
    /// The number of slots.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds a slot, whose index is the number of those before it.
    pub(crate) fn push<C: Cell>(&mut self, slot: Slot<C>) {
        self.all.push(Noted { cells: TypeId::of::<C>(), slot: Box::new(slot) });
    }

    /// The slot of that index, whose cells are `C`.
    ///
    /// # Panics
    ///
    /// If its cells are others, or there is none.
    #[inline]
    pub(crate) fn get_mut<C: Cell>(&mut self, index: usize) -> &mut Slot<C> {
        let Noted { cells, slot } = &mut self.all[index];
        assert!(*cells == TypeId::of::<C>(), "a handle binds only to a slot of its own cells");
        let slot = slot.as_mut();
        debug_assert!((slot as &dyn Any).is::<Slot<C>>(), "the type noted is the slot's");
        // SAFETY: the slot is a `Slot` of cells of the type that is noted, which is `C`. The borrow is that
        // of `self`.
        unsafe { &mut *std::ptr::from_mut(slot).cast::<Slot<C>>() }
    }

    /// Whether the slot of that index has cells `C`.
    pub(crate) fn holds<C: Cell>(&self, index: usize) -> bool {
        self.all.get(index).is_some_and(|noted| noted.cells == TypeId::of::<C>())
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
    use std::panic::{AssertUnwindSafe, catch_unwind};

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
        let mut slots = Slots::default();
        slots.push(slot::<u64>("number"));
        slots.push(slot::<String>("text"));
        for _ in 0..2 {
            assert_eq!(slots.get_mut::<One<u64>>(0).meta.name.as_ref(), "number");
            assert_eq!(slots.get_mut::<One<String>>(1).meta.name.as_ref(), "text");
        }
        assert!(slots.holds::<One<String>>(1));
        assert!(!slots.holds::<One<i64>>(0) && !slots.holds::<One<u64>>(2));
        for index in [1, 2] {
            let wrong = AssertUnwindSafe(|| slots.get_mut::<One<u64>>(index).meta.id);
            assert!(catch_unwind(wrong).is_err(), "{index}");
        }
    }
}
