//! A function over a stream without key: side outputs, where it runs, its beginning and its end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use slackwater::prelude::*;
use slackwater::{ProcessContext, ProcessFunction, RuntimeContext};

/// Sends even numbers on, odd ones aside, and their number at the end.
struct Parity {
    odd: SideTag<u64>,
    seen: u64,
    place: Option<(String, String, u32, u32)>,
}

impl ProcessFunction<u64, String> for Parity {
    fn open(&mut self, runtime: &RuntimeContext) -> Result<()> {
        assert!(runtime.config().get(&options::PARALLELISM)?.is_some());
        let (job, operator) = (runtime.job().to_owned(), runtime.operator().to_owned());
        self.place = Some((job, operator, runtime.subtask(), runtime.parallelism()));
        Ok(())
    }

    fn process(&mut self, value: u64, context: &mut ProcessContext<'_, String>) -> Result<()> {
        self.seen += 1;
        if value.is_multiple_of(2) {
            context.collect(value.to_string());
        } else {
            context.side_output(&self.odd, value);
        }
        Ok(())
    }

    fn close(&mut self, context: &mut ProcessContext<'_, String>) -> Result<()> {
        let (job, operator, subtask, parallelism) = self.place.take().unwrap_or_default();
        context.collect(format!("{job}/{operator} {subtask}/{parallelism}: {}", self.seen));
        Ok(())
    }
}

#[test]
fn a_function_without_key_has_side_outputs_and_knows_where_it_runs() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(1));
    let odd = SideTag::new("odd");
    let of = odd.clone();
    let even = env
        .from_collection([1_u64, 2, 3, 4, 5])
        .process(move || Parity { odd: of.clone(), seen: 0, place: None })
        .name("parity")
        .uid("parity");
    let aside = even.side_output(&odd).map(|odd| format!("odd {odd}"));
    let all = even.union(aside).execute_and_collect().unwrap();
    let expected = ["2", "4", "collect/parity 0/1: 5", "odd 1", "odd 3", "odd 5"];
    assert_eq!(all.sorted(), expected);
}

/// A function that got no record is opened and closed all the same.
#[test]
fn an_empty_input_opens_and_closes_the_function() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(2));
    let parity = || Parity { odd: SideTag::new("odd"), seen: 0, place: None };
    let none = env.generate(0, |i| i).process(parity).name("parity").execute_and_collect().unwrap();
    assert_eq!(none.sorted(), ["collect/parity 0/2: 0", "collect/parity 1/2: 0"]);
}

#[test]
fn a_keyed_function_knows_where_it_runs() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(3));
    let places = env
        .generate(90, |i| i)
        .key_by(|i: &u64| i % 30)
        .with_state(|| ())
        .process(|(), _, out| {
            let place = (out.runtime().subtask(), out.runtime().parallelism());
            out.collect(place);
            Ok(())
        })
        .execute_and_collect()
        .unwrap();
    let subtasks: std::collections::BTreeSet<_> = places.iter().copied().collect();
    assert_eq!(subtasks.into_iter().collect::<Vec<_>>(), [(0, 3), (1, 3), (2, 3)]);
}
