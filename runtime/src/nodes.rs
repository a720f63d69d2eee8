//! Factories of the nodes that the api puts into a plan: sources, one-input operators, keyed
//! operators, two-input operators, sinks.

mod combining;

pub use combining::CombiningNode;

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, KeyGroups, MaxParallelism, Record};
use graph::OperatorAttributes;
use shuffle::InputGate;
use state::{KeyedStateBackend, StateDescriptor};

use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::factory::{Gates, NodeFactory, Outputs, TeeFactory, Wire};
use crate::operator::function::KeyedFunction;
use crate::operator::keyed::KeyedOperator;
use crate::operator::selector::KeySelector;
use crate::operator::side_output::SideOutputs;
use crate::operator::timestamps::{Timestamps, WatermarkStrategy};
use crate::operator::{Chained, Operator};
use crate::output::{Output, Tee};
use crate::sink::{Sink, SinkOperator};
use crate::source::{
    Boundedness, ErasedSource, ReaderContext, SourceSides, TypedSource, WithSides,
};
use crate::task::{Driver, InputDriver, SourceDriver, TwoInput, TwoInputDriver};

type Boxed<T> = Box<dyn Output<T>>;

/// The head of a source's chain, and the way to its side outputs.
type SourceHead<T> = (Boxed<T>, SourceSides);

/// A driver over the only gate of a head that takes `I`.
fn input_driver<I: Send + 'static>(
    head: Wire,
    mut gates: Gates,
) -> Result<Box<dyn Driver>, TaskError> {
    let gate = gates.pop().and_then(|gate| gate.downcast::<InputGate<I>>().ok());
    let gate = gate.expect("the plan gives a one-input head one gate of its type");
    Ok(Box::new(InputDriver::new(*gate, head.open::<I>())))
}

/// A one-input operator, made by a closure for each subtask.
pub struct OneInputNode<I, O, F> {
    make: F,
    attributes: OperatorAttributes,
    types: PhantomData<fn(I) -> O>,
}

impl<I, O, P, F> OneInputNode<I, O, F>
where
    P: Operator<I, O>,
    F: Fn(&Arc<OperatorContext>) -> Result<P, TaskError>,
{
    /// Operators made by `make`.
    pub fn new(attributes: OperatorAttributes, make: F) -> Self {
        Self { make, attributes, types: PhantomData }
    }
}

impl<I, O, P, F> NodeFactory for OneInputNode<I, O, F>
where
    I: Send + 'static,
    O: Send + 'static,
    P: Operator<I, O> + 'static,
    F: Fn(&Arc<OperatorContext>) -> Result<P, TaskError> + Send + Sync,
{
    fn attributes(&self) -> OperatorAttributes {
        self.attributes
    }

    fn link(
        &self,
        context: &Arc<OperatorContext>,
        mut outputs: Outputs,
    ) -> Result<Wire, TaskError> {
        let operator = (self.make)(context)?;
        let chained = Chained::new(operator, outputs.main::<O>(), Arc::clone(context));
        Ok(Wire::new(Box::new(chained) as Boxed<I>))
    }

    fn driver(
        &self,
        _: &Arc<OperatorContext>,
        head: Wire,
        gates: Gates,
    ) -> Result<Box<dyn Driver>, TaskError> {
        input_driver::<I>(head, gates)
    }
}

/// A one-input operator with side outputs, made by a closure for each subtask.
pub struct SidedNode<I, O, F> {
    make: F,
    types: PhantomData<fn(I) -> O>,
}

impl<I, O, P, F> SidedNode<I, O, F>
where
    P: Operator<I, O>,
    F: Fn(&Arc<OperatorContext>, SideOutputs) -> P,
{
    /// Operators made by `make`.
    pub fn new(make: F) -> Self {
        Self { make, types: PhantomData }
    }
}

impl<I, O, P, F> NodeFactory for SidedNode<I, O, F>
where
    I: Send + 'static,
    O: Send + 'static,
    P: Operator<I, O> + 'static,
    F: Fn(&Arc<OperatorContext>, SideOutputs) -> P + Send + Sync,
{
    fn attributes(&self) -> OperatorAttributes {
        OperatorAttributes::operator()
    }

    fn link(
        &self,
        context: &Arc<OperatorContext>,
        mut outputs: Outputs,
    ) -> Result<Wire, TaskError> {
        let operator = (self.make)(context, std::mem::take(&mut outputs.side));
        let chained = Chained::new(operator, outputs.main::<O>(), Arc::clone(context));
        Ok(Wire::new(Box::new(chained) as Boxed<I>))
    }

    fn driver(
        &self,
        _: &Arc<OperatorContext>,
        head: Wire,
        gates: Gates,
    ) -> Result<Box<dyn Driver>, TaskError> {
        input_driver::<I>(head, gates)
    }
}

