//! Whether and how a keyed input collects its backlog, decided once a subtask. What `auto` decides
//! while it collects is [`super::key_watch`]'s.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use element::{
    ByteSize, ConfigError, FileRole, MemoryBudget, SpillStore, hash_key_bytes, option_table,
};
use graph::{InputTreatment, ResolvedMode};
use sort::{CombiningSorter, ExternalSorter, RunDescription, SorterOptions, SpillTarget};

use super::Collecting;
use super::collecting::Gathered;
use super::folding::FoldCombiner;
use crate::checkpoint::{RUNS, SealedBacklog};
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::operator::function::Fold;
use crate::temporary::sorter_options;

/// The least managed memory of a task that sorts; below it the job is refused by name.
const LEAST_MANAGED_MEMORY: ByteSize = ByteSize::kib(4);

/// What a backlog phase of one keyed input does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Record by record, as live records.
    Stream,
    /// Through the external sorter.
    Sort,
    /// Through the combining table.
    Combine,
}

/// The plan's decision for one keyed input, with the memory it may use: any share of the task's managed
/// memory will do, for a sorter spills what does not fit, if need be each record.
#[derive(Debug)]
pub struct BacklogPlan {
    way: Way,
    /// Whether the run chooses: the plan left it open.
    auto: bool,
    /// Whether records may go over before the switch, and then with what memory.
    hands_over: Option<ByteSize>,
    batch: bool,
    /// Whether what is collected is stored in checkpoints.
    durable: bool,
    budget: Arc<MemoryBudget>,
}

impl BacklogPlan {
    /// Reads the decision that the plan made for an operator.
    ///
    /// # Errors
    ///
    /// [`TaskError::Config`] if the sorter's memory has no valid value, or if the task has no managed
    /// memory to speak of.
    pub fn of(context: &OperatorContext) -> Result<Self, TaskError> {
        let task = &context.task;
        let way = match context.treatment.treatment {
            InputTreatment::Direct => Way::Stream,
            // What sorts by itself does so with this sorter and its memory (M8).
            InputTreatment::Internal => Way::Sort,
            InputTreatment::Combine => Way::Combine,
            InputTreatment::BatchSort if context.treatment.combines => Way::Combine,
            InputTreatment::Sort | InputTreatment::BatchSort => Way::Sort,
            InputTreatment::Auto if task.stores.is_cheap() => Way::Stream,
            InputTreatment::Auto => Way::Sort,
        };
        let wanted = match context.treatment.memory {
            Some(memory) => memory,
            None => task.config.get(&option_table::SORTED_INPUTS_MEMORY)?,
        };
        let managed = task.memory.total();
        if way != Way::Stream && managed < LEAST_MANAGED_MEMORY {
            return Err(ConfigError::Refused {
                key: option_table::MANAGED_MEMORY.key.to_owned(),
                reason: format!(
                    "the sorted input of `{}` needs at least {LEAST_MANAGED_MEMORY}, {managed} are there",
                    context.name
                ),
            }
            .into());
        }
        let memory = wanted.min(managed);
        let auto = context.treatment.treatment == InputTreatment::Auto;
        // Sealed runs that survive a crash say up to where they reach; what went over does not.
        let durable = context.treatment.durable;
        Ok(Self {
            way,
            auto,
            hands_over: Some(memory).filter(|_| auto && !durable),
            // What emits only at its end has batch settings in every mode (E4).
            batch: task.mode == ResolvedMode::Batch || context.treatment.output_only_at_end,
            durable,
            budget: MemoryBudget::new(memory),
        })
    }

    /// Whether a backlog is collected before the function sees it.
    #[must_use]
    pub fn collects(&self) -> bool {
        self.way != Way::Stream
    }

    /// Whether the plan left the choice to the run.
    #[must_use]
    pub fn is_auto(&self) -> bool {
        self.auto
    }

    /// Whether the whole input is one backlog.
    #[must_use]
    pub fn is_batch(&self) -> bool {
        self.batch
    }

    /// Whether collecting begins before the first record.
    #[must_use]
    pub fn collects_from_the_start(&self) -> bool {
        self.batch && self.collects()
    }

    /// Begins a phase: a sorter, or a table if the function folds.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if the options of the sorter are not valid.
    pub fn begin<C: Fold<I>, I>(
        &self,
        fold: Option<Arc<C>>,
        context: &OperatorContext,
    ) -> Result<Collecting<C, I>, TaskError> {
        if self.durable {
            return self.resume(&[], fold, context);
        }
        let options = sorter_options(context, Arc::clone(&self.budget))?;
        let gathered = match (self.way, fold) {
            (Way::Combine, Some(fold)) => {
                let combiner = FoldCombiner::new(Arc::clone(&fold));
                Gathered::Combine { sorter: CombiningSorter::new(combiner, options), fold }
            }
            _ => Gathered::Sort(ExternalSorter::new(by_hash(options, context))),
        };
        Ok(Collecting::new(gathered, self.hands_over, context))
    }

