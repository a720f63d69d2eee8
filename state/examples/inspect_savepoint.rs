//! Lists the states of a savepoint's files, and dumps one state as JSON lines.
//!
//! `inspect_savepoint <directory> [state]` reads every snapshot in a directory. Without arguments it
//! makes a small one in memory and shows that.

use std::io;
use std::sync::Arc;

use element::{
    DirectoryStore, FileRole, KeyGroups, MaxParallelism, MemoryStore, SpillStore, hash_key_bytes,
    key_bytes,
};
use slackwater_state::{
    KeyedStateBackend, SnapshotReader, SnapshotSource, TimerService, ValueState, inspect,
};

type AnyError = Box<dyn std::error::Error>;

fn sample() -> Result<Arc<dyn SpillStore>, AnyError> {
    let groups = KeyGroups::all(MaxParallelism::DEFAULT);
    let mut backend = KeyedStateBackend::heap(groups).with_operator("word count");
    let count = ValueState::<u64>::new("count");
    for word in ["slack", "water", "slack"] {
        let key = key_bytes(&word.to_owned());
        backend.set_current_key(hash_key_bytes(&key), &key);
        count.update(&mut backend, |held| *held = Some(held.unwrap_or(0) + 1))?;
    }
    let files = MemoryStore::new();
    backend.snapshot(&TimerService::new())?.write(&files, "0")?;
    Ok(Arc::new(files))
}

fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args().skip(1);
    let files: Arc<dyn SpillStore> = match arguments.next() {
        Some(directory) => Arc::new(DirectoryStore::new(directory)),
        None => sample()?,
    };
    let wanted = arguments.next();
    let mut sources = Vec::new();
    for name in files.list(FileRole::Snapshot, "")? {
        if let Ok(reader) = SnapshotReader::open_named(files.as_ref(), &name) {
            sources.push(SnapshotSource { store: Arc::clone(&files), handle: reader.handle() });
        }
    }
    for state in inspect::list(&sources)? {
        let inspect::StateSummary { operator, descriptor, keys, entries, bytes } = state;
        let (name, kind, schema) = (&descriptor.name, descriptor.kind, &descriptor.schema);
        println!(
            "{operator}/{name}: {kind} of {schema}, {keys} keys, {entries} entries, {bytes} bytes"
        );
    }
    for source in &sources {
        inspect::dump(source, wanted.as_deref(), &mut io::stdout().lock())?;
    }
    Ok(())
}
