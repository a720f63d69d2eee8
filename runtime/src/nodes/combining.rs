//! [`CombiningNode`]: a rolling aggregate behind an edge whose producers combine.

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, Record};
use graph::{BacklogEmission, InputTreatment, OperatorAttributes};

use super::{Boxed, input_driver};
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::exchange::{Combined, combined_key};
use crate::factory::{Gates, NodeFactory, Outputs, Wire};
use crate::operator::Chained;
use crate::operator::aggregate::{Aggregator, Emission, RollingAggregate};
use crate::operator::keyed::KeyedOperator;
use crate::operator::precombined::Precombined;
use crate::operator::selector::KeySelector;
use crate::task::Driver;

/// A rolling aggregate over the records of [`crate::exchange::CombiningEdge`]s: over records, or, where
/// its own input combines, over what producers have combined them to.
pub struct CombiningNode<K, T, A, E> {
    selector: KeySelector<T, K>,
    aggregator: Arc<A>,
    backlog_emission: BacklogEmission,
    emission: PhantomData<fn() -> E>,
}

impl<K, T, A, E> CombiningNode<K, T, A, E> {
    /// Aggregates by `aggregator` over keys found by `selector`.
    #[must_use]
    pub fn new(selector: KeySelector<T, K>, aggregator: Arc<A>) -> Self {
        let backlog_emission = BacklogEmission::default();
        Self { selector, aggregator, backlog_emission, emission: PhantomData }
    }

    /// What comes out of a sorted backlog; batch mode gives final values either way (T3).
    #[must_use]
    pub fn with_backlog_emission(self, backlog_emission: BacklogEmission) -> Self {
        Self { backlog_emission, ..self }
    }
}

impl<K, T, A, E> NodeFactory for CombiningNode<K, T, A, E>
where
    K: Key,
    T: Record,
    A: Aggregator<T>,
    E: Emission<K, A::Output>,
{
    fn attributes(&self) -> OperatorAttributes {
        let backlog_emission = self.backlog_emission;
        OperatorAttributes {
            combines: true,
            producers_combine: true,
            backlog_emission,
            ..OperatorAttributes::keyed()
        }
    }

    fn link(
        &self,
        context: &Arc<OperatorContext>,
        mut outputs: Outputs,
    ) -> Result<Wire, TaskError> {
        let side = std::mem::take(&mut outputs.side);
        let next = outputs.main::<E::Output>();
        if combines(context) {
            let selector = combined_key::<T, K, A::Accumulator>(&self.selector);
            let function = Precombined::<A, T, E>::new(&self.aggregator);
            let operator = KeyedOperator::open(selector, function, side, context)?;
            let chained = Chained::new(operator, next, Arc::clone(context));
            Ok(Wire::new(Box::new(chained) as Boxed<Combined<T, A::Accumulator>>))
        } else {
            let function = RollingAggregate::<A, T, E>::new(Arc::clone(&self.aggregator));
            let selector = self.selector.clone();
            let operator = KeyedOperator::open(selector, function, side, context)?;
            let chained = Chained::new(operator, next, Arc::clone(context));
            Ok(Wire::new(Box::new(chained) as Boxed<T>))
        }
    }

    fn driver(
        &self,
        context: &Arc<OperatorContext>,
        head: Wire,
        gates: Gates,
    ) -> Result<Box<dyn Driver>, TaskError> {
        if combines(context) {
            input_driver::<Combined<T, A::Accumulator>>(head, gates)
        } else {
            input_driver::<T>(head, gates)
        }
    }
}

/// Whether producers combine: where the input does, the plan says so to both ends of its edges.
fn combines(context: &OperatorContext) -> bool {
    context.treatment.treatment == InputTreatment::Combine
}
