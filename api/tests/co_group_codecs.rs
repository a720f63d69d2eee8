//! Codecs of a co-group's records, used by many threads at once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use slackwater::prelude::*;

#[derive(Record, Clone, Debug, PartialEq)]
struct Left {
    key: u64,
    text: String,
}

#[derive(Record, Clone, Debug, PartialEq)]
struct Right {
    key: u64,
    numbers: Vec<u64>,
}

fn text_of(i: u64) -> String {
    format!("{i}-").repeat(usize::try_from(i % 7).unwrap())
}

/// tW12: eight subtasks encode, spill and decode records of both sides of a co-group at once; every
/// record comes back as it was, for a codec has no state that threads could share.
#[test]
fn a_parallel_co_group_shares_no_codec_state() {
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(8))
        .set(&options::SORTED_INPUTS_MEMORY, slackwater::ByteSize::kib(64));
    let left = env.generate(20_000, |i| Left { key: i % 997, text: text_of(i) });
    let right =
        env.generate(5_000, |i| Right { key: i % 1_009, numbers: vec![i; (i % 5) as usize] });
    let groups = left
        .key_by(|left| left.key)
        .connect(right.key_by(|right| right.key))
        .co_group(|left, right, out| {
            let key = *out.key();
            let text: usize = left.iter().map(|left| left.text.len()).sum();
            let whole = right.iter().all(|right| right.key == key && right.numbers.is_sorted());
            assert!(whole && left.iter().all(|left| left.key == key));
            let numbers: usize = right.iter().map(|right| right.numbers.len()).sum();
            out.collect((text as u64, numbers as u64));
            Ok(())
        })
        .execute_and_collect()
        .unwrap();
    let text: u64 = groups.iter().map(|group| group.0).sum();
    let numbers: u64 = groups.iter().map(|group| group.1).sum();
    assert_eq!(text, (0..20_000).map(|i| text_of(i).len() as u64).sum::<u64>());
    assert_eq!(numbers, (0..5_000).map(|i| i % 5).sum::<u64>());
    assert_eq!(groups.len(), 1_009);
}
