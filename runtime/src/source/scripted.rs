//! [`ScriptedSource`]: a source that does what a script says, for tests of programs and of the engine.
//!
//! A script is a list of steps for one reader: records, watermarks, changes of the backlog flag, and
//! conditions to wait for. Nothing depends on time: a step that waits goes on when its condition
//! holds. Positions are stored in checkpoints, so a restored reader goes on where it was.
//!
//! ```text
//!   reader                                   enumerator
//!     -- "the flag becomes b" ------------->   sets the flag, for all readers
//!     <------------- "go on" ---------------   behind the flag, in the same mailbox
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use element::{BATCH_RECORDS, Batch, Clock, SubtaskIndex, Timestamp, decode_exact, encode_to_vec};

use super::{
    Boundedness, EnumeratorContext, ReaderContext, ReaderPoll, Source, SourceReader,
    SplitEnumerator,
};

/// Between two looks at a condition.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// One step of a script.
#[derive(Clone)]
pub enum ScriptStep<T> {
    /// Emits a record.
    Record(T, Option<Timestamp>),
    /// Emits a watermark of the source's own; for strategies without a generator.
    Watermark(Timestamp),
    /// Changes the backlog flag of the whole source. As the first step of the first script it holds
    /// before any reader begins.
    Backlog(bool),
    /// Waits until the condition holds.
    Await(Arc<dyn Fn() -> bool + Send + Sync>),
}

impl<T> ScriptStep<T> {
    /// A record with a timestamp in milliseconds.
    pub fn at(millis: i64, value: T) -> Self {
        Self::Record(value, Some(Timestamp::from_millis(millis)))
    }

    /// A watermark in milliseconds.
    #[must_use]
    pub fn watermark(millis: i64) -> Self {
        Self::Watermark(Timestamp::from_millis(millis))
    }

    /// Waits until `condition` holds.
    pub fn until(condition: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self::Await(Arc::new(condition))
    }
}

impl<T: fmt::Debug> fmt::Debug for ScriptStep<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(value, at) => write!(f, "Record({value:?}, {at:?})"),
            Self::Watermark(mark) => write!(f, "Watermark({mark:?})"),
            Self::Backlog(is_backlog) => write!(f, "Backlog({is_backlog})"),
            Self::Await(_) => f.write_str("Await"),
        }
    }
}

/// Scripts, one a split; the readers share them evenly, each in the order of its scripts.
#[derive(Clone, Debug)]
pub struct ScriptedSource<T> {
    scripts: Arc<Vec<Vec<ScriptStep<T>>>>,
    boundedness: Boundedness,
}

impl<T: Clone + Send + Sync + 'static> ScriptedSource<T> {
    /// One script, for one reader. The source ends behind its last step.
    pub fn new(steps: impl IntoIterator<Item = ScriptStep<T>>) -> Self {
        Self::parts([steps.into_iter().collect::<Vec<_>>()])
    }

    /// Several scripts: script `i` is read by subtask `i` modulo the parallelism.
    pub fn parts(scripts: impl IntoIterator<Item = Vec<ScriptStep<T>>>) -> Self {
        let scripts = Arc::new(scripts.into_iter().collect());
        Self { scripts, boundedness: Boundedness::Bounded }
    }

    /// Says that it never ends, whatever its script does.
    #[must_use]
    pub fn unbounded(mut self) -> Self {
        self.boundedness = Boundedness::Unbounded;
        self
    }
}

/// A script and the position of its next step.
type Position = (u32, u64);

impl<T: Clone + Send + Sync + 'static> Source for ScriptedSource<T> {
    type Item = T;
    type Split = Position;

    fn boundedness(&self) -> Boundedness {
        self.boundedness
    }

    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<Position>>> {
        let first = self.scripts.first().and_then(|script| script.first());
        let first = match first {
            Some(ScriptStep::Backlog(is_backlog)) => Some(*is_backlog),
            _ => None,
        };
        let (left, flag) = match restored {
            Some(bytes) => decode_exact::<(Vec<Position>, Option<bool>)>(bytes)?,
            None => ((0..).zip(&*self.scripts).map(|(i, _)| (i, 0)).collect(), first),
        };
        Ok(Box::new(Enumerator { left, flag }))
    }

    fn reader(
        &self,
        context: &ReaderContext,
    ) -> anyhow::Result<Box<dyn SourceReader<T, Position>>> {
        Ok(Box::new(Reader {
            scripts: Arc::clone(&self.scripts),
            clock: Arc::clone(&context.clock),
            splits: VecDeque::new(),
            asked: false,
        }))
    }
}

