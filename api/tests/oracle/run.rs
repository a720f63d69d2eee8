//! Ways to run a program, and what is compared of its rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{ByteSize, options};

use crate::data::{DISORDER, Data, Rng, Row};
use crate::program::Program;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Batch,
    Streaming,
    Sort,
    Auto,
}

/// One way to run a program.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) mode: Mode,
    pub(crate) parallelism: u32,
    pub(crate) store: options::StateBackendKind,
    pub(crate) memory: ByteSize,
    pub(crate) chaining: bool,
    /// The record at which the program fails once.
    pub(crate) crash_at: Option<u64>,
}

pub(crate) fn ways(rng: &mut Rng) -> Vec<Way> {
    let stores = [options::StateBackendKind::Heap, options::StateBackendKind::Disk];
    [Mode::Batch, Mode::Streaming, Mode::Sort, Mode::Auto]
        .into_iter()
        .map(|mode| Way {
            mode,
            parallelism: 1 + u32::try_from(rng.below(3)).unwrap(),
            store: rng.pick(&stores),
            memory: rng.pick(&[ByteSize::kib(4), ByteSize::kib(64), ByteSize::mib(8)]),
            chaining: !rng.one_in(4),
            crash_at: rng.one_in(3).then(|| 1 + rng.below(2_000)),
        })
        .collect()
}

pub(crate) fn configure(env: &StreamExecutionEnvironment, way: &Way) {
    env.set(&options::PARALLELISM, Some(way.parallelism))
        .set(&options::MAX_PARALLELISM, 128)
        .set(&options::STATE_BACKEND, way.store)
        .set(&options::SORTED_INPUTS_MEMORY, way.memory)
        .set(&options::OPERATOR_CHAINING, way.chaining)
        .set(&options::RESTART_DELAY, Duration::ZERO);
    let mode = match way.mode {
        Mode::Batch => options::RuntimeMode::Batch,
        _ => options::RuntimeMode::Streaming,
    };
    env.set(&options::RUNTIME_MODE, mode);
    if way.mode != Mode::Batch {
        env.set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(2)));
    }
    if matches!(way.mode, Mode::Sort | Mode::Auto) {
        env.set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO));
    }
    if way.mode == Mode::Sort {
        env.set(&options::BACKLOG_STRATEGY, options::BacklogStrategy::Sort);
    }
}

/// Fails once, at a record of all that pass wherever it is put in.
pub(crate) struct Crash {
    left: Arc<AtomicU64>,
}

impl Crash {
    /// At this record, counted from 1; never if there is none.
    pub(crate) fn at(record: Option<u64>) -> Self {
        Self { left: Arc::new(AtomicU64::new(record.unwrap_or(0))) }
    }

    pub(crate) fn put_into(&self, stream: DataStream<Row>) -> DataStream<Row> {
        let left = Arc::clone(&self.left);
        stream.try_map(move |row: Row| {
            let before =
                left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
            if before == Ok(1) { Err(Error::msg("the injected failure")) } else { Ok(row) }
        })
    }
}

pub(crate) fn source(env: &StreamExecutionEnvironment, data: &Data, at: usize) -> DataStream<Row> {
    let bound = Duration::from_millis(DISORDER.unsigned_abs());
    let strategy = WatermarkStrategy::bounded_out_of_orderness(bound);
    // A reader of two scripts one behind the other would make the second one late.
    let parts = u32::try_from(data.parts(at)).unwrap();
    env.from_source(data.source(at), strategy, &format!("source {at}")).parallelism(parts)
}

pub(crate) fn run(data: &Data, program: &Program, way: &Way) -> Vec<Row> {
    let env = StreamExecutionEnvironment::new();
    configure(&env, way);
    let crash = Crash::at(way.crash_at.filter(|at| *at <= data.records));
    let mut left = crash.put_into(source(&env, data, 0));
    if program.union {
        left = left.union(source(&env, data, 1));
    }
    let first = program.first(left, source(&env, data, 2));
    let rows = program.second(first).execute_and_collect().unwrap().into_vec();
    compared(rows, program)
}

/// What is left of rows when that which may differ is taken out.
pub(crate) fn compared(mut rows: Vec<Row>, program: &Program) -> Vec<Row> {
    if program.is_rolling() {
        let mut last: BTreeMap<u32, i64> = BTreeMap::new();
        for (key, value) in rows {
            let greatest = last.entry(key).or_insert(value);
            *greatest = (*greatest).max(value);
        }
        return last.into_iter().collect();
    }
    rows.sort_unstable();
    rows
}
