//! Word count, from a file to the ten most frequent words: bounded input, so it runs as batch.
//!
//! Run it with a file's name, or without one over a line of its own.

use slackwater::prelude::*;

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::from_env()?;
    let text = match std::env::args().nth(1) {
        Some(file) => std::fs::read_to_string(file)?,
        None => "slack water is when the tide turns and the water is slack".to_owned(),
    };
    let counts = env
        .from_collection(text.lines().map(str::to_owned).collect::<Vec<_>>())
        .flat_map(|line: String, out| {
            line.split_whitespace().for_each(|w| out.collect(w.to_lowercase()))
        })
        .key_by(String::clone)
        .count()
        .execute_and_collect()?;
    for (word, n) in counts.top(10) {
        println!("{n:>8} {word}");
    }
    if std::env::args().len() == 1 {
        let first = counts.top(3);
        assert_eq!(first, [("is".into(), 2), ("slack".into(), 2), ("the".into(), 2)]);
    }
    Ok(())
}
