//! Each kind of window against a naive model, run as batch, as stream and as backlog-then-stream.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod script;

use std::collections::BTreeMap;

use proptest::prelude::*;
use script::{Values, WAYS, Way, collect, env_of, records, sorted};
use slackwater::prelude::*;
use slackwater::{EndOfStreamWindows, WindowedStream};

type Rec = (u64, i64);
/// Key, start, end, values in order.
type Fired = (u64, i64, i64, Vec<i64>);

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Size, slide, offset. Tumbling if size and slide are equal.
    Aligned(i64, i64, i64),
    /// The same with an allowed lateness, so that panes are not used.
    Kept(i64, i64),
    /// The same through lists of records.
    Listed(i64, i64),
    Session(i64),
    /// The gap is the value's remainder by 7 and one more.
    Dynamic,
    EndOfStream,
}

fn model(kind: Kind, input: &[(Rec, i64)]) -> Vec<Fired> {
    let mut windows: BTreeMap<(u64, i64, i64), Vec<i64>> = BTreeMap::new();
    match kind {
        Kind::Aligned(size, slide, offset) => aligned(input, size, slide, offset, &mut windows),
        Kind::Kept(size, slide) | Kind::Listed(size, slide) => {
            aligned(input, size, slide, 0, &mut windows);
        }
        Kind::Session(_) | Kind::Dynamic => {
            let gap = |value: i64| match kind {
                Kind::Session(gap) => gap,
                _ => value.rem_euclid(7) + 1,
            };
            let mut ordered: Vec<_> = input.to_vec();
            ordered.sort_by_key(|((key, _), at)| (*key, *at));
            let mut open: Vec<(u64, i64, i64, Vec<i64>)> = Vec::new();
            for ((key, value), at) in ordered {
                let (mut start, mut end, mut values) = (at, at + gap(value), vec![value]);
                open.retain(|(k, s, e, held)| {
                    let touches = *k == key && *s <= end && start <= *e;
                    if touches {
                        (start, end) = (start.min(*s), end.max(*e));
                        values.extend(held);
                    }
                    !touches
                });
                open.push((key, start, end, values));
            }
            windows.extend(open.into_iter().map(|(k, s, e, values)| ((k, s, e), values)));
        }
        Kind::EndOfStream => {
            for ((key, value), _) in input {
                windows.entry((*key, i64::MIN, i64::MAX)).or_default().push(*value);
            }
        }
    }
    let fired = windows.into_iter().map(|((key, start, end), mut values)| {
        values.sort_unstable();
        (key, start, end, values)
    });
    fired.collect()
}

fn aligned(
    input: &[(Rec, i64)],
    size: i64,
    slide: i64,
    offset: i64,
    windows: &mut BTreeMap<(u64, i64, i64), Vec<i64>>,
) {
    for ((key, value), at) in input {
        let mut start = at - (at - offset).rem_euclid(slide);
        while start > at - size {
            windows.entry((*key, start, start + size)).or_default().push(*value);
            start -= slide;
        }
    }
}

fn millis(n: i64) -> std::time::Duration {
    std::time::Duration::from_millis(n.unsigned_abs())
}

fn fired(stream: WindowedStream<u64, Rec>) -> DataStream<Fired> {
    stream
        .aggregate_with(Values, |values, window, out| {
            let key = *out.key();
            out.collect((key, window.start().0, window.end().0, values));
        })
        .into_stream()
}

fn windowed(kind: Kind, keyed: KeyedStream<u64, Rec>) -> DataStream<Fired> {
    match kind {
        Kind::Aligned(size, slide, offset) if size == slide => {
            let windows = TumblingEventTime::of(millis(size));
            fired(keyed.window(if offset < 0 {
                windows.offset_back(millis(offset))
            } else {
                windows.offset(millis(offset))
            }))
        }
        Kind::Aligned(size, slide, offset) => {
            let windows = SlidingEventTime::of(millis(size), millis(slide));
            fired(keyed.window(if offset < 0 {
                windows.offset_back(millis(offset))
            } else {
                windows.offset(millis(offset))
            }))
        }
        Kind::Kept(size, slide) => fired(
            keyed
                .window(SlidingEventTime::of(millis(size), millis(slide)))
                .allowed_lateness(millis(7)),
        ),
        Kind::Listed(size, slide) => keyed
            .window(SlidingEventTime::of(millis(size), millis(slide)))
            .apply(|records, window, out| {
                let key = *out.key();
                let mut values: Vec<i64> = records.into_iter().map(|(_, value)| value).collect();
                values.sort_unstable();
                out.collect((key, window.start().0, window.end().0, values));
            })
            .into_stream(),
        Kind::Session(gap) => fired(keyed.window(SessionEventTime::with_gap(millis(gap)))),
        Kind::Dynamic => {
            fired(keyed.window(SessionEventTime::with_dynamic_gap(|(_, value): &Rec| {
                millis(value.rem_euclid(7) + 1)
            })))
        }
        Kind::EndOfStream => fired(keyed.window(EndOfStreamWindows)),
    }
}

