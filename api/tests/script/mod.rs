//! A source that plays a script of records and watermarks, one at a time; and three ways to run it.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use element::Batch;
use slackwater::prelude::*;
use slackwater::{
    Boundedness, CollectionSource, EnumeratorContext, HybridSource, ReaderContext, ReaderPoll,
    Source, SourceReader, SplitEnumerator, WatermarkGenerator,
};

/// One step of a script.
#[derive(Clone, Debug)]
pub enum Step<T> {
    /// A record and its timestamp.
    Record(T, i64),
    /// A watermark.
    Watermark(i64),
}

/// Plays its steps in order, by one reader, each in a batch of its own.
pub struct Script<T>(Arc<Vec<Step<T>>>);

impl<T> Script<T> {
    pub fn new(steps: impl IntoIterator<Item = Step<T>>) -> Self {
        Self(Arc::new(steps.into_iter().collect()))
    }
}

struct One(bool);

impl SplitEnumerator<u64> for One {
    fn split_requested(
        &mut self,
        reader: slackwater::SubtaskIndex,
        context: &mut EnumeratorContext<u64>,
    ) -> anyhow::Result<()> {
        if std::mem::take(&mut self.0) {
            context.assign(reader, 0);
        }
        context.no_more_splits(reader);
        Ok(())
    }

    fn snapshot(&mut self) -> anyhow::Result<Vec<u8>> {
        Ok(vec![u8::from(self.0)])
    }
}

struct Player<T> {
    steps: Arc<Vec<Step<T>>>,
    at: Option<u64>,
}

impl<T: Clone + Send + Sync> SourceReader<Option<T>, u64> for Player<T> {
    fn add_split(&mut self, split: u64) {
        self.at = Some(split);
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<Option<T>>> {
        let step = self.at.and_then(|at| self.steps.get(at as usize));
        let Some(step) = step else {
            self.at = None;
            return Ok(ReaderPoll::NeedSplit);
        };
        let mut batch = Batch::default();
        match step.clone() {
            Step::Record(value, at) => batch.push(Some(value), Some(Timestamp(at))),
            Step::Watermark(at) => batch.push(None, Some(Timestamp(at))),
        }
        self.at = self.at.map(|at| at + 1);
        Ok(ReaderPoll::Batch(batch))
    }

    fn snapshot(&mut self) -> Vec<u64> {
        self.at.into_iter().collect()
    }
}

impl<T: Clone + Send + Sync + 'static> Source for Script<T> {
    type Item = Option<T>;
    type Split = u64;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn enumerator(&self, restored: Option<&[u8]>) -> anyhow::Result<Box<dyn SplitEnumerator<u64>>> {
        Ok(Box::new(One(restored.is_none_or(|stored| stored == [1]))))
    }

    fn reader(&self, _: &ReaderContext) -> anyhow::Result<Box<dyn SourceReader<Option<T>, u64>>> {
        Ok(Box::new(Player { steps: Arc::clone(&self.0), at: None }))
    }
}

#[derive(Default)]
struct Scripted(Option<Timestamp>);

impl<T> WatermarkGenerator<Option<T>> for Scripted {
    fn on_record(&mut self, value: &Option<T>, timestamp: Timestamp) {
        if value.is_none() {
            self.0 = self.0.max(Some(timestamp));
        }
    }

    fn current(&mut self) -> Option<Timestamp> {
        self.0
    }
}

/// An environment in streaming mode.
pub fn streaming() -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::PARALLELISM, Some(2));
    env
}

/// The records of a script as a stream, with its watermarks.
pub fn play<T>(
    env: &StreamExecutionEnvironment,
    steps: impl IntoIterator<Item = Step<T>>,
) -> DataStream<T>
where
    T: Clone + Send + Sync + 'static,
{
    let strategy = WatermarkStrategy::generator(|| Box::new(Scripted::default()));
    env.from_source(Script::new(steps), strategy, "script")
        .parallelism(1)
        .filter_map(|step| step)
        .parallelism(1)
}

/// How a job sees its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Batch,
    Streaming,
    Mixed,
}

pub const WAYS: [Way; 3] = [Way::Batch, Way::Streaming, Way::Mixed];

/// More than any script's spread: nothing is late before the end.
const BOUND: Duration = Duration::from_millis(100_000);

/// An environment for a way to run.
pub fn env_of(way: Way) -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(2));
    match way {
        Way::Batch => {}
        Way::Streaming => {
            env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming);
        }
        Way::Mixed => {
            env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
                .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO))
                .set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(200)))
                .set(&options::STATE_BACKEND, options::StateBackendKind::Disk);
        }
    }
    env
}

/// Records with timestamps, run one way: all as batch, all live, or the first half as backlog. The
/// watermark stays `bound` behind the greatest timestamp.
pub fn records<T>(
    env: &StreamExecutionEnvironment,
    way: Way,
    records: &[(T, i64)],
    bound: Option<u64>,
) -> DataStream<T>
where
    T: Clone + Send + Sync + 'static,
{
    let bound = bound.map_or(BOUND, Duration::from_millis);
    let stamped = |part: &[(T, i64)]| {
        CollectionSource::stamped(part.iter().map(|(value, at)| (value.clone(), Timestamp(*at))))
    };
    match way {
        Way::Batch => {
            let strategy = WatermarkStrategy::bounded_out_of_orderness(bound);
            env.from_source(stamped(records), strategy, "records")
        }
        Way::Streaming => {
            let steps = records.iter().map(|(value, at)| Step::Record(value.clone(), *at));
            let strategy = WatermarkStrategy::bounded_out_of_orderness(bound);
            env.from_source(Script::new(steps), strategy, "records")
                .parallelism(1)
                .filter_map(|step| step)
                .parallelism(1)
        }
        Way::Mixed => {
            let (history, live) = records.split_at(records.len() / 2);
            let strategy = WatermarkStrategy::bounded_out_of_orderness(bound);
            let source = HybridSource::starting_with(stamped(history)).then(stamped(live));
            env.from_source(source, strategy, "records")
        }
    }
}

/// Collects a stream beside others of the same job.
pub fn collect<T: Send + 'static>(stream: DataStream<T>) -> Arc<Mutex<Vec<T>>> {
    let collected = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&collected);
    stream.for_each(move |value| sink.lock().unwrap().push(value));
    collected
}

/// What has been collected, in order.
pub fn sorted<T: Ord + Clone>(collected: &Mutex<Vec<T>>) -> Vec<T> {
    let mut all = collected.lock().unwrap().clone();
    all.sort();
    all
}

/// Keeps all values, in order of their coming.
#[derive(Clone, Copy)]
pub struct Values;

impl<K: Send + 'static> slackwater::Aggregator<(K, i64)> for Values {
    type Accumulator = Vec<i64>;
    type Output = Vec<i64>;

    fn first(&self, (_, value): (K, i64)) -> Vec<i64> {
        vec![value]
    }

    fn add(&self, values: &mut Vec<i64>, (_, value): (K, i64)) {
        values.push(value);
    }

    fn merge(&self, values: &mut Vec<i64>, later: Vec<i64>) {
        values.extend(later);
    }

    fn result(&self, values: &Vec<i64>) -> Vec<i64> {
        let mut values = values.clone();
        values.sort_unstable();
        values
    }
}
