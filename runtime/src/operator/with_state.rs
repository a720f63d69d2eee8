//! [`WithState`]: a function of a record and its key's state.

use std::marker::PhantomData;
use std::sync::Arc;

use element::{Key, Record};
use state::{KeyedStateBackend, ValueState};

use super::function::{KeyedFunction, NoFold};
use super::keyed_context::KeyedContext;

/// Applies a function to each record and the state of its key, which it may change; `None` is no
/// state, before and after. One get and one put of state a record.
pub struct WithState<F, S, T> {
    function: Arc<F>,
    state: ValueState<S>,
    input: PhantomData<fn(T)>,
}

impl<F, S: Record + Clone, T> WithState<F, S, T> {
    /// Applies `function`; what it returns something for goes out.
    #[must_use]
    pub fn new(function: Arc<F>) -> Self {
        Self { function, state: ValueState::new("state"), input: PhantomData }
    }
}

impl<K, T, O, S, F> KeyedFunction<K, T, O> for WithState<F, S, T>
where
    K: Key,
    T: Send + 'static,
    S: Record + Clone,
    F: Fn(&mut Option<S>, T) -> anyhow::Result<Option<O>> + Send + Sync,
{
    type Fold = NoFold<T>;

    fn open(&mut self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        Ok(self.state.bind(backend)?)
    }

    fn element(&mut self, value: T, context: &mut KeyedContext<'_, K, O>) -> anyhow::Result<()> {
        let function = &*self.function;
        if let Some(result) = self.state.update(context, |state| function(state, value))?? {
            context.collect(result);
        }
        Ok(())
    }
}
