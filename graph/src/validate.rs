//! Whether a program makes sense: shapes of inputs, parallelisms, state in batch mode.
//!
//! Called by `translate`, on every step that the sinks need, also behind a complete data set: a
//! program is right or wrong whatever is cached. Every error names its node.

use element::{MaxParallelism, NodeId};

use crate::{
    BatchState, OperatorAttributes, OperatorKind, Partitioner, PlanError, PlanSettings,
    ResolvedMode, Transformation,
};

/// Sources have no input, others have some, and no input is a union of nothing.
pub(crate) fn inputs<N, E>(
    node: NodeId,
    step: &Transformation<N, E>,
    attributes: &OperatorAttributes,
) -> Result<(), PlanError> {
    let name = || step.name.clone();
    match (attributes.is_source(), step.inputs.is_empty()) {
        (true, false) => return Err(PlanError::SourceWithInput { node, name: name() }),
        (false, true) => return Err(PlanError::NoInput { node, name: name() }),
        _ => {}
    }
    match step.inputs.iter().position(Vec::is_empty) {
        Some(input) => Err(PlanError::EmptyInput { node, name: name(), input }),
        None => Ok(()),
    }
}

/// Nothing is read from a sink.
pub(crate) fn producer<N, E>(
    node: NodeId,
    step: &Transformation<N, E>,
    sink: &str,
    producer: &OperatorAttributes,
) -> Result<(), PlanError> {
    if producer.kind == OperatorKind::Sink {
        let (name, sink) = (step.name.clone(), sink.to_owned());
        return Err(PlanError::ReadsSink { node, name, sink });
    }
    Ok(())
}

/// The parallelism and max parallelism of a step: its own, or the job's.
pub(crate) fn parallelism<N, E>(
    node: NodeId,
    step: &Transformation<N, E>,
    settings: &PlanSettings<'_>,
) -> Result<(u32, u32), PlanError> {
    let max = step.max_parallelism.unwrap_or(settings.max_parallelism);
    if MaxParallelism::new(max).is_none() {
        return Err(PlanError::MaxParallelism { node, name: step.name.clone(), max });
    }
    let parallelism = step.parallelism.unwrap_or(settings.default_parallelism);
    if (1..=max).contains(&parallelism) {
        Ok((parallelism, max))
    } else {
        Err(PlanError::Parallelism { node, name: step.name.clone(), parallelism, max })
    }
}

/// A forward edge between unlike parallelisms becomes another, unless forward was demanded.
pub(crate) fn partitioner(
    asked: Partitioner,
    (from, from_parallelism): (&str, u32),
    (to, to_parallelism): (&str, u32),
) -> Result<Partitioner, PlanError> {
    let like = from_parallelism == to_parallelism;
    let divides = from_parallelism.is_multiple_of(to_parallelism)
        || to_parallelism.is_multiple_of(from_parallelism);
    match asked {
        Partitioner::ForwardStrict if !like => Err(PlanError::ForwardMismatch {
            from: from.to_owned(),
            from_parallelism,
            to: to.to_owned(),
            to_parallelism,
        }),
        Partitioner::Forward | Partitioner::ForwardStrict if like => Ok(Partitioner::Forward),
        Partitioner::Forward if divides => Ok(Partitioner::Rescale),
        Partitioner::Forward => Ok(Partitioner::Rebalance),
        other => Ok(other),
    }
}

/// State of one key at a time needs inputs that are sorted by key (T11).
pub(crate) fn batch_state(
    node: NodeId,
    name: &str,
    attributes: &OperatorAttributes,
    mode: ResolvedMode,
    settings: &PlanSettings<'_>,
) -> Result<(), PlanError> {
    let one_key_at_a_time = mode == ResolvedMode::Batch
        && settings.batch_state == BatchState::OneKey
        && attributes.keyed
        && attributes.uses_state_or_timers;
    if one_key_at_a_time && !settings.sorted_inputs {
        return Err(PlanError::UnsortedOneKey { node, name: name.to_owned() });
    }
    Ok(())
}