    /// Begins a durable phase, or goes on with one: with what its runs hold, in their order. Where
    /// the parallelism has changed, records of other subtasks are passed over when it is drained.
    ///
    /// # Errors
    ///
    /// [`TaskError::Sort`] if a run is missing or damaged; [`TaskError::Restore`] if runs hold partial
    /// results and the function has none, or others hold records.
    pub fn resume<C: Fold<I>, I>(
        &self,
        sealed: &[SealedBacklog],
        fold: Option<Arc<C>>,
        context: &OperatorContext,
    ) -> Result<Collecting<C, I>, TaskError> {
        let task = &context.task;
        let spill = SpillTarget::new(
            Arc::clone(&task.checkpoints),
            format!("{RUNS}{}", context.file_prefix()),
        );
        let options = SorterOptions { spill, ..sorter_options(context, Arc::clone(&self.budget))? }
            .with_durable_runs();
        let failed = TaskError::sort(&context.name);
        let runs = distinct_runs(sealed);
        let refused = |reason: &str| TaskError::Restore {
            operator: context.name.clone(),
            reason: reason.to_owned(),
        };
        let with_runs = sealed.iter().filter(|sealed| !sealed.runs.is_empty());
        let kinds: BTreeSet<bool> = with_runs.map(|sealed| sealed.combined).collect();
        let combined = match (kinds.first(), kinds.last()) {
            (Some(false), Some(true)) => {
                return Err(refused("some of its runs hold records, and some partial results"));
            }
            (Some(combined), _) => *combined,
            (None, _) => self.way == Way::Combine && fold.is_some(),
        };
        let gathered = match (combined, fold) {
            (true, Some(fold)) => {
                let combiner = FoldCombiner::new(Arc::clone(&fold));
                let sorter = CombiningSorter::resume(combiner, options, runs.clone());
                Gathered::Combine { sorter: sorter.map_err(failed)?, fold }
            }
            (true, None) => {
                return Err(refused("its runs hold partial results of an aggregate"));
            }
            (false, _) => {
                let options = by_hash(options, context);
                Gathered::Sort(ExternalSorter::resume(options, runs.clone()).map_err(failed)?)
            }
        };
        let collecting = Collecting::new(gathered, None, context);
        Ok(collecting.durable(sealed, runs, self.budget.total().0 / 2, context.key_groups()))
    }
}

/// Options of a sorter by hash, of which a subtask has a range.
fn by_hash(options: SorterOptions, context: &OperatorContext) -> SorterOptions {
    let options = options.with_prefix(hash_prefix);
    match context.key_groups().hash_range() {
        Some(range) => options.with_prefix_range(range),
        None => options,
    }
}

/// Sorted records lie with the bytes of their key alone: the hash in front of it in the order is computed
/// again.
fn hash_prefix(key: &[u8]) -> u64 {
    hash_key_bytes(key).0
}

/// The runs of several subtasks, each once. Runs of one subtask stay in order, and a key's records
/// are in runs of one subtask.
fn distinct_runs(sealed: &[SealedBacklog]) -> Vec<RunDescription> {
    let mut seen = BTreeSet::new();
    let runs = sealed.iter().flat_map(|sealed| &sealed.runs);
    runs.filter(|run| seen.insert(run.name().to_owned())).cloned().collect()
}

/// Backlogs that a checkpoint has stored, with records of this subtask's key groups; their runs lie
/// beside the job's own.
///
/// # Errors
///
/// [`TaskError::Restore`] if a run cannot be brought there.
pub fn take_sealed(context: &OperatorContext) -> Result<Vec<SealedBacklog>, TaskError> {
    let (mut sealed, runs) = match &mut *context.restored.lock() {
        Some(restored) => (std::mem::take(&mut restored.backlogs), restored.runs.clone()),
        None => return Ok(Vec::new()),
    };
    let groups = context.key_groups();
    sealed.retain(|sealed| sealed.overlaps(groups));
    if let Some(runs) = runs {
        bring_runs(&sealed, &*runs, context)?;
    }
    Ok(sealed)
}

/// Has runs that lie with a checkpoint of another directory beside the job's own too: later
/// checkpoints name them.
///
/// # Errors
///
/// [`TaskError::Restore`], which names the run.
fn bring_runs(
    sealed: &[SealedBacklog],
    from: &dyn SpillStore,
    context: &OperatorContext,
) -> Result<(), TaskError> {
    let own = &*context.task.checkpoints;
    for run in distinct_runs(sealed) {
        if own.open(FileRole::SortRun, run.name()).is_ok() {
            continue;
        }
        // Other subtasks may bring the same one: it is there whole or not at all.
        let part = format!("{}.{}-{}.part", run.name(), context.task.vertex, context.task.subtask);
        let copied = crate::checkpoint::copy_file(from, run.name(), own, &part)
            .and_then(|()| own.rename(FileRole::SortRun, &part, run.name()));
        copied.map_err(|error| TaskError::Restore {
            operator: context.name.clone(),
            reason: crate::report::chain_of(&error),
        })?;
    }
    Ok(())
}

/// A duration between two readings of the clock.
pub(super) fn elapsed(context: &OperatorContext, since: Duration) -> Duration {
    context.task.clock.monotonic().saturating_sub(since)
}
