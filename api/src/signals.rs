//! SIGTERM and Ctrl-C: the jobs of an environment are suspended, each behind a last checkpoint.
//!
//! Nothing is done without being asked for: handlers belong to the program. The thread that hears
//! signals is one for each environment that asks; it holds the environment weakly, so it keeps
//! nothing alive.

use std::sync::{Arc, Weak};

use runtime::cluster::JobCommand;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::environment::Inner;
use crate::{JobError, StreamExecutionEnvironment};

impl StreamExecutionEnvironment {
    /// From here on SIGTERM and SIGINT (Ctrl-C) suspend the jobs that run, as
    /// [`JobHandle::suspend`](crate::JobHandle::suspend) does: each ends behind a last checkpoint,
    /// and whoever waits for it gets [`JobError::Suspended`], which says whether there is one (in
    /// mixed-mode backlog there is none). A second signal ends them at once. While no job runs, a
    /// signal ends the process as if this had not been called.
    ///
    /// # Errors
    ///
    /// [`JobError::Internal`] if the system refuses the handlers or a thread.
    pub fn suspend_on_signals(&self) -> Result<&Self, JobError> {
        let refused = |error| JobError::Internal(format!("signals cannot be handled: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(refused)?;
        let environment = Arc::downgrade(&self.inner);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || signals.forever().for_each(|signal| heard(&environment, signal)))
            .map_err(refused)?;
        Ok(self)
    }
}

fn heard(environment: &Weak<Inner>, signal: i32) {
    let session = environment.upgrade().and_then(|inner| inner.session.get().cloned());
    let told = session.is_some_and(|session| session.tell_jobs(|| JobCommand::Suspend) > 0);
    if !told && emulate_default_handler(signal).is_err() {
        std::process::exit(128 + signal);
    }
}
