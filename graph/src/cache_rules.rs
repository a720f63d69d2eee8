//! Where complete data sets cut a program, and which missing ones a job makes.
//!
//! A complete data set replaces its output by a source, and everything that only that output
//! needed falls away; the walk starts at the sinks, so of nested caches the nearest wins. A missing
//! one is written by the subtasks of its producer; its consumers stay as they are (A14, A23).
//!
//! ```text
//!  complete:   source - map -x- cached output      reader --> consumers
//!  missing:    source - map ----> consumers
//!                          \====> data set
//! ```
//!
//! Source: FLIP-205; decision D1.

use std::collections::BTreeMap;

use element::NodeId;
use element::option_table::{BatchShuffleMode, CacheOutsideBatch};

use crate::cache::CacheMark;
use crate::stream_graph::CacheOutcome;
use crate::{InputEdge, OutputTag, PlanError, PlanSettings, ResolvedMode, TransformationGraph};

/// The marks of a program, each complete or missing.
pub(crate) struct CacheCut<'g, N, E> {
    marks: &'g [CacheMark<N, E>],
    complete: Vec<bool>,
    by_output: BTreeMap<(NodeId, &'g OutputTag), usize>,
}

impl<'g, N, E> CacheCut<'g, N, E> {
    /// Asks once for each mark whether its data set is complete.
    pub(crate) fn new(graph: &'g TransformationGraph<N, E>, settings: &PlanSettings<'_>) -> Self {
        let marks = graph.marks();
        Self {
            marks,
            complete: marks.iter().map(|mark| (settings.available)(mark.data_set)).collect(),
            by_output: (0..).zip(marks).map(|(at, m)| ((m.node, &m.output), at)).collect(),
        }
    }

    /// The mark of the output that an edge reads.
    pub(crate) fn mark_of(&self, edge: &'g InputEdge<E>) -> Option<usize> {
        self.by_output.get(&(edge.from, &edge.output)).copied()
    }

    /// The complete data set that an edge reads in place of its producer.
    pub(crate) fn hit(&self, edge: &'g InputEdge<E>) -> Option<usize> {
        self.mark_of(edge).filter(|mark| self.complete[*mark])
    }

    /// A mark, by its place.
    pub(crate) fn mark(&self, at: usize) -> &'g CacheMark<N, E> {
        &self.marks[at]
    }

    /// What a job of this mode does with a cached output that it needs.
    ///
    /// # Errors
    ///
    /// [`PlanError::CacheOutsideBatch`] names the stream and the option.
    pub(crate) fn outcome(
        &self,
        at: usize,
        name: &str,
        mode: ResolvedMode,
        settings: &PlanSettings<'_>,
    ) -> Result<CacheOutcome, PlanError> {
        if self.complete[at] {
            return Ok(CacheOutcome::Hit);
        }
        let (option, value) = match (mode, settings.batch_shuffle_mode) {
            (ResolvedMode::Batch, BatchShuffleMode::AllExchangesBlocking) => {
                return Ok(CacheOutcome::Keep);
            }
            (ResolvedMode::Batch, BatchShuffleMode::AllExchangesPipelined) => {
                ("execution.batch-shuffle-mode", "all-exchanges-pipelined")
            }
            (ResolvedMode::Streaming | ResolvedMode::Mixed, _) => {
                ("execution.runtime-mode", "streaming")
            }
        };
        match settings.cache_outside_batch {
            CacheOutsideBatch::Recompute => Ok(CacheOutcome::Uncached),
            CacheOutsideBatch::Error => {
                let mark = self.mark(at);
                Err(PlanError::CacheOutsideBatch {
                    node: mark.node,
                    name: name.to_owned(),
                    output: mark.output.clone(),
                    data_set: mark.data_set,
                    option,
                    value,
                })
            }
        }
    }
}
