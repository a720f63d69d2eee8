//! Runs that outlive their sorter: sealed, recorded, resumed after a crash; damage and faults.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::io::ErrorKind;
use std::sync::Arc;

use common::{Place, Row, drain, expected, mix, rows};
use element::{
    ByteSize, DirectoryStore, FaultPlan, FaultyStore, FileRole, MemoryStore, Operation,
    decode_exact, encode_to_vec, hash_key_bytes,
};
use slackwater_sort::{
    Combiner, CombiningSorter, ExternalSorter, RunDescription, SortError, SorterOptions,
};

fn input() -> Vec<Row> {
    rows(600, |n| (mix(n) % 200).to_be_bytes().to_vec(), |n| (n % 3) as i64)
}

fn durable(place: &Place) -> SorterOptions {
    place.options().with_fan_in(3).with_durable_runs()
}

/// Pushes `rows`, with a seal behind each hundred; the sorter is dropped like one that crashed.
fn sealed(place: &Place, rows: &[Row]) -> Vec<RunDescription> {
    let mut sorter = ExternalSorter::new(durable(place));
    let mut sealed = Vec::new();
    for chunk in rows.chunks(100) {
        for (key, timestamp, payload) in chunk {
            sorter.push(key, *timestamp, payload).unwrap();
        }
        sealed.extend(sorter.seal().unwrap());
    }
    sealed
}

fn delete_all(place: &Place, sealed: &[RunDescription]) {
    for description in sealed {
        description.delete(&*place.store).unwrap();
        description.delete(&*place.store).unwrap();
    }
}

/// A sorter that is dropped behind a seal loses what came after it, and nothing else; the one that
/// resumes reads each sealed record once, before its own.
#[test]
fn a_resumed_sorter_goes_on_behind_the_last_seal() {
    let input = input();
    let directory = tempfile::tempdir().unwrap();
    let on_disk = Place::over(1_500, Arc::new(DirectoryStore::new(directory.path())));
    for (place, covered) in [(on_disk, 300), (Place::new(1_500), 600), (Place::new(1 << 20), 0)] {
        let sealed = sealed(&place, &input[..covered]);
        assert_eq!(sealed.iter().map(RunDescription::records).sum::<u64>(), covered as u64);
        let recorded = encode_to_vec(&sealed);
        let read: Vec<RunDescription> = decode_exact(&recorded).unwrap();
        assert_eq!(read, sealed);

        let mut sorter = ExternalSorter::resume(durable(&place), read).unwrap();
        assert_eq!(sorter.verify().unwrap(), covered as u64);
        for (key, timestamp, payload) in &input[covered..] {
            sorter.push(key, *timestamp, payload).unwrap();
        }
        let (drained, _) = drain(sorter.finish().unwrap()).unwrap();
        assert_eq!(drained, expected(&input));
        assert_eq!(place.files().len(), sealed.len(), "sealed runs stay, and only they");
        assert_eq!(place.budget.used(), ByteSize(0));
        delete_all(&place, &sealed);
        place.assert_clean();
    }
}

/// F9: what nobody has recorded goes with its sorter, what is recorded stays.
#[test]
fn only_runs_that_are_described_outlive_their_sorter() {
    let place = Place::new(1_500);
    let mut sorter = ExternalSorter::new(durable(&place));
    let push = |sorter: &mut ExternalSorter, rows: &[Row]| {
        for (key, timestamp, payload) in rows {
            sorter.push(key, *timestamp, payload).unwrap();
        }
    };
    push(&mut sorter, &input()[..100]);
    let first = sorter.seal().unwrap();
    assert_eq!(sorter.seal().unwrap(), [], "nothing came since");
    push(&mut sorter, &input());
    assert!(place.files().len() > first.len(), "more runs are spilled");
    drop(sorter);
    let names: Vec<&str> = first.iter().map(RunDescription::name).collect();
    assert_eq!(place.files(), names);
    let bytes: u64 = first.iter().map(RunDescription::bytes).sum();
    assert!(bytes > 100 * 16, "the files have the records' bytes");
    delete_all(&place, &first);
    place.assert_clean();
}

#[test]
fn a_sorter_without_durable_runs_seals_nothing() {
    let place = Place::new(1_500);
    let mut sorter = ExternalSorter::new(place.options());
    sorter.push(b"key", 0, b"value").unwrap();
    assert!(matches!(sorter.seal(), Err(SortError::NotDurable)));
    let (drained, _) = drain(sorter.finish().unwrap()).unwrap();
    assert_eq!(drained.len(), 1);
}

