//! [`Merge`]: several runs read as one, by a tree of losers.
//!
//! Each inner node holds the run that lost there; the winner is outside. A step replays the
//! winner's path: log2(runs) comparisons, nearly all of two prefixes that lie side by side. Equal
//! records come from the earlier run first, which is the order of arrival as long as neighbours are
//! merged with neighbours. Source: Knuth, TAOCP vol. 3, 5.4.1.

use std::sync::Arc;

use crate::SortError;
use crate::run::Run;
use crate::run_reader::{PrefixRange, RunReader, WHOLE};
use crate::spiller::Spiller;

/// The prefix of a run that has ended; a living run may have it too, so it is no proof.
const ENDED: u64 = u64::MAX;

/// Runs merged into one sequence. Starts before the first record.
#[derive(Debug)]
pub(crate) struct Merge {
    readers: Vec<RunReader>,
    /// By reader: the prefix of its current record.
    prefixes: Vec<u64>,
    alive: Vec<bool>,
    /// Inner nodes 1..n: the loser there. Node `i` has the children `2i` and `2i + 1`; the leaf of
    /// reader `r` is node `n + r`.
    losers: Vec<u32>,
    winner: usize,
    is_started: bool,
    pub(crate) deep_comparisons: u64,
}

impl Merge {
    /// Opens all of `runs`, in order of arrival; their files go as they are read.
    pub(crate) fn open(runs: Vec<Run>, spiller: &mut Spiller) -> Result<Self, SortError> {
        Self::open_range(runs.into_iter().map(Arc::new).collect(), WHOLE, spiller)
    }

    /// Opens a part of all of `runs`, in order of arrival; the last reader of a file takes it along.
    pub(crate) fn open_range(
        runs: Vec<Arc<Run>>,
        range: PrefixRange,
        spiller: &mut Spiller,
    ) -> Result<Self, SortError> {
        let mut readers = Vec::with_capacity(runs.len());
        for run in runs {
            readers.push(RunReader::open(run, range, spiller)?);
        }
        Ok(Self {
            prefixes: vec![ENDED; readers.len()],
            alive: vec![false; readers.len()],
            losers: vec![0; readers.len()],
            readers,
            winner: 0,
            is_started: false,
            deep_comparisons: 0,
        })
    }

    /// Goes to the next record; `None` at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<Option<&RunReader>, SortError> {
        if self.is_started {
            self.advance_reader(self.winner)?;
            self.replay();
        } else {
            self.start()?;
        }
        let is_alive = self.alive.get(self.winner).copied().unwrap_or(false);
        Ok(self.readers.get(self.winner).filter(|_| is_alive))
    }

    /// The reader whose record is the current one.
    #[inline]
    pub(crate) fn current(&self) -> Option<&RunReader> {
        self.readers.get(self.winner)
    }

    /// Closes all readers; gives the bytes that they had taken from the account.
    pub(crate) fn take_loans(&mut self) -> u64 {
        self.readers.iter_mut().map(RunReader::take_loan).sum()
    }

    #[inline]
    fn advance_reader(&mut self, index: usize) -> Result<(), SortError> {
        let reader = &mut self.readers[index];
        if reader.advance()? {
            self.prefixes[index] = reader.prefix();
        } else {
            self.prefixes[index] = ENDED;
            self.alive[index] = false;
        }
        Ok(())
    }

    /// Plays the first tournament, from the leaves up.
    fn start(&mut self) -> Result<(), SortError> {
        self.is_started = true;
        let count = self.readers.len();
        for index in 0..count {
            self.alive[index] = true;
            self.advance_reader(index)?;
        }
        let mut winners: Vec<usize> = vec![0; count];
        winners.extend(0..count);
        for node in (1..count).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if self.goes_before(a, b) { (a, b) } else { (b, a) };
            winners[node] = winner;
            self.losers[node] = loser as u32;
        }
        self.winner = if count > 1 { winners[1] } else { 0 };
        Ok(())
    }

    /// Plays the matches on the path of the last winner.
    #[inline]
    fn replay(&mut self) {
        let mut winner = self.winner;
        let mut node = (self.readers.len() + winner) / 2;
        while node > 0 {
            let loser = self.losers[node] as usize;
            if self.goes_before(loser, winner) {
                self.losers[node] = winner as u32;
                winner = loser;
            }
            node /= 2;
        }
        self.winner = winner;
    }

    #[inline]
    fn goes_before(&mut self, a: usize, b: usize) -> bool {
        let (prefix_a, prefix_b) = (self.prefixes[a], self.prefixes[b]);
        if prefix_a == prefix_b { self.goes_before_deep(a, b) } else { prefix_a < prefix_b }
    }

    fn goes_before_deep(&mut self, a: usize, b: usize) -> bool {
        if !(self.alive[a] && self.alive[b]) {
            return self.alive[a];
        }
        self.deep_comparisons += 1;
        let (left, right) = (&self.readers[a], &self.readers[b]);
        let rules = left.rules();
        rules
            .compare_keys(left.key(), right.key())
            .then_with(|| rules.compare_timestamps(left.timestamp(), right.timestamp()))
            .then(a.cmp(&b))
            .is_lt()
    }
}
