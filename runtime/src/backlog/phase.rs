//! [`PhaseSoFar`]: what has been done of a phase that goes to the function before the switch.
//!
//! Under `auto` a phase may be handed over in parts, or record by record; either way it is one phase
//! in the report, with the reason that came out at run time.

use std::time::Duration;

use state::StateCounters;

use super::plan::elapsed;
use crate::context::OperatorContext;
use crate::metrics::PhaseReport;

/// The parts of a phase, between its attribute and the switch.
#[derive(Default)]
pub struct PhaseSoFar {
    handed_over: Option<PhaseReport>,
    streamed: Option<Streamed>,
}

struct Streamed {
    records: u64,
    before: StateCounters,
    begun: Duration,
}

impl PhaseSoFar {
    /// A part has been handed over.
    pub fn hand_over(&mut self, part: PhaseReport) {
        let part = PhaseReport { hand_overs: 1, ..part };
        self.handed_over = Some(match self.handed_over.take() {
            Some(before) => joined(before, part),
            None => part,
        });
    }

    /// The whole phase, ended by its last part; `chosen` if the run decided how it went.
    pub fn whole(&mut self, last: PhaseReport, chosen: bool) -> PhaseReport {
        let whole = match self.handed_over.take() {
            Some(before) => joined(before, last),
            None => last,
        };
        if !chosen {
            return whole;
        }
        let outcome = match whole.hand_overs {
            0 if whole.runs == 0 => "it fits in memory".to_owned(),
            0 => "its keys are many: spilled".to_owned(),
            n => format!("its keys are few: handed over {n} times instead of spilled"),
        };
        PhaseReport { reason: format!("{}; {outcome}", whole.reason), ..whole }
    }

    /// A phase begins whose records go to the function as they come.
    pub fn stream(&mut self, before: StateCounters, context: &OperatorContext) {
        let begun = context.task.clock.monotonic();
        self.streamed.get_or_insert(Streamed { records: 0, before, begun });
    }

    /// Records have gone to the function as they came.
    pub fn records(&mut self, n: usize) {
        if let Some(streamed) = &mut self.streamed {
            streamed.records += n as u64;
        }
    }

    /// Reports the phase that went record by record, if there was one. Its keys are not counted.
    pub fn end_stream(&mut self, after: StateCounters, context: &OperatorContext) {
        let Some(Streamed { records, before, begun }) = self.streamed.take() else { return };
        context.metrics.phase(PhaseReport {
            treatment: "stream",
            reason: context.treatment.reason.clone(),
            records,
            state_reads: after.store_reads - before.store_reads,
            state_writes: after.store_writes - before.store_writes,
            collecting: elapsed(context, begun),
            ..PhaseReport::default()
        });
    }
}

/// Two parts of one phase.
fn joined(before: PhaseReport, later: PhaseReport) -> PhaseReport {
    PhaseReport {
        treatment: later.treatment,
        reason: later.reason,
        records: before.records + later.records,
        keys: before.keys.max(later.keys),
        state_reads: before.state_reads + later.state_reads,
        state_writes: before.state_writes + later.state_writes,
        bytes_spilled: before.bytes_spilled + later.bytes_spilled,
        runs: before.runs + later.runs,
        hand_overs: before.hand_overs + later.hand_overs,
        sort_memory: before.sort_memory.max(later.sort_memory),
        collecting: before.collecting + later.collecting,
        draining: before.draining + later.draining,
    }
}
