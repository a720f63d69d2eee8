//! Word count: bounded input, so it runs as batch, and counts before anything is shuffled.
//!
//! For the lines of a file put `read_text_file` in the place of `from_collection`.

use slackwater::prelude::*;

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::from_env()?;
    let counts = env
        .from_collection(["slack water is when the tide turns", "and the water is slack"])
        .flat_map(|line: &str, out| out.extend(line.split_whitespace().map(str::to_lowercase)))
        .key_by(String::clone)
        .count()
        .execute_and_collect()?;
    counts.top(10).iter().for_each(|(word, n)| println!("{n:>8} {word}"));
    assert_eq!(counts.top(3), [("is".into(), 2), ("slack".into(), 2), ("the".into(), 2)]);
    Ok(())
}
