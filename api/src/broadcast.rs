//! [`BroadcastStream`]: a stream whose records every subtask keeps, connected to another one.
//!
//! ```
//! use slackwater::prelude::*;
//! use slackwater::{BroadcastContext, BroadcastProcessFunction, BroadcastState, ReadOnlyContext};
//!
//! /// Gives each amount by the rate of its currency.
//! struct Convert {
//!     rates: BroadcastState<String, u64>,
//! }
//!
//! type Amount = (String, u64);
//!
//! impl BroadcastProcessFunction<Amount, Amount, u64> for Convert {
//!     fn process(&mut self, amount: Amount, context: &mut ReadOnlyContext<'_, u64>) -> Result<()> {
//!         let rate = self.rates.get(context, &amount.0)?;
//!         context.collect(amount.1 * rate.unwrap_or(1));
//!         Ok(())
//!     }
//!
//!     fn process_broadcast(&mut self, rate: Amount, context: &mut BroadcastContext<'_, u64>) -> Result<()> {
//!         Ok(self.rates.put(context, &rate.0, rate.1)?)
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let env = StreamExecutionEnvironment::new();
//! let rates = env.from_collection([("crown".to_owned(), 5)]).broadcast_state();
//! let converted = env
//!     .from_collection([("crown".to_owned(), 3), ("penny".to_owned(), 2)])
//!     .connect(rates)
//!     .process(|| Convert { rates: BroadcastState::new("rates") })
//!     .execute_and_collect()?;
//! assert_eq!(converted.sorted(), [2, 15]);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use element::{Key, Record};
use graph::OperatorAttributes;
use runtime::factory::NodePayload;
use runtime::nodes::{TwoInputNode, states_of};
use runtime::operator::broadcast::{BroadcastOperator, BroadcastProcessFunction};
use runtime::operator::keyed_broadcast::{KeyedBroadcastOperator, KeyedBroadcastProcessFunction};
use runtime::task::TwoInput;

use crate::connected_streams::Connect;
use crate::upstream::Upstream;
use crate::{DataStream, KeyedStream};

/// A stream whose every record goes to every subtask of the operator that it is connected to. Made by
/// [`DataStream::broadcast_state`].
pub struct BroadcastStream<B> {
    stream: DataStream<B>,
}

/// A stream without key and a broadcast one. Made by [`DataStream::connect`].
pub struct BroadcastConnectedStream<A, B> {
    stream: DataStream<A>,
    broadcast: BroadcastStream<B>,
}

/// A keyed stream and a broadcast one. Made by [`KeyedStream::connect`].
pub struct KeyedBroadcastConnectedStream<K, A, B> {
    keyed: KeyedStream<K, A>,
    broadcast: BroadcastStream<B>,
}

impl<T: Record> DataStream<T> {
    /// Makes of this stream one that another can be connected to: every subtask of the function over
    /// both gets every record of it, and keeps what it needs of them in a
    /// [`BroadcastState`](crate::BroadcastState).
    ///
    /// In batch mode its records come before any of the other stream (FLIP-134); in streaming there is
    /// no order between the two.
    #[must_use]
    pub fn broadcast_state(self) -> BroadcastStream<T>
    where
        T: Clone,
    {
        BroadcastStream { stream: self.broadcast() }
    }
}

impl<A: Record, B: Record> Connect<DataStream<A>> for BroadcastStream<B> {
    type Connected = BroadcastConnectedStream<A, B>;

    fn connect_to(self, left: DataStream<A>) -> Self::Connected {
        BroadcastConnectedStream { stream: left.at_rest(), broadcast: self }
    }
}

impl<K: Key, A: Record, B: Record> Connect<KeyedStream<K, A>> for BroadcastStream<B> {
    type Connected = KeyedBroadcastConnectedStream<K, A, B>;

    fn connect_to(self, left: KeyedStream<K, A>) -> Self::Connected {
        KeyedBroadcastConnectedStream { keyed: left, broadcast: self }
    }
}

impl<A: Record, B: Record> BroadcastConnectedStream<A, B> {
    /// Runs a function over both; `make` is called for each subtask and attempt.
    pub fn process<O, F>(self, make: impl Fn() -> F + Send + Sync + 'static) -> DataStream<O>
    where
        O: Send + 'static,
        F: BroadcastProcessFunction<A, B, O>,
    {
        let attributes =
            OperatorAttributes { broadcast_state: true, ..OperatorAttributes::operator() };
        let node =
            TwoInputNode::<A, B, O, _>::new(attributes, move |context: &Arc<_>, next, side| {
                let operator = BroadcastOperator::open(make(), next, side, context)?;
                Ok(Box::new(operator) as Box<dyn TwoInput<A, B>>)
            });
        let Self { stream, broadcast } = self;
        let inputs: [&[Upstream]; 2] = [&stream.upstreams, &broadcast.stream.upstreams];
        let node = stream.env.add("broadcast process", &inputs, NodePayload::new(node));
        DataStream::of(&stream.env, Upstream::main::<O>(node))
    }
}

impl<K: Key, A: Record, B: Record> KeyedBroadcastConnectedStream<K, A, B> {
    /// Runs a function over both, with keyed state and timers; `make` is called for each subtask and
    /// attempt. A backlog of the keyed stream is sorted by the operator itself.
    pub fn process<O, F>(self, make: impl Fn() -> F + Send + Sync + 'static) -> DataStream<O>
    where
        O: Send + 'static,
        F: KeyedBroadcastProcessFunction<K, A, B, O>,
    {
        let attributes = OperatorAttributes {
            broadcast_state: true,
            sorts_internally: true,
            ..OperatorAttributes::keyed()
        };
        let Self { keyed, broadcast } = self;
        let selector = keyed.selector.clone();
        let make = Arc::new(make);
        let states = Arc::clone(&make);
        let node =
            TwoInputNode::<A, B, O, _>::new(attributes, move |context: &Arc<_>, next, side| {
                let selector = selector.clone();
                let operator = KeyedBroadcastOperator::open(selector, make(), next, side, context)?;
                Ok(Box::new(operator) as Box<dyn TwoInput<A, B>>)
            })
            .with_states(move || states_of(|backend| states().open(backend)));
        let inputs: [&[Upstream]; 2] = [&keyed.upstreams, &broadcast.stream.upstreams];
        let node = keyed.env.add("keyed broadcast process", &inputs, NodePayload::new(node));
        DataStream::of(&keyed.env, Upstream::main::<O>(node))
    }
}
