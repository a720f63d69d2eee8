//! What is put between an operator and its input, with what memory, and why.
//!
//! | mode | keyed, one input | combines | sorts by itself | several keyed inputs |
//! |---|---|---|---|---|
//! | mixed | sort, or auto | combine | internal | direct |
//! | batch | batch sort | combine | internal | batch sort |
//! | streaming | direct | direct | direct | direct |
//! | any, output only at the end | batch sort | combine | internal | batch sort |
//!
//! An aggregate that is to emit every update combines in no mixed mode. What is not keyed, or keeps neither state nor timers, is always direct.
//!
//! Source: FLIP-327 (M1 to M8), FLIP-331 (E4), FLIP-140 (T8, T9).

use element::ByteSize;
use element::option_table::{BacklogStrategy, StateBackendKind};

use crate::{BacklogEmission, InputTreatment, OperatorAttributes, PlanSettings, ResolvedMode};

/// How an operator's input is treated.
pub(crate) struct Treated {
    pub(crate) treatment: InputTreatment,
    pub(crate) reason: String,
    /// Of each sorter or combining table, a subtask.
    pub(crate) memory: Option<ByteSize>,
}

/// Decides for one operator.
pub(crate) fn treat(
    attributes: &OperatorAttributes,
    inputs: usize,
    mode: ResolvedMode,
    settings: &PlanSettings<'_>,
) -> Treated {
    let (treatment, reason) = decide(attributes, inputs, mode, settings);
    let memory = (treatment != InputTreatment::Direct).then_some(settings.sorted_inputs_memory);
    Treated { treatment, reason, memory }
}

type Decision = (InputTreatment, String);

fn because(treatment: InputTreatment, reason: &str) -> Decision {
    (treatment, reason.to_owned())
}

fn decide(
    attributes: &OperatorAttributes,
    inputs: usize,
    mode: ResolvedMode,
    settings: &PlanSettings<'_>,
) -> Decision {
    if attributes.is_source() {
        because(InputTreatment::Direct, "source")
    } else if !attributes.keyed {
        because(InputTreatment::Direct, "not keyed")
    } else if !attributes.uses_state_or_timers && !attributes.sorts_internally {
        because(InputTreatment::Direct, "keyed, but keeps neither state nor timers")
    } else if mode == ResolvedMode::Batch {
        batch(attributes, settings, "batch mode")
    } else if attributes.output_only_at_end {
        batch(attributes, settings, "emits only at the end of its input")
    } else if mode == ResolvedMode::Streaming {
        because(InputTreatment::Direct, no_mixed_mode(settings))
    } else {
        mixed(attributes, inputs, settings)
    }
}

/// An operator that may see its whole input sorted before it emits anything.
fn batch(attributes: &OperatorAttributes, settings: &PlanSettings<'_>, why: &str) -> Decision {
    let (treatment, what) = if attributes.sorts_internally {
        (InputTreatment::Internal, "sorts by itself")
    } else if attributes.combines {
        (InputTreatment::Combine, "associative: partial results are combined before any sort")
    } else if settings.sorted_inputs {
        (InputTreatment::BatchSort, "sorted by key")
    } else {
        (InputTreatment::Direct, "option `execution.sorted-inputs.enabled` is false")
    };
    (treatment, format!("{why}, {what}"))
}

/// A keyed operator with state whose backlog may be sorted.
fn mixed(attributes: &OperatorAttributes, inputs: usize, settings: &PlanSettings<'_>) -> Decision {
    if settings.backlog_strategy == BacklogStrategy::Stream {
        because(
            InputTreatment::Direct,
            "record by record: option `execution.backlog.strategy` is stream",
        )
    } else if attributes.sorts_internally {
        because(InputTreatment::Internal, "sorts its backlog by itself")
    } else if inputs > 1 {
        because(InputTreatment::Direct, "several inputs and no sorter of its own")
    } else if attributes.combines && attributes.backlog_emission == BacklogEmission::LastOfKey {
        because(InputTreatment::Combine, "associative: its backlog is combined before any sort")
    } else if settings.backlog_strategy == BacklogStrategy::Sort {
        because(InputTreatment::Sort, "option `execution.backlog.strategy` is sort")
    } else {
        let state = match settings.state_backend {
            StateBackendKind::Heap => {
                "heap state: record by record, its accesses cost less than a sort"
            }
            StateBackendKind::Disk => {
                "disk state: held and sorted, spilled only if its keys are many"
            }
            StateBackendKind::Rocksdb => {
                "rocksdb state: held and sorted, spilled only if its keys are many"
            }
        };
        because(InputTreatment::Auto, state)
    }
}

/// Why a streaming job is not in mixed mode.
fn no_mixed_mode(settings: &PlanSettings<'_>) -> &'static str {
    match settings.interval_during_backlog {
        None => {
            "record by record: option `execution.checkpointing.interval-during-backlog` is not set"
        }
        Some(_) => {
            "record by record: option `execution.checkpointing.interval-during-backlog` is not 0"
        }
    }
}
