//! Cases with input and expected outcome in files below `tests/cases`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use element::{
    Batch, Control, DirectoryStore, MaxParallelism, RecordAttributes, SubpartitionIndex,
};
use serde_json::Value;
use slackwater_shuffle::testing::{read_records, result_partition};
use slackwater_shuffle::{
    BlockingOptions, BlockingReader, BlockingWriter, ChannelReader, ChannelStatus, FileShuffle,
    GateEvent, InputGate, PartitionWriter, ReadError, ShuffleError, ShuffleService, key_targets,
};

fn case(name: &str, file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name).join(file);
    let text = std::fs::read_to_string(&path).expect("the case is there");
    serde_json::from_str(&text).expect("the case is JSON")
}

/// Case 06, tB1.
#[test]
fn case_06_backlog_status_combine() {
    let name = "06-backlog-status-combine";
    let (input, expected) = (case(name, "input.json"), case(name, "expected.json"));
    for (scenario, events) in input["scenarios"].as_object().expect("scenarios") {
        let channels = input["channels"].as_u64().expect("a number") as usize;
        let mut status = ChannelStatus::new(channels);
        let said = events.as_array().expect("events").iter().map(|event| {
            let channel = event[0].as_u64().expect("a channel") as usize;
            let attributes = match event[1].as_bool().expect("a flag") {
                true => RecordAttributes::BACKLOG,
                false => RecordAttributes::live(None),
            };
            let mut said = Value::from("-");
            status.receive(channel, Control::Attributes(attributes), &mut |control| {
                if let Control::Attributes(attributes) = control {
                    said = Value::from(attributes.is_backlog);
                }
            });
            said
        });
        assert_eq!(Value::from_iter(said), expected[scenario], "{scenario}");
    }
}

type Row = (String, i64);

/// Writes rows into a partition, each to the subpartition of its key.
fn write_rows(service: &Arc<dyn ShuffleService>, producer: u32, consumers: u32, rows: Vec<Row>) {
    let descriptor = result_partition(producer, consumers);
    let partition = service.writer(&descriptor).expect("a writer is given");
    let mut writer = BlockingWriter::new(partition, consumers, &BlockingOptions::default());
    let (mut scratch, mut targets) = (Vec::new(), Vec::<SubpartitionIndex>::new());
    let key = |row: &Row| row.0.clone();
    key_targets(&rows, key, MaxParallelism::DEFAULT, consumers, &mut scratch, &mut targets);
    writer.scatter(Batch::unstamped(rows), &targets).expect("rows are taken");
    writer.broadcast(Control::EndOfInput).expect("the end is taken");
    writer.finish().expect("finished");
}

/// Count and sum of each key, over all consumers.
fn totals(
    service: &Arc<dyn ShuffleService>,
    producers: u32,
    consumers: u32,
) -> Result<BTreeMap<String, (i64, i64)>, ReadError> {
    let mut totals = BTreeMap::new();
    for consumer in 0..consumers {
        for producer in 0..producers {
            let descriptor = result_partition(producer, consumers);
            let rows: Vec<Row> = read_records(service, &descriptor, consumer..consumer + 1)?;
            for (key, value) in rows {
                let total = totals.entry(key).or_insert((0, 0));
                *total = (total.0 + 1, total.1 + value);
            }
        }
    }
    Ok(totals)
}

/// Case 17, T19: either the right outcome, or a typed error; never less without a word.
#[test]
fn case_17_damaged_spill() {
    let name = "17-damaged-spill";
    let (input, expected) = (case(name, "input.json"), case(name, "expected.json"));
    let count = |name: &str| u32::try_from(input[name].as_u64().expect("a number")).expect("small");
    let (producers, consumers, rows) = (count("producers"), count("consumers"), count("rows"));
    for fault in input["faults"].as_array().expect("faults") {
        let fault = fault.as_str().expect("a name");
        let directory = tempfile::tempdir().expect("a directory is made");
        let store = Arc::new(DirectoryStore::new(directory.path()));
        let service: Arc<dyn ShuffleService> = Arc::new(FileShuffle::new(store));
        let row = |n: u32| (format!("p{}", n % 9), i64::from(n * n % 101));
        for producer in 0..producers {
            let rows = (0..rows).filter(|n| n % producers == producer).map(row).collect();
            write_rows(&service, producer, consumers, rows);
        }
        damage_largest(directory.path(), fault);
        let totals = totals(&service, producers, consumers);
        if fault == "none" {
            let totals = totals.expect("nothing is wrong");
            assert_eq!(serde_json::to_value(totals).expect("JSON"), expected["full"]);
        } else {
            let noticed = matches!(
                totals,
                Err(ReadError::Partition(ShuffleError::Lost { .. } | ShuffleError::Corrupt { .. }))
            );
            assert!(noticed, "{fault}: {totals:?}");
        }
    }
}

