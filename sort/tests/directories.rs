//! Temporary files over several directories: fail-over, limit, sweep, names; case 19.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Place, Row, expected, mix, rows, sort};
use element::{ByteSize, FileRole, SpillStore};
use slackwater_sort::{ExternalSorter, SortError, SpillDirectories};

fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// What a process that was killed leaves: a subdirectory with a lock that nobody holds.
fn leave_behind(directory: &Path, name: &str, files: &[&str]) -> PathBuf {
    let own = directory.join(name);
    fs::create_dir(&own).unwrap();
    fs::write(own.join("lock"), "1").unwrap();
    for file in files {
        fs::write(own.join(file), "left").unwrap();
    }
    own
}

/// tF19: one of three directories is broken (a plain file, so that it is broken for root too).
#[test]
fn a_broken_directory_among_good_ones_is_passed_over() {
    let root = tempfile::tempdir().unwrap();
    let paths = ["one", "broken", "three"].map(|name| root.path().join(name));
    fs::create_dir(&paths[0]).unwrap();
    fs::write(&paths[1], "a file").unwrap();
    fs::create_dir(&paths[2]).unwrap();
    let store = SpillDirectories::open(&paths, None, &[]).unwrap();
    assert_eq!(store.unusable().len(), 1);
    let place = Place::over(2_000, Arc::new(store));
    let input = rows(1_000, |n| mix(n).to_be_bytes().to_vec(), |_| 0);
    assert_eq!(sort(place.options(), &input).unwrap().0, expected(&input));
    place.assert_clean();
    drop(place);
    assert!(names_in(&paths[0]).is_empty() && names_in(&paths[2]).is_empty());
}

#[test]
fn a_directory_that_breaks_later_is_passed_over_too() {
    let root = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| root.path().join(name));
    paths.iter().for_each(|path| fs::create_dir(path).unwrap());
    let store = SpillDirectories::open(&paths, None, &[]).unwrap();
    // Its subdirectory turns into a file under our feet.
    let own = paths[0].join(&names_in(&paths[0])[0]);
    fs::remove_dir_all(&own).unwrap();
    fs::write(&own, "").unwrap();
    let place = Place::over(2_000, Arc::new(store));
    let input = rows(1_000, |n| mix(n).to_be_bytes().to_vec(), |_| 0);
    assert_eq!(sort(place.options(), &input).unwrap().0, expected(&input));
    place.assert_clean();
}

#[test]
fn no_directory_at_all_is_an_error_that_names_each() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let refused = SpillDirectories::open(&[file.clone(), file], None, &[]).unwrap_err();
    assert_eq!(refused.unusable.len(), 2);
}

#[test]
fn a_file_moves_to_another_directory_when_the_limit_is_reached() {
    let root = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| root.path().join(name));
    paths.iter().for_each(|path| fs::create_dir(path).unwrap());
    let store = SpillDirectories::open(&paths, Some(ByteSize(300)), &[]).unwrap();
    let mut first = store.create(FileRole::SortRun, "first").unwrap();
    let mut second = store.create(FileRole::SortRun, "second").unwrap();
    first.write(&[1; 200]).unwrap();
    second.write(&[2; 80]).unwrap();
    // Only where the second file is there is room for neither; the limit holds in each directory.
    assert!(first.write(&[1; 150]).unwrap_err().is_full());
    second.write(&[2; 20]).unwrap();
    store.delete(FileRole::SortRun, "first").unwrap();
    second.write(&[3; 200]).unwrap();
    assert_eq!(store.used(), ByteSize(300));
    let mut third = store.create(FileRole::SortRun, "third").unwrap();
    third.write(&[5; 100]).unwrap();
    let mut fourth = store.create(FileRole::SortRun, "fourth").unwrap();
    fourth.write(&[6; 200]).unwrap();
    let reader = store.open(FileRole::SortRun, "second").unwrap();
    let mut bytes = [0; 300];
    reader.read_at(0, &mut bytes).unwrap();
    assert!(bytes[..100].iter().all(|byte| *byte == 2) && bytes[100..].iter().all(|b| *b == 3));
}

