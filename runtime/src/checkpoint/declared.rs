//! Stored states against those that the program declares, before any task starts.
//!
//! Factories say which keyed states their operators bind when they open; snapshots say in their
//! headers which states they hold. Only headers are read, one of each subtask's file.
//!
//! Left out on purpose: states that a function binds only while it runs. They are compared when they
//! are bound, and stay in snapshots until then.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use element::option_table;
use state::{
    NonRestored, SnapshotError, SnapshotSource, StateDescriptor, StateError, check_source,
};

use super::RestorePoint;
use crate::error::JobError;
use crate::factory::ExecutionPlan;

/// Compares all states of a checkpoint with those that the operators of the plan declare.
///
/// # Errors
///
/// [`JobError::RestoreState`] names the operator; its source names the state, and for a changed type
/// the field, the old and the new type. A file that is missing or damaged is one too. A state that
/// was removed is a [`JobError::Restore`].
pub(super) fn check(
    point: &RestorePoint,
    plan: &ExecutionPlan,
    removed: NonRestored,
) -> Result<(), JobError> {
    let mut declared = BTreeMap::new();
    for entry in &point.manifest.operators {
        let Some(handle) = &entry.state.keyed else { continue };
        let uid = entry.state.uid.as_str();
        let states = declared.entry(uid).or_insert_with(|| states_of(plan, uid));
        if states.is_empty() {
            continue;
        }
        let source = SnapshotSource { store: point.store.clone(), handle: handle.clone() };
        check_source(&source, states, removed).map_err(|source| failed(point, uid, source))?;
    }
    Ok(())
}

fn failed(point: &RestorePoint, operator: &str, source: StateError) -> JobError {
    if let StateError::Snapshot(removed @ SnapshotError::NotRestored { .. }) = &source {
        let option = option_table::ALLOW_NON_RESTORED_STATE.key;
        let reason = format!("{removed} (option {option} allows that)");
        return JobError::Restore { path: point.name(), reason };
    }
    JobError::RestoreState {
        path: point.name(),
        operator: operator.to_owned(),
        source: Box::new(source),
    }
}

/// The states that an operator binds when it opens; none if it binds them later, or cannot open: its
/// task will then say why.
fn states_of(plan: &ExecutionPlan, uid: &str) -> Vec<StateDescriptor> {
    let node = plan.vertices.iter().flat_map(|vertex| &vertex.chain).find(|node| node.uid == uid);
    let Some(node) = node else { return Vec::new() };
    // The function is the user's.
    match catch_unwind(AssertUnwindSafe(|| node.payload.factory.states())) {
        Ok(Ok(states)) => states,
        Ok(Err(_)) | Err(_) => {
            tracing::debug!(uid, "the states of an operator show only when its task opens");
            Vec::new()
        }
    }
}
