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
    mode: Mode,
    parallelism: u32,
    store: options::StateBackendKind,
    memory: ByteSize,
    chaining: bool,
    /// The record at which the program fails once.
    crash_at: Option<u64>,
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

fn environment(way: &Way) -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
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
    env
}

/// Fails once, at a record of the first source.
fn fails_once(stream: DataStream<Row>, crash_at: Option<u64>) -> DataStream<Row> {
    let left = Arc::new(AtomicU64::new(crash_at.unwrap_or(0)));
    stream.try_map(move |row: Row| {
        let before = left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        if before == Ok(1) { Err(Error::msg("the injected failure")) } else { Ok(row) }
    })
}

pub(crate) fn run(data: &Data, program: &Program, way: &Way) -> Vec<Row> {
    let env = environment(way);
    let source = |at: usize| {
        let bound = Duration::from_millis(DISORDER.unsigned_abs());
        let strategy = WatermarkStrategy::bounded_out_of_orderness(bound);
        // A reader of two scripts one behind the other would make the second one late.
        let parts = u32::try_from(data.parts(at)).unwrap();
        env.from_source(data.source(at), strategy, &format!("source {at}")).parallelism(parts)
    };
    let mut left = fails_once(source(0), way.crash_at.filter(|at| *at <= data.records));
    if program.union {
        left = left.union(source(1));
    }
    let rows = program.build(left, source(2)).execute_and_collect().unwrap().into_vec();
    compared(rows, program)
}

/// What is left of rows when that which may differ is taken out.
fn compared(mut rows: Vec<Row>, program: &Program) -> Vec<Row> {
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
