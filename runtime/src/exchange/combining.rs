//! [`CombiningEdge`]: an edge by key whose producers combine before anything moves, where the plan
//! says so: in batch mode, and over the backlog of mixed mode.
//!
//! ```text
//!   records -> table of partial results by key -> end of input or of the backlog, a barrier,
//!                                                 or keys that hardly repeat
//!                                                   -> partial results -> channel
//! ```
//!
//! Where each record is to give a result, the edge is an ordinary one; both ends are told by the plan.
//!
//! Left out on purpose: what a partial result is; that is the consumer's [`Fold`].

mod output;

use std::any::Any;
use std::sync::Arc;

use element::{Key, Record, decode_key_exact};

use super::BytesEdge;
use crate::error::TaskError;
use crate::factory::{EdgeFactory, InputSpec, OutputSpec, Wire};
use crate::operator::either::Either;
use crate::operator::function::Fold;
use crate::operator::selector::KeySelector;
use crate::output::Output;
use output::CombiningOutput;

/// A record, or the canonical bytes of a key, what its records have combined to, and how many records
/// it stands for in counts. Boxed, for there is one a key, and records are many.
pub type Combined<T, P> = Either<T, Box<(Vec<u8>, P, u64)>>;

/// Finds the key of what travels over a combining edge.
pub(crate) fn combined_key<T, K, P>(selector: &KeySelector<T, K>) -> KeySelector<Combined<T, P>, K>
where
    T: 'static,
    K: Key,
    P: 'static,
{
    let selector = selector.clone();
    KeySelector::owned(move |value: &Combined<T, P>| match value {
        Either::Left(value) => selector.key(value),
        Either::Right(partial) => {
            decode_key_exact(&partial.0).expect("a key decodes from its own encoding")
        }
    })
}

/// An edge by key, over which partial results travel where the plan lets its producers combine.
pub struct CombiningEdge<T, K, C: Fold<T>> {
    plain: BytesEdge<T>,
    combined: BytesEdge<Combined<T, C::Partial>>,
    selector: KeySelector<T, K>,
    fold: Arc<C>,
}

impl<T: Record, K: Key, C: Fold<T>> CombiningEdge<T, K, C> {
    /// Records by the key that `selector` finds, combined by `fold`.
    #[must_use]
    pub fn new(selector: &KeySelector<T, K>, fold: Arc<C>) -> Self {
        Self {
            plain: BytesEdge::keyed(selector.clone()),
            combined: BytesEdge::keyed(combined_key(selector)),
            selector: selector.clone(),
            fold,
        }
    }
}

impl<T: Record, K: Key, C: Fold<T>> EdgeFactory for CombiningEdge<T, K, C> {
    fn output(&self, spec: OutputSpec<'_>) -> Result<Wire, TaskError> {
        let Some(consumer) = spec.combines_for else { return self.plain.output(spec) };
        let context = Arc::clone(spec.context);
        let next = self.combined.output(spec)?.open();
        let (selector, fold) = (self.selector.clone(), Arc::clone(&self.fold));
        let output = CombiningOutput::new(selector, fold, next, &context, consumer)?;
        Ok(Wire::new(Box::new(output) as Box<dyn Output<T>>))
    }

    fn gate(&self, spec: InputSpec<'_>) -> Result<Box<dyn Any + Send>, TaskError> {
        if spec.combined { self.combined.gate(spec) } else { self.plain.gate(spec) }
    }

    fn persistent(&self, spec: OutputSpec<'_>, next: Option<Wire>) -> Result<Wire, TaskError> {
        self.plain.persistent(spec, next)
    }
}
