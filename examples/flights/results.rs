//! The latest result of each route, and the file for machines.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use slackwater::{Sink, SinkContext, SinkWriter, SubtaskIndex, Timestamp};

use crate::departure::{Delays, Route};
use crate::job::Run;

type Tables = BTreeMap<SubtaskIndex, HashMap<Route, Delays>>;

/// The latest result of each route, shared with the program.
#[derive(Clone, Default)]
pub(crate) struct Latest(Arc<Mutex<Tables>>);

impl Latest {
    /// Takes the results.
    pub(crate) fn take(&self) -> BTreeMap<Route, Delays> {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *tables).into_values().flatten().collect()
    }
}

/// Keeps the latest result of each route. Results of one route come to one subtask, in order.
pub(crate) struct LatestSink(Latest);

impl LatestSink {
    /// Keeps them in `latest`.
    pub(crate) fn new(latest: Latest) -> Self {
        Self(latest)
    }
}

impl Sink<(Route, Delays)> for LatestSink {
    fn writer(
        &self,
        context: &SinkContext,
        _: &[Vec<u8>],
    ) -> Result<Box<dyn SinkWriter<(Route, Delays)>>> {
        let latest = self.0.clone();
        Ok(Box::new(Writer { latest, subtask: context.subtask, table: HashMap::new() }))
    }
}

struct Writer {
    latest: Latest,
    subtask: SubtaskIndex,
    table: HashMap<Route, Delays>,
}

impl SinkWriter<(Route, Delays)> for Writer {
    fn write(&mut self, (route, delays): (Route, Delays), _: Option<Timestamp>) -> Result<()> {
        self.table.insert(route, delays);
        Ok(())
    }
}

/// At the end of the task, well or not: a later attempt goes on from a checkpoint, emits again what
/// was emitted behind it, and writes that over this.
impl Drop for Writer {
    fn drop(&mut self) {
        let mut tables = self.latest.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.entry(self.subtask).or_default().extend(self.table.drain());
    }
}

/// Writes results and report as JSON.
pub(crate) fn write_json(run: &Run, file: &Path) -> Result<()> {
    let results: Vec<Value> = run
        .routes
        .iter()
        .map(|(route, delays)| {
            json!({
                "carrier": route.carrier.to_string(),
                "origin": route.origin.to_string(),
                "dest": route.dest.to_string(),
                "flights": delays.flights,
                "mean_delay": delays.mean(),
                "worst_delay": delays.worst,
            })
        })
        .collect();
    let treated =
        run.report.operator("delays of route").and_then(|operator| operator.phases.first());
    let (treatment, reason) = match treated {
        Some(phase) => (phase.treatment, phase.reason.as_str()),
        None => ("stream", "every record is applied as it comes"),
    };
    let sum = |count: fn(&slackwater::OperatorReport) -> u64| -> u64 {
        run.report.operators.iter().map(count).sum()
    };
    let phase = |name: &str, phase: &crate::job::Phase| json!({ "name": name, "rows": phase.rows, "seconds": phase.seconds });
    let report = json!({
        "mode": format!("{:?}", run.mode).to_lowercase(),
        "phases": [phase("backlog", &run.backlog), phase("live", &run.live)],
        "treatment": treatment,
        "reason": reason,
        "keys": run.routes.len(),
        "state_reads": sum(|operator| operator.state_reads),
        "state_writes": sum(|operator| operator.state_writes),
        "bytes_spilled": treated.map_or(0, |phase| phase.bytes_spilled),
        "peak_memory": run.report.peak_memory,
        "checkpoints": run.report.checkpoints.len(),
    });
    let text = serde_json::to_string_pretty(&json!({ "results": results, "report": report }))?;
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
