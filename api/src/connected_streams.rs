//! [`ConnectedStreams`]: two keyed streams with one key type, for functions over both.

use std::sync::Arc;

use element::{Key, Record};
use graph::OperatorAttributes;
use runtime::factory::NodePayload;
use runtime::nodes::{TwoInputNode, states_of};
use runtime::operator::co_group::{CoGroup, CoGroupCall};
use runtime::operator::co_process::{CoOperator, CoProcess, KeyedCoProcessFunction};
use runtime::operator::either::Either;
use runtime::operator::function::KeyedFunction;
use runtime::task::TwoInput;

use crate::upstream::Upstream;
use crate::{DataStream, Error, KeyedContext, KeyedStream, TwoInputBacklog};

/// Two streams grouped by keys of one type. Made by [`KeyedStream::connect`].
pub struct ConnectedStreams<K, A, B> {
    pub(crate) left: KeyedStream<K, A>,
    pub(crate) right: KeyedStream<K, B>,
    pub(crate) rule: TwoInputBacklog,
}

/// What a stream can be connected to. Implemented by the streams of this crate.
#[diagnostic::on_unimplemented(
    message = "`{Left}` cannot be connected to `{Self}`",
    label = "does not connect",
    note = "two keyed streams connect if their keys are of one type, two streams without keys always; every stream connects to a `broadcast_state()`"
)]
pub trait Connect<Left> {
    /// Both streams, for functions over both.
    type Connected;

    /// Puts this stream beside `left`.
    fn connect_to(self, left: Left) -> Self::Connected;
}

impl<K: Key, A: Record, B: Record> Connect<KeyedStream<K, A>> for KeyedStream<K, B> {
    type Connected = ConnectedStreams<K, A, B>;

    fn connect_to(self, left: KeyedStream<K, A>) -> Self::Connected {
        ConnectedStreams { left, right: self, rule: TwoInputBacklog::default() }
    }
}

impl<K: Key, A: Record> KeyedStream<K, A> {
    /// Puts another stream beside this one: a keyed one with the same type of key
    /// ([`ConnectedStreams`]), or a broadcast one
    /// ([`KeyedBroadcastConnectedStream`](crate::KeyedBroadcastConnectedStream)).
    pub fn connect<C: Connect<Self>>(self, other: C) -> C::Connected {
        other.connect_to(self)
    }
}

impl<K: Key, A: Record, B: Record> ConnectedStreams<K, A, B> {
    /// When the sorting of a backlog ends: at the first input that leaves it, or at the last
    /// (decision D3).
    #[must_use]
    pub fn backlog(mut self, rule: TwoInputBacklog) -> Self {
        self.rule = rule;
        self
    }

    /// Runs a function over both inputs, with state and timers; `make` is called for each subtask
    /// and attempt. A backlog is sorted by the operator itself and merged by key.
    pub fn process<O, F>(self, make: impl Fn() -> F + Send + Sync + 'static) -> DataStream<O>
    where
        O: Send + 'static,
        F: KeyedCoProcessFunction<K, A, B, O>,
    {
        let attributes =
            OperatorAttributes { sorts_internally: true, ..OperatorAttributes::keyed() };
        self.two_input("co-process", attributes, move || CoProcess::<F, A, B>::new(make()))
    }

    /// Hands all records of a key over together when both inputs have ended: left, right, each in
    /// order of timestamp, then arrival. Keys of one input alone come too, with an empty list.
    ///
    /// Source: FLIP-331, "CoGroup".
    pub fn co_group<O, F>(self, function: F) -> DataStream<O>
    where
        O: Send + 'static,
        F: Fn(Vec<A>, Vec<B>, &mut KeyedContext<'_, K, O>) -> Result<(), Error>
            + Send
            + Sync
            + 'static,
    {
        let attributes = OperatorAttributes {
            sorts_internally: true,
            output_only_at_end: true,
            ..OperatorAttributes::keyed()
        };
        let call: Arc<CoGroupCall<K, A, B, O>> = Arc::new(function);
        self.two_input("co-group", attributes, move || CoGroup::new(Arc::clone(&call)))
    }

    /// A keyed function over both inputs' records as one.
    pub(crate) fn two_input<O, F>(
        self,
        name: &str,
        attributes: OperatorAttributes,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> DataStream<O>
    where
        O: Send + 'static,
        F: KeyedFunction<K, Either<A, B>, O> + 'static,
    {
        let Self { left, right, rule } = self;
        let keys = (left.selector.clone(), right.selector.clone());
        let make = Arc::new(make);
        let states = Arc::clone(&make);
        let node =
            TwoInputNode::<A, B, O, _>::new(attributes, move |context: &Arc<_>, next, side| {
                let operator = CoOperator::open(keys.clone(), rule, make(), next, side, context)?;
                Ok(Box::new(operator) as Box<dyn TwoInput<A, B>>)
            })
            .with_states(move || states_of(|backend| states().open(backend)));
        let inputs: [&[Upstream]; 2] = [&left.upstreams, &right.upstreams];
        let node = left.env.add(name, &inputs, NodePayload::new(node));
        DataStream::of(&left.env, Upstream::main::<O>(node))
    }
}
