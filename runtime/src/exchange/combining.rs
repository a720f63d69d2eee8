//! [`CombiningEdge`]: an edge by key whose producers combine before anything moves, in batch mode.
//!
//! ```text
//!   records -> table of partial results by key -> end of input, or keys that hardly repeat
//!                                                   -> partial results -> channel
//! ```
//!
//! A producer's table is a [`CombiningSorter`], so it holds its budget and spills beyond it. Where
//! records hardly combine it is emptied once, and the rest passes as it is. In the other modes, where
//! each record is to give a result, the edge is an ordinary one; both ends look at the mode.
//!
//! Left out on purpose: what a partial result is; that is the consumer's [`Fold`].

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use element::{
    Batch, ByteSize, Control, Key, MemoryBudget, Record, Timestamp, decode_key_exact, option_table,
};
use graph::ResolvedMode;
use sort::{CombinedStream, CombiningSorter, SorterOptions, SpillTarget};

use super::BytesEdge;
use crate::backlog::{FoldCombiner, prefix_with_hash};
use crate::context::TaskContext;
use crate::error::TaskError;
use crate::factory::{EdgeFactory, InputSpec, OutputSpec, Wire};
use crate::operator::either::Either;
use crate::operator::function::Fold;
use crate::operator::selector::KeySelector;
use crate::output::{BatchBuffer, Output, Pump, Signal};
use crate::user::guarded;

/// A record, or the canonical bytes of a key with what its records have combined to.
pub type Combined<T, P> = Either<T, (Vec<u8>, P)>;

/// Partial results handed over in one piece of work.
const PIECE: usize = 2_048;

/// Records after which a producer looks whether it gains anything.
const TRIAL: u64 = 1 << 17;

/// A table has one part in so many of the memory of a sorted input.
const SHARE: u64 = 4;

/// The least memory that a table is given.
const LEAST_MEMORY: ByteSize = ByteSize::kib(64);

/// Tables made so far: their files are told apart by it.
static TABLES: AtomicU64 = AtomicU64::new(0);

/// Whether producers combine: where nothing comes out before the end of the input.
pub(crate) fn combines(context: &TaskContext) -> bool {
    context.mode == ResolvedMode::Batch
}

/// Finds the key of what travels over a combining edge.
pub(crate) fn combined_key<T, K, P>(selector: &KeySelector<T, K>) -> KeySelector<Combined<T, P>, K>
where
    T: 'static,
    K: Key,
    P: 'static,
{
    let selector = selector.clone();
    KeySelector::Owned(Arc::new(move |value: &Combined<T, P>| match value {
        Either::Left(value) => selector.key(value),
        Either::Right((key, _)) => {
            decode_key_exact(key).expect("a key decodes from its own encoding")
        }
    }))
}

/// An edge by key, over which partial results travel in batch mode.
pub struct CombiningEdge<T, K, C: Fold<T>> {
    plain: BytesEdge<T>,
    combined: BytesEdge<Combined<T, C::Partial>>,
    selector: KeySelector<T, K>,
    fold: Arc<C>,
}

impl<T: Record, K: Key, C: Fold<T>> CombiningEdge<T, K, C> {
    /// Records by the key that `selector` finds, combined by `fold`.
    #[must_use]
    pub fn new(selector: &KeySelector<T, K>, fold: Arc<C>) -> Self {
        Self {
            plain: BytesEdge::keyed(selector.clone()),
            combined: BytesEdge::keyed(combined_key(selector)),
            selector: selector.clone(),
            fold,
        }
    }
}

impl<T: Record, K: Key, C: Fold<T>> EdgeFactory for CombiningEdge<T, K, C> {
    fn output(&self, spec: OutputSpec<'_>) -> Result<Wire, TaskError> {
        if !combines(spec.context) {
            return self.plain.output(spec);
        }
        let context = Arc::clone(spec.context);
        let next = self.combined.output(spec)?.open();
        let (selector, fold) = (self.selector.clone(), Arc::clone(&self.fold));
        let output = CombiningOutput::new(selector, fold, next, &context)?;
        Ok(Wire::new(Box::new(output) as Box<dyn Output<T>>))
    }

    fn gate(&self, spec: InputSpec<'_>) -> Result<Box<dyn Any + Send>, TaskError> {
        if combines(spec.context) { self.combined.gate(spec) } else { self.plain.gate(spec) }
    }

    fn persistent(&self, spec: OutputSpec<'_>, next: Option<Wire>) -> Result<Wire, TaskError> {
        self.plain.persistent(spec, next)
    }
}

/// Where a producer's records go.
enum Way<T, C: Fold<T>> {
    /// Into the table.
    Table(CombiningSorter<FoldCombiner<C, T>>),
    /// The input has ended: the table is handed over, piece by piece.
    Emptying(CombinedStream<FoldCombiner<C, T>>),
    /// On as they are.
    Pass,
}

/// The end of a producer's chain: combines, then writes to the edge.
struct CombiningOutput<T, K, C: Fold<T>> {
    selector: KeySelector<T, K>,
    fold: Arc<C>,
    way: Way<T, C>,
    /// Records taken into the table.
    taken: u64,
    scratch: Vec<u8>,
    buffer: BatchBuffer<Combined<T, C::Partial>>,
    next: Box<dyn Output<Combined<T, C::Partial>>>,
    /// What waits until the table is empty: time and the end.
    pending: VecDeque<Signal>,
    /// For error messages.
    name: String,
}

