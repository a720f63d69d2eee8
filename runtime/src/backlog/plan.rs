//! Whether and how a keyed input collects its backlog, decided once a subtask.

use std::sync::Arc;
use std::time::Duration;

use element::{ByteSize, ConfigError, MemoryBudget, option_table};
use graph::{InputTreatment, ResolvedMode};
use sort::{CombiningSorter, ExternalSorter};

use super::Collecting;
use super::collecting::{FoldCombiner, Gathered};
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::operator::function::Fold;
use crate::temporary::sorter_options;

/// The least memory that a sorter is given; below it the job is refused by name.
const LEAST_SORT_MEMORY: ByteSize = ByteSize::kib(4);

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

/// The plan's decision for one keyed input, with the memory it may use.
#[derive(Debug)]
pub struct BacklogPlan {
    way: Way,
    batch: bool,
    budget: Arc<MemoryBudget>,
}

impl BacklogPlan {
    /// Reads the decision that the plan made for an operator.
    ///
    /// # Errors
    ///
    /// [`TaskError::Config`] if the sorter's memory is too small to work with.
    pub fn of(context: &OperatorContext) -> Result<Self, TaskError> {
        let task = &context.task;
        let way = match context.treatment.treatment {
            InputTreatment::Direct => Way::Stream,
            // What sorts by itself does so with this sorter and its memory (M8).
            InputTreatment::Internal => Way::Sort,
            InputTreatment::Combine => Way::Combine,
            InputTreatment::Auto | InputTreatment::BatchSort if context.treatment.combines => {
                Way::Combine
            }
            InputTreatment::Sort | InputTreatment::BatchSort => Way::Sort,
            InputTreatment::Auto if task.stores.is_cheap() => Way::Stream,
            InputTreatment::Auto => Way::Sort,
        };
        let wanted = match context.treatment.memory {
            Some(memory) => memory,
            None => task.config.get(&option_table::SORTED_INPUTS_MEMORY)?,
        };
        let memory = wanted.min(task.memory.total());
        if way != Way::Stream && memory < LEAST_SORT_MEMORY {
            return Err(ConfigError::Refused {
                key: option_table::MANAGED_MEMORY.key.to_owned(),
                reason: format!(
                    "the sorted input of `{}` needs at least {LEAST_SORT_MEMORY}, {memory} are there",
                    context.name
                ),
            }
            .into());
        }
        Ok(Self {
            way,
            // What emits only at its end has batch settings in every mode (E4).
            batch: task.mode == ResolvedMode::Batch || context.treatment.output_only_at_end,
            budget: MemoryBudget::new(memory),
        })
    }

    /// Whether a backlog is collected before the function sees it.
    #[must_use]
    pub fn collects(&self) -> bool {
        self.way != Way::Stream
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
        let options = sorter_options(context, Arc::clone(&self.budget))?;
        let gathered = match (self.way, fold) {
            (Way::Combine, Some(fold)) => {
                let combiner = FoldCombiner::new(Arc::clone(&fold));
                Gathered::Combine { sorter: CombiningSorter::new(combiner, options), fold }
            }
            _ => Gathered::Sort(ExternalSorter::new(options)),
        };
        Ok(Collecting::new(gathered, context))
    }
}

/// A duration between two readings of the clock.
pub(super) fn elapsed(context: &OperatorContext, since: Duration) -> Duration {
    context.task.clock.monotonic().saturating_sub(since)
}
