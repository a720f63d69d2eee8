//! Operators without state, one record to one or none: map and filter.

use std::sync::Arc;

use element::Batch;

use super::Operator;
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::output::Output;
use crate::user::UserCode;

/// Applies a function to each record.
pub struct Map<F> {
    function: Arc<F>,
    user: UserCode,
}

impl<F> Map<F> {
    /// Applies `function`; timestamps stay.
    #[must_use]
    pub fn new(function: Arc<F>, context: &OperatorContext) -> Self {
        Self { function, user: UserCode::new(context) }
    }
}

impl<I: Send, O: Send, F: Fn(I) -> anyhow::Result<O> + Send + Sync> Operator<I, O> for Map<F> {
    fn batch(&mut self, batch: Batch<I>, out: &mut dyn Output<O>) -> Result<(), TaskError> {
        let (values, timestamps) = batch.into_parts();
        let function = &*self.function;
        let mapped = self.user.run_batch(|position| {
            values
                .into_iter()
                .map(|value| {
                    position.next();
                    function(value)
                })
                .collect::<anyhow::Result<Vec<O>>>()
        })?;
        out.batch(Batch::new(mapped, timestamps))
    }
}

/// Keeps the records that a predicate holds for.
pub struct Filter<F> {
    predicate: Arc<F>,
    user: UserCode,
}

impl<F> Filter<F> {
    /// Keeps what `predicate` is true for; order and timestamps stay.
    #[must_use]
    pub fn new(predicate: Arc<F>, context: &OperatorContext) -> Self {
        Self { predicate, user: UserCode::new(context) }
    }
}

impl<T: Send, F: Fn(&T) -> anyhow::Result<bool> + Send + Sync> Operator<T, T> for Filter<F> {
    fn batch(&mut self, batch: Batch<T>, out: &mut dyn Output<T>) -> Result<(), TaskError> {
        let predicate = &*self.predicate;
        let kept = self.user.run_batch(|position| {
            let mut kept = Batch::default();
            for (value, timestamp) in batch.into_records() {
                position.next();
                if predicate(&value)? {
                    kept.push(value, timestamp);
                }
            }
            Ok(kept)
        })?;
        if kept.is_empty() { Ok(()) } else { out.batch(kept) }
    }
}
