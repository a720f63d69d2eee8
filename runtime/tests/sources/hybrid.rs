//! A hybrid source's parts: their order, their ends, their restores, and what they say.

use std::sync::Arc;

use element::{SubtaskIndex, decode_exact, encode_to_vec};
use slackwater_runtime::source::generator::GeneratorSource;
use slackwater_runtime::source::hybrid::HybridSource;
use slackwater_runtime::source::scripted::{ScriptStep, ScriptedSource};
use slackwater_runtime::source::{
    Boundedness, EnumeratorContext, ReaderContext, ReaderPoll, Source, SourceReader,
    SplitEnumerator, StaticSplits, TypedSource,
};

use crate::hand::{Hand, reader_of};

/// `count` numbers from `from`, in splits of two.
fn numbers(from: u64, count: u64) -> impl Source<Item = u64> {
    GeneratorSource::bounded(count, move |i| (from + i, None)).splits(count / 2)
}

/// Three parts of eight numbers each: from 0, from 100, from 200.
fn three_parts() -> Arc<dyn TypedSource<u64>> {
    Arc::new(HybridSource::starting_with(numbers(0, 8)).then(numbers(100, 8)).then(numbers(200, 8)))
}

fn all_of_three() -> Vec<u64> {
    (0..8).chain(100..108).chain(200..208).collect()
}

/// tB10, tB12: at the second switch as at the first a part begins when both readers have finished the
/// one before it; the end of a part that is not the last is no reader's end.
#[test]
fn every_switch_waits_for_all_readers() {
    let mut hand = Hand::new(three_parts(), 2);
    hand.run(0);
    assert_eq!(hand.sorted(), (0..8).collect::<Vec<_>>(), "the other reader has not finished");
    // It finishes the first part, and reads all of the second.
    hand.run(1);
    assert_eq!(hand.sides[1].sent, (100..108).collect::<Vec<_>>());
    assert!(hand.sides.iter().all(|side| !side.no_more && side.flags == [true]));
    hand.run(0);
    assert_eq!(hand.sorted(), all_of_three());
    hand.run(1);
    assert!(hand.sides.iter().all(|side| side.ended && side.flags == [true, false]));
}

/// tB11, tB14, K10: stored at any moment, stored again before anything was read, and restored at
/// another parallelism: nothing is lost or doubled, and the flag stands.
#[test]
fn a_hybrid_source_goes_on_from_any_moment() {
    for cut in 0..60 {
        let mut hand = Hand::new(three_parts(), 2);
        for step in 0..cut {
            hand.poll(if step % 3 == 0 { 0 } else { 1 });
        }
        let before = hand.sorted();
        let flag = hand.sides[0].flags.last().copied();
        let stored = hand.store();
        let again = Hand::restored(three_parts(), 3, &stored).store();
        for readers in 1..4 {
            let mut restored = Hand::restored(three_parts(), readers, &again);
            assert_eq!(restored.sides[0].flags.last().copied(), flag, "cut at {cut}");
            restored.run_all();
            let mut all = restored.sorted();
            all.extend(&before);
            all.sort_unstable();
            assert_eq!(all, all_of_three(), "cut at {cut}, {readers} readers");
        }
    }
}

/// tB13: parts and readers are compared by value, far beyond any small number.
#[test]
fn three_hundred_parts_come_in_order_over_a_restore() {
    let parts = || -> Arc<dyn TypedSource<u64>> {
        let one = |i: u64| GeneratorSource::bounded(1, move |_| (i, None));
        Arc::new((1..300).fold(HybridSource::starting_with(one(0)), |all, i| all.then(one(i))))
    };
    let mut hand = Hand::new(parts(), 1);
    while hand.sides[0].sent.len() < 200 {
        assert!(hand.poll(0));
    }
    let stored = hand.store();
    let mut restored = Hand::restored(parts(), 1, &stored);
    restored.run_all();
    assert_eq!(restored.sides[0].sent, (200..300).collect::<Vec<_>>());
}

/// A reader that begins anew, alone, is given what it had of several parts at once: it went on with
/// the last part and dropped the splits of those before.
#[test]
fn splits_of_several_parts_are_all_read_in_order() {
    let mut hand = Hand::new(three_parts(), 1);
    hand.run_all();
    let mut reader = reader_of(hand.source(), 0);
    hand.sides[0].assigned.iter().for_each(|split| reader.add_split(split).unwrap());
    let mut sent = Vec::new();
    while let ReaderPoll::Batch(batch) = reader.poll().unwrap() {
        sent.extend(batch.into_records().map(|(value, _)| value));
    }
    assert_eq!(sent, all_of_three());
}

/// Numbers from 0 whose enumerator knows where they end.
struct Counted(u64);

struct CountedSplits(StaticSplits<u64>, u64);

impl SplitEnumerator<u64> for CountedSplits {
    fn split_requested(
        &mut self,
        reader: SubtaskIndex,
        context: &mut EnumeratorContext<u64>,
    ) -> anyhow::Result<()> {
        self.0.split_requested(reader, context)
    }

    fn snapshot(&mut self) -> anyhow::Result<Vec<u8>> {
        self.0.snapshot()
    }

    fn end_position(&mut self) -> anyhow::Result<Vec<u8>> {
        Ok(encode_to_vec(&self.1))
    }
}

struct One(Vec<u64>);

