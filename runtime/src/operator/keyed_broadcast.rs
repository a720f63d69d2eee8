//! [`KeyedBroadcastOperator`]: a keyed stream and a broadcast one, whose records every subtask keeps as
//! [`state::BroadcastState`].
//!
//! The keyed side is a [`KeyedOperator`]: state, timers, and a backlog that is sorted while the keyed
//! input is in it. Broadcast records are taken as they come, with no key current; from there a function
//! reaches keyed state by [`KeyedBroadcastContext::apply_to_keyed_state`]. In batch mode the keyed side
//! is sorted to its end, so the broadcast input always comes first (T4). Left out on purpose: streams
//! without key ([`super::broadcast`]).

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use element::{Batch, Control, Key, Record, Timestamp};
use state::{
    BroadcastRead, BroadcastWrite, KeyedState, KeyedStateBackend, OperatorStateBackend, ReadOnly,
    StateAccess, Timer, TimerKind,
};

use super::broadcast::{restored_state, stored_state};
use super::function::{KeyedFunction, NoFold};
use super::keyed::KeyedOperator;
use super::keyed_context::KeyedContext;
use super::selector::KeySelector;
use super::side_output::{SideOutputs, SideTag};
use super::two_inputs::{Collects, TwoInputs};
use crate::context::OperatorContext;
use crate::error::TaskError;
use crate::output::{Output, Pump, Signal};
use crate::task::{Side, TwoInput};

/// A function over a keyed stream and a broadcast one, with keyed state and timers. One instance a
/// subtask and attempt, made by a factory closure; called on the task's thread only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no broadcast process function from `{A}` and `{B}` to `{O}` over keys of `{K}`",
    label = "not a `KeyedBroadcastProcessFunction<{K}, {A}, {B}, {O}>`",
    note = "`process` takes a closure that makes the function, once a subtask; on a stream without key the function is a `BroadcastProcessFunction`"
)]
pub trait KeyedBroadcastProcessFunction<K: Key, A, B, O>: Send + 'static {
    /// Called once before the first record; the place to `bind` keyed states.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn open(&mut self, _states: &mut KeyedStateBackend) -> anyhow::Result<()> {
        Ok(())
    }

    /// Takes a record of the keyed stream. Broadcast state can be read.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn process(
        &mut self,
        value: A,
        context: &mut KeyedReadOnlyContext<'_, '_, K, O>,
    ) -> anyhow::Result<()>;

    /// Takes a broadcast record, of which every subtask gets its own copy. Broadcast state can be
    /// changed, and must be changed alike in all subtasks. No key is current.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn process_broadcast(
        &mut self,
        value: B,
        context: &mut KeyedBroadcastContext<'_, K, O>,
    ) -> anyhow::Result<()>;

    /// An event-time timer of the key at hand fires.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn on_timer(
        &mut self,
        _at: Timestamp,
        _context: &mut KeyedReadOnlyContext<'_, '_, K, O>,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    /// A processing-time timer of the key at hand fires.
    ///
    /// # Errors
    ///
    /// What the function says; the task then fails.
    fn on_processing_timer(
        &mut self,
        _at: Timestamp,
        _context: &mut KeyedReadOnlyContext<'_, '_, K, O>,
    ) -> anyhow::Result<()> {
        Ok(())
    }
}

/// What a function may reach while it works on a keyed record or timer: all of [`KeyedContext`], and the
/// broadcast state for reading.
pub struct KeyedReadOnlyContext<'a, 'b, K, O> {
    keyed: &'a mut KeyedContext<'b, K, O>,
    state: &'a mut OperatorStateBackend,
}

impl<'b, K, O> Deref for KeyedReadOnlyContext<'_, 'b, K, O> {
    type Target = KeyedContext<'b, K, O>;

    fn deref(&self) -> &Self::Target {
        self.keyed
    }
}

impl<K, O> DerefMut for KeyedReadOnlyContext<'_, '_, K, O> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.keyed
    }
}

impl<K, O> StateAccess for KeyedReadOnlyContext<'_, '_, K, O> {
    fn backend(&mut self) -> &mut KeyedStateBackend {
        self.keyed.backend()
    }
}

impl<K, O> BroadcastRead for KeyedReadOnlyContext<'_, '_, K, O> {
    fn broadcast_state(&mut self) -> ReadOnly<'_> {
        self.state.broadcast_state()
    }
}

/// What a function may reach while it works on a broadcast record: broadcast state for changing, the
/// outputs, the time, and the state of all keys of its subtask, one after the other.
pub struct KeyedBroadcastContext<'a, K, O> {
    keyed: KeyedContext<'a, K, O>,
    state: &'a mut OperatorStateBackend,
}

