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

/// A co-group as the operator runs it.
pub struct CoGroup<K, A, B, O> {
    call: Arc<CoGroupCall<K, A, B, O>>,
    left: Vec<A>,
    right: Vec<B>,
    key: PhantomData<fn(K) -> O>,
}

impl<K, A, B, O> CoGroup<K, A, B, O> {
    /// Calls `call` once a key.
    #[must_use]
    pub fn new(call: Arc<CoGroupCall<K, A, B, O>>) -> Self {
        Self { call, left: Vec::new(), right: Vec::new(), key: PhantomData }
    }
}

impl<K, A, B, O> KeyedFunction<K, Either<A, B>, O> for CoGroup<K, A, B, O>
where
    K: Key,
    A: Record,
    B: Record,
{
    type Fold = NoFold<Either<A, B>>;

    fn element(
        &mut self,
        value: Either<A, B>,
        _: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        match value {
            Either::Left(value) => add(&mut self.left, value),
            Either::Right(value) => add(&mut self.right, value),
        }
        Ok(())
    }

    fn key_end(&mut self, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> {
        let (left, right) = (std::mem::take(&mut self.left), std::mem::take(&mut self.right));
        (self.call)(left, right, context)
    }
}

/// Adds to a list that is empty at each key: many keys have one record, which grows no list.
#[inline]
fn add<T>(list: &mut Vec<T>, value: T) {
    if list.is_empty() {
        *list = vec![value];
    } else {
        list.push(value);
    }
}