impl SourceReader<u64, u64> for One {
    fn add_split(&mut self, split: u64) {
        self.0.insert(0, split);
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<u64>> {
        let number = self.0.pop();
        Ok(number.map_or(ReaderPoll::NeedSplit, |number| {
            ReaderPoll::Batch(element::Batch::unstamped(vec![number]))
        }))
    }

    fn snapshot(&mut self) -> Vec<u64> {
        self.0.iter().rev().copied().collect()
    }
}

impl Source for Counted {
    type Item = u64;
    type Split = u64;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn enumerator(&self, restored: Option<&[u8]>) -> anyhow::Result<Box<dyn SplitEnumerator<u64>>> {
        Ok(Box::new(CountedSplits(StaticSplits::new(0..self.0, restored)?, self.0)))
    }

    fn reader(&self, _: &ReaderContext) -> anyhow::Result<Box<dyn SourceReader<u64, u64>>> {
        Ok(Box::new(One(Vec::new())))
    }
}

/// The switch carries a position (FLIP-150): the next part begins where the one before it ended, after
/// a restore in either part too.
#[test]
fn a_part_begins_where_the_one_before_it_ended() {
    let source = || -> Arc<dyn TypedSource<u64>> {
        let next = |count: u64| {
            move |position: &[u8]| {
                let from: u64 = decode_exact(position)?;
                Ok(Numbered { from, count })
            }
        };
        Arc::new(
            HybridSource::starting_with(Counted(6))
                .then_from(Boundedness::Bounded, next(4))
                .then_from(Boundedness::Bounded, next(5)),
        )
    };
    for cut in 0..60 {
        let mut hand = Hand::new(source(), 2);
        (0..cut).for_each(|step| {
            hand.poll(step % 2);
        });
        let mut all = hand.sorted();
        let stored = hand.store();
        let mut restored = Hand::restored(source(), 2, &stored);
        restored.run_all();
        all.extend(restored.sorted());
        all.sort_unstable();
        assert_eq!(all, (0..15).collect::<Vec<_>>(), "cut at {cut}");
    }
}

/// `count` numbers from `from`, whose enumerator knows where they end.
struct Numbered {
    from: u64,
    count: u64,
}

impl Source for Numbered {
    type Item = u64;
    type Split = u64;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn enumerator(&self, restored: Option<&[u8]>) -> anyhow::Result<Box<dyn SplitEnumerator<u64>>> {
        let end = self.from + self.count;
        Ok(Box::new(CountedSplits(StaticSplits::new(self.from..end, restored)?, end)))
    }

    fn reader(&self, _: &ReaderContext) -> anyhow::Result<Box<dyn SourceReader<u64, u64>>> {
        Ok(Box::new(One(Vec::new())))
    }
}

/// A last part that begins in backlog is no switch, and what a part's reader and enumerator say to
/// each other passes through the hybrid source; it was dropped, and the reader waited for ever.
#[test]
fn a_part_is_heard_and_its_own_backlog_counts() {
    let script = ScriptedSource::new([
        ScriptStep::Backlog(true),
        ScriptStep::at(1, 50_u64),
        ScriptStep::Backlog(false),
        ScriptStep::at(2, 51),
        ScriptStep::Backlog(true),
        ScriptStep::Backlog(false),
        ScriptStep::at(3, 52),
    ]);
    let source = HybridSource::starting_with(numbers(0, 4)).then(script);
    let mut hand = Hand::new(Arc::new(source), 2);
    hand.run_all();
    assert_eq!(hand.sorted(), [0, 1, 2, 3, 50, 51, 52]);
    assert!(hand.sides.iter().all(|side| side.flags == [true, false, true, false]));
}

/// tB9: `Counted`'s source and `One`'s reader have the required methods alone, and so does this
/// enumerator; what was added to the traits since has defaults.
#[test]
fn an_enumerator_of_the_required_methods_alone_works() {
    struct Bare(u64);

    impl SplitEnumerator<u64> for Bare {
        fn split_requested(
            &mut self,
            reader: SubtaskIndex,
            context: &mut EnumeratorContext<u64>,
        ) -> anyhow::Result<()> {
            match self.0.checked_sub(1) {
                Some(left) => {
                    self.0 = left;
                    context.assign(reader, left);
                }
                None => context.no_more_splits(reader),
            }
            Ok(())
        }

        fn snapshot(&mut self) -> anyhow::Result<Vec<u8>> {
            Ok(encode_to_vec(&self.0))
        }
    }

    struct Bared;

    impl Source for Bared {
        type Item = u64;
        type Split = u64;

        fn boundedness(&self) -> Boundedness {
            Boundedness::Bounded
        }

        fn enumerator(&self, _: Option<&[u8]>) -> anyhow::Result<Box<dyn SplitEnumerator<u64>>> {
            Ok(Box::new(Bare(3)))
        }

        fn reader(&self, _: &ReaderContext) -> anyhow::Result<Box<dyn SourceReader<u64, u64>>> {
            Ok(Box::new(One(Vec::new())))
        }
    }

    let mut hand = Hand::new(Arc::new(Bared), 1);
    hand.run_all();
    assert_eq!(hand.sides[0].sent, [2, 1, 0]);
    assert_eq!(hand.sides[0].flags, [false]);
}

/// A part that never ends before the last is refused by name.
#[test]
fn a_part_that_never_ends_is_refused_before_the_last() {
    let endless = GeneratorSource::unbounded(|i| (i, None));
    let source = HybridSource::starting_with(numbers(0, 2)).then(endless).then(numbers(9, 2));
    let source: Arc<dyn TypedSource<u64>> = Arc::new(source);
    let Err(error) = source.enumerator(1, None) else { panic!("it was taken") };
    assert_eq!(error.to_string(), "part 1 of a hybrid source never ends, so part 2 never begins");
}