/// A keyed operator; its function is made by a closure for each subtask.
pub struct KeyedNode<K, I, O, F> {
    selector: KeySelector<I, K>,
    make: F,
    attributes: OperatorAttributes,
    types: PhantomData<fn() -> O>,
}

impl<K: Key, I, O, P, F> KeyedNode<K, I, O, F>
where
    P: KeyedFunction<K, I, O>,
    F: Fn() -> P,
{
    /// Functions made by `make` over keys found by `selector`.
    pub fn new(selector: KeySelector<I, K>, attributes: OperatorAttributes, make: F) -> Self {
        Self { selector, make, attributes, types: PhantomData }
    }
}

impl<K, I, O, P, F> NodeFactory for KeyedNode<K, I, O, F>
where
    K: Key,
    I: Record,
    O: Send + 'static,
    P: KeyedFunction<K, I, O> + 'static,
    F: Fn() -> P + Send + Sync,
{
    fn attributes(&self) -> OperatorAttributes {
        self.attributes
    }

    fn link(
        &self,
        context: &Arc<OperatorContext>,
        mut outputs: Outputs,
    ) -> Result<Wire, TaskError> {
        let side = std::mem::take(&mut outputs.side);
        let operator = KeyedOperator::open(self.selector.clone(), (self.make)(), side, context)?;
        let chained = Chained::new(operator, outputs.main::<O>(), Arc::clone(context));
        Ok(Wire::new(Box::new(chained) as Boxed<I>))
    }

    fn states(&self) -> anyhow::Result<Vec<StateDescriptor>> {
        let mut function = (self.make)();
        states_of(|backend| function.open(backend))
    }

    fn driver(
        &self,
        _: &Arc<OperatorContext>,
        head: Wire,
        gates: Gates,
    ) -> Result<Box<dyn Driver>, TaskError> {
        input_driver::<I>(head, gates)
    }
}

/// The states that a function binds when it opens, on an empty backend of its own.
///
/// # Errors
///
/// What the function says.
pub fn states_of(
    open: impl FnOnce(&mut KeyedStateBackend) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<StateDescriptor>> {
    let mut backend = KeyedStateBackend::heap(KeyGroups::all(MaxParallelism::DEFAULT));
    open(&mut backend)?;
    Ok(backend.declared())
}

/// Finds the states that an operator binds when it opens.
type FindStates = Box<dyn Fn() -> anyhow::Result<Vec<StateDescriptor>> + Send + Sync>;

/// A two-input operator with what follows it, made by a closure for each subtask.
pub struct TwoInputNode<A, B, O, F> {
    make: F,
    states: FindStates,
    attributes: OperatorAttributes,
    types: PhantomData<fn(A, B) -> O>,
}

impl<A, B, O, F> TwoInputNode<A, B, O, F>
where
    F: Fn(
        &Arc<OperatorContext>,
        Boxed<O>,
        SideOutputs,
    ) -> Result<Box<dyn TwoInput<A, B>>, TaskError>,
{
    /// Heads made by `make`.
    pub fn new(attributes: OperatorAttributes, make: F) -> Self {
        Self { make, states: Box::new(|| Ok(Vec::new())), attributes, types: PhantomData }
    }

    /// Says how the states that a head binds are found without one.
    #[must_use]
    pub fn with_states(
        mut self,
        states: impl Fn() -> anyhow::Result<Vec<StateDescriptor>> + Send + Sync + 'static,
    ) -> Self {
        self.states = Box::new(states);
        self
    }
}

impl<A, B, O, F> NodeFactory for TwoInputNode<A, B, O, F>
where
    A: Send + 'static,
    B: Send + 'static,
    O: Send + 'static,
    F: Fn(
            &Arc<OperatorContext>,
            Boxed<O>,
            SideOutputs,
        ) -> Result<Box<dyn TwoInput<A, B>>, TaskError>
        + Send
        + Sync,
{
    fn attributes(&self) -> OperatorAttributes {
        self.attributes
    }

    fn link(
        &self,
        context: &Arc<OperatorContext>,
        mut outputs: Outputs,
    ) -> Result<Wire, TaskError> {
        let side = std::mem::take(&mut outputs.side);
        Ok(Wire::of((self.make)(context, outputs.main::<O>(), side)?))
    }

    fn states(&self) -> anyhow::Result<Vec<StateDescriptor>> {
        (self.states)()
    }

    fn driver(
        &self,
        _: &Arc<OperatorContext>,
        head: Wire,
        mut gates: Gates,
    ) -> Result<Box<dyn Driver>, TaskError> {
        let right = gates.pop().and_then(|gate| gate.downcast::<InputGate<B>>().ok());
        let left = gates.pop().and_then(|gate| gate.downcast::<InputGate<A>>().ok());
        let head = head.take::<Box<dyn TwoInput<A, B>>>();
        Ok(Box::new(TwoInputDriver::new(
            *left.expect("the plan gives a two-input head two gates of its types"),
            *right.expect("the plan gives a two-input head two gates of its types"),
            head,
        )))
    }
}

/// A source, with its timestamps and watermarks.
pub struct SourceNode<T> {
    source: Arc<dyn TypedSource<T>>,
    strategy: WatermarkStrategy<T>,
}

impl<T: Send + 'static> SourceNode<T> {
    /// Reads `source`; event time as `strategy` says.
    pub fn new(source: Arc<dyn TypedSource<T>>, strategy: WatermarkStrategy<T>) -> Self {
        Self { source, strategy }
    }
}