/// Runs windows of all `kinds` in one job, and compares each with its model.
fn check(way: Way, kinds: &[Kind], input: &[(Rec, i64)], bound: Option<u64>) {
    let env = env_of(way);
    let stream = records(&env, way, input, bound);
    let collected: Vec<_> = kinds
        .iter()
        .map(|kind| collect(windowed(*kind, stream.clone().key_by(|(key, _)| *key))))
        .collect();
    env.execute("windows").unwrap();
    for (kind, collected) in kinds.iter().zip(collected) {
        assert_eq!(sorted(&collected), model(*kind, input), "{kind:?} as {way:?}");
    }
}

fn input() -> impl Strategy<Value = Vec<(Rec, i64)>> {
    prop::collection::vec(((0..3_u64, -50..50_i64), -200..200_i64), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// M26, M28, tW1, tW3: windows of every kind, with offsets and negative timestamps, are what the
    /// model says, in every mode.
    #[test]
    fn windows_of_every_kind_agree_with_the_model_in_every_mode(
        input in input(),
        size in 1..40_i64,
        slide in 1..40_i64,
        offset in -1.0..1.0_f64,
    ) {
        let (size, slide) = (size.max(slide), slide);
        let offset = (slide as f64 * offset) as i64;
        let kinds = [
            Kind::Aligned(slide, slide, offset),
            Kind::Aligned(size, slide, offset),
            Kind::Kept(size, slide),
            Kind::Listed(size, slide),
            Kind::Session(slide),
            Kind::Dynamic,
            Kind::EndOfStream,
        ];
        for way in WAYS {
            check(way, &kinds, &input, None);
        }
    }

    /// Watermarks that jump after each record: windows fire on the way, panes come and go.
    #[test]
    fn windows_fire_rightly_while_the_watermark_moves(
        mut input in input(),
        size in 1..60_i64,
        slide in 1..20_i64,
    ) {
        input.sort_by_key(|(_, at)| *at);
        // Neighbours change places: out of order by less than the bound.
        for pair in input.chunks_mut(2) {
            pair.reverse();
        }
        let spread = input.windows(2).map(|pair| (pair[0].1 - pair[1].1).unsigned_abs());
        let bound = spread.max().unwrap_or(0) + 1;
        let size = size.max(slide);
        let kinds = [
            Kind::Aligned(size, slide, 0),
            Kind::Kept(size, slide),
            Kind::Session(slide),
            Kind::Dynamic,
        ];
        check(Way::Streaming, &kinds, &input, Some(bound));
        check(Way::Mixed, &kinds, &input, Some(bound));
    }
}

/// Reads and writes of the store, without a cache, for sliding windows of so many slides.
fn accesses(overlap: i64) -> u64 {
    let env = env_of(Way::Streaming);
    env.set(&options::STATE_BACKEND, options::StateBackendKind::Disk)
        .set(&options::STATE_CACHE_ENTRIES, Some(0));
    let input: Vec<(Rec, i64)> = (0..900).map(|i| ((1, i), i * 10 / 3)).collect();
    let keyed = records(&env, Way::Streaming, &input, Some(0)).key_by(|(key, _)| *key);
    let windows = SlidingEventTime::of(millis(overlap * 10), millis(10));
    let sums = keyed.window(windows).reduce(|(key, a), (_, b)| (key, a + b)).name("sums");
    sums.for_each(|_| {});
    let report = env.execute("accesses").unwrap();
    let operator = report.operator("sums").unwrap();
    operator.state_reads + operator.state_writes
}

#[test]
fn sliding_aggregates_cost_the_same_whatever_their_overlap() {
    let (few, many) = (accesses(4), accesses(120));
    // 300 slides of records; the windows that end behind them are 116 more.
    assert!(many < few * 2, "{few} accesses of the store with 4 panes a window, {many} with 120");
}
