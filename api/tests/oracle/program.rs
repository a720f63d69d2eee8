//! Random programs over rows, made of functions that do not depend on the order within a key.

use slackwater::prelude::*;
use slackwater::{KeyedCoProcessFunction, TwoInputBacklog};

use crate::data::{Rng, Row};

/// The first keyed operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum First {
    /// A rolling sum: values only grow.
    Sum,
    /// The same as a process function with value state.
    ValueSum,
    /// The number of different values so far, in map state.
    Different,
    /// Sums of event-time windows, in map state, with a timer a window.
    Windows,
    /// All values in list state, handed out at the end.
    ListAtEnd,
    /// Two inputs with one state, handed out at the end.
    CoProcess(TwoInputBacklog),
    /// Two inputs, key by key at the end.
    CoGroup,
    #[cfg(feature = "sim")]
    Timed(crate::windows::Timed),
}

/// The second keyed operator, over other keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Second {
    None,
    /// The greatest value, rolling.
    Greatest,
    /// The greatest value, handed out at the end.
    GreatestAtEnd,
    /// Sums of event-time windows of this size.
    #[cfg(feature = "sim")]
    Windows(i64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) first: First,
    pub(crate) second: Second,
    pub(crate) union: bool,
    pub(crate) keys: u32,
}

impl Program {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let first = rng.pick(&[
            First::Sum,
            First::ValueSum,
            First::Different,
            First::Windows,
            First::Windows,
            First::ListAtEnd,
            First::CoProcess(TwoInputBacklog::UntilOneLive),
            First::CoProcess(TwoInputBacklog::UntilAllLive),
            First::CoGroup,
        ]);
        Self {
            first,
            second: rng.pick(&[Second::None, Second::Greatest, Second::GreatestAtEnd]),
            union: rng.one_in(3),
            keys: rng.pick(&[1, 2, 7]),
        }
    }

    /// Whether each key's last value alone is compared.
    pub(crate) fn is_rolling(&self) -> bool {
        match self.second {
            #[cfg(feature = "sim")]
            Second::None if matches!(self.first, First::Timed(_)) => {
                matches!(self.first, First::Timed(timed) if timed.is_rolling())
            }
            Second::None => matches!(self.first, First::Sum | First::ValueSum | First::Different),
            Second::Greatest => true,
            _ => false,
        }
    }

    pub(crate) fn first(&self, left: DataStream<Row>, right: DataStream<Row>) -> DataStream<Row> {
        let key = |row: &Row| row.0;
        match self.first {
            First::Sum => left.key_by(key).sum(|row| row.1),
            First::ValueSum => left.key_by(key).process(|| ValueSum(ValueState::new("sum"))),
            First::Different => left.key_by(key).process(|| Different(MapState::new("seen"))),
            First::Windows => left.key_by(key).process(|| Windows(MapState::new("windows"))),
            First::ListAtEnd => left.key_by(key).process(|| ListAtEnd(ListState::new("values"))),
            First::CoProcess(rule) => left
                .key_by(key)
                .connect(right.key_by(key))
                .backlog(rule)
                .process(|| Both(ValueState::new("both"))),
            First::CoGroup => left.key_by(key).connect(right.key_by(key)).co_group(
                |left: Vec<Row>, right: Vec<Row>, context| {
                    let key = *context.key();
                    let sum = |rows: &[Row]| rows.iter().map(|row| row.1).sum::<i64>();
                    context.collect((key, sum(&left) * 1_000 + sum(&right)));
                    Ok(())
                },
            ),
            #[cfg(feature = "sim")]
            First::Timed(timed) => timed.build(left, right),
        }
    }

    pub(crate) fn second(&self, first: DataStream<Row>) -> DataStream<Row> {
        let keys = self.keys;
        let again = move |row: &Row| row.0 % keys;
        match self.second {
            Second::None => first,
            Second::Greatest => first.key_by(again).max(|row| row.1),
            Second::GreatestAtEnd => {
                first.key_by(again).process(|| GreatestAtEnd(ValueState::new("greatest")))
            }
            #[cfg(feature = "sim")]
            Second::Windows(size) => crate::windows::sums(first.key_by(again), size),
        }
    }
}

/// Behind all records, and before the end of time.
const LAST: Timestamp = Timestamp::from_millis(i64::MAX - 1);

type Context<'a> = KeyedContext<'a, u32, Row>;