impl<T: Record, K: Key, C: Fold<T>> CombiningOutput<T, K, C> {
    fn new(
        selector: KeySelector<T, K>,
        fold: Arc<C>,
        next: Box<dyn Output<Combined<T, C::Partial>>>,
        context: &TaskContext,
    ) -> Result<Self, TaskError> {
        let wanted = context.config.get(&option_table::SORTED_INPUTS_MEMORY)?;
        let memory = wanted.min(context.memory.total()).0 / SHARE;
        let memory = MemoryBudget::new(ByteSize(memory).max(LEAST_MEMORY));
        let prefix =
            format!("job-{}-combine-{}", context.job, TABLES.fetch_add(1, Ordering::Relaxed));
        let options =
            SorterOptions::new(memory, SpillTarget::new(Arc::clone(&context.spill), prefix))
                .with_cancel(context.cancelled.clone());
        Ok(Self {
            way: Way::Table(CombiningSorter::new(FoldCombiner::new(Arc::clone(&fold)), options)),
            selector,
            fold,
            taken: 0,
            scratch: Vec::new(),
            buffer: BatchBuffer::default(),
            next,
            pending: VecDeque::new(),
            name: context.vertex_name.clone(),
        })
    }

    /// Ends the table's time.
    fn finish(&mut self) -> Result<(), TaskError> {
        self.way = match std::mem::replace(&mut self.way, Way::Pass) {
            Way::Table(table) => {
                Way::Emptying(table.finish().map_err(TaskError::sort(&self.name))?)
            }
            other => other,
        };
        Ok(())
    }

    /// Hands up to `most` partial results over. True when none is left.
    fn empty(&mut self, most: usize) -> Result<bool, TaskError> {
        let Self { way, buffer, next, name, .. } = self;
        let Way::Emptying(stream) = way else { return Ok(true) };
        for _ in 0..most {
            let Some(record) = stream.next().map_err(TaskError::sort(name))? else {
                *way = Way::Pass;
                buffer.flush(&mut **next)?;
                return Ok(true);
            };
            let timestamp = Some(Timestamp::from_millis(record.timestamp))
                .filter(|timestamp| *timestamp != Timestamp::MIN);
            let key = record.key.get(size_of::<u64>()..).unwrap_or_default().to_vec();
            buffer.push(Either::Right((key, record.accumulator)), timestamp, &mut **next)?;
        }
        Ok(false)
    }

    fn fold(
        &mut self,
        table: &mut CombiningSorter<FoldCombiner<C, T>>,
        batch: Batch<T>,
    ) -> Result<(), TaskError> {
        let Self { selector, fold, scratch, name, .. } = self;
        let failed = TaskError::sort(name);
        guarded(name, || {
            for (value, timestamp) in batch.into_records() {
                scratch.clear();
                scratch.extend_from_slice(&[0; 8]);
                selector.encode(&value, scratch);
                let hash = prefix_with_hash(scratch);
                let stamp = timestamp.map_or(i64::MIN, Timestamp::as_millis);
                table
                    .update(hash.0, scratch, stamp, |partial| fold.fold(partial, value))
                    .map_err(&failed)?;
            }
            Ok(())
        })
    }
}

impl<T: Record, K: Key, C: Fold<T>> Output<T> for CombiningOutput<T, K, C> {
    fn batch(&mut self, batch: Batch<T>) -> Result<(), TaskError> {
        let before = self.taken / TRIAL;
        self.taken += batch.len() as u64;
        match std::mem::replace(&mut self.way, Way::Pass) {
            Way::Table(mut table) => {
                self.fold(&mut table, batch)?;
                let tried = before == 0 && self.taken / TRIAL > 0;
                let hardly = tried && table.stats().combined < self.taken / 2;
                self.way = Way::Table(table);
                if hardly {
                    self.finish()?;
                    while !self.empty(PIECE)? {}
                }
                Ok(())
            }
            other => {
                self.way = other;
                let (values, timestamps) = batch.into_parts();
                let values = values.into_iter().map(Either::Left).collect();
                self.next.batch(Batch::new(values, timestamps))
            }
        }
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        let waits = matches!(
            signal,
            Signal::Stream(control) if !matches!(control, Control::Attributes(_))
        );
        if !waits || matches!(self.way, Way::Pass) {
            return self.next.signal(signal);
        }
        self.pending.push_back(signal);
        if signal == Signal::Stream(Control::EndOfInput) { self.finish() } else { Ok(()) }
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        match self.next.pump()? {
            Pump::Idle => {}
            other => return Ok(other),
        }
        if !matches!(self.way, Way::Emptying(_)) && !matches!(self.way, Way::Pass) {
            return Ok(Pump::Idle);
        }
        if !self.empty(PIECE)? {
            return Ok(Pump::Progress);
        }
        let Some(signal) = self.pending.pop_front() else { return Ok(Pump::Idle) };
        self.next.signal(signal)?;
        Ok(Pump::Progress)
    }
}
