//! What a function finds in the lines of files, read while they lie in the reader's buffer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use slackwater::options::RuntimeMode;
use slackwater::prelude::*;
use slackwater::{
    BadRecord, ByteSize, FileSplit, LineCollector, OnBadRecord, ReaderContext, ReaderPoll, Source,
    SourceSides, SubtaskIndex, TextSource,
};

/// A file of lines of words: empty lines, lines of many words, CR LF, and no end behind the last.
fn file(folder: &tempfile::TempDir) -> (String, Vec<String>) {
    let words = |line: usize| (0..line * 7 % 23).map(move |word| format!("w{}", word * line % 31));
    let lines: Vec<String> =
        (0..900).map(|line| words(line).collect::<Vec<_>>().join(" ")).collect();
    let path = folder.path().join("text");
    std::fs::write(&path, lines.join("\r\n") + "\nlast one").unwrap();
    let all = (0..900).flat_map(words).chain(["last", "one"].map(str::to_owned));
    (path.to_str().unwrap().to_owned(), all.collect())
}

fn words(line: &str, out: &mut LineCollector<'_, String>) {
    out.extend(line.split_whitespace().map(str::to_owned));
}

#[test]
fn records_of_lines_are_those_of_a_flat_map_behind_the_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (path, all) = file(&folder);
    for mode in [RuntimeMode::Batch, RuntimeMode::Streaming] {
        let env = StreamExecutionEnvironment::new();
        env.set(&options::RUNTIME_MODE, mode).set(&options::PARALLELISM, Some(1));
        let found = TextSource::new(&path).split_size(ByteSize(700)).flat_map(words);
        let found = env.from_source(found, WatermarkStrategy::none(), "words");
        assert_eq!(found.execute_and_collect().unwrap(), all);

        env.set(&options::PARALLELISM, Some(3));
        let found = TextSource::new(&path).buffer_size(ByteSize(5)).flat_map(words);
        let counted = env
            .from_source(found, WatermarkStrategy::none(), "words")
            .key_by_ref(|word: &String| word)
            .count()
            .execute_and_collect()
            .unwrap();
        let last =
            counted.into_iter().fold(std::collections::BTreeMap::new(), |mut last, (k, n)| {
                let most: &mut u64 = last.entry(k).or_default();
                *most = n.max(*most);
                last
            });
        assert_eq!(last.values().sum::<u64>(), all.len() as u64);
        assert_eq!(last["last"], 1);
    }
}

#[test]
fn a_reader_of_records_goes_on_behind_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (path, all) = file(&folder);
    let source = TextSource::new(&path).flat_map(words);
    let context = ReaderContext {
        subtask: SubtaskIndex(0),
        parallelism: 1,
        clock: Arc::new(slackwater::ManualClock::default()),
        metrics: Arc::default(),
        sides: SourceSides::default(),
    };
    let mut splits = vec![FileSplit::whole(&path)];
    let mut found = Vec::new();
    while !splits.is_empty() {
        // Each poll by a reader that is made anew from where the one before it stood.
        let mut reader = source.reader(&context).unwrap();
        splits.into_iter().for_each(|split| reader.add_split(split));
        if let ReaderPoll::Batch(batch) = reader.poll().unwrap() {
            assert!(batch.len() < element::BATCH_RECORDS + 23, "{}", batch.len());
            found.extend(batch.into_parts().0);
        }
        splits = reader.snapshot();
    }
    assert_eq!(found, all);
}

fn numbers(line: &str, out: &mut LineCollector<'_, u32>) -> Result<()> {
    for word in line.split(' ') {
        out.collect(word.parse()?);
    }
    Ok(())
}

#[test]
fn a_line_that_the_function_fails_for_goes_by_policy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers");
    std::fs::write(&path, b"1 2\n3 x 4\n5 \xff\n6\n").unwrap();
    let env = StreamExecutionEnvironment::new();
    env.set(&options::PARALLELISM, Some(1));
    let read = |source: TextSource| {
        env.from_source(source.try_flat_map(numbers), WatermarkStrategy::none(), "numbers")
            .execute_and_collect()
    };
    let error = Error::from(read(TextSource::new(&path)).unwrap_err());
    let bad = error.chain().find_map(|cause| cause.downcast_ref::<BadRecord>()).unwrap();
    assert_eq!((bad.line, bad.column.as_deref(), bad.text.as_str()), (2, None, "3 x 4"));
    assert_eq!(bad.reason, "invalid digit found in string");
    // Nothing is left of such a line, and one that is not UTF-8 is bad as it is without a function.
    let skipped = read(TextSource::new(&path).on_bad_record(OnBadRecord::SkipAndCount)).unwrap();
    assert_eq!(skipped, [1, 2, 6]);
    assert_eq!(skipped.report().operators[0].skipped, 2);
    let replaced = TextSource::new(&path).replace_bad_utf8();
    let replaced = read(replaced.on_bad_record(OnBadRecord::SkipAndCount)).unwrap();
    assert_eq!(replaced, [1, 2, 6]);
}

#[test]
fn a_function_of_lines_that_panics_fails_the_job_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = file(&folder);
    let env = StreamExecutionEnvironment::new();
    let source = TextSource::new(&path).flat_map(|line, out: &mut LineCollector<'_, ()>| {
        assert!(line.is_empty(), "a line too many");
        out.collect(());
    });
    let error = env
        .from_source(source, WatermarkStrategy::none(), "empty lines")
        .execute_and_collect()
        .unwrap_err();
    let error = format!("{:#}", Error::from(error));
    assert!(error.contains("empty lines") && error.contains("a line too many"), "{error}");
}
