//! A generator of watermarks in the middle of a stream makes the time of what follows it.

use std::sync::Arc;
use std::time::Duration;

use element::{Batch, Configuration, Control, Timestamp};
use parking_lot::Mutex;
use slackwater_runtime::operator::Operator;
use slackwater_runtime::operator::process::Process;
use slackwater_runtime::operator::timestamps::{Timestamps, WatermarkStrategy};
use slackwater_runtime::output::Signal;

use crate::harness::{Harness, List, Row, Seen, Setting};
use crate::timers::{Event, Timers};

/// tW20: idleness and watermarks of what is above a generator do not pass it: it is idle by its own
/// clock, and awake again with the next record. The end of time passes.
#[test]
fn a_generator_below_an_idle_source_tells_its_own_state() {
    let process = Process::new(Timers { again: None });
    let inner: Harness<Process<Timers, Row>, Event> =
        Harness::with_config(Setting::mixed(), Configuration::new(), process);
    let strategy = WatermarkStrategy::monotonous().with_idleness(Duration::from_millis(100));
    let mut generator = Timestamps::<i64>::new(strategy, &inner.context).unwrap();
    let seen: Arc<Mutex<Vec<Seen<i64>>>> = Arc::default();
    let mut out = List::over(&seen);
    let take = || {
        let signals = std::mem::take(&mut *seen.lock()).into_iter();
        signals.filter(|seen| !matches!(seen, Seen::Record(..))).collect::<Vec<_>>()
    };
    let mut tell = |generator: &mut Timestamps<i64>, control| {
        generator.signal(Signal::Stream(control), &mut out).unwrap();
    };

    tell(&mut generator, Control::Idle);
    tell(&mut generator, Control::Watermark(Timestamp::from_millis(50)));
    tell(&mut generator, Control::Active);
    assert_eq!(take(), []);

    let mut out = List::over(&seen);
    let record = |at| Batch::stamped(vec![at], vec![Timestamp::from_millis(at)]);
    generator.batch(record(11), &mut out).unwrap();
    assert_eq!(take(), [Seen::Watermark(10)]);
    // The time counts from where there is nothing to read.
    generator.signal(Signal::Flush, &mut out).unwrap();
    let later = inner.context.task.clock.now() + Duration::from_millis(100);
    generator.signal(Signal::ProcessingTime(later), &mut out).unwrap();
    assert_eq!(take(), [Seen::Idle(true)]);
    generator.signal(Signal::Stream(Control::Active), &mut out).unwrap();
    assert_eq!(take(), [], "still idle by itself");
    generator.batch(record(21), &mut out).unwrap();
    assert_eq!(take(), [Seen::Idle(false), Seen::Watermark(20)]);
    generator.signal(Signal::Stream(Control::Watermark(Timestamp::MAX)), &mut out).unwrap();
    assert_eq!(take(), [Seen::Watermark(Timestamp::MAX.as_millis())]);
}
