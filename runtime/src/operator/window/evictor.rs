//! [`Evictor`]: which of a window's records a firing leaves out.

use std::time::Duration;

use element::Timestamp;

use super::assigner::millis;
use super::bounds::Window;

/// A window's records in the order of their coming, each with its timestamp.
pub type Contents<T> = Vec<(T, Option<Timestamp>)>;

/// Removes records before or after a window's function sees them; what is removed is gone for later
/// firings too. Shared by the subtasks; windows with one keep all their records.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not evict records of `{T}`",
    note = "use an evictor of the prelude, or implement `Evictor<T>`"
)]
pub trait Evictor<T>: Send + Sync + 'static {
    /// Removes what the function is not to see.
    fn before(&self, _contents: &mut Contents<T>, _window: Window) {}

    /// Removes what the next firing is not to see.
    fn after(&self, _contents: &mut Contents<T>, _window: Window) {}
}

/// Keeps the last records.
#[derive(Clone, Copy, Debug)]
pub struct CountEvictor {
    records: usize,
}

impl CountEvictor {
    /// Keeps the last `records`.
    #[must_use]
    pub fn of(records: usize) -> Self {
        Self { records }
    }
}

impl<T> Evictor<T> for CountEvictor {
    fn before(&self, contents: &mut Contents<T>, _: Window) {
        let surplus = contents.len().saturating_sub(self.records);
        contents.drain(..surplus);
    }
}

/// Keeps the records that are no further than a span behind the latest one.
#[derive(Clone, Copy, Debug)]
pub struct TimeEvictor {
    span: i64,
}

impl TimeEvictor {
    /// Keeps records whose timestamp is greater than the latest less `span`.
    #[must_use]
    pub fn of(span: Duration) -> Self {
        Self { span: millis(span) }
    }
}

impl<T> Evictor<T> for TimeEvictor {
    fn before(&self, contents: &mut Contents<T>, _: Window) {
        if let Some(latest) = contents.iter().filter_map(|(_, at)| *at).max() {
            let cut = latest.saturating_sub(self.span);
            contents.retain(|(_, at)| at.is_none_or(|at| at > cut));
        }
    }
}

/// Keeps the records that differ from the last one by less than a threshold.
pub struct DeltaEvictor<F> {
    threshold: f64,
    delta: F,
}

impl<F> DeltaEvictor<F> {
    /// Keeps records whose `delta` to the last one is below `threshold`.
    pub fn of(threshold: f64, delta: F) -> Self {
        Self { threshold, delta }
    }
}

impl<T, F> Evictor<T> for DeltaEvictor<F>
where
    T: 'static,
    F: Fn(&T, &T) -> f64 + Send + Sync + 'static,
{
    fn before(&self, contents: &mut Contents<T>, _: Window) {
        let Some((last, at)) = contents.pop() else { return };
        contents.retain(|(value, _)| (self.delta)(value, &last) < self.threshold);
        contents.push((last, at));
    }
}
