//! Where keyed state is opened: in memory, on disk, or in a store of the user's.

use std::fmt;
use std::sync::Arc;

use element::option_table::{self, StateBackendKind};
use element::{ConfigError, Configuration};
use graph::ResolvedMode;
use state::{
    ByteStore, ByteStoreFactory, KeyedStateBackend, StoreContext, StoreFailure, TimerService,
};

use crate::context::OperatorContext;
use crate::error::TaskError;

/// The choice of a store for a job.
#[derive(Clone)]
pub struct StateStores {
    kind: StateBackendKind,
    custom: Option<Arc<dyn ByteStoreFactory>>,
}

impl fmt::Debug for StateStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateStores({})", self.name())
    }
}

impl StateStores {
    /// As the options say, unless the user brings a store.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the option names a store that this build does not have.
    pub fn new(
        config: &Configuration,
        custom: Option<Arc<dyn ByteStoreFactory>>,
    ) -> Result<Self, ConfigError> {
        let kind = config.get(&option_table::STATE_BACKEND)?;
        if kind == StateBackendKind::Rocksdb && !cfg!(feature = "rocksdb") {
            return Err(ConfigError::Refused {
                key: option_table::STATE_BACKEND.key.to_owned(),
                reason: "this build has no RocksDB: enable the feature `rocksdb`".to_owned(),
            });
        }
        Ok(Self { kind, custom })
    }

    /// What the store is called in plans and reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match (&self.custom, self.kind) {
            (Some(_), _) => "user's store",
            (None, StateBackendKind::Heap) => "heap",
            (None, StateBackendKind::Disk) => "disk",
            (None, StateBackendKind::Rocksdb) => "rocksdb",
        }
    }

    /// Whether an access costs so little that sorting in front of it does not pay.
    #[must_use]
    pub fn is_cheap(&self) -> bool {
        self.custom.is_none() && self.kind == StateBackendKind::Heap
    }

    /// Opens the keyed state of one operator's subtask.
    ///
    /// # Errors
    ///
    /// [`TaskError::State`] if a store on disk cannot be opened.
    pub fn open(&self, context: &OperatorContext) -> Result<KeyedStateBackend, TaskError> {
        let task = &context.task;
        let groups = context.key_groups();
        if task.mode == ResolvedMode::Batch {
            return Ok(KeyedStateBackend::one_key());
        }
        let cache = task.config.get(&option_table::STATE_CACHE_ENTRIES)?.unwrap_or(0);
        let place = place(context, "state")?;
        let scratch = task.directory.join(format!("restore-{}", context.file_prefix()));
        if self.is_cheap() {
            return Ok(KeyedStateBackend::heap(groups)
                .with_operator(context.uid.clone())
                .with_scratch(scratch)
                .with_clock(Arc::clone(&task.clock)));
        }
        let store = self.open_store(&place).map_err(|source| TaskError::State {
            operator: context.name.clone(),
            source: source.into(),
        })?;
        let entries = usize::try_from(cache).unwrap_or(usize::MAX);
        Ok(KeyedStateBackend::over(store, groups, entries)
            .with_operator(context.uid.clone())
            .with_scratch(scratch)
            .with_clock(Arc::clone(&task.clock)))
    }

    /// The timers of one operator's subtask: so many in memory, the others in a store of the kind of
    /// its state; beside state in memory, on disk.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if an option is not valid.
    pub fn timers(&self, context: &OperatorContext) -> Result<TimerService, ConfigError> {
        if context.task.mode == ResolvedMode::Batch {
            // Those of one key at a time.
            return Ok(TimerService::new());
        }
        let most = context.task.config.get(&option_table::STATE_TIMERS_IN_MEMORY)?;
        let (stores, place) = (self.clone(), place(context, "timers")?);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ok(TimerService::with_later(most, move || stores.open_store(&place)))
    }

    /// Opens the byte store of the choice; where state is in memory, the one on disk.
    fn open_store(&self, place: &StoreContext) -> Result<Box<dyn ByteStore>, StoreFailure> {
        if let Some(factory) = &self.custom {
            return factory.open(place);
        }
        #[cfg(feature = "rocksdb")]
        if self.kind == StateBackendKind::Rocksdb {
            return state::RocksByteStore::factory(place);
        }
        Ok(Box::new(state::FjallByteStore::open(&place.directory, place.cache_bytes)?))
    }
}

/// Where a store of an operator's subtask lies, and what it may use.
fn place(context: &OperatorContext, what: &str) -> Result<StoreContext, ConfigError> {
    let task = &context.task;
    Ok(StoreContext {
        operator: context.uid.clone(),
        subtask: task.subtask,
        directory: task.directory.join(format!("{what}-{}", context.file_prefix())),
        memory: Arc::clone(&task.memory),
        cache_bytes: task.config.get(&option_table::STATE_STORE_CACHE)?.0,
    })
}
