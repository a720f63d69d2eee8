//! J3: the words of a text counted, one output a word.

use std::path::Path;

use slackwater::{CompactString, TextSource, prelude::*};

use super::Outcome;
use crate::generator::fnv;
use crate::sinks::CheckSum;

/// Counts the words of a file: lines of words with single spaces between. `outputs` is the number of
/// distinct words in batch mode.
///
/// # Errors
///
/// What the engine says.
pub fn run(env: &StreamExecutionEnvironment, file: &Path) -> Result<Outcome> {
    let total = CheckSum::default();
    let words = TextSource::new(file)
        .flat_map(|line, out| out.extend(line.split_ascii_whitespace().map(CompactString::from)));
    env.from_source(words, WatermarkStrategy::none(), "words")
        .key_by_ref(|word: &CompactString| word)
        .count()
        .name("counts")
        .sink_to(
            total.sink(|(word, n): &(CompactString, u64)| fnv(word.as_bytes()).wrapping_mul(*n)),
        );
    let report = env.execute("word count")?;
    Ok(Outcome { checksum: total.sum(), outputs: total.records(), report })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Setting, Store};

    #[test]
    fn each_word_counts_with_its_own_hash() {
        let directory = std::env::temp_dir().join(format!("word-count-{}", std::process::id()));
        std::fs::write(&directory, "slack water slack\ntide slack\n").unwrap();
        let env = Setting::new(Mode::Batch, Store::Heap).environment();
        let outcome = run(&env, &directory).unwrap();
        std::fs::remove_file(&directory).unwrap();
        let expected = [("slack", 3), ("water", 1), ("tide", 1)]
            .map(|(word, n)| fnv(word.as_bytes()).wrapping_mul(n))
            .into_iter()
            .fold(0, u64::wrapping_add);
        assert_eq!((outcome.outputs, outcome.checksum), (3, expected));
    }
}
