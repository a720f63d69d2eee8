//! One sorted sequence cut into parts that are read independently, by as many threads.
//!
//! Parts are cut where the prefix changes, so no key is in two of them: from a sorted buffer by
//! position, from runs by the prefixes in their indexes, which lie evenly in the data. Where the
//! prefix begins with a hash, parts are of equal size whatever the values are.

use std::ops::Bound;
use std::sync::Arc;

use crate::account::Account;
use crate::buffer::Buffer;
use crate::merge::Merge;
use crate::run::Run;
use crate::run_reader::PrefixRange;
use crate::spiller::Spiller;
use crate::stream::{Held, Source};
use crate::{SortError, SortedStream};

/// Cuts a sorted buffer into at most `ways` parts.
pub(crate) fn of_buffer(buffer: Buffer, mut spiller: Spiller, ways: usize) -> Vec<SortedStream> {
    let count = buffer.len();
    let prefix_at = |index: usize| buffer.entries().get(index).map(|entry| entry.prefix);
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
    // The loan ends with the last part; a part by itself holds nothing.
    spiller.stats = spiller.stats();
    let none = Account::new(&spiller.options.budget, 0, 0);
    let account = std::mem::replace(&mut spiller.account, none);
    let held = Arc::new(Held { buffer, _account: Some(account) });
    let mut streams: Vec<SortedStream> = Vec::new();
    let ways = cuts.len().saturating_sub(1);
    for part in cuts.windows(2) {
        let &[start, end] = part else { continue };
        let source = Source::memory(Arc::clone(&held), start..end);
        streams.push(SortedStream::new(spiller.share(ways), source));
    }
    streams
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
    let mut streams = Vec::with_capacity(ways);
    for way in 0..ways {
        let from = way.checked_sub(1).and_then(|way| bounds.get(way));
        let range: PrefixRange = (
            from.map_or(Bound::Unbounded, |prefix| Bound::Included(*prefix)),
            bounds.get(way).map_or(Bound::Unbounded, |prefix| Bound::Excluded(*prefix)),
        );
        let mut share = spiller.share(ways);
        let merge = Merge::open_range(runs.clone(), range, &mut share)?;
        streams.push(SortedStream::new(share, Source::Runs(merge)));
    }
    Ok(streams)
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
