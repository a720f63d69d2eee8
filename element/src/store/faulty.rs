//! A store that fails where a test says so.
//!
//! It wraps any store, counts the operations of each kind, and fails the k-th one of a kind, or all
//! from the k-th on. It is part of the library, not of its tests: every crate above runs its fault
//! scenarios through it.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{FileRole, Operation, SpillStore, StoreError, StoreReader, StoreWriter};

/// Which operations fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// The kind of operation.
    pub operation: Operation,
    /// The first one to fail, counted from 1.
    pub nth: u64,
    /// Whether all later ones of the kind fail too.
    pub and_after: bool,
    /// What the system is made to say.
    pub kind: io::ErrorKind,
}

#[derive(Debug, Default)]
struct Faults {
    plan: Option<FaultPlan>,
    counts: HashMap<Operation, u64>,
}

/// A [`SpillStore`] that fails on purpose. Clones share their counts and their plan.
#[derive(Clone, Debug)]
pub struct FaultyStore {
    inner: Arc<dyn SpillStore>,
    faults: Arc<Mutex<Faults>>,
}

impl FaultyStore {
    /// Wraps `inner`; nothing fails until [`FaultyStore::plan`] says so.
    #[must_use]
    pub fn new(inner: Arc<dyn SpillStore>) -> Self {
        Self { inner, faults: Arc::default() }
    }

    /// Another store, with the counts and the plan of this one.
    #[must_use]
    pub fn over(&self, inner: Arc<dyn SpillStore>) -> Self {
        Self { inner, faults: Arc::clone(&self.faults) }
    }

    /// Sets what fails, and starts counting anew.
    pub fn plan(&self, plan: Option<FaultPlan>) {
        *self.faults.lock() = Faults { plan, counts: HashMap::new() };
    }

    /// How many operations of a kind have been tried since the plan was set.
    #[must_use]
    pub fn count(&self, operation: Operation) -> u64 {
        self.faults.lock().counts.get(&operation).copied().unwrap_or(0)
    }
}

impl Faults {
    fn check(
        &mut self,
        operation: Operation,
        role: FileRole,
        name: &str,
    ) -> Result<(), StoreError> {
        let count = self.counts.entry(operation).or_insert(0);
        *count += 1;
        match self.plan {
            Some(plan)
                if plan.operation == operation
                    && (*count == plan.nth || (plan.and_after && *count > plan.nth)) =>
            {
                Err(StoreError { operation, role, name: name.to_owned(), source: plan.kind.into() })
            }
            _ => Ok(()),
        }
    }
}

impl SpillStore for FaultyStore {
    fn create(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreWriter>, StoreError> {
        self.faults.lock().check(Operation::Create, role, name)?;
        let inner = self.inner.create(role, name)?;
        let faults = Arc::clone(&self.faults);
        Ok(Box::new(FaultyWriter { inner, faults, role, name: name.to_owned() }))
    }

    fn open(&self, role: FileRole, name: &str) -> Result<Box<dyn StoreReader>, StoreError> {
        self.faults.lock().check(Operation::Open, role, name)?;
        let inner = self.inner.open(role, name)?;
        let faults = Arc::clone(&self.faults);
        Ok(Box::new(FaultyReader { inner, faults, role, name: name.to_owned() }))
    }

    fn rename(&self, role: FileRole, from: &str, to: &str) -> Result<(), StoreError> {
        self.faults.lock().check(Operation::Rename, role, from)?;
        self.inner.rename(role, from, to)
    }

    fn delete(&self, role: FileRole, name: &str) -> Result<(), StoreError> {
        self.faults.lock().check(Operation::Delete, role, name)?;
        self.inner.delete(role, name)
    }

    fn list(&self, role: FileRole, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.faults.lock().check(Operation::List, role, prefix)?;
        self.inner.list(role, prefix)
    }

    fn local_path(&self, name: &str) -> Option<PathBuf> {
        self.inner.local_path(name)
    }
}

#[derive(Debug)]
struct FaultyWriter {
    inner: Box<dyn StoreWriter>,
    faults: Arc<Mutex<Faults>>,
    role: FileRole,
    name: String,
}

impl StoreWriter for FaultyWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.faults.lock().check(Operation::Write, self.role, &self.name)?;
        self.inner.write(bytes)
    }

    fn write_parts(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        self.faults.lock().check(Operation::Write, self.role, &self.name)?;
        self.inner.write_parts(parts)
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.faults.lock().check(Operation::Sync, self.role, &self.name)?;
        self.inner.sync()
    }
}

#[derive(Debug)]
struct FaultyReader {
    inner: Box<dyn StoreReader>,
    faults: Arc<Mutex<Faults>>,
    role: FileRole,
    name: String,
}

impl StoreReader for FaultyReader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.faults.lock().check(Operation::Read, self.role, &self.name)?;
        self.inner.read_at(offset, into)
    }

    fn len(&self) -> Result<u64, StoreError> {
        self.inner.len()
    }
}
