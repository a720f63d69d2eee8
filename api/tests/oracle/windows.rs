//! Programs of windows, joins and side outputs. Their results do not depend on the order of equal
//! timestamps, and carry the same timestamps in every mode.

use std::time::Duration;

use slackwater::prelude::*;
use slackwater::{Sum, TwoInputBacklog};

use crate::data::{Rng, Row};

/// A first keyed operator over event time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Timed {
    Tumbling(i64),
    Sliding(i64, i64),
    Session(i64),
    /// All records of a window, summed by hand.
    Listed(i64),
    WindowJoin(i64, TwoInputBacklog),
    FullOuterJoin(i64, TwoInputBacklog),
    IntervalJoin(i64, TwoInputBacklog),
    /// Rolling sums, odd ones through a side output.
    Sides,
}

fn ms(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

impl Timed {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let rule = rng.pick(&[TwoInputBacklog::UntilOneLive, TwoInputBacklog::UntilAllLive]);
        let size = rng.pick(&[3, 20, 100]);
        match rng.below(8) {
            0 => Self::Tumbling(size),
            1 => Self::Sliding(size * 2, size),
            2 => Self::Session(size),
            3 => Self::Listed(size),
            4 => Self::WindowJoin(size, rule),
            5 => Self::FullOuterJoin(size, rule),
            6 => Self::IntervalJoin(size, rule),
            _ => Self::Sides,
        }
    }

    /// Whether each key's last value alone is compared.
    pub(crate) fn is_rolling(self) -> bool {
        self == Self::Sides
    }

    pub(crate) fn build(self, left: DataStream<Row>, right: DataStream<Row>) -> DataStream<Row> {
        let key = |row: &Row| row.0;
        let sum = || Sum::new(|row: &Row| row.1);
        let left = left.key_by(key);
        match self {
            Self::Tumbling(size) => sums(left, size),
            Self::Sliding(size, slide) => {
                let windows = left.window(SlidingEventTime::of(ms(size), ms(slide)));
                windows.aggregate_with(sum(), summed).into_stream()
            }
            Self::Session(gap) => {
                let windows = left.window(SessionEventTime::with_gap(ms(gap)));
                windows.aggregate_with(sum(), summed).into_stream()
            }
            Self::Listed(size) => left
                .window(TumblingEventTime::of(ms(size)))
                .apply(move |rows: Vec<Row>, window, out: &mut KeyedContext<'_, u32, Row>| {
                    summed(rows.iter().map(|row| row.1).sum(), window, out);
                })
                .into_stream(),
            Self::WindowJoin(size, rule) => left
                .join(right.key_by(key))
                .window(TumblingEventTime::of(ms(size)))
                .backlog(rule)
                .inner(|left, right, out| out.collect((left.0, left.1 * 100 + right.1)))
                .into_stream(),
            Self::FullOuterJoin(size, rule) => left
                .join(right.key_by(key))
                .window(TumblingEventTime::of(ms(size)))
                .backlog(rule)
                .full_outer(|left, right, out| {
                    let value = |row: Option<&Row>| row.map_or(0, |row| row.1);
                    let key = *out.key();
                    out.collect((key, value(left) * 100 + value(right)));
                })
                .into_stream(),
            Self::IntervalJoin(size, rule) => left
                .interval_join(right.key_by(key))
                .between(TimeOffset::before(ms(size)), TimeOffset::after(ms(size / 2)))
                .backlog(rule)
                .process(|left, right, out| out.collect((left.0, left.1 * 100 + right.1)))
                .into_stream(),
            Self::Sides => {
                let main = left.process(|| OddAside(ValueState::new("sum")));
                let odd = main.side_output::<Row>(&SideTag::new("odd"));
                main.union(odd)
            }
        }
    }
}

/// Sums of tumbling windows.
pub(crate) fn sums(keyed: KeyedStream<u32, Row>, size: i64) -> DataStream<Row> {
    let windows = keyed.window(TumblingEventTime::of(ms(size)));
    windows.aggregate_with(Sum::new(|row: &Row| row.1), summed).into_stream()
}

/// A window's sum with its end, so that a wrong window is a wrong value.
fn summed(sum: i64, window: Window, out: &mut KeyedContext<'_, u32, Row>) {
    let key = *out.key();
    out.collect((key, window.end().as_millis() * 1_000_000 + sum));
}

struct OddAside(ValueState<i64>);

impl KeyedProcessFunction<u32, Row, Row> for OddAside {
    fn process(&mut self, row: Row, context: &mut KeyedContext<'_, u32, Row>) -> Result<()> {
        let sum = self.0.get(context)?.unwrap_or(0) + row.1;
        self.0.set(context, sum)?;
        if sum % 2 == 1 {
            context.side_output(&SideTag::new("odd"), (row.0, sum));
        } else {
            context.collect((row.0, sum));
        }
        Ok(())
    }
}
