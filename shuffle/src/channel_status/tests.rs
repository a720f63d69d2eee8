//! The combined status against a model, and every order of what channels say.
//!
//! The model states the rules once more, plainly and slowly, from the whole state of all channels.

use super::*;
use element::Barrier;
use proptest::prelude::*;

fn at(millis: i64) -> Control {
    Control::Watermark(Timestamp(millis))
}

const BACKLOG: Control = Control::Attributes(RecordAttributes::BACKLOG);
const LIVE: Control = Control::Attributes(RecordAttributes::live(None));

fn live_at(millis: i64) -> Control {
    Control::Attributes(RecordAttributes::live(Some(Timestamp(millis))))
}

fn replay(channels: usize, script: &[(usize, Control)]) -> (ChannelStatus, Vec<Vec<Control>>) {
    let mut status = ChannelStatus::new(channels);
    let said = script.iter().map(|(channel, control)| {
        let mut out = Vec::new();
        status.receive(*channel, *control, &mut |control| out.push(control));
        out
    });
    let said = said.collect();
    (status, said)
}

#[track_caller]
fn check(channels: usize, script: &[(usize, Control, &[Control])]) {
    let inputs: Vec<_> = script.iter().map(|(channel, control, _)| (*channel, *control)).collect();
    let (_, said) = replay(channels, &inputs);
    for (step, (said, (channel, control, expected))) in said.iter().zip(script).enumerate() {
        assert_eq!(said, expected, "step {step}: channel {channel} says {control:?}");
    }
}

/// R3, R4, D2.
#[test]
fn false_waits_for_every_channel_and_duplicates_are_silent() {
    check(
        3,
        &[
            (0, LIVE, &[]),
            (1, BACKLOG, &[BACKLOG]),
            (1, BACKLOG, &[]),
            (1, LIVE, &[]),
            (2, LIVE, &[LIVE]),
            (2, LIVE, &[]),
            (0, BACKLOG, &[BACKLOG]),
            (0, LIVE, &[LIVE]),
        ],
    );
}

/// R5, tB1: one channel is through its backlog before the next has said anything.
#[test]
fn a_channel_that_is_done_early_does_not_end_the_backlog_of_the_others() {
    check(2, &[(0, BACKLOG, &[BACKLOG]), (0, LIVE, &[]), (1, BACKLOG, &[]), (1, LIVE, &[LIVE])]);
}

/// R8, D2: an ended channel counts as false.
#[test]
fn a_channel_that_ends_in_backlog_counts_as_live() {
    check(
        2,
        &[
            (0, BACKLOG, &[BACKLOG]),
            (1, LIVE, &[]),
            (0, Control::EndOfInput, &[LIVE]),
            (1, BACKLOG, &[BACKLOG]),
            (
                1,
                Control::EndOfInput,
                &[LIVE, Control::Watermark(Timestamp::MAX), Control::EndOfInput],
            ),
        ],
    );
}

/// tB1: four sources, every order of their reports; what comes out is true once, then false once.
#[test]
fn no_interleaving_of_four_short_backlogs_is_missed_or_stuck() {
    let mut left = vec![[BACKLOG, LIVE].to_vec(); 4];
    let mut script = Vec::new();
    interleave(&mut left, &mut script, &mut |script| {
        let (status, said) = replay(4, script);
        assert_eq!(said.concat(), [BACKLOG, LIVE], "{script:?}");
        assert_eq!(status.is_backlog(), Some(false));
    });
}

/// Calls `visit` with every merge of the channels' scripts.
fn interleave(
    left: &mut [Vec<Control>],
    script: &mut Vec<(usize, Control)>,
    visit: &mut impl FnMut(&[(usize, Control)]),
) {
    let mut any = false;
    for channel in 0..left.len() {
        if left[channel].is_empty() {
            continue;
        }
        any = true;
        let next = left[channel].remove(0);
        script.push((channel, next));
        interleave(left, script, visit);
        script.pop();
        left[channel].insert(0, next);
    }
    if !any {
        visit(script);
    }
}

/// D11, M20: the attribute carries the least watermark of the phase, which then follows.
#[test]
fn the_switch_carries_the_least_watermark_and_sends_it_on() {
    check(
        2,
        &[
            (0, BACKLOG, &[BACKLOG]),
            (1, LIVE, &[]),
            (1, at(50), &[]),
            (0, live_at(100), &[live_at(50), at(50)]),
            (0, at(100), &[]),
            (1, at(120), &[at(100)]),
        ],
    );
    check(
        2,
        &[
            (0, BACKLOG, &[BACKLOG]),
            (1, BACKLOG, &[]),
            (1, live_at(70), &[]),
            (0, live_at(40), &[live_at(40), at(40)]),
            (1, at(90), &[]),
            (0, at(80), &[at(80)]),
        ],
    );
}

