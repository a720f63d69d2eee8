//! The latest result of each route, and the file for machines.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use slackwater::{Record, Sink, SinkContext, SinkWriter, SubtaskIndex, Timestamp};

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
        let mut latest: BTreeMap<Route, Delays> = BTreeMap::new();
        // At another parallelism a stored table may come to another subtask than the route's: its
        // results are older, and counts only grow.
        for (route, delays) in std::mem::take(&mut *tables).into_values().flatten() {
            let known = latest.entry(route).or_default();
            if delays.flights >= known.flights {
                *known = delays;
            }
        }
        latest
    }
}

/// Keeps the latest result of each route. Results of one route come to one subtask, in order.
pub(crate) struct LatestSink {
    latest: Latest,
    stored: bool,
}

impl LatestSink {
    /// Keeps them in `latest`.
    pub(crate) fn new(latest: Latest) -> Self {
        Self { latest, stored: false }
    }

    /// Stores them in checkpoints too, so that a resumed run has those of the run before.
    pub(crate) fn stored(self) -> Self {
        Self { stored: true, ..self }
    }
}

impl Sink<(Route, Delays)> for LatestSink {
    fn writer(
        &self,
        context: &SinkContext,
        restored: &[Vec<u8>],
    ) -> Result<Box<dyn SinkWriter<(Route, Delays)>>> {
        let mut table = HashMap::new();
        for stored in restored {
            table.extend(Vec::<(Route, Delays)>::decode(&mut stored.as_slice())?);
        }
        let Self { latest, stored } = self;
        let (latest, subtask) = (latest.clone(), context.subtask);
        Ok(Box::new(Writer { latest, subtask, table, stored: *stored }))
    }
}

struct Writer {
    latest: Latest,
    subtask: SubtaskIndex,
    table: HashMap<Route, Delays>,
    stored: bool,
}

impl SinkWriter<(Route, Delays)> for Writer {
    fn write(&mut self, (route, delays): (Route, Delays), _: Option<Timestamp>) -> Result<()> {
        self.table.insert(route, delays);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Vec<Vec<u8>>> {
        if !self.stored {
            return Ok(Vec::new());
        }
        let table: Vec<(Route, Delays)> = self.table.iter().map(|(r, d)| (*r, *d)).collect();
        let mut stored = Vec::new();
        table.encode(&mut stored);
        Ok(vec![stored])
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