struct Enumerator {
    left: Vec<Position>,
    flag: Option<bool>,
}

impl SplitEnumerator<Position> for Enumerator {
    fn start(&mut self, context: &mut EnumeratorContext<Position>) -> anyhow::Result<()> {
        if let Some(flag) = self.flag {
            context.set_is_processing_backlog(flag);
        }
        Ok(())
    }

    fn split_requested(
        &mut self,
        reader: SubtaskIndex,
        context: &mut EnumeratorContext<Position>,
    ) -> anyhow::Result<()> {
        let readers = context.parallelism().max(1);
        let (own, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.left).into_iter().partition(|(i, _)| i % readers == reader.0);
        self.left = left;
        for split in own {
            context.assign(reader, split);
        }
        context.no_more_splits(reader);
        Ok(())
    }

    fn reader_event(
        &mut self,
        reader: SubtaskIndex,
        event: &[u8],
        context: &mut EnumeratorContext<Position>,
    ) -> anyhow::Result<()> {
        let flag = decode_exact::<bool>(event)?;
        self.flag = Some(flag);
        context.set_is_processing_backlog(flag);
        context.send_event(reader, Vec::new());
        Ok(())
    }

    fn snapshot(&mut self) -> anyhow::Result<Vec<u8>> {
        Ok(encode_to_vec(&(self.left.clone(), self.flag)))
    }
}

struct Reader<T> {
    scripts: Arc<Vec<Vec<ScriptStep<T>>>>,
    clock: Arc<dyn Clock>,
    splits: VecDeque<Position>,
    /// Whether the enumerator was asked to change the flag and has not answered.
    asked: bool,
}

impl<T: Clone> Reader<T> {
    /// The records from `next` on, up to another kind of step.
    fn records(script: &[ScriptStep<T>], next: &mut u64) -> anyhow::Result<Batch<T>> {
        let mut batch = Batch::default();
        while let Some(ScriptStep::Record(value, at)) = script.get(usize::try_from(*next)?) {
            if batch.len() >= BATCH_RECORDS || !batch.admits(*at) {
                break;
            }
            batch.push(value.clone(), *at);
            *next += 1;
        }
        Ok(batch)
    }
}

impl<T: Clone + Send + Sync> SourceReader<T, Position> for Reader<T> {
    fn add_split(&mut self, split: Position) {
        self.splits.push_back(split);
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<T>> {
        loop {
            let Some((part, next)) = self.splits.front_mut() else {
                return Ok(ReaderPoll::NeedSplit);
            };
            let Some(script) = self.scripts.get(*part as usize) else {
                anyhow::bail!("no script {part}");
            };
            match script.get(usize::try_from(*next)?) {
                None => {
                    self.splits.pop_front();
                }
                Some(ScriptStep::Record(..)) => {
                    return Ok(ReaderPoll::Batch(Self::records(script, next)?));
                }
                Some(ScriptStep::Watermark(mark)) => {
                    *next += 1;
                    return Ok(ReaderPoll::Watermark(*mark));
                }
                // Said before any reader began.
                Some(ScriptStep::Backlog(_)) if (*part, *next) == (0, 0) => *next += 1,
                Some(ScriptStep::Backlog(_)) if self.asked => return Ok(ReaderPoll::Later(None)),
                Some(ScriptStep::Backlog(is_backlog)) => {
                    self.asked = true;
                    return Ok(ReaderPoll::Event(encode_to_vec(is_backlog)));
                }
                Some(ScriptStep::Await(condition)) if condition() => *next += 1,
                Some(ScriptStep::Await(_)) => {
                    return Ok(ReaderPoll::Later(Some(self.clock.now() + LOOK_AGAIN)));
                }
            }
        }
    }

    fn snapshot(&mut self) -> Vec<Position> {
        self.splits.iter().copied().collect()
    }

    fn enumerator_event(&mut self, _: &[u8]) -> anyhow::Result<()> {
        self.asked = false;
        if let Some((_, next)) = self.splits.front_mut() {
            *next += 1;
        }
        Ok(())
    }
}