/// D11: a second phase without watermarks keeps the one from before.
#[test]
fn the_watermark_of_a_switch_does_not_go_back() {
    check(
        1,
        &[
            (0, LIVE, &[LIVE]),
            (0, at(30), &[at(30)]),
            (0, BACKLOG, &[BACKLOG]),
            (0, live_at(20), &[live_at(30)]),
            (0, BACKLOG, &[BACKLOG]),
            (0, live_at(60), &[live_at(60), at(60)]),
        ],
    );
}

/// D16: the end of the input in backlog is a switch, then the end of time.
#[test]
fn an_input_that_ends_in_backlog_switches_first() {
    let end = [live_at(7), at(7), Control::EndOfInput];
    let end_of_time = Control::Watermark(Timestamp::MAX);
    check(1, &[(0, BACKLOG, &[BACKLOG]), (0, Control::EndOfInput, &[LIVE, end_of_time, end[2]])]);
    check(
        1,
        &[
            (0, BACKLOG, &[BACKLOG]),
            (0, at(7), &[at(7)]),
            (0, Control::EndOfInput, &[live_at(7), end_of_time, end[2]]),
        ],
    );
}

/// tW17: every order in which three channels speak, go idle and come back ends alike.
#[test]
fn the_final_watermark_does_not_depend_on_the_order_of_going_idle() {
    let mut left = vec![
        vec![at(10), Control::Idle],
        vec![at(20), Control::Idle],
        vec![at(5), Control::Idle, Control::Active, Control::Idle],
    ];
    let mut orders = 0;
    interleave(&mut left, &mut Vec::new(), &mut |script| {
        let (status, said) = replay(3, script);
        assert_eq!(status.watermark(), Some(Timestamp(20)), "{script:?}");
        assert_eq!(said.concat().last(), Some(&Control::Idle), "{script:?}");
        orders += 1;
    });
    assert_eq!(orders, 420);
}

/// tW17: a channel that comes back holds the others again, and they go on together.
#[test]
fn a_channel_that_comes_back_counts_again() {
    check(
        2,
        &[
            (0, at(10), &[]),
            (1, at(5), &[at(5)]),
            (1, Control::Idle, &[at(10)]),
            (0, at(20), &[at(20)]),
            (1, Control::Active, &[]),
            (0, at(30), &[]),
            (1, at(15), &[]),
            (1, at(25), &[at(25)]),
        ],
    );
}

/// tW18: finished, idle and active channels mixed: time stands where the active ones are, and the end
/// of time never overtakes an idle one.
#[test]
fn an_ended_channel_holds_nothing_and_pushes_nothing() {
    let end_of_time = Control::Watermark(Timestamp::MAX);
    check(
        3,
        &[
            (0, at(50), &[]),
            (1, at(10), &[]),
            (2, at(20), &[at(10)]),
            (0, end_of_time, &[]),
            (0, Control::EndOfInput, &[]),
            (1, Control::Idle, &[at(20)]),
            (2, at(30), &[at(30)]),
            (2, Control::Idle, &[at(50), Control::Idle]),
            (2, Control::EndOfInput, &[]),
            (1, Control::EndOfInput, &[end_of_time, Control::EndOfInput]),
        ],
    );
}

/// tW16: the end of time waits for the last channel, in every order of ends.
#[test]
fn the_end_of_time_comes_last_whoever_ends_first() {
    let end_of_time = Control::Watermark(Timestamp::MAX);
    let mut left = vec![
        vec![at(1), end_of_time, Control::EndOfInput],
        vec![Control::Idle, Control::EndOfInput],
        vec![at(3), Control::EndOfInput],
    ];
    interleave(&mut left, &mut Vec::new(), &mut |script| {
        let (_, said) = replay(3, script);
        let said = said.concat();
        assert_eq!(said.iter().filter(|said| **said == end_of_time).count(), 1, "{script:?}");
        assert!(said.ends_with(&[Control::EndOfInput]), "{script:?}");
        let grows = said.iter().filter_map(|said| match said {
            Control::Watermark(watermark) => Some(*watermark),
            _ => None,
        });
        assert!(grows.is_sorted_by(|a, b| a < b), "{script:?}");
    });
}

/// tW25: a watermark is passed on as it is: no record at it or before it follows.
#[test]
fn a_watermark_is_neither_rounded_up_nor_down() {
    check(1, &[(0, at(5), &[at(5)]), (0, at(5), &[]), (0, at(6), &[at(6)])]);
    check(1, &[(0, at(i64::MIN), &[at(i64::MIN)]), (0, at(i64::MAX - 1), &[at(i64::MAX - 1)])]);
}

