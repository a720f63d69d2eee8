//! Backlog by the lag of the watermark (FLIP-328), and watermarks withheld in mixed-mode backlog.

use std::sync::Arc;
use std::time::Duration;

use element::{
    Batch, Configuration, Control, ManualClock, RecordAttributes, Timestamp, option_table,
};
use parking_lot::Mutex;
use slackwater_runtime::events::TaskEvent;
use slackwater_runtime::operator::Operator;
use slackwater_runtime::operator::process::Process;
use slackwater_runtime::operator::timestamps::{Timestamps, WatermarkStrategy};
use slackwater_runtime::output::Signal;

use crate::harness::{Harness, List, Row, Seen, Setting};
use crate::timers::{Event, Timers};

type Inner = Harness<Process<Timers, Row>, Event>;

/// A source's timestamps with a lag threshold of 100 ms; the clock stands at 1,000.
struct Stream {
    timestamps: Timestamps<i64>,
    seen: Arc<Mutex<Vec<Seen<i64>>>>,
    clock: ManualClock,
    inner: Inner,
}

impl Stream {
    fn new(setting: Setting, threshold: Option<Duration>) -> Self {
        let mut config = Configuration::new();
        config.set(&option_table::BACKLOG_WATERMARK_LAG, threshold);
        let inner = Inner::with_config(setting, config, Process::new(Timers { again: None }));
        let strategy = WatermarkStrategy::monotonous();
        let timestamps = Timestamps::new(strategy, &inner.context).unwrap();
        Self { timestamps, seen: Arc::default(), clock: inner.clock.clone(), inner }
    }

    fn flag(&mut self, is_backlog: bool) {
        let attributes =
            if is_backlog { RecordAttributes::BACKLOG } else { RecordAttributes::live(None) };
        let signal = Signal::Stream(Control::Attributes(attributes));
        self.timestamps.signal(signal, &mut List::over(&self.seen)).unwrap();
    }

    /// A record one later than the watermark that follows from it.
    fn watermark(&mut self, millis: i64) {
        let stamps = vec![Timestamp::from_millis(millis + 1)];
        let batch = Batch::stamped(vec![millis], stamps);
        self.timestamps.batch(batch, &mut List::over(&self.seen)).unwrap();
    }

    /// Signals that came out; records left out.
    fn take(&mut self) -> Vec<Seen<i64>> {
        let seen = std::mem::take(&mut *self.seen.lock());
        seen.into_iter().filter(|seen| !matches!(seen, Seen::Record(..))).collect()
    }
}

const THRESHOLD: Option<Duration> = Some(Duration::from_millis(100));

/// K12, K15, K17, D14: no lag before the first watermark; above the threshold it is backlog, at the
/// threshold no longer; the lag is that of the withheld watermark, which the switch carries.
#[test]
fn a_watermark_that_lags_is_backlog_until_it_has_caught_up() {
    let mut stream = Stream::new(Setting::mixed(), THRESHOLD);
    stream.flag(false);
    assert_eq!(stream.take(), [Seen::Backlog(false)]);
    stream.watermark(899);
    assert_eq!(stream.take(), [Seen::Backlog(true)]);
    stream.watermark(950);
    assert_eq!(stream.take(), [Seen::Backlog(false), Seen::Watermark(950)]);
    let told = stream.inner.told(|event| matches!(event, TaskEvent::LagBacklog(_)));
    assert_eq!(told, 2);
}

/// K12, K13: a small lag alone does not end the backlog that the source itself reports.
#[test]
fn a_small_lag_does_not_end_the_backlog_of_the_source() {
    let mut stream = Stream::new(Setting::mixed(), THRESHOLD);
    stream.flag(true);
    stream.watermark(10);
    stream.watermark(990);
    assert_eq!(stream.take(), [Seen::Backlog(true)]);
    stream.flag(false);
    assert_eq!(stream.take(), [Seen::Backlog(false), Seen::Watermark(990)]);
}

/// K16: once live, falling behind does not bring the backlog back.
#[test]
fn once_caught_up_lag_counts_no_more() {
    let mut stream = Stream::new(Setting::mixed(), THRESHOLD);
    stream.flag(false);
    stream.watermark(950);
    stream.clock.set(Timestamp::from_millis(5_000));
    stream.watermark(960);
    let expected = [Seen::Backlog(false), Seen::Watermark(950), Seen::Watermark(960)];
    assert_eq!(stream.take(), expected);
}

/// K14: without the option lag is off; 0 is refused by name.
#[test]
fn without_a_threshold_lag_is_off_and_0_is_refused() {
    let mut config = Configuration::new();
    config.set(&option_table::BACKLOG_WATERMARK_LAG, Some(Duration::ZERO));
    let inner = Inner::with_config(Setting::mixed(), config, Process::new(Timers { again: None }));
    let refused = Timestamps::<i64>::new(WatermarkStrategy::monotonous(), &inner.context);
    let text = refused.err().unwrap().to_string();
    assert!(text.contains(option_table::BACKLOG_WATERMARK_LAG.key), "{text}");

    let mut stream = Stream::new(Setting::mixed(), None);
    stream.flag(false);
    stream.watermark(-9_000);
    assert_eq!(stream.take(), [Seen::Backlog(false), Seen::Watermark(-9_000)]);
}

/// D11, M17: in mixed mode watermarks are withheld in backlog, and the flag that ends it carries the
/// greatest; in stream mode they flow.
#[test]
fn watermarks_are_withheld_in_mixed_mode_alone() {
    let mut mixed = Stream::new(Setting::mixed(), None);
    mixed.flag(true);
    mixed.watermark(5);
    mixed.watermark(7);
    assert_eq!(mixed.take(), [Seen::Backlog(true)]);
    mixed.flag(false);
    assert_eq!(mixed.take(), [Seen::Backlog(false), Seen::Watermark(7)]);

    let mut streaming = Stream::new(Setting::streaming(), None);
    streaming.flag(true);
    streaming.watermark(5);
    assert_eq!(streaming.take(), [Seen::Backlog(true), Seen::Watermark(5)]);
}
