//! [`CoGroup`]: all records of a key of two inputs, handed over together when both have ended.
//!
//! Its operator emits only at the end of its input (FLIP-331), so in every mode it collects both
//! inputs in one sorter and drains them by key (T9); nothing is kept in state. Holds the records of
//! one key in memory.

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, Record};

use super::either::Either;
use super::function::{KeyedFunction, NoFold};
use super::keyed_context::KeyedContext;

/// What is done with the records of a key: left, right, each in order of timestamp, then arrival.
pub type CoGroupCall<K, A, B, O> =
    dyn Fn(Vec<A>, Vec<B>, &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> + Send + Sync;

/// Records of a key that there is room for before the first comes, at most.
const MOST_ROOM: usize = 64;

/// A co-group as the operator runs it.
pub struct CoGroup<K, A, B, O> {
    call: Arc<CoGroupCall<K, A, B, O>>,
    left: Side<A>,
    right: Side<B>,
    key: PhantomData<fn(K) -> O>,
}

impl<K, A, B, O> CoGroup<K, A, B, O> {
    /// Calls `call` once a key.
    #[must_use]
    pub fn new(call: Arc<CoGroupCall<K, A, B, O>>) -> Self {
        Self { call, left: Side::default(), right: Side::default(), key: PhantomData }
    }
}

impl<K, A, B, O> KeyedFunction<K, Either<A, B>, O> for CoGroup<K, A, B, O>
where
    K: Key,
    A: Record,
    B: Record,
{
    type Fold = NoFold<Either<A, B>>;

    #[inline]
    fn element(
        &mut self,
        value: Either<A, B>,
        _: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        match value {
            Either::Left(value) => self.left.add(value),
            Either::Right(value) => self.right.add(value),
        }
        Ok(())
    }

    fn key_end(&mut self, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> {
        (self.call)(self.left.take(), self.right.take(), context)
    }
}

/// The records of a key of one input, in a list that is begun with about the room that the key before has
/// used: so it seldom grows.
struct Side<T> {
    list: Vec<T>,
    room: usize,
}

impl<T> Default for Side<T> {
    fn default() -> Self {
        Self { list: Vec::new(), room: 1 }
    }
}

impl<T> Side<T> {
    #[inline]
    fn add(&mut self, value: T) {
        if self.list.capacity() == 0 {
            self.list.reserve_exact(self.room);
        }
        self.list.push(value);
    }

    #[inline]
    fn take(&mut self) -> Vec<T> {
        let list = std::mem::take(&mut self.list);
        self.room = list.len().next_power_of_two().min(MOST_ROOM);
        list
    }
}