impl<T: Send + 'static> NodeFactory for SourceNode<T> {
    fn attributes(&self) -> OperatorAttributes {
        match self.source.boundedness() {
            Boundedness::Bounded => OperatorAttributes::bounded_source(),
            Boundedness::Unbounded => OperatorAttributes::unbounded_source(),
        }
    }

    fn link(
        &self,
        context: &Arc<OperatorContext>,
        mut outputs: Outputs,
    ) -> Result<Wire, TaskError> {
        let stamps = Timestamps::behind_source(self.strategy.clone(), context)?;
        let main = outputs.main::<T>();
        let chained = Box::new(Chained::new(stamps, main, Arc::clone(context)));
        let sides = SourceSides::default();
        let head = WithSides::new(chained, outputs.side, sides.clone(), context);
        Ok(Wire::of::<SourceHead<T>>((Box::new(head), sides)))
    }

    fn driver(
        &self,
        context: &Arc<OperatorContext>,
        head: Wire,
        _: Gates,
    ) -> Result<Box<dyn Driver>, TaskError> {
        let (head, sides) = head.take::<SourceHead<T>>();
        let about = ReaderContext {
            subtask: context.task.subtask,
            parallelism: context.task.parallelism,
            clock: Arc::clone(&context.task.clock),
            metrics: Arc::clone(&context.metrics),
            sides,
        };
        let reader = self
            .source
            .reader(&about)
            .map_err(|source| TaskError::Source { source_name: context.name.clone(), source })?;
        let splits = context.restored.lock().take().unwrap_or_default().items;
        Ok(Box::new(SourceDriver::new(reader, head, context.is_backlog, &splits, context)?))
    }

    fn source(&self) -> Option<Arc<dyn ErasedSource>> {
        Some(Arc::clone(&self.source).erase())
    }
}

/// A sink.
pub struct SinkNode<T> {
    sink: Arc<dyn Sink<T>>,
}

impl<T: Send + 'static> SinkNode<T> {
    /// Writes to `sink`.
    pub fn new(sink: Arc<dyn Sink<T>>) -> Self {
        Self { sink }
    }
}

impl<T: Send + 'static> NodeFactory for SinkNode<T> {
    fn attributes(&self) -> OperatorAttributes {
        OperatorAttributes::sink()
    }

    fn link(&self, context: &Arc<OperatorContext>, _: Outputs) -> Result<Wire, TaskError> {
        let operator = SinkOperator::open(&*self.sink, context)?;
        let chained = Chained::new(operator, Box::new(crate::output::Discard), Arc::clone(context));
        Ok(Wire::new(Box::new(chained) as Boxed<T>))
    }

    fn driver(
        &self,
        _: &Arc<OperatorContext>,
        head: Wire,
        gates: Gates,
    ) -> Result<Box<dyn Driver>, TaskError> {
        input_driver::<T>(head, gates)
    }
}

/// Copies the records of an output for several consumers.
pub struct CloneTee<T>(PhantomData<fn(T)>);

impl<T: Clone + Send + 'static> CloneTee<T> {
    /// For records of `T`.
    #[must_use]
    pub fn shared() -> Arc<dyn TeeFactory> {
        Arc::new(Self(PhantomData))
    }
}

impl<T: Clone + Send + 'static> TeeFactory for CloneTee<T> {
    fn tee(&self, wires: Vec<Wire>) -> Wire {
        let outputs = wires.into_iter().map(Wire::open::<T>).collect();
        Wire::new(Box::new(Tee::new(outputs)) as Boxed<T>)
    }
}
