//! [`ConnectedDataStreams`]: two streams without key, for one function over both.
//!
//! ```
//! use slackwater::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let env = StreamExecutionEnvironment::new();
//! let levels = env.from_collection([40_i64, 70]);
//! let names = env.from_collection(["quay".to_owned()]);
//! let lines = levels
//!     .connect(names)
//!     .map(|level| format!("{level} cm"), |name| name)
//!     .execute_and_collect()?;
//! assert_eq!(lines.sorted(), ["40 cm", "70 cm", "quay"]);
//! # Ok(())
//! # }
//! ```
//!
//! Left out on purpose: state. What both sides must know in every subtask is broadcast
//! ([`DataStream::broadcast_state`]); what belongs to a key is [`KeyedStream::connect`].
//!
//! [`KeyedStream::connect`]: crate::KeyedStream::connect

use std::sync::Arc;

use element::Record;
use graph::{OperatorAttributes, Partitioner};
use runtime::context::OperatorContext;
use runtime::exchange::BytesEdge;
use runtime::factory::NodePayload;
use runtime::nodes::TwoInputNode;
use runtime::operator::Operator;
use runtime::operator::connected::{Both, CoProcessFunction, Connected};
use runtime::operator::either::Either;
use runtime::operator::flat_map::FlatMap;
use runtime::operator::map::Map;
use runtime::operator::process_function::ProcessOperator;
use runtime::operator::side_output::SideOutputs;
use runtime::task::TwoInput;

use crate::connected_streams::Connect;
use crate::upstream::Upstream;
use crate::{Collector, DataStream};

/// Two streams beside each other. Made by [`DataStream::connect`]. Records come in no order between
/// the two, in batch mode too.
pub struct ConnectedDataStreams<A, B> {
    left: DataStream<A>,
    right: DataStream<B>,
}

impl<T: Record> DataStream<T> {
    /// Puts another stream beside this one: one without key ([`ConnectedDataStreams`]), or a broadcast one
    /// ([`BroadcastConnectedStream`](crate::BroadcastConnectedStream)).
    pub fn connect<C: Connect<Self>>(self, other: C) -> C::Connected {
        other.connect_to(self)
    }

    /// The same, over edges that can be files: one of two inputs may have to wait for the other.
    pub(crate) fn at_rest(self) -> Self {
        let by = |upstream: &Upstream| match upstream.partitioner {
            Partitioner::Forward => upstream.by(Partitioner::Forward, BytesEdge::<T>::plain()),
            _ => upstream.clone(),
        };
        let upstreams = self.upstreams.iter().map(by).collect();
        Self { upstreams, ..self }
    }
}

impl<A: Record, B: Record> Connect<DataStream<A>> for DataStream<B> {
    type Connected = ConnectedDataStreams<A, B>;

    fn connect_to(self, left: DataStream<A>) -> Self::Connected {
        ConnectedDataStreams { left: left.at_rest(), right: self.at_rest() }
    }
}

impl<A: Record, B: Record> ConnectedDataStreams<A, B> {
    /// Applies a function to each record, `left` to those of the first stream and `right` to those of
    /// the second. Timestamps stay.
    pub fn map<O, L, R>(self, left: L, right: R) -> DataStream<O>
    where
        O: Send + 'static,
        L: Fn(A) -> O + Send + Sync + 'static,
        R: Fn(B) -> O + Send + Sync + 'static,
    {
        let function = Arc::new(move |value: Either<A, B>| match value {
            Either::Left(value) => Ok(left(value)),
            Either::Right(value) => Ok(right(value)),
        });
        self.operator("co-map", move |context, _| Map::new(Arc::clone(&function), context))
    }

    /// As [`map`](Self::map), each function with a collector for any number of results. Results carry the
    /// record's timestamp.
    pub fn flat_map<O, L, R>(self, left: L, right: R) -> DataStream<O>
    where
        O: Send + 'static,
        L: Fn(A, &mut Collector<'_, O>) + Send + Sync + 'static,
        R: Fn(B, &mut Collector<'_, O>) + Send + Sync + 'static,
    {
        let function = Arc::new(move |value: Either<A, B>, out: &mut Collector<'_, O>| {
            match value {
                Either::Left(value) => left(value, out),
                Either::Right(value) => right(value, out),
            }
            Ok(())
        });
        self.operator("co-flat-map", move |context, _| {
            FlatMap::<_, O>::new(Arc::clone(&function), context)
        })
    }

    /// Runs a function over both, with side outputs, a beginning and an end; `make` is called for each
    /// subtask and attempt.
    pub fn process<O, F>(self, make: impl Fn() -> F + Send + Sync + 'static) -> DataStream<O>
    where
        O: Send + 'static,
        F: CoProcessFunction<A, B, O>,
    {
        self.operator("co-process", move |context, side| {
            ProcessOperator::<Both<F>, O>::new(Both(make()), side, context)
        })
    }

    fn operator<O, P>(
        self,
        name: &str,
        make: impl Fn(&Arc<OperatorContext>, SideOutputs) -> P + Send + Sync + 'static,
    ) -> DataStream<O>
    where
        O: Send + 'static,
        P: Operator<Either<A, B>, O> + 'static,
    {
        let attributes = OperatorAttributes::operator();
        let node =
            TwoInputNode::<A, B, O, _>::new(attributes, move |context: &Arc<_>, next, side| {
                let operator = Connected::new(make(context, side), next, context);
                Ok(Box::new(operator) as Box<dyn TwoInput<A, B>>)
            });
        let inputs: [&[Upstream]; 2] = [&self.left.upstreams, &self.right.upstreams];
        let node = self.left.env.add(name, &inputs, NodePayload::new(node));
        DataStream::of(&self.left.env, Upstream::main::<O>(node))
    }
}