fn damage_largest(directory: &Path, fault: &str) {
    let files =
        std::fs::read_dir(directory).expect("listed").map(|entry| entry.expect("a file").path());
    let data = files.filter(|path| path.extension().is_some_and(|ending| ending == "data"));
    let length = |path: &std::path::PathBuf| std::fs::metadata(path).expect("a file").len();
    let largest = data.max_by_key(length).expect("data files");
    let mut bytes = std::fs::read(&largest).expect("read");
    let half = bytes.len() / 2;
    match fault {
        "none" => {}
        "cut_last_byte" => bytes.truncate(bytes.len() - 1),
        "flip_bit_at_half" => bytes[half] ^= 1,
        "zero_second_half" => bytes[half..].fill(0),
        "remove" => return std::fs::remove_file(&largest).expect("removed"),
        other => panic!("unknown fault {other}"),
    }
    std::fs::write(&largest, bytes).expect("written");
}

/// Case 18: nearly all of 2000 subpartitions are empty; then all of them are.
#[test]
fn case_18_sparse_partitions() {
    let name = "18-sparse-partitions";
    let (input, expected) = (case(name, "input.json"), case(name, "expected.json"));
    let consumers = u32::try_from(input["partitions"].as_u64().expect("a number")).expect("small");
    let rows: Vec<Row> = serde_json::from_value(input["rows"].clone()).expect("rows");
    let runs = [(vec![rows], "run1"), (vec![Vec::new(); 4], "run2_empty_source")];
    for (run, (producers, outcome)) in runs.into_iter().enumerate() {
        let directory = tempfile::tempdir().expect("a directory is made");
        let store = Arc::new(DirectoryStore::new(directory.path()));
        let service: Arc<dyn ShuffleService> = Arc::new(FileShuffle::new(store));
        let count = u32::try_from(producers.len()).expect("few");
        for (producer, rows) in (0..).zip(producers) {
            write_rows(&service, producer, consumers, rows);
        }
        let (sums, finished) = sum_all(&service, count, consumers);
        assert_eq!(serde_json::to_value(sums).expect("JSON"), expected[outcome]);
        assert_eq!(Value::from(finished), expected["consumers_finished"][run]);
    }
}

/// Sums by key through a gate for each consumer, and how many consumers came to their end.
fn sum_all(
    service: &Arc<dyn ShuffleService>,
    producers: u32,
    consumers: u32,
) -> (BTreeMap<String, i64>, u64) {
    let (mut sums, mut finished) = (BTreeMap::new(), 0);
    for consumer in 0..consumers {
        let channel = |producer| {
            let descriptor = result_partition(producer, consumers);
            let range = consumer..consumer + 1;
            let reader = BlockingReader::<Row>::new(Arc::clone(service), descriptor, range);
            Box::new(reader) as Box<dyn ChannelReader<Row>>
        };
        let mut gate = InputGate::new((0..producers).map(channel).collect());
        loop {
            match gate.poll().expect("nothing is wrong") {
                GateEvent::Batch { batch, .. } => {
                    for (key, value) in batch.into_parts().0 {
                        *sums.entry(key).or_insert(0) += value;
                    }
                }
                GateEvent::EndOfInput => break,
                GateEvent::Empty => panic!("finished partitions have nothing to wait for"),
                _ => {}
            }
        }
        finished += 1;
    }
    (sums, finished)
}
