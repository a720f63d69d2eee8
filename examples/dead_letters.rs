//! Dead letters: a line that cannot be parsed does not fail the job; it is put aside with the operator,
//! its position and the reason.

use std::sync::mpsc::channel;

use slackwater::prelude::*;

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::from_env()?;
    let (levels, dead) = env
        .from_collection(["quay 310", "lock", "quay high", "quay 295"])
        .skip_failures()
        .try_map(|line| {
            let (place, level) = line.split_once(' ').ok_or_else(|| Error::msg("no level"))?;
            Ok((place.to_owned(), level.parse::<u32>()?))
        })
        .name("parse")
        .with_dead_letters();
    let (put, seen) = channel();
    dead.for_each(move |letter| put.send(letter).unwrap_or_default());
    let (tell, greatest) = channel();
    levels
        .key_by(|(place, _)| place.clone())
        .max(|(_, level)| *level)
        .for_each(move |row| tell.send(row).unwrap_or_default());
    env.execute("levels")?;
    let letters: Vec<_> = seen.try_iter().collect();
    for letter in &letters {
        let at = (&letter.operator, letter.position);
        println!("{at:?}: `{}`: {}", letter.record, letter.error);
    }
    assert_eq!(letters.iter().map(|letter| letter.position).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(greatest.try_iter().collect::<Vec<_>>(), [("quay".to_owned(), 310)]);
    Ok(())
}