/// M27: idleness says nothing of backlog.
#[test]
fn an_idle_channel_in_backlog_stays_in_backlog() {
    check(
        2,
        &[
            (0, BACKLOG, &[BACKLOG]),
            (1, LIVE, &[]),
            (0, Control::Idle, &[]),
            (1, Control::Idle, &[Control::Idle]),
            (0, Control::Active, &[Control::Active]),
            (0, LIVE, &[LIVE]),
        ],
    );
}

/// Backlog, greatest watermark below the end, at the end of time, idle, ended.
type ModelChannel = (Option<bool>, Option<i64>, bool, bool, bool);

#[derive(Clone, Debug)]
struct Model {
    channels: Vec<ModelChannel>,
    backlog: Option<bool>,
    watermark: Option<i64>,
}

impl Model {
    fn receive(&mut self, channel: usize, control: Control) {
        let (backlog, watermark, at_end, idle, ended) = &mut self.channels[channel];
        if *ended {
            return;
        }
        match control {
            Control::Attributes(attributes) => {
                *backlog = Some(attributes.is_backlog);
                *watermark = (*watermark).max(attributes.watermark.map(|at| at.0));
            }
            Control::Watermark(Timestamp::MAX) => *at_end = true,
            Control::Watermark(at) => {
                *watermark = (*watermark).max(Some(at.0));
                *idle = false;
            }
            Control::Idle => *idle = true,
            Control::Active => *idle = false,
            Control::EndOfInput => *ended = true,
            Control::Barrier(_) => {}
        }
        self.combine();
    }

    fn combine(&mut self) {
        let open: Vec<_> = self.channels.iter().filter(|channel| !channel.4).collect();
        let someone_spoke = self.channels.iter().any(|channel| channel.0.is_some());
        if open.iter().any(|channel| channel.0 == Some(true)) {
            self.backlog = Some(true);
        } else if someone_spoke && open.iter().all(|channel| channel.0.is_some()) {
            self.backlog = Some(false);
        }
        let holding: Vec<_> = open.iter().filter(|channel| !channel.2 && !channel.3).collect();
        let combined = if self.channels.iter().all(|channel| channel.4 || channel.2) {
            Some(i64::MAX)
        } else if holding.is_empty() {
            self.channels.iter().filter_map(|channel| channel.1).max()
        } else {
            holding.iter().map(|channel| channel.1).min().flatten()
        };
        self.watermark = self.watermark.max(combined);
    }
}

fn any_control() -> impl Strategy<Value = Control> {
    prop_oneof![
        4 => (0_i64..40).prop_map(at),
        1 => Just(Control::Watermark(Timestamp::MAX)),
        2 => Just(BACKLOG),
        2 => Just(LIVE),
        2 => (0_i64..40).prop_map(live_at),
        2 => Just(Control::Idle),
        2 => Just(Control::Active),
        1 => Just(Control::EndOfInput),
        1 => Just(Control::Barrier(Barrier {
            id: element::CheckpointId(1),
            kind: element::BarrierKind::ExactlyOnce,
        })),
    ]
}

proptest! {
    #[test]
    fn any_history_agrees_with_the_model(
        script in prop::collection::vec((0_usize..4, any_control()), 0..60),
    ) {
        let mut status = ChannelStatus::new(4);
        let mut model =
            Model { channels: vec![Default::default(); 4], backlog: None, watermark: None };
        let (mut backlog, mut watermark, mut idle) = (None, None, false);
        for (channel, control) in script {
            model.receive(channel, control);
            let mut news = Vec::new();
            status.receive(channel, control, &mut |said| news.push(said));
            for said in news {
                match said {
                    Control::Attributes(said) => {
                        prop_assert_ne!(backlog, Some(said.is_backlog), "only changes are sent");
                        backlog = Some(said.is_backlog);
                    }
                    Control::Watermark(said) => {
                        prop_assert!(watermark < Some(said), "time only grows");
                        watermark = Some(said);
                    }
                    Control::Idle | Control::Active => {
                        prop_assert_ne!(idle, said == Control::Idle, "only changes are sent");
                        idle = !idle;
                    }
                    Control::EndOfInput => prop_assert!(status.all_ended()),
                    Control::Barrier(_) => prop_assert!(false, "barriers are the gate's"),
                }
            }
            prop_assert_eq!(backlog, model.backlog);
            prop_assert_eq!(watermark.map(|at| at.0), model.watermark);
            let open: Vec<_> = model.channels.iter().filter(|channel| !channel.4).collect();
            if !open.is_empty() {
                prop_assert_eq!(idle, open.iter().all(|channel| channel.3));
            }
        }
    }
}
