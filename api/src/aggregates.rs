//! The aggregates behind `count`, `sum`, `min`, `max`, `reduce` and `fold`.

use std::any::{Any, type_name};
use std::marker::PhantomData;
use std::ops::AddAssign;

use element::Record;
use runtime::user::raise;

use crate::Aggregator;

/// Why a sum has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SumError {
    /// An integer's sum is beyond its type. A wider type of the closure's result holds more.
    #[error("the sum of a key does not fit `{0}`")]
    Overflow(&'static str),
}

/// Counts records.
#[derive(Clone, Copy, Debug)]
pub struct Count;

impl<T> Aggregator<T> for Count {
    type Accumulator = u64;
    type Output = u64;

    #[inline]
    fn first(&self, _: T) -> u64 {
        1
    }

    #[inline]
    fn add(&self, count: &mut u64, _: T) {
        *count += 1;
    }

    #[inline]
    fn merge(&self, count: &mut u64, later: u64) {
        *count += later;
    }

    fn result(&self, count: &u64) -> u64 {
        *count
    }
}

/// Adds up a number of each record. Sums of the integers are checked: one that does not fit fails the
/// job with [`SumError`], in every build. Other types add as their `+=` does.
pub struct Sum<F, N> {
    number: F,
    kind: PhantomData<fn() -> N>,
}

impl<F, N> Sum<F, N> {
    /// Adds up what `number` finds.
    pub fn new(number: F) -> Self {
        Self { number, kind: PhantomData }
    }
}

impl<T, N, F> Aggregator<T> for Sum<F, N>
where
    N: Record + Clone + AddAssign,
    F: Fn(&T) -> N + Send + Sync + 'static,
{
    type Accumulator = N;
    type Output = N;

    #[inline]
    fn first(&self, value: T) -> N {
        (self.number)(&value)
    }

    #[inline]
    fn add(&self, sum: &mut N, value: T) {
        add(sum, (self.number)(&value));
    }

    #[inline]
    fn merge(&self, sum: &mut N, later: N) {
        add(sum, later);
    }

    #[inline]
    fn result(&self, sum: &N) -> N {
        sum.clone()
    }
}

/// Adds, or raises [`SumError`].
#[inline]
fn add<N: AddAssign + 'static>(sum: &mut N, later: N) {
    match checked_add(sum, &later) {
        Some(true) => {}
        Some(false) => raise(SumError::Overflow(type_name::<N>()).into()),
        None => *sum += later,
    }
}

/// Adds an integer, if it is one: whether the sum fits. Which type it is, is known when the call is
/// compiled, so one comparison is left of it.
#[inline]
fn checked_add<N: 'static>(sum: &mut N, later: &N) -> Option<bool> {
    let (sum, later): (&mut dyn Any, &dyn Any) = (sum, later);
    macro_rules! of_type {
        ($($int:ty)*) => {$(
            if let (Some(sum), Some(later)) = (sum.downcast_mut::<$int>(), later.downcast_ref()) {
                let added = sum.checked_add(*later);
                *sum = added.unwrap_or(*sum);
                return Some(added.is_some());
            }
        )*};
    }
    of_type! { u64 i64 u32 i32 u128 i128 usize isize u16 i16 u8 i8 }
    None
}

/// The least or greatest of a value of each record.
pub struct Extreme<F, V> {
    value: F,
    replaces: fn(&V, &V) -> bool,
}

impl<F, V: PartialOrd> Extreme<F, V> {
    /// The least of what `value` finds.
    pub fn least(value: F) -> Self {
        Self { value, replaces: |later, before| later < before }
    }

    /// The greatest of what `value` finds.
    pub fn greatest(value: F) -> Self {
        Self { value, replaces: |later, before| later > before }
    }
}

impl<T, V, F> Aggregator<T> for Extreme<F, V>
where
    V: Record + Clone + PartialOrd,
    F: Fn(&T) -> V + Send + Sync + 'static,
{
    type Accumulator = V;
    type Output = V;

    #[inline]
    fn first(&self, value: T) -> V {
        (self.value)(&value)
    }

    #[inline]
    fn add(&self, extreme: &mut V, value: T) {
        self.merge_value(extreme, (self.value)(&value));
    }

    #[inline]
    fn merge(&self, extreme: &mut V, later: V) {
        self.merge_value(extreme, later);
    }

    fn result(&self, extreme: &V) -> V {
        extreme.clone()
    }
}

impl<F, V> Extreme<F, V> {
    fn merge_value(&self, extreme: &mut V, later: V) {
        if (self.replaces)(&later, extreme) {
            *extreme = later;
        }
    }
}

/// Combines records by an associative function.
pub struct Reduce<F> {
    function: F,
}

impl<F> Reduce<F> {
    /// Combines by `function`: earlier record first.
    pub fn new(function: F) -> Self {
        Self { function }
    }
}

impl<T, F> Aggregator<T> for Reduce<F>
where
    T: Record + Clone,
    F: Fn(T, T) -> T + Send + Sync + 'static,
{
    type Accumulator = T;
    type Output = T;

    #[inline]
    fn first(&self, value: T) -> T {
        value
    }

    #[inline]
    fn add(&self, reduced: &mut T, value: T) {
        // The function takes values; the clone stands in while it runs.
        let before = reduced.clone();
        *reduced = (self.function)(before, value);
    }

    #[inline]
    fn merge(&self, reduced: &mut T, later: T) {
        let before = reduced.clone();
        *reduced = (self.function)(before, later);
    }

    fn result(&self, reduced: &T) -> T {
        reduced.clone()
    }
}

/// Folds records into a value.
pub struct FoldAggregate<A, F, M> {
    initial: A,
    add: F,
    merge: M,
}

impl<A, F, M> FoldAggregate<A, F, M> {
    /// Begins with `initial`; `add` folds a record in, `merge` what later records came to.
    pub fn new(initial: A, add: F, merge: M) -> Self {
        Self { initial, add, merge }
    }
}

impl<T, A, F, M> Aggregator<T> for FoldAggregate<A, F, M>
where
    A: Record + Clone + Sync,
    F: Fn(&mut A, T) + Send + Sync + 'static,
    M: Fn(&mut A, A) + Send + Sync + 'static,
{
    type Accumulator = A;
    type Output = A;

    #[inline]
    fn first(&self, value: T) -> A {
        let mut accumulator = self.initial.clone();
        (self.add)(&mut accumulator, value);
        accumulator
    }

    #[inline]
    fn add(&self, accumulator: &mut A, value: T) {
        (self.add)(accumulator, value);
    }

    #[inline]
    fn merge(&self, accumulator: &mut A, later: A) {
        (self.merge)(accumulator, later);
    }

    fn result(&self, accumulator: &A) -> A {
        accumulator.clone()
    }
}
