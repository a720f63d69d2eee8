//! [`PartFold`]: a backlog's records combined by key and pane before any sort.
//!
//! Nothing is late in a phase that begins before the first watermark, so there no record is needed by
//! itself: a key and pane costs one entry of the combining table, however many records it has, and one
//! access of state at the end of the phase. Later phases sort, for a record may be late there and must
//! go out as it is.

use std::marker::PhantomData;
use std::sync::Arc;

use element::Timestamp;

use super::assigner::{Aligned, WindowError};
use super::bounds::Window;
use super::grid::PaneGrid;
use crate::operator::aggregate::Aggregator;
use crate::operator::function::Fold;

/// The bytes that name a pane or window.
pub(crate) type Part = [u8; 16];

/// Which part of its key a record with a timestamp belongs to.
#[derive(Clone, Copy, Debug)]
pub enum Parts {
    /// Its pane: windows overlap.
    Panes(PaneGrid),
    /// Its only window.
    Windows(Aligned),
    /// The window of all time, timestamp or not.
    All,
}

impl Parts {
    fn of(self, timestamp: Option<Timestamp>) -> Result<Part, WindowError> {
        let at = || timestamp.map(|at| i128::from(at.0)).ok_or(WindowError::NoTimestamp);
        Ok(match self {
            Self::Panes(grid) => part_of_pane(grid.pane(at()?)),
            Self::Windows(aligned) => {
                let start = aligned.floor(at()?);
                Window::clamped(start, start + i128::from(aligned.size)).namespace()
            }
            Self::All => Window::GLOBAL.namespace(),
        })
    }
}

/// The part that a pane is: ordered as panes are.
fn part_of_pane(pane: i128) -> Part {
    (pane ^ i128::MIN).to_be_bytes()
}

/// The pane that a part is; `None` if it is none.
pub(crate) fn pane_of_part(part: &[u8]) -> Option<i128> {
    Some(i128::from_be_bytes(part.try_into().ok()?) ^ i128::MIN)
}

/// Combines by an aggregator, part by part.
pub struct PartFold<A, I> {
    aggregator: Arc<A>,
    parts: Parts,
    input: PhantomData<fn(I)>,
}

impl<A, I> PartFold<A, I> {
    /// Combines by `aggregator` the records of each of `parts`.
    #[must_use]
    pub fn shared(aggregator: &Arc<A>, parts: Parts) -> Arc<Self> {
        Arc::new(Self { aggregator: Arc::clone(aggregator), parts, input: PhantomData })
    }
}

impl<I: 'static, A: Aggregator<I>> Fold<I> for PartFold<A, I> {
    type Partial = A::Accumulator;

    const PART: usize = size_of::<Part>();

    fn part(&self, _: &I, timestamp: Option<Timestamp>, into: &mut Vec<u8>) -> anyhow::Result<()> {
        into.extend_from_slice(&self.parts.of(timestamp)?);
        Ok(())
    }

    #[inline]
    fn fold(&self, partial: Option<&mut A::Accumulator>, value: I) -> Option<A::Accumulator> {
        match partial {
            None => Some(self.aggregator.first(value)),
            Some(accumulator) => {
                self.aggregator.add(accumulator, value);
                None
            }
        }
    }

    fn merge(&self, into: &mut A::Accumulator, later: A::Accumulator) {
        self.aggregator.merge(into, later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tW15: what a fold appends has the length that it states, at both ends of time too, and parts of
    /// one kind order as their panes or windows do.
    #[test]
    fn a_part_has_the_length_that_is_stated() {
        struct Longest;

        impl Aggregator<i64> for Longest {
            type Accumulator = i64;
            type Output = i64;

            fn first(&self, value: i64) -> i64 {
                value
            }

            fn add(&self, longest: &mut i64, value: i64) {
                *longest = value.max(*longest);
            }

            fn merge(&self, longest: &mut i64, later: i64) {
                *longest = later.max(*longest);
            }

            fn result(&self, longest: &i64) -> i64 {
                *longest
            }
        }

        let tumbling = Aligned { size: 10, slide: 10, offset: 3 };
        let sliding = PaneGrid::of(Aligned { size: 25, slide: 10, offset: -3 });
        for parts in [Parts::Panes(sliding), Parts::Windows(tumbling), Parts::All] {
            let fold = PartFold::<Longest, i64>::shared(&Arc::new(Longest), parts);
            let mut before = Vec::new();
            for at in [i64::MIN, -11, -1, 0, 1, 9, 10, 22, i64::MAX] {
                let mut part = Vec::new();
                fold.part(&at, Some(Timestamp(at)), &mut part).unwrap();
                assert_eq!(part.len(), PartFold::<Longest, i64>::PART, "{parts:?} at {at}");
                assert!(part >= before, "{parts:?} at {at}");
                before = part;
            }
            let without = fold.part(&0, None, &mut Vec::new());
            assert_eq!(without.is_ok(), matches!(parts, Parts::All));
        }
    }
}
