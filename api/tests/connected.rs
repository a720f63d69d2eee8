//! Two streams without keys, connected: closures a side, a function over both, in every mode.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use slackwater::prelude::*;
use slackwater::{
    CoProcessFunction, JobError, ProcessContext, RuntimeContext, ScriptStep, ScriptedSource,
};

fn environment(mode: options::RuntimeMode, subtasks: u32) -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::RUNTIME_MODE, mode).set(&options::PARALLELISM, Some(subtasks));
    env
}

const MODES: [options::RuntimeMode; 2] =
    [options::RuntimeMode::Batch, options::RuntimeMode::Streaming];

#[test]
fn each_side_goes_through_its_own_closure_in_every_mode_at_any_parallelism() {
    for (mode, subtasks) in MODES.into_iter().flat_map(|mode| [(mode, 1), (mode, 3)]) {
        let env = environment(mode, subtasks);
        let numbers = env.generate(5_000, |i| i);
        let words = env.from_collection(["a b", "c"]).map(str::to_owned);
        let (few, many) = (numbers.clone(), numbers.filter(|n| n % 2 == 0));
        let all = few.connect(many).map(|n| (0_u8, n), |n| (1, n)).execute_and_collect().unwrap();
        let expected = (0..5_000).map(|n| (0, n)).chain((0..5_000).step_by(2).map(|n| (1, n)));
        assert_eq!(all.sorted(), expected.collect::<Vec<_>>(), "{mode:?} {subtasks}");
        let letters = env
            .from_collection([7_u64])
            .connect(words)
            .flat_map(
                |n, out| out.extend([n.to_string(), "end".to_owned()]),
                |line, out| out.extend(line.split(' ').map(str::to_owned)),
            )
            .execute_and_collect()
            .unwrap();
        assert_eq!(letters.sorted(), ["7", "a", "b", "c", "end"], "{mode:?} {subtasks}");
    }
}

/// Counts both sides in its fields and tells at the end; doubts go aside.
struct Tally {
    subtask: u32,
    left: u64,
    right: u64,
    odd: SideTag<u64>,
}

impl CoProcessFunction<u64, String, (u32, u64, u64)> for Tally {
    fn open(&mut self, runtime: &RuntimeContext) -> Result<()> {
        self.subtask = runtime.subtask();
        Ok(())
    }

    fn process_left(
        &mut self,
        n: u64,
        context: &mut ProcessContext<'_, (u32, u64, u64)>,
    ) -> Result<()> {
        self.left += 1;
        if n % 2 == 1 {
            context.side_output(&self.odd, n);
        }
        Ok(())
    }

    fn process_right(
        &mut self,
        word: String,
        _: &mut ProcessContext<'_, (u32, u64, u64)>,
    ) -> Result<()> {
        self.right += 1;
        if word == "bad" { Err(Error::msg("a bad word")) } else { Ok(()) }
    }

    fn close(&mut self, context: &mut ProcessContext<'_, (u32, u64, u64)>) -> Result<()> {
        context.collect((self.subtask, self.left, self.right));
        Ok(())
    }
}

fn tally(odd: &SideTag<u64>) -> impl Fn() -> Tally + Send + Sync + 'static {
    let odd = odd.clone();
    move || Tally { subtask: u32::MAX, left: 0, right: 0, odd: odd.clone() }
}

#[test]
fn a_function_sees_both_sides_and_closes_once_both_have_ended() {
    for mode in MODES {
        let env = environment(mode, 2);
        let odd = SideTag::new("odd");
        let words = env.from_collection(["x", "y", "z"]).map(str::to_owned).broadcast();
        let both = env.generate(1_000, |i| i).connect(words).process(tally(&odd));
        let aside = both.side_output(&odd).execute_and_collect().unwrap();
        assert_eq!(aside.sorted(), (1..1_000).step_by(2).collect::<Vec<_>>(), "{mode:?}");
        let told = both.execute_and_collect().unwrap().sorted();
        // Every subtask got each broadcast word, and the numbers between them once.
        assert_eq!(told.iter().map(|told| (told.0, told.2)).collect::<Vec<_>>(), [(0, 3), (1, 3)]);
        assert_eq!(told.iter().map(|told| told.1).sum::<u64>(), 1_000, "{mode:?}");
    }
}

#[test]
fn an_error_of_one_side_names_the_operator() {
    let env = environment(options::RuntimeMode::Streaming, 1);
    let words = env.from_collection(["bad".to_owned()]);
    let odd = SideTag::new("odd");
    let failed = env.generate(0, |i| i).connect(words).process(tally(&odd)).name("tally");
    let error = failed.execute_and_collect().unwrap_err();
    assert!(matches!(error, JobError::Failed { .. }), "{error:?}");
    let text = format!("{:#}", Error::from(error));
    assert!(text.contains("operator `tally` failed at record 1"), "{text}");
    assert!(text.contains("a bad word"), "{text}");
}

/// Windows behind it fire by the lesser watermark, so the slow side's record is not late.
#[test]
fn the_watermark_behind_connected_streams_is_the_lesser_one() {
    let env = environment(options::RuntimeMode::Streaming, 1);
    let fast = ScriptedSource::new([ScriptStep::at(1_000, 1_u64), ScriptStep::watermark(90_000)]);
    let slow = ScriptedSource::new([
        ScriptStep::watermark(10_000),
        ScriptStep::at(30_000, 2_u64),
        ScriptStep::at(70_000, 3),
    ]);
    let fast = env.from_source(fast, WatermarkStrategy::none(), "fast");
    let slow = env.from_source(slow, WatermarkStrategy::none(), "slow");
    let counts = fast
        .connect(slow)
        .map(|n| n, |n| n)
        .key_by(|_| ())
        .window(TumblingEventTime::of(1.mins()))
        .aggregate_with(slackwater::Count, |count, _, out| out.collect(count))
        .name("minutes")
        .execute_and_collect()
        .unwrap();
    assert_eq!(counts.into_vec(), [2, 1]);
}