#[test]
fn a_file_moves_with_what_was_written_and_reads_back_whole() {
    let root = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| root.path().join(name));
    paths.iter().for_each(|path| fs::create_dir(path).unwrap());
    let store = SpillDirectories::open(&paths, Some(ByteSize(1_000)), &[]).unwrap();
    let mut filler = store.create(FileRole::SortRun, "filler").unwrap();
    filler.write(&[0; 700]).unwrap();
    // The second goes to the other directory, the third beside the filler.
    let mut other = store.create(FileRole::SortRun, "other").unwrap();
    let mut moving = store.create(FileRole::SortRun, "moving").unwrap();
    other.write(&[1; 10]).unwrap();
    moving.write(&[7; 250]).unwrap();
    let before = store.local_path("moving").unwrap();
    moving.write(&[8; 250]).unwrap();
    let after = store.local_path("moving").unwrap();
    assert_ne!(before.parent(), after.parent());
    assert!(!before.exists(), "the file is left where it was");
    let bytes = fs::read(after).unwrap();
    assert_eq!(bytes, [vec![7; 250], vec![8; 250]].concat());
    assert_eq!(store.used(), ByteSize(1_210));
}

#[test]
fn a_rename_replaces_what_had_the_name_wherever_it_was() {
    let root = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| root.path().join(name));
    paths.iter().for_each(|path| fs::create_dir(path).unwrap());
    let store = SpillDirectories::open(&paths, None, &[]).unwrap();
    for (name, bytes) in [("old", 10), ("new", 20)] {
        store.create(FileRole::SortRun, name).unwrap().write(&vec![1; bytes]).unwrap();
    }
    store.rename(FileRole::SortRun, "new", "old").unwrap();
    assert_eq!(store.open(FileRole::SortRun, "old").unwrap().len().unwrap(), 20);
    assert_eq!(store.list(FileRole::SortRun, "").unwrap(), ["old"]);
    assert_eq!(store.used(), ByteSize(20));
    drop(store);
    assert!(names_in(&paths[0]).is_empty() && names_in(&paths[1]).is_empty());
}

#[test]
fn what_a_killed_process_left_is_swept_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let outside = root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.spill"), "not ours").unwrap();
    let base = root.path().join("tmp");
    fs::create_dir(&base).unwrap();
    fs::write(base.join("stranger.spill"), "not ours").unwrap();
    leave_behind(&base, "slackwater-spill-1-dead", &["a.spill", "b.spill"]);
    let with_link = leave_behind(&base, "slackwater-spill-2-link", &["a.spill"]);
    symlink(&outside, with_link.join("link")).unwrap();
    let with_note = leave_behind(&base, "slackwater-spill-3-note", &["a.spill", "notes.txt"]);
    let no_proof = base.join("slackwater-spill-4-no-lock");
    fs::create_dir(&no_proof).unwrap();
    fs::write(no_proof.join("a.spill"), "whose").unwrap();
    symlink(&outside, base.join("slackwater-spill-5-a-link")).unwrap();
    let durable = leave_behind(&base, "slackwater-spill-6-durable", &["kept.spill", "a.spill"]);
    let alive = leave_behind(&base, "slackwater-spill-7-alive", &["a.spill"]);
    let lock = File::open(alive.join("lock")).unwrap();
    lock.lock().unwrap();

    let kept = durable.join("kept.spill");
    let store = SpillDirectories::open(std::slice::from_ref(&base), None, &[kept]).unwrap();
    drop(store);

    assert_eq!(
        names_in(&base),
        [
            "slackwater-spill-2-link",
            "slackwater-spill-3-note",
            "slackwater-spill-4-no-lock",
            "slackwater-spill-5-a-link",
            "slackwater-spill-6-durable",
            "slackwater-spill-7-alive",
            "stranger.spill"
        ]
    );
    assert_eq!(names_in(&with_link), ["link", "lock"]);
    assert_eq!(names_in(&with_note), ["lock", "notes.txt"]);
    assert_eq!(names_in(&no_proof), ["a.spill"]);
    assert_eq!(names_in(&durable), ["kept.spill", "lock"]);
    assert_eq!(names_in(&alive), ["a.spill", "lock"]);
    assert_eq!(names_in(&outside), ["a.spill"]);
}