struct ValueSum(ValueState<i64>);

impl KeyedProcessFunction<u32, Row, Row> for ValueSum {
    fn process(&mut self, row: Row, context: &mut Context<'_>) -> Result<()> {
        let sum = self.0.update(context, |sum| {
            let sum = sum.get_or_insert(0);
            *sum += row.1;
            *sum
        })?;
        context.collect((row.0, sum));
        Ok(())
    }
}

struct Different(MapState<i64, i64>);

impl KeyedProcessFunction<u32, Row, Row> for Different {
    fn process(&mut self, row: Row, context: &mut Context<'_>) -> Result<()> {
        let count = self.0.get(context, &row.1)?.unwrap_or(0) + 1;
        self.0.put(context, &row.1, count)?;
        let mut different = 0;
        for value in 1..10 {
            different += i64::from(self.0.get(context, &value)?.is_some());
        }
        context.collect((row.0, different));
        Ok(())
    }
}

struct Windows(MapState<i64, i64>);

const SIZE: i64 = 100;

impl KeyedProcessFunction<u32, Row, Row> for Windows {
    fn process(&mut self, row: Row, context: &mut Context<'_>) -> Result<()> {
        let at = context.timestamp().map_or(0, Timestamp::as_millis);
        let start = at.div_euclid(SIZE) * SIZE;
        let sum = self.0.get(context, &start)?.unwrap_or(0);
        self.0.put(context, &start, sum + row.1)?;
        context.timers().register_event(Timestamp::from_millis(start + SIZE - 1));
        Ok(())
    }

    fn on_timer(&mut self, at: Timestamp, context: &mut Context<'_>) -> Result<()> {
        let start = at.as_millis() + 1 - SIZE;
        if let Some(sum) = self.0.get(context, &start)? {
            self.0.remove(context, &start)?;
            let key = *context.key();
            context.collect((key, start * 1_000_000 + sum));
        }
        Ok(())
    }
}

struct ListAtEnd(ListState<i64>);

impl KeyedProcessFunction<u32, Row, Row> for ListAtEnd {
    fn process(&mut self, row: Row, context: &mut Context<'_>) -> Result<()> {
        self.0.add(context, row.1)?;
        context.timers().register_event(LAST);
        Ok(())
    }

    fn on_timer(&mut self, _: Timestamp, context: &mut Context<'_>) -> Result<()> {
        let values: Vec<i64> = self.0.get(context)?.into_iter().collect();
        let key = *context.key();
        let squares: i64 = values.iter().map(|value| value * value).sum();
        context.collect((key, squares * 10_000 + i64::try_from(values.len())?));
        Ok(())
    }
}

struct GreatestAtEnd(ValueState<i64>);

impl KeyedProcessFunction<u32, Row, Row> for GreatestAtEnd {
    fn process(&mut self, row: Row, context: &mut Context<'_>) -> Result<()> {
        self.0.update(context, |greatest| {
            *greatest = Some(greatest.map_or(row.1, |greatest| greatest.max(row.1)));
        })?;
        context.timers().register_event(LAST);
        Ok(())
    }

    fn on_timer(&mut self, _: Timestamp, context: &mut Context<'_>) -> Result<()> {
        let greatest = self.0.get(context)?.unwrap_or_default();
        let key = *context.key();
        context.collect((key, greatest));
        Ok(())
    }
}

struct Both(ValueState<(i64, i64)>);

impl Both {
    fn add(&mut self, left: i64, right: i64, context: &mut Context<'_>) -> Result<()> {
        self.0.update(context, |both| {
            let both = both.get_or_insert((0, 0));
            both.0 += left;
            both.1 += right;
        })?;
        context.timers().register_event(LAST);
        Ok(())
    }
}

impl KeyedCoProcessFunction<u32, Row, Row, Row> for Both {
    fn process_left(&mut self, row: Row, context: &mut Context<'_>) -> Result<()> {
        self.add(row.1, 0, context)
    }

    fn process_right(&mut self, row: Row, context: &mut Context<'_>) -> Result<()> {
        self.add(0, row.1, context)
    }

    fn on_timer(&mut self, _: Timestamp, context: &mut Context<'_>) -> Result<()> {
        let (left, right) = self.0.get(context)?.unwrap_or_default();
        let key = *context.key();
        context.collect((key, left * 1_000 + right));
        Ok(())
    }
}
