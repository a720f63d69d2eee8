//! What a JobMaster waits for: commands of its client, events of its tasks, the next deadline.

use std::time::Duration;

use crossbeam_channel::{Select, TryRecvError};

use super::{JobMaster, UnitState};
use crate::executor::{is_ready, wait_for_any};

impl JobMaster {
    /// Handles one message, a command before an event; false if there is none.
    pub(super) fn message(&mut self) -> bool {
        match self.commands.try_recv() {
            Ok(command) => {
                self.command(command);
                return true;
            }
            Err(TryRecvError::Empty) => {}
            // The client is gone: nobody can ask any more; the job goes on.
            Err(TryRecvError::Disconnected) => self.commands = crossbeam_channel::never(),
        }
        let Ok((task, event)) = self.events.1.try_recv() else { return false };
        self.event(task, event);
        true
    }

    /// The time until a unit may run again, or a checkpoint is due or has taken too long.
    pub(super) fn until_deadline(&self) -> Option<Duration> {
        let now = self.now();
        let restarts = self.states.iter().filter_map(|state| match state {
            UnitState::Waiting { not_before } if *not_before > now => Some(*not_before),
            _ => None,
        });
        let deadline = restarts.chain(self.coordinator.next_deadline()).min();
        deadline.map(|deadline| deadline.saturating_sub(now))
    }

    /// Whether a message lies ready.
    pub(crate) fn is_ready(&self) -> bool {
        is_ready(&self.commands) || is_ready(&self.events.1)
    }

    /// Waits for a message.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        let mut select = Select::new();
        select.recv(&self.commands);
        select.recv(&self.events.1);
        wait_for_any(&mut select, limit.map(|left| self.request.clock.patience(left)));
    }
}
