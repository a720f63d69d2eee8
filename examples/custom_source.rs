//! A source of your own: splits, an enumerator, readers with positions, and the backlog flag.
//!
//! Electricity meters keep all of their readings and go on making new ones. Each meter is a split; its
//! position is the number of its next reading. While any meter is still reading its history the source
//! is in backlog, so that the count below is combined, or sorted, and each state is written once; then
//! it goes on live over the same state. The meters stop after a while, so that the example ends.
//!
//! ```text
//!   MeterEnumerator (one)      -- splits, no more, backlog: true, false -->   MeterReader (one a subtask)
//!                              <-- "this meter has caught up" -----------
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{
    Batch, Boundedness, EnumeratorContext, ReaderContext, ReaderPoll, Source, SourceReader,
    SplitEnumerator, SubtaskIndex,
};

/// Readings in one batch: few enough that a checkpoint never waits for long.
const AT_ONCE: u64 = 500;

#[derive(Record, Clone)]
struct Reading {
    meter: u32,
    number: u64,
}

/// A part that one reader reads, with the position reached. It is stored in checkpoints as it is.
#[derive(Record, Clone)]
struct MeterSplit {
    meter: u32,
    next: u64,
}

/// The source. Shared by all of its subtasks: only what does not change.
struct Meters {
    meters: u32,
    history: u64,
    readings: u64,
}

impl Source for Meters {
    type Item = Reading;
    type Split = MeterSplit;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn enumerator(&self, restored: Option<&[u8]>) -> Result<Box<dyn SplitEnumerator<MeterSplit>>> {
        let (unassigned, caught_up) = match restored {
            Some(mut bytes) => Record::decode(&mut bytes)?,
            None => {
                let splits = (0..self.meters).map(|meter| MeterSplit { meter, next: 0 });
                (splits.collect(), Vec::new())
            }
        };
        let caught_up = BTreeSet::from_iter(caught_up);
        Ok(Box::new(MeterEnumerator { meters: self.meters, unassigned, caught_up }))
    }

    fn reader(&self, _: &ReaderContext) -> Result<Box<dyn SourceReader<Reading, MeterSplit>>> {
        let (history, readings) = (self.history, self.readings);
        Ok(Box::new(MeterReader {
            history,
            readings,
            splits: VecDeque::new(),
            caught_up: VecDeque::new(),
        }))
    }
}

/// Hands the meters out, and says when the last of them has caught up. One a job, beside its master.
struct MeterEnumerator {
    meters: u32,
    unassigned: Vec<MeterSplit>,
    caught_up: BTreeSet<u32>,
}

impl MeterEnumerator {
    fn is_backlog(&self) -> bool {
        self.caught_up.len() < self.meters as usize
    }
}

impl SplitEnumerator<MeterSplit> for MeterEnumerator {
    fn start(&mut self, context: &mut EnumeratorContext<MeterSplit>) -> Result<()> {
        context.set_is_processing_backlog(self.is_backlog());
        Ok(())
    }

    fn split_requested(
        &mut self,
        reader: SubtaskIndex,
        context: &mut EnumeratorContext<MeterSplit>,
    ) -> Result<()> {
        // All at once: a live meter never ends, so a reader would never ask for a second one.
        let readers = context.parallelism();
        let is_mine = |split: &mut MeterSplit| split.meter % readers == reader.0;
        for split in self.unassigned.extract_if(.., is_mine) {
            context.assign(reader, split);
        }
        context.no_more_splits(reader);
        Ok(())
    }

    fn reader_event(
        &mut self,
        _: SubtaskIndex,
        mut event: &[u8],
        context: &mut EnumeratorContext<MeterSplit>,
    ) -> Result<()> {
        self.caught_up.insert(u32::decode(&mut event)?);
        context.set_is_processing_backlog(self.is_backlog());
        Ok(())
    }

    /// What has not been handed out, and what is known of the rest.
    fn snapshot(&mut self) -> Result<Vec<u8>> {
        let caught_up: Vec<u32> = self.caught_up.iter().copied().collect();
        let mut bytes = Vec::new();
        (self.unassigned.clone(), caught_up).encode(&mut bytes);
        Ok(bytes)
    }
}

/// Reads the meters of one subtask, each in turn.
struct MeterReader {
    history: u64,
    readings: u64,
    splits: VecDeque<MeterSplit>,
    caught_up: VecDeque<u32>,
}

impl SourceReader<Reading, MeterSplit> for MeterReader {
    fn add_split(&mut self, split: MeterSplit) {
        // A restored meter that had caught up says so again: the word may have been lost.
        if split.next >= self.history {
            self.caught_up.push_back(split.meter);
        }
        self.splits.push_back(split);
    }

    fn poll(&mut self) -> Result<ReaderPoll<Reading>> {
        if let Some(meter) = self.caught_up.pop_front() {
            let mut event = Vec::new();
            meter.encode(&mut event);
            return Ok(ReaderPoll::Event(event));
        }
        let Some(mut split) = self.splits.pop_front() else { return Ok(ReaderPoll::NeedSplit) };
        let limit = if split.next < self.history { self.history } else { self.readings };
        let until = limit.min(split.next + AT_ONCE);
        let meter = split.meter;
        let readings = (split.next..until).map(|number| Reading { meter, number }).collect();
        split.next = until;
        if until == self.history {
            self.caught_up.push_back(meter);
        }
        if until < self.readings {
            self.splits.push_back(split);
        }
        Ok(ReaderPoll::Batch(Batch::unstamped(readings)))
    }

    /// What is not read yet: the job goes on here when it is restored.
    fn snapshot(&mut self) -> Vec<MeterSplit> {
        self.splits.iter().cloned().collect()
    }
}

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, options::RuntimeMode::Streaming)
        .set(&options::CHECKPOINT_INTERVAL, Some(Duration::from_millis(50)))
        .set(&options::CHECKPOINT_INTERVAL_DURING_BACKLOG, Some(Duration::ZERO))
        .set(&options::PARALLELISM, Some(2));
    let counts = Arc::new(Mutex::new(BTreeMap::new()));
    let seen = Arc::clone(&counts);
    let meters = Meters { meters: 5, history: 20_000, readings: 21_000 };
    env.from_source(meters, WatermarkStrategy::none(), "meters")
        .filter(|reading| reading.number % 2 == 0)
        .key_by(|reading| reading.meter)
        .count()
        .name("count")
        .try_for_each(move |(meter, count)| {
            let mut counts = seen.lock().map_err(|_| Error::msg("another subtask has panicked"))?;
            counts.insert(meter, count);
            Ok(())
        });
    let report = env.execute("custom source")?;
    print!("{}", report.backlog());
    let counts = counts.lock().map_err(|_| Error::msg("a subtask has panicked"))?;
    println!("{counts:?}");
    assert_eq!(*counts, (0..5).map(|meter| (meter, 10_500)).collect());
    let phase = report.operator("count").and_then(|count| count.phases.first());
    assert!(phase.is_some_and(|phase| phase.records >= 50_000 && phase.keys == 5));
    Ok(())
}
