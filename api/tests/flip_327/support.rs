//! What the programs share: environments, recorded output, cases' files, a crash, a two-phase sink.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use slackwater::prelude::*;
use slackwater::{ScriptStep, Sink, SinkContext, SinkWriter, options};

pub(crate) type Row = (String, i64);

/// Streaming with interval 0 in backlog, and sorting wherever it is allowed.
pub(crate) fn mixed() -> StreamExecutionEnvironment {
    let env = streaming();
    env.set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO))
        .set(&options::BACKLOG_STRATEGY, options::BacklogStrategy::Sort);
    env
}

pub(crate) fn streaming() -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(1))
        .set(&options::RESTART_DELAY, Duration::ZERO);
    env
}

/// Output that the program and its script can look at.
pub(crate) struct Recorded<T>(Arc<Mutex<Vec<T>>>, Committed);

/// What a two-phase sink has committed, over all of its runs.
type Committed = Arc<Mutex<BTreeSet<Vec<u8>>>>;

impl<T> Clone for Recorded<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0), Arc::clone(&self.1))
    }
}

impl<T: Clone + Send + 'static> Recorded<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default(), Arc::default())
    }

    pub(crate) fn push(&self, value: T) {
        self.0.lock().unwrap().push(value);
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// A step that waits for at least `n` outputs.
    pub(crate) fn reaches<R>(&self, n: usize) -> ScriptStep<R> {
        let this = self.clone();
        ScriptStep::until(move || this.len() >= n)
    }
}

/// A switch that a test turns and a script waits for.
#[derive(Clone, Default)]
pub(crate) struct Switch(Arc<AtomicBool>);

impl Switch {
    pub(crate) fn turn(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn step<R>(&self) -> ScriptStep<R> {
        let this = self.clone();
        ScriptStep::until(move || this.is_on())
    }
}

/// Waits for a condition, a minute at most.
#[track_caller]
pub(crate) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !condition() {
        assert!(begun.elapsed().as_secs() < 60, "{what} never came");
        std::thread::yield_now();
    }
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A case's events as a script: records with key, time and value, watermarks, flags. `live` is put in
/// front of the first step of each live phase.
pub(crate) fn script_of(lines: &str) -> Vec<ScriptStep<Row>> {
    lines
        .lines()
        .filter_map(|line| {
            let event = json(line);
            if let Some(flag) = event.get("backlog") {
                return Some(ScriptStep::Backlog(flag.as_bool().unwrap()));
            }
            if let Some(mark) = event.get("wm") {
                return Some(ScriptStep::watermark(mark.as_i64().unwrap()));
            }
            let key = event.get("k")?.as_str().unwrap().to_owned();
            let value = event["v"].as_i64().unwrap();
            Some(ScriptStep::at(event["t"].as_i64().unwrap(), (key, value)))
        })
        .collect()
}

/// Fails at the `n`-th record that passes, once.
#[derive(Clone)]
pub(crate) struct Crash(Arc<AtomicI64>);

impl Crash {
    pub(crate) fn at(n: i64) -> Self {
        Self(Arc::new(AtomicI64::new(n)))
    }

    pub(crate) fn pass(&self) -> Result<()> {
        if self.0.fetch_sub(1, Ordering::SeqCst) == 1 {
            panic!("the injected crash");
        }
        Ok(())
    }

    pub(crate) fn has_happened(&self) -> bool {
        self.0.load(Ordering::SeqCst) <= 0
    }
}

/// Writers made so far: committables of different runs differ.
static WRITERS: AtomicU64 = AtomicU64::new(0);

/// A two-phase sink: rows become visible by commit alone, and a commit that comes again does nothing.
pub(crate) struct TwoPhase<T> {
    visible: Recorded<T>,
    committed: Committed,
}

impl<T: Clone + Send + 'static> TwoPhase<T> {
    pub(crate) fn new(visible: &Recorded<T>) -> Self {
        Self { visible: visible.clone(), committed: Arc::clone(&visible.1) }
    }
}

struct TwoPhaseWriter<T> {
    visible: Recorded<T>,
    committed: Arc<Mutex<BTreeSet<Vec<u8>>>>,
    pending: Vec<T>,
    prefix: String,
    next: u64,
}

impl<T: Record + Clone> Sink<T> for TwoPhase<T> {
    fn writer(&self, context: &SinkContext, _: &[Vec<u8>]) -> Result<Box<dyn SinkWriter<T>>> {
        Ok(Box::new(TwoPhaseWriter {
            visible: self.visible.clone(),
            committed: Arc::clone(&self.committed),
            pending: Vec::new(),
            prefix: format!("{}-{}", WRITERS.fetch_add(1, Ordering::SeqCst), context.subtask),
            next: 0,
        }))
    }
}

type Committable<T> = (String, u64, Vec<T>);

impl<T: Record + Clone> SinkWriter<T> for TwoPhaseWriter<T> {
    fn write(&mut self, value: T, _: Option<Timestamp>) -> Result<()> {
        self.pending.push(value);
        Ok(())
    }

    fn prepare_commit(&mut self) -> Result<Vec<Vec<u8>>> {
        if self.pending.is_empty() {
            return Ok(Vec::new());
        }
        self.next += 1;
        let rows = std::mem::take(&mut self.pending);
        Ok(vec![element::encode_to_vec(&(self.prefix.clone(), self.next, rows))])
    }

    fn commit(&mut self, committable: &[u8]) -> Result<()> {
        if self.committed.lock().unwrap().insert(committable.to_vec()) {
            let (_, _, rows) = element::decode_exact::<Committable<T>>(committable)?;
            rows.into_iter().for_each(|row| self.visible.push(row));
        }
        Ok(())
    }
}