impl<K: Key, O: Send> KeyedBroadcastContext<'_, K, O> {
    /// The timestamp of the record at hand, if it has one.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.keyed.timestamp()
    }

    /// The operator's watermark: the lesser of both inputs'.
    #[must_use]
    pub fn watermark(&self) -> Timestamp {
        self.keyed.watermark()
    }

    /// Processing time, read once a batch.
    #[must_use]
    pub fn processing_time(&self) -> Timestamp {
        self.keyed.processing_time()
    }

    /// Emits a result with the timestamp of the record at hand.
    pub fn collect(&mut self, value: O) {
        self.keyed.collect(value);
    }

    /// Emits a result to a side output.
    pub fn side_output<T: Send + 'static>(&mut self, tag: &SideTag<T>, value: T) {
        self.keyed.side_output(tag, value);
    }

    /// Calls a function for each key of this subtask that holds something under `state`, in the order
    /// of hashes, with that key current: its states can be read and changed, and timers registered.
    ///
    /// Costs a walk over the state: in memory one pass, on disk one scan of the whole store. Keys whose
    /// records are held in a backlog that is being collected are not there yet; in batch mode, where
    /// broadcast records come first, no key is.
    ///
    /// # Errors
    ///
    /// What `function` says, and [`state::StateError`].
    pub fn apply_to_keyed_state(
        &mut self,
        state: &impl KeyedState,
        mut function: impl FnMut(&mut KeyedContext<'_, K, O>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let keyed = &mut self.keyed;
        for (hash, key) in keyed.parts.backend.keys_of(state)? {
            keyed.current.enter_bytes(hash, &key, keyed.parts);
            function(keyed)?;
        }
        Ok(())
    }
}

impl<K, O> BroadcastRead for KeyedBroadcastContext<'_, K, O> {
    fn broadcast_state(&mut self) -> ReadOnly<'_> {
        self.state.broadcast_state()
    }
}

impl<K, O> BroadcastWrite for KeyedBroadcastContext<'_, K, O> {
    fn broadcast_state_mut(&mut self) -> &mut OperatorStateBackend {
        self.state
    }
}

/// A broadcast process function as the keyed operator runs it.
struct KeyedBroadcast<P, A, B> {
    function: P,
    state: OperatorStateBackend,
    inputs: PhantomData<fn(A, B)>,
}

impl<K, A, B, O, P> KeyedFunction<K, A, O> for KeyedBroadcast<P, A, B>
where
    K: Key,
    A: 'static,
    P: KeyedBroadcastProcessFunction<K, A, B, O>,
{
    type Fold = NoFold<A>;

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        self.function.open(backend)
    }

    fn stored(&self) -> Vec<Vec<u8>> {
        stored_state(&self.state)
    }

    fn element(&mut self, value: A, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> {
        let state = &mut self.state;
        self.function.process(value, &mut KeyedReadOnlyContext { keyed: context, state })
    }

    fn on_timer(
        &mut self,
        timer: &Timer,
        kind: TimerKind,
        context: &mut KeyedContext<'_, K, O>,
    ) -> anyhow::Result<()> {
        let mut context = KeyedReadOnlyContext { keyed: context, state: &mut self.state };
        match kind {
            TimerKind::EventTime => self.function.on_timer(timer.time, &mut context),
            TimerKind::ProcessingTime => {
                self.function.on_processing_timer(timer.time, &mut context)
            }
        }
    }
}

/// A keyed broadcast process function with what follows it. Head of its chain.
pub struct KeyedBroadcastOperator<P, K: Key, A, B, O>
where
    P: KeyedBroadcastProcessFunction<K, A, B, O>,
    A: 'static,
{
    inputs: TwoInputs<KeyedBroadcast<P, A, B>, K, A, O>,
    context: Arc<OperatorContext>,
}

impl<P, K, A, B, O> KeyedBroadcastOperator<P, K, A, B, O>
where
    P: KeyedBroadcastProcessFunction<K, A, B, O>,
    K: Key,
    A: Record,
    O: Send,
{
    /// Opens state and binds the function to it.
    ///
    /// # Errors
    ///
    /// [`TaskError`] if the state cannot be opened or restored.
    pub fn open(
        selector: KeySelector<A, K>,
        function: P,
        next: Box<dyn Output<O>>,
        side: SideOutputs,
        context: &Arc<OperatorContext>,
    ) -> Result<Self, TaskError> {
        let state = restored_state(context)?;
        let function = KeyedBroadcast { function, state, inputs: PhantomData };
        let keyed = KeyedOperator::open(selector, function, side, context)?;
        let inputs = TwoInputs::new(keyed, Collects::WhileLeftIsBacklog, next, context)?;
        Ok(Self { inputs, context: Arc::clone(context) })
    }
}

impl<P, K, A, B, O> TwoInput<A, B> for KeyedBroadcastOperator<P, K, A, B, O>
where
    P: KeyedBroadcastProcessFunction<K, A, B, O>,
    K: Key,
    A: Record,
    B: Send,
    O: Send,
{
    fn left(&mut self, batch: Batch<A>) -> Result<(), TaskError> {
        self.inputs.batch(batch)
    }

    fn right(&mut self, batch: Batch<B>) -> Result<(), TaskError> {
        self.context.metrics.records_in(batch.len());
        let TwoInputs { keyed, next, .. } = &mut self.inputs;
        keyed.beside(&mut **next, |calls, position| {
            for (value, timestamp) in batch.into_records() {
                position.next();
                calls.call(timestamp, |function, keyed| {
                    let (keyed, state) = (keyed.reborrow(), &mut function.state);
                    let mut context = KeyedBroadcastContext { keyed, state };
                    function.function.process_broadcast(value, &mut context)
                })?;
            }
            Ok(())
        })
    }

    fn control(&mut self, side: Side, control: Control) -> Result<(), TaskError> {
        self.inputs.control(side, control)
    }

    fn signal(&mut self, signal: Signal) -> Result<(), TaskError> {
        self.inputs.signal(signal)
    }

    fn pump(&mut self) -> Result<Pump, TaskError> {
        self.inputs.pump()
    }
}
