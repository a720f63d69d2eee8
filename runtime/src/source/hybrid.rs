//! [`HybridSource`]: several parts, read one after the other: history, then what is live (FLIP-150).
//!
//! All parts but the last are backlog (FLIP-309); the last part's own word counts. A part begins when
//! every reader has finished the one before it, so no record of a later part is read before one of an
//! earlier.
//!
//! ```text
//!   enumerator                              reader
//!     <------------ split request -----------
//!     --- split (part, position, bytes) ---->
//!     --- no more of part i ---------------->
//!     <------------ finished part i ---------   when all readers have: the next part begins
//!     --- switch to part i+1 --------------->
//!     <-- words of the part's own, both ways -->
//! ```

mod enumerator;
mod reader;

use std::sync::Arc;

use element::option_table::CacheSourceIdentity;
use element::{decode_exact, encode_to_vec};

use super::{Boundedness, ReaderContext, Source, SourceReader, SplitEnumerator, TypedSource};
use enumerator::HybridEnumerator;
use reader::HybridReader;

/// Several sources of one type, read one after the other. All but the last must be bounded.
pub struct HybridSource<T> {
    parts: Parts<T>,
}

/// Makes a part from where the one before it ended.
type MakePart<T> = Arc<dyn Fn(&[u8]) -> anyhow::Result<Arc<dyn TypedSource<T>>> + Send + Sync>;

/// One part.
enum Part<T> {
    Known(Arc<dyn TypedSource<T>>),
    Following(Boundedness, MakePart<T>),
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Known(source) => Self::Known(Arc::clone(source)),
            Self::Following(boundedness, make) => Self::Following(*boundedness, Arc::clone(make)),
        }
    }
}

impl<T> Part<T> {
    fn boundedness(&self) -> Boundedness {
        match self {
            Self::Known(source) => source.boundedness(),
            Self::Following(boundedness, _) => *boundedness,
        }
    }
}

impl<T: Send + 'static> HybridSource<T> {
    /// Begins with `first`: a bounded part, read as backlog.
    pub fn starting_with(first: impl Source<Item = T>) -> Self {
        Self { parts: Parts(vec![Part::Known(Arc::new(first))]) }
    }

    /// Goes on with `next`.
    #[must_use]
    pub fn then(mut self, next: impl Source<Item = T>) -> Self {
        self.parts.0.push(Part::Known(Arc::new(next)));
        self
    }

    /// Goes on with what `make` makes of the position at which the part before it ended
    /// ([`SplitEnumerator::end_position`]), so that nothing is read twice or skipped.
    ///
    /// Called by the enumerator at the switch and by every reader, and again after a restore: for one
    /// position it makes sources that read the same.
    #[must_use]
    pub fn then_from<S: Source<Item = T>>(
        mut self,
        boundedness: Boundedness,
        make: impl Fn(&[u8]) -> anyhow::Result<S> + Send + Sync + 'static,
    ) -> Self {
        let make: MakePart<T> =
            Arc::new(move |position| Ok(Arc::new(make(position)?) as Arc<dyn TypedSource<T>>));
        self.parts.0.push(Part::Following(boundedness, make));
        self
    }
}

/// The parts in order.
struct Parts<T>(Vec<Part<T>>);

impl<T> Clone for Parts<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Parts<T> {
    fn is_last(&self, part: u32) -> bool {
        part as usize + 1 >= self.0.len()
    }

    /// The source of a part that begins at `position`.
    fn open(&self, part: u32, position: &[u8]) -> anyhow::Result<Arc<dyn TypedSource<T>>> {
        match self.0.get(part as usize) {
            Some(Part::Known(source)) => Ok(Arc::clone(source)),
            Some(Part::Following(_, make)) => make(position),
            None => anyhow::bail!("a hybrid source has no part {part}"),
        }
    }

    /// Refuses a part that has another one behind it and never ends.
    fn check(&self) -> anyhow::Result<()> {
        let ahead = self.0.split_last().map(|(_, ahead)| ahead).unwrap_or_default();
        match ahead.iter().position(|part| part.boundedness() == Boundedness::Unbounded) {
            None => Ok(()),
            Some(part) => anyhow::bail!(
                "part {part} of a hybrid source never ends, so part {} never begins",
                part + 1
            ),
        }
    }
}

/// A split of one part: the part's number, where the part begins, and the split's own bytes.
type PartSplit = (u32, Vec<u8>, Vec<u8>);

/// What enumerator and readers say to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    NoMoreOf(u32),
    Finished(u32),
    SwitchTo(u32),
    /// A word between the enumerator and a reader of a part.
    OfPart(u32, Vec<u8>),
}

impl Word {
    fn encode(&self) -> Vec<u8> {
        let (tag, part, bytes): (u8, u32, &[u8]) = match self {
            Self::NoMoreOf(part) => (0, *part, &[]),
            Self::Finished(part) => (1, *part, &[]),
            Self::SwitchTo(part) => (2, *part, &[]),
            Self::OfPart(part, bytes) => (3, *part, bytes),
        };
        encode_to_vec(&(tag, part, bytes.to_vec()))
    }

    fn decode(bytes: &[u8]) -> anyhow::Result<Self> {
        match decode_exact::<(u8, u32, Vec<u8>)>(bytes)? {
            (0, part, _) => Ok(Self::NoMoreOf(part)),
            (1, part, _) => Ok(Self::Finished(part)),
            (2, part, _) => Ok(Self::SwitchTo(part)),
            (3, part, bytes) => Ok(Self::OfPart(part, bytes)),
            (other, ..) => anyhow::bail!("{other} is no word of a hybrid source"),
        }
    }
}

impl<T: Send + 'static> Source for HybridSource<T> {
    type Item = T;
    type Split = PartSplit;

    fn boundedness(&self) -> Boundedness {
        self.parts.0.last().map_or(Boundedness::Bounded, Part::boundedness)
    }

    /// Those of its parts. A part that begins where another one ends has none before that is read, so
    /// that a cache of it that outlives the program could not notice a change: it is refused.
    fn identity(&self, by: CacheSourceIdentity) -> anyhow::Result<Option<String>> {
        let mut parts = Vec::new();
        for (number, part) in self.parts.0.iter().enumerate() {
            match part {
                Part::Known(source) => parts.extend(source.identity(by)?),
                Part::Following(..) => anyhow::bail!(
                    "where part {number} of a hybrid source begins, and so what it holds, is not \
                     known before part {} has been read",
                    number.saturating_sub(1)
                ),
            }
        }
        Ok((!parts.is_empty()).then(|| parts.join(", then ")))
    }

    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<PartSplit>>> {
        self.parts.check()?;
        Ok(Box::new(HybridEnumerator::new(self.parts.clone(), restored)?))
    }

    fn reader(
        &self,
        context: &ReaderContext,
    ) -> anyhow::Result<Box<dyn SourceReader<T, PartSplit>>> {
        Ok(Box::new(HybridReader::new(self.parts.clone(), context.clone())))
    }
}
