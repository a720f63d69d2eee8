//! How a job runs: streaming, mixed or batch.
//!
//! Decided from the option and the sources that are left once complete data sets have cut the
//! program. Source: FLIP-134 (automatic), FLIP-327 (mixed).

use element::NodeId;
use element::option_table::RuntimeMode;

use crate::{OperatorAttributes, PlanError, PlanSettings, ResolvedMode};

/// The mode of a job with these sources, and why.
///
/// # Errors
///
/// [`PlanError::UnboundedBatch`] names the first source that never ends (T1).
pub(crate) fn resolve<'a>(
    settings: &PlanSettings<'_>,
    mut nodes: impl Iterator<Item = (NodeId, &'a str, OperatorAttributes)>,
) -> Result<(ResolvedMode, String), PlanError> {
    let unbounded = nodes
        .find(|(_, _, attributes)| attributes.is_unbounded())
        .map(|(node, name, _)| (node, name));
    match (settings.mode, unbounded) {
        (RuntimeMode::Batch, Some((node, name))) => {
            Err(PlanError::UnboundedBatch { node, name: name.to_owned() })
        }
        (RuntimeMode::Batch, None) => {
            Ok((ResolvedMode::Batch, "option `execution.runtime-mode` is batch".to_owned()))
        }
        (RuntimeMode::Automatic, None) => {
            Ok((ResolvedMode::Batch, "all sources are bounded".to_owned()))
        }
        (RuntimeMode::Automatic, Some((_, name))) => {
            Ok(streaming(settings, &format!("source `{name}` is unbounded")))
        }
        (RuntimeMode::Streaming, _) => {
            Ok(streaming(settings, "option `execution.runtime-mode` is streaming"))
        }
    }
}

fn streaming(settings: &PlanSettings<'_>, reason: &str) -> (ResolvedMode, String) {
    if settings.interval_during_backlog.is_some_and(|interval| interval.is_zero()) {
        let option = "option `execution.checkpointing.interval-during-backlog` is 0";
        (ResolvedMode::Mixed, format!("{reason} and {option}"))
    } else {
        (ResolvedMode::Streaming, reason.to_owned())
    }
}