/// tF20: two sorters of one prefix over one directory, at once.
#[test]
fn two_sorters_in_one_directory_do_not_share_names() {
    let root = tempfile::tempdir().unwrap();
    let paths = [root.path().to_path_buf()];
    // Two stores, as two processes have them, and two sorters on each.
    let stores = [0, 1].map(|_| Arc::new(SpillDirectories::open(&paths, None, &[]).unwrap()));
    let inputs: Vec<Vec<Row>> = (0..4)
        .map(|salt| rows(300, |n| mix(n + salt).to_be_bytes().to_vec(), |_| salt as i64))
        .collect();
    let places: Vec<Place> = (0..4_usize)
        .map(|n| Place::over(500, Arc::clone(&stores[n % 2]) as Arc<dyn SpillStore>))
        .collect();
    let mut sorters: Vec<ExternalSorter> =
        places.iter().map(|place| ExternalSorter::new(place.options())).collect();
    for index in 0..300 {
        for (sorter, input) in sorters.iter_mut().zip(&inputs) {
            let (key, timestamp, payload) = &input[index];
            sorter.push(key, *timestamp, payload).unwrap();
        }
    }
    for (sorter, input) in sorters.into_iter().zip(&inputs) {
        let (sorted, stats) = common::drain(sorter.finish().unwrap()).unwrap();
        assert_eq!(sorted, expected(input));
        assert!(stats.runs > 1);
    }
    places.iter().for_each(Place::assert_clean);
    drop((places, stores));
    assert!(names_in(root.path()).is_empty(), "a directory is left");
}

/// Payloads that do not compress: the generator of case 16, seeded with the key.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut x = seed;
    (0..bytes)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as u8
        })
        .collect()
}

#[test]
fn case_19_temp_dirs_and_quota() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/19-temp-dirs-and-quota");
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(case.join(name)).unwrap()).unwrap()
    };
    let (input, expected) = (read("input.json"), read("expected.json"));
    let root = tempfile::tempdir().unwrap();
    // A plain file in place of the unwritable directory: root could write to that.
    let (bad, link, real) =
        (root.path().join("bad"), root.path().join("link"), root.path().join("real"));
    fs::write(&bad, "").unwrap();
    fs::create_dir(&real).unwrap();
    fs::write(real.join("keep.txt"), "not ours").unwrap();
    symlink("real", &link).unwrap();
    let quota = ByteSize(input["quota"].as_u64().unwrap());
    let store = SpillDirectories::open(&[bad.clone(), link.clone()], Some(quota), &[]).unwrap();
    let place = Place::over(input["sort_memory"].as_u64().unwrap(), Arc::new(store));
    let steps = input["steps"].as_array().unwrap();
    for (step, wanted) in steps.iter().zip(expected["steps"].as_array().unwrap()) {
        let count = step["rows"].as_u64().unwrap();
        let input = (0..count).map(|n| n * 7_919 % count);
        let input: Vec<Row> =
            input.map(|key| (key.to_be_bytes().to_vec(), 0, noise(key, 1_000))).collect();
        match sort(place.options(), &input) {
            Ok((sorted, _)) => {
                let key_of = |row: &Row| u64::from_be_bytes(row.0.as_slice().try_into().unwrap());
                let sum: u64 = sorted
                    .iter()
                    .enumerate()
                    .map(|(position, row)| position as u64 * key_of(row) % 1_000_003)
                    .sum();
                assert!(sorted.iter().all(|row| row.2 == noise(key_of(row), 1_000)));
                assert_eq!(wanted["result"], serde_json::json!([sorted.len(), sum]));
            }
            Err(error) => {
                assert!(error.is_no_room() && matches!(error, SortError::NoRoom(_)));
                assert_eq!(wanted["error"], "typed: limit on temporary data");
            }
        }
        place.assert_clean();
    }
    drop(place);
    assert_eq!(serde_json::json!(names_in(&real)), expected["after"]["real"]);
    assert_eq!(fs::read_to_string(real.join("keep.txt")).unwrap(), "not ours");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("real"));
    assert_eq!(fs::read_to_string(&bad).unwrap(), "");
}
