//! One sorted sequence cut into parts that are read independently, by as many threads.
//!
//! Parts are cut where the prefix changes, so no key is in two of them: from a sorted buffer by
//! position, from runs by the prefixes in their indexes, which lie evenly in the data. Where the
//! prefix begins with a hash, parts are of equal size whatever the values are.

use std::sync::Arc;

use crate::account::Account;
use crate::buffer::Buffer;
use crate::in_memory::{Held, InMemory};
use crate::merge::Merge;
use crate::parted::PartedRuns;
use crate::parted_reader::PartedReader;
use crate::radix::Entry;
use crate::run::Run;
use crate::spiller::Spiller;
use crate::stream::Source;
use crate::{SortError, SortedStream};

/// Cuts a sealed buffer into at most `ways` parts.
pub(crate) fn of_buffer(
    buffer: Buffer,
    mut spiller: Spiller,
    ways: usize,
) -> Result<Vec<SortedStream>, SortError> {
    let mut entries = Vec::new();
    let cuts = if buffer.parts() > 1 {
        cut_between_parts(&buffer, ways, &mut spiller)
    } else {
        let (rules, cancel) = (spiller.rules, spiller.cancel());
        let deep = buffer.sort_part(0, &mut entries, &mut Vec::new(), &rules, cancel)?;
        spiller.stats.deep_comparisons += deep;
        cut_within_part(&entries, ways)
    };
    let (has_parts, entries) = (buffer.parts() > 1, Arc::new(entries));
    let held = share_buffer(buffer, &mut spiller);
    let ways = cuts.len().saturating_sub(1);
    let mut streams: Vec<SortedStream> = Vec::new();
    for part in cuts.windows(2) {
        let &[start, end] = part else { continue };
        let held = Arc::clone(&held);
        let source = if has_parts {
            InMemory::parts(held, start..end)
        } else {
            InMemory::range(held, Arc::clone(&entries), start..end)
        };
        streams.push(SortedStream::new(spiller.share(ways), Source::Memory(source)));
    }
    Ok(streams)
}

/// The buffer and the loan for all parts: it ends with the last, and a part by itself holds nothing.
fn share_buffer(buffer: Buffer, spiller: &mut Spiller) -> Arc<Held> {
    spiller.stats = spiller.stats();
    let none = Account::new(&spiller.options.budget, 0, 0);
    let account = std::mem::replace(&mut spiller.account, none);
    Arc::new(Held { buffer, _account: Some(account) })
}

/// Cuts a buffer, and parted runs, into at most `ways` parts: so many as there is memory for to sort a part of
/// each at once.
pub(crate) fn of_parted(
    mut buffer: Buffer,
    runs: PartedRuns,
    mut spiller: Spiller,
    ways: usize,
) -> Result<Vec<SortedStream>, SortError> {
    buffer.seal();
    let at_once = runs.reserved / runs.needs(&buffer).max(1);
    let files = spiller.options.fan_in / runs.runs.len().max(1);
    let ways = ways.min(at_once as usize).min(files).max(1);
    let parts = buffer.parts();
    let records = |part: usize| buffer.len(part) + runs.records(part) as usize;
    let cuts = cut_parts((0..parts).map(records), ways);
    let runs = Arc::new(runs);
    let shares = share_buffer(buffer, &mut spiller);
    let ways = cuts.len().saturating_sub(1);
    let stream = |part: &[usize]| {
        let &[start, end] = part else { return Err(SortError::Failed) };
        let reader = PartedReader::open(Arc::clone(&runs), &spiller)?;
        let memory = InMemory::parted(Arc::clone(&shares), start..end, reader);
        Ok(SortedStream::new(spiller.share(ways), Source::Memory(memory)))
    };
    cuts.windows(2).map(stream).collect()
}

/// Ends of `ways` ranges of sorted entries, none of them within one prefix.
fn cut_within_part(entries: &[Entry], ways: usize) -> Vec<usize> {
    let count = entries.len();
    let prefix_at = |index: usize| entries.get(index).map(|entry| entry.prefix);
    let mut cuts = vec![0];
    for way in 1..ways {
        let mut cut = count / ways * way;
        // To the end of the records of one prefix, if the cut is within them.
        while cut > 0 && cut < count && prefix_at(cut) == prefix_at(cut - 1) {
            cut += 1;
        }
        cuts.push(cut);
    }
    cuts.push(count);
    cuts.dedup();
    cuts
}

/// Ends of `ways` ranges of a buffer's parts: fewer if there is no memory for the entries of so many
/// parts at once.
fn cut_between_parts(buffer: &Buffer, ways: usize, spiller: &mut Spiller) -> Vec<usize> {
    let longest = (0..buffer.parts()).map(|part| buffer.len(part)).max().unwrap_or(0);
    let mut ways = ways.clamp(1, buffer.parts());
    while ways > 1 {
        let missing = (longest * ways).saturating_sub(buffer.entries_room());
        let aside = buffer.aside_bytes() * (ways as u64 - 1);
        if spiller.account.take_reserved((missing * size_of::<Entry>()) as u64 + aside) {
            break;
        }
        ways -= 1;
    }
    cut_parts((0..buffer.parts()).map(|part| buffer.len(part)), ways)
}

/// Ends of at most `ways` ranges of parts that have so many records.
fn cut_parts(parts: impl ExactSizeIterator<Item = usize> + Clone, ways: usize) -> Vec<usize> {
    let (count, total) = (parts.len(), parts.clone().sum::<usize>());
    let mut cuts = vec![0];
    let mut before = 0;
    for (part, records) in parts.enumerate() {
        if before >= total / ways * cuts.len() && cuts.len() < ways && before > 0 {
            cuts.push(part);
        }
        before += records;
    }
    cuts.push(count);
    cuts
}

/// Cuts runs into at most `ways` parts.
pub(crate) fn of_runs(
    runs: Vec<Run>,
    mut spiller: Spiller,
    ways: usize,
) -> Result<Vec<SortedStream>, SortError> {
    let ways = ways.min(spiller.options.fan_in.max(2) / runs.len().max(1)).max(1);
    let runs: Vec<Arc<Run>> = runs.into_iter().map(Arc::new).collect();
    let bounds = bounds_of(&runs, ways);
    let ways = bounds.len() + 1;
    spiller.account.trim();
    let mut merges: Vec<(Spiller, Merge)> = Vec::with_capacity(ways);
    for way in 0..ways {
        let from = way.checked_sub(1).and_then(|way| bounds.get(way)).copied();
        let mut share = spiller.share(ways);
        let merge = Merge::open_from(runs.clone(), from, &mut share)?;
        if let Some((_, before)) = merges.last_mut() {
            before.end_before(&merge);
        }
        merges.push((share, merge));
    }
    let stream = |(share, merge)| SortedStream::new(share, Source::Runs(merge));
    Ok(merges.into_iter().map(stream).collect())
}

/// Prefixes that cut the runs into parts of about equal size: quantiles of the indexes.
fn bounds_of(runs: &[Arc<Run>], ways: usize) -> Vec<u64> {
    let mut starts: Vec<u64> =
        runs.iter().flat_map(|run| run.index.iter().map(|start| start.prefix)).collect();
    starts.sort_unstable();
    let quantile = |way: usize| starts.get(starts.len() * way / ways).copied();
    let mut bounds: Vec<u64> = (1..ways).filter_map(quantile).collect();
    bounds.dedup();
    bounds
}