#[test]
fn a_sealed_run_that_is_gone_cut_changed_or_exchanged_is_noticed() {
    let store = MemoryStore::new();
    let place = Place::over(1_500, Arc::new(store.clone()));
    let all = input();
    let others = sealed(&place, &all[..100]);
    let resume = |sealed: &[RunDescription]| {
        let mut sorter = ExternalSorter::resume(durable(&place), sealed.to_vec())?;
        let verified = sorter.verify().map(drop);
        let drained = sorter.finish().and_then(drain).map(drop);
        assert_eq!(verified.is_ok(), drained.is_ok(), "both ways notice the same");
        verified
    };
    let mut other = Vec::new();
    assert!(store.damage(others[0].name(), |bytes| other = bytes.clone()));
    for damage in 0..4 {
        let sealed = sealed(&place, &all[..300]);
        let victim = sealed[1].name().to_owned();
        resume(&sealed).unwrap();
        if damage == 0 {
            place.store.delete(FileRole::SortRun, &victim).unwrap();
        }
        store.damage(&victim, |bytes| match damage {
            1 => bytes.truncate(bytes.len() - 1),
            2 => *bytes.last_mut().unwrap() ^= 1,
            _ => {
                let length = bytes.len();
                *bytes = other.clone();
                bytes.resize(length, 0);
            }
        });
        let error = resume(&sealed).unwrap_err();
        assert!(error.is_damaged_or_missing(), "{damage}: {error}");
        assert_eq!(matches!(error, SortError::Missing { .. }), damage == 0);
        assert!(error.to_string().contains(&victim));
        delete_all(&place, &sealed);
    }
    delete_all(&place, &others);
    place.assert_clean();
}

#[test]
fn a_description_that_was_changed_where_it_rests_is_refused() {
    let place = Place::new(1_500);
    let sealed = sealed(&place, &input()[..100]);
    let bytes = encode_to_vec(&sealed[0]);
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_exact::<RunDescription>(&changed).is_err(), "bit {bit}");
    }
    for end in 0..bytes.len() {
        assert!(decode_exact::<RunDescription>(&bytes[..end]).is_err(), "cut at {end}");
    }
    delete_all(&place, &sealed);
}

#[test]
fn a_run_that_cannot_be_made_durable_is_not_sealed() {
    let faulty = FaultyStore::new(Arc::new(MemoryStore::new()));
    let place = Place::over(1_500, Arc::new(faulty.clone()));
    let all = input();
    let kept = sealed(&place, &all[..100]);
    let runs = faulty.count(Operation::Sync);
    assert_eq!(runs, kept.len() as u64, "one sync a run");
    for nth in 1..=runs {
        let kind = ErrorKind::PermissionDenied;
        faulty.plan(Some(FaultPlan { operation: Operation::Sync, nth, and_after: false, kind }));
        let mut sorter = ExternalSorter::new(durable(&place));
        let pushed = all[..100].iter().try_for_each(|row| sorter.push(&row.0, row.1, &row.2));
        let error = pushed.and_then(|()| sorter.seal().map(drop)).unwrap_err();
        let SortError::Store(source) = &error else { panic!("{error}") };
        assert_eq!((source.operation, source.role), (Operation::Sync, FileRole::SortRun));
        faulty.plan(None);
        assert!(matches!(sorter.seal(), Err(SortError::Failed)));
        assert_eq!(place.budget.used(), ByteSize(0));
        assert_eq!(place.files().len(), kept.len(), "what was not sealed is gone");
    }
    delete_all(&place, &kept);
    place.assert_clean();
}

struct Sum;

impl Combiner for Sum {
    type Accumulator = u64;

    fn merge(&self, into: &mut u64, other: u64) {
        *into += other;
    }
}

fn count(sorter: &mut CombiningSorter<Sum>, rows: &[Row]) {
    for (key, timestamp, _) in rows {
        let fold = |sum: Option<&mut u64>| match sum {
            Some(sum) => {
                *sum += 1;
                None
            }
            None => Some(1),
        };
        sorter.update(hash_key_bytes(key).0, key, *timestamp, fold).unwrap();
    }
}

#[test]
fn partial_results_are_sealed_and_resumed_too() {
    let place = Place::new(1_500);
    let all = input();
    let mut sorter = CombiningSorter::new(Sum, durable(&place));
    count(&mut sorter, &all[..400]);
    let sealed = sorter.seal().unwrap();
    count(&mut sorter, &all[400..450]);
    drop(sorter);
    assert_eq!(place.files().len(), sealed.len());

    let mut sorter = CombiningSorter::resume(Sum, durable(&place), sealed.clone()).unwrap();
    let partials = sealed.iter().map(RunDescription::records).sum::<u64>();
    assert_eq!(sorter.verify().unwrap(), partials);
    count(&mut sorter, &all[400..]);
    let mut stream = sorter.finish().unwrap();
    let (mut keys, mut sum) = (0, 0);
    while let Some(record) = stream.next().unwrap() {
        keys += 1;
        sum += record.accumulator;
    }
    let mut distinct: Vec<&[u8]> = all.iter().map(|row| row.0.as_slice()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((keys, sum), (distinct.len(), 600));
    delete_all(&place, &sealed);
    place.assert_clean();
    let plain = CombiningSorter::new(Sum, place.options()).seal();
    assert!(matches!(plain, Err(SortError::NotDurable)));
}
