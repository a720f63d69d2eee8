//! Key groups, memory, order of elements, batches, clock and time.

use std::sync::Arc;
use std::time::Duration;

use element::{
    Barrier, BarrierKind, Batch, ByteSize, CheckpointId, Clock, Control, ElementOrder, KeyGroups,
    KeyHash, ManualClock, MaxParallelism, MemoryBudget, RecordAttributes, StreamElement,
    SubtaskIndex, Timestamp,
};
use proptest::prelude::*;

/// Every group belongs to exactly one subtask, in order, for every parallelism.
#[test]
fn groups_subtasks_and_hash_ranges_agree_everywhere() {
    for groups in [1, 2, 3, 7, 64, 100, 128, 1_000] {
        let max = MaxParallelism::new(groups).unwrap();
        for parallelism in 1..=groups.min(130) {
            let mut next_group = 0;
            let mut next_hash = Some(0_u64);
            for subtask in 0..parallelism {
                let owned = max.groups_of(SubtaskIndex(subtask), parallelism);
                assert_eq!(owned.start, next_group, "{groups} {parallelism} {subtask}");
                assert!(!owned.is_empty());
                next_group = owned.end;
                let hashes = owned.hash_range().unwrap();
                assert_eq!(Some(*hashes.start()), next_hash);
                next_hash = hashes.end().checked_add(1);
                for hash in [*hashes.start(), hashes.start() / 2 + hashes.end() / 2, *hashes.end()]
                {
                    assert_eq!(max.subtask_of(KeyHash(hash), parallelism), SubtaskIndex(subtask));
                    assert!(owned.contains(KeyHash(hash)));
                }
            }
            assert_eq!((next_group, next_hash), (groups, None));
        }
    }
}

#[test]
fn the_finest_split_has_no_gap_and_no_overlap() {
    let max = MaxParallelism::DEFAULT;
    for parallelism in [1, 2, 3, 5, 127, 32_767, 32_768] {
        let mut next = 0;
        for subtask in 0..parallelism {
            let owned = max.groups_of(SubtaskIndex(subtask), parallelism);
            assert_eq!(owned.start, next);
            next = owned.end;
        }
        assert_eq!(next, max.get());
    }
    assert_eq!(KeyGroups::all(max).hash_range(), Some(0..=u64::MAX));
    let none = KeyGroups { start: 3, end: 3, max };
    assert_eq!((none.is_empty(), none.hash_range()), (true, None));
    assert_eq!((MaxParallelism::new(0), MaxParallelism::new(32_769)), (None, None));
}

proptest! {
    #[test]
    fn a_hash_belongs_to_the_subtask_that_owns_its_group(hash in any::<u64>(), groups in 1_u32..=32_768, part in 1_u32..=32_768) {
        let max = MaxParallelism::new(groups).unwrap();
        let parallelism = part.min(groups);
        let subtask = max.subtask_of(KeyHash(hash), parallelism);
        prop_assert!(subtask.0 < parallelism);
        let owned = max.groups_of(subtask, parallelism);
        prop_assert!(owned.contains(KeyHash(hash)));
        prop_assert!(owned.hash_range().unwrap().contains(&hash));
    }
}

#[test]
fn a_loan_is_refused_over_the_total_and_gives_itself_back() {
    let budget = MemoryBudget::new(ByteSize(100));
    let mut loan = budget.borrow(60).unwrap();
    assert!(budget.borrow(41).is_none());
    assert!(!loan.grow(41));
    assert!(loan.grow(40));
    assert_eq!((loan.bytes(), budget.used(), budget.peak()), (100, ByteSize(100), ByteSize(100)));
    loan.shrink(30);
    let part = loan.split(50);
    assert_eq!((loan.bytes(), part.bytes(), budget.used()), (20, 50, ByteSize(70)));
    drop(loan);
    assert_eq!(budget.used(), ByteSize(50));
    let beyond = budget.borrow_beyond(1_000);
    assert_eq!((budget.used(), budget.peak()), (ByteSize(1_050), ByteSize(1_050)));
    assert!(budget.borrow(0).is_none(), "nothing is lent while the budget is exceeded");
    drop((part, beyond));
    assert_eq!((budget.used(), budget.peak()), (ByteSize(0), ByteSize(1_050)));
}

#[test]
fn a_loan_asked_for_by_many_threads_never_exceeds_the_total() {
    let budget = MemoryBudget::new(ByteSize(1_000));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let budget = Arc::clone(&budget);
            scope.spawn(move || {
                for round in 0..2_000_u64 {
                    let Some(mut loan) = budget.borrow(round % 400) else { continue };
                    let _ = loan.grow(round % 300);
                    loan.shrink(round % 7);
                }
            });
        }
    });
    assert_eq!(budget.used(), ByteSize(0));
    assert!(budget.peak() <= budget.total());
}

#[test]
fn a_size_prints_in_its_unit() {
    let printed =
        [0, 1_023, 1_536, 5 << 20, (1 << 30) + (1 << 29)].map(|n| ByteSize(n).to_string());
    assert_eq!(printed, ["0 B", "1023 B", "1.5 KiB", "5.0 MiB", "1.5 GiB"]);
}

