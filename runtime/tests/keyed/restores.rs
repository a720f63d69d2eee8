//! What a restored operator knows: state, timers, watermark; and nothing of flags.

use element::option_table::StateBackendKind;
use graph::ResolvedMode;

use crate::harness::{Seen, Setting};
use crate::timers::{Event, timers};

/// tK11: the watermark is restored, so the first one after a restore fires what it would have fired.
#[test]
fn the_watermark_is_restored_with_the_timers() {
    for state in [StateBackendKind::Heap, StateBackendKind::Disk] {
        let mut before = timers(Setting { state, ..Setting::mixed() }, None);
        before.live(None);
        before.push_at(&[(1, (1, 120)), (2, (2, 90))]);
        before.watermark(100);
        let _fired = before.take();
        let stored = before.stored(1);
        let restored = Some(stored);
        let mut after = timers(Setting { state, restored, ..Setting::mixed() }, None);
        after.live(None);
        after.push_at(&[(3, (3, 500))]);
        let seen = after.take();
        assert_eq!(seen[1], Seen::Record(Event::Record(3, 500, 100), Some(3)));
        after.watermark(50);
        assert_eq!(after.take(), [Seen::Watermark(50)], "nothing that has fired fires again");
        after.watermark(130);
        assert_eq!(after.take()[0], Seen::Record(Event::Timer(1, 120, 130), Some(120)));
    }
}

/// tW26: processing-time timers are armed again; those in the past fire at once.
#[test]
fn processing_timers_are_armed_again_after_a_restore() {
    let mut before = timers(Setting::mixed(), None);
    before.live(None);
    before.push_at(&[(1, (1, -1_500)), (1, (2, -9_000))]);
    let restored = Some(before.stored(1));
    let mut after = timers(Setting { restored, ..Setting::mixed() }, None);
    after.clock_to(1_000);
    assert!(after.take_records().is_empty());
    after.clock_to(2_000);
    assert_eq!(after.take_records(), [Event::Processing(1, 1_500)]);
}

/// F8, R7, R10: what mixed mode has stored is restored in stream mode and the other way round; the
/// flag is in no checkpoint, and said again.
#[test]
fn a_checkpoint_of_one_mode_is_restored_in_the_other() {
    for (from, to) in [
        (ResolvedMode::Mixed, ResolvedMode::Streaming),
        (ResolvedMode::Streaming, ResolvedMode::Mixed),
    ] {
        let setting = |mode: ResolvedMode| match mode {
            ResolvedMode::Mixed => Setting::mixed(),
            _ => Setting::streaming(),
        };
        let mut before = timers(setting(from), None);
        before.backlog();
        before.push_at(&[(1, (1, 120))]);
        before.live(Some(5));
        let restored = Some(before.stored(1));
        let mut after = timers(Setting { restored, ..setting(to) }, None);
        after.backlog();
        after.push_at(&[(6, (2, 70))]);
        after.live(Some(130));
        after.watermark(130);
        let seen = after.take();
        assert_eq!(seen[0], Seen::Backlog(true));
        for timer in [(1, 120), (2, 70)] {
            let fired = |seen: &&Seen<Event>| matches!(seen, Seen::Record(Event::Timer(key, at, _), _) if (*key, *at) == timer);
            assert_eq!(seen.iter().filter(fired).count(), 1, "{timer:?}");
        }
    }
}
