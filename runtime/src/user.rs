//! Calls into a user's code: its errors and panics become a [`TaskError`] that names the operator
//! and the record's position.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::context::OperatorContext;
use crate::error::TaskError;

/// Counts the records of a subtask and guards the calls that they are given to.
#[derive(Debug)]
pub struct UserCode {
    operator: String,
    position: Position,
}

/// Which record of the subtask is being worked on.
#[derive(Debug, Default)]
pub struct Position {
    record: u64,
}

impl Position {
    /// The next record begins.
    #[inline]
    pub fn next(&mut self) {
        self.record += 1;
    }

    /// Records that have begun.
    #[inline]
    pub(crate) fn begun(&self) -> u64 {
        self.record
    }

    /// Goes back to where only so many records had begun: what was asked of them all comes first, and
    /// then they are gone through again.
    #[inline]
    pub(crate) fn back_to(&mut self, begun: u64) {
        self.record = begun;
    }
}

impl UserCode {
    /// Guards the code of the operator of `context`.
    #[must_use]
    pub fn new(context: &OperatorContext) -> Self {
        Self::of_operator(&context.name)
    }

    /// Guards the code of the operator of that name.
    pub(crate) fn of_operator(name: &str) -> Self {
        Self { operator: name.to_owned(), position: Position::default() }
    }

    /// Runs user code over a batch, one catch for all of its records. `call` says which record it is
    /// at by [`Position::next`].
    ///
    /// # Errors
    ///
    /// [`TaskError::User`] or [`TaskError::Panic`] with the record's position.
    #[inline]
    pub fn run_batch<R>(
        &mut self,
        call: impl FnOnce(&mut Position) -> anyhow::Result<R>,
    ) -> Result<R, TaskError> {
        let position = &mut self.position;
        match catch_unwind(AssertUnwindSafe(|| call(position))) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(source)) => Err(self.failed(source)),
            Err(panic) => {
                let record = Some(self.position.record).filter(|n| *n > 0);
                Err(caught(&self.operator, record, panic))
            }
        }
    }

    /// An error of the user's, or one of the engine's that has passed through the user's code.
    fn failed(&self, source: anyhow::Error) -> TaskError {
        match source.downcast::<TaskError>() {
            Ok(own) => own,
            Err(source) => TaskError::User {
                operator: self.operator.clone(),
                record: Some(self.position.record).filter(|n| *n > 0),
                source,
            },
        }
    }
}

/// Ends the call of a function that has no result to put an error into, such as an aggregate's. The
/// engine, which made the call, takes it for an error that the function returned: nothing is printed.
///
/// Called by the engine's own functions only, on a task's thread.
pub fn raise(error: anyhow::Error) -> ! {
    resume_unwind(Box::new(Raised(error)))
}

/// What [`raise`] unwinds with.
struct Raised(anyhow::Error);

/// What came out of a call that did not return: an error that was raised, or a panic.
pub(crate) fn caught(operator: &str, record: Option<u64>, panic: Box<dyn Any + Send>) -> TaskError {
    let operator = operator.to_owned();
    match panic.downcast::<Raised>() {
        Ok(raised) => TaskError::User { operator, record, source: raised.0 },
        Err(panic) => TaskError::Panic { operator, record, message: panic_message(&*panic) },
    }
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

/// Runs engine code that calls into the user's factories; a panic becomes an error by name.
pub(crate) fn guarded<R>(
    name: &str,
    call: impl FnOnce() -> Result<R, TaskError>,
) -> Result<R, TaskError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(caught(name, None, panic)))
}