/// The grammar of a channel, one row a sequence; the last element is the one asked about.
#[test]
fn a_channel_admits_its_grammar_and_nothing_else() {
    #[track_caller]
    fn check(withholds: bool, elements: &[Control], admitted: bool) {
        let mut order = ElementOrder::new(withholds);
        let (last, before) = elements.split_last().unwrap();
        for control in before {
            assert!(order.admits::<u8>(&StreamElement::Control(*control)), "{control:?}");
        }
        assert_eq!(order.admits::<u8>(&StreamElement::Control(*last)), admitted, "{elements:?}");
    }
    let watermark = |millis| Control::Watermark(Timestamp(millis));
    let backlog = Control::Attributes(RecordAttributes::BACKLOG);
    let live = Control::Attributes(RecordAttributes::live(Some(Timestamp(5))));
    let barrier = Control::Barrier(Barrier { id: CheckpointId(1), kind: BarrierKind::ExactlyOnce });
    check(true, &[watermark(1), watermark(1), watermark(2)], true);
    check(true, &[watermark(2), watermark(1)], false);
    check(true, &[backlog, watermark(1)], false);
    check(false, &[backlog, watermark(1)], true);
    check(true, &[backlog, live, watermark(1), backlog, barrier, Control::Idle], true);
    check(true, &[backlog, live, backlog, watermark(1)], false);
    check(true, &[backlog, Control::EndOfInput], true);
    check(true, &[Control::EndOfInput, watermark(1)], false);
    check(true, &[Control::EndOfInput, Control::EndOfInput], false);
    let mut order = ElementOrder::new(true);
    assert!(order.admits::<u8>(&StreamElement::Control(backlog)));
    assert!(order.admits(&StreamElement::Batch(Batch::unstamped(vec![1_u8]))));
    assert!(order.admits::<u8>(&StreamElement::Control(Control::EndOfInput)));
    assert!(!order.admits(&StreamElement::Batch(Batch::unstamped(vec![1_u8]))));
}

#[test]
fn a_batch_is_filled_up_to_the_first_record_that_is_not_of_its_kind() {
    #[track_caller]
    fn check(mut batch: Batch<u8>, stamps: &[Option<i64>], taken: usize) {
        let mut asked = 0;
        let records = stamps.iter().enumerate().map(|(value, stamp)| {
            asked += 1;
            (value as u8, stamp.map(Timestamp))
        });
        let before = batch.len();
        assert_eq!(batch.fill(records), taken);
        assert_eq!((batch.len(), asked), (before + taken, stamps.len().min(taken + 1)));
        let filled: Vec<_> = batch.into_records().skip(before).collect();
        let expected = stamps.iter().take(taken).enumerate();
        assert_eq!(
            filled,
            expected.map(|(value, stamp)| (value as u8, stamp.map(Timestamp))).collect::<Vec<_>>()
        );
    }
    check(Batch::default(), &[], 0);
    check(Batch::default(), &[None, None, Some(1), None], 2);
    check(Batch::default(), &[Some(1), Some(2), None], 2);
    check(Batch::unstamped(vec![7]), &[Some(1)], 0);
    check(Batch::unstamped(vec![7]), &[None, None], 2);
    check(Batch::stamped(vec![7], vec![Timestamp(0)]), &[Some(1), None], 1);
    // Nothing is in it, so it takes any.
    check(Batch::stamped(vec![], vec![]), &[None, Some(1)], 1);
    check(Batch::stamped(vec![], vec![]), &[Some(1), Some(2)], 2);
}

#[test]
fn a_batch_keeps_values_and_timestamps_side_by_side() {
    let mut batch = Batch::default();
    assert!(batch.is_empty() && batch.admits(None) && batch.admits(Some(Timestamp(1))));
    batch.push("a", Some(Timestamp(1)));
    batch.reserve(1);
    batch.push("b", Some(Timestamp(2)));
    assert!(!batch.admits(None) && batch.admits(Some(Timestamp(3))));
    assert_eq!(
        (batch.len(), batch.timestamp(1), batch.timestamp(2)),
        (2, Some(Timestamp(2)), None)
    );
    let records: Vec<_> = batch.into_records().collect();
    assert_eq!(records, [("a", Some(Timestamp(1))), ("b", Some(Timestamp(2)))]);
    let plain = Batch::new(vec![1, 2], None);
    assert_eq!((plain.timestamps(), plain.values()), (None, [1, 2].as_slice()));
    assert_eq!(plain.into_records().collect::<Vec<_>>(), [(1, None), (2, None)]);
}

/// Trap tW21: arithmetic on time saturates at both ends.
#[test]
fn time_saturates_at_its_ends() {
    let day = Duration::from_secs(86_400);
    assert_eq!((Timestamp::MAX + day, Timestamp::MIN - day), (Timestamp::MAX, Timestamp::MIN));
    assert_eq!(Timestamp(0) + Duration::MAX, Timestamp::MAX);
    assert_eq!(Timestamp(5).saturating_sub(i64::MIN), Timestamp::MAX);
    assert_eq!(Timestamp::from_millis(-1).saturating_add(1).as_millis(), 0);
    let printed = [Timestamp::MIN, Timestamp(-3), Timestamp::MAX].map(|t| t.to_string());
    assert_eq!(printed, ["-inf", "-3ms", "+inf"]);
}

#[test]
fn a_manual_clock_stands_still_until_it_is_moved() {
    let clock = ManualClock::at(Timestamp(1_000));
    let other = clock.clone();
    assert_eq!((clock.now(), clock.monotonic()), (Timestamp(1_000), Duration::from_secs(1)));
    other.advance(Duration::from_millis(5));
    assert_eq!(clock.now(), Timestamp(1_005));
    assert!(clock.patience(Duration::MAX) < Duration::from_secs(1), "it is looked at often");
    other.set(Timestamp(3));
    assert_eq!(clock.now(), Timestamp(3));
}
