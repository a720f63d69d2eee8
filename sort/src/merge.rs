//! [`Merge`]: several runs read as one, by a tree of losers.
//!
//! Each inner node holds the run that lost there and its prefix; the winner is outside. A step replays
//! the winner's path: log2(runs) comparisons, nearly all of them of two prefixes, and none at all where
//! the next record of the winner's run equals its last. Who wins cannot be foreseen, so the winner is
//! selected, not branched to. Equal records come from the earlier run first, which is the order of
//! arrival as long as neighbours are merged with neighbours. Source: Knuth, TAOCP vol. 3, 5.4.1.

use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::sync::Arc;

use crate::SortError;
use crate::kept::Kept;
use crate::run::Run;
use crate::run_reader::RunReader;
use crate::spiller::Spiller;

/// What decides between the current records of two runs, without a look at them: keys of up to
/// sixteen bytes are here as a whole, those of up to eight behind a prefix of the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    /// The prefix; [`u64::MAX`] if the run has ended, but a living run may have that too.
    prefix: u64,
    /// What [`Rules::second`](crate::rules::Rules::second) makes of the key.
    second: u64,
    /// The key's length, or [`LONG`] if the key is not here as a whole.
    length: u32,
    timestamp: i64,
}

/// A run that has ended.
const ENDED: Head = Head { prefix: u64::MAX, second: 0, length: LONG, timestamp: 0 };

/// Stands for every length beyond [`Rules::whole_key`](crate::rules::Rules::whole_key).
const LONG: u32 = u32::MAX;

/// A run on its way through the tree.
#[derive(Clone, Copy, Debug, Default)]
struct Player {
    /// That of its head.
    prefix: u64,
    reader: usize,
}

/// Runs merged into one sequence. Starts before the first record.
#[derive(Debug)]
pub(crate) struct Merge {
    readers: Vec<RunReader>,
    /// By reader: its current record.
    heads: Vec<Head>,
    alive: Vec<bool>,
    /// Inner nodes 1..n: the loser there. Node `i` has the children `2i` and `2i + 1`; the leaf of
    /// reader `r` is node `n + r`.
    losers: Vec<Player>,
    winner: usize,
    is_started: bool,
    pub(crate) deep_comparisons: u64,
}

impl Merge {
    /// Opens all of `runs`, in order of arrival; their files go as they are read.
    pub(crate) fn open(runs: Vec<Run>, spiller: &mut Spiller) -> Result<Self, SortError> {
        Self::open_from(runs.into_iter().map(Arc::new).collect(), None, spiller)
    }

    /// Opens all of `runs` where prefixes are not below `from`, in order of arrival; the last reader of
    /// a file takes it along.
    pub(crate) fn open_from(
        runs: Vec<Arc<Run>>,
        from: Option<u64>,
        spiller: &mut Spiller,
    ) -> Result<Self, SortError> {
        let mut readers = Vec::with_capacity(runs.len());
        for run in runs {
            readers.push(match from {
                None => RunReader::open(run, spiller)?,
                Some(from) => RunReader::open_from(run, from, spiller)?,
            });
        }
        Ok(Self::of(readers))
    }

    /// Opens all of `runs`, and records of memory that came after theirs.
    pub(crate) fn open_with(
        runs: Vec<Run>,
        kept: Kept,
        records: u64,
        spiller: &mut Spiller,
    ) -> Result<Self, SortError> {
        let mut readers = Vec::with_capacity(runs.len() + 1);
        for run in runs {
            readers.push(RunReader::open(Arc::new(run), spiller)?);
        }
        readers.push(RunReader::of_memory(kept, records, spiller));
        Ok(Self::of(readers))
    }

    fn of(readers: Vec<RunReader>) -> Self {
        Self {
            heads: vec![ENDED; readers.len()],
            alive: vec![false; readers.len()],
            losers: vec![Player::default(); readers.len()],
            readers,
            winner: 0,
            is_started: false,
            deep_comparisons: 0,
        }
    }

    /// Whole keys that were looked at, those in memory included.
    pub(crate) fn all_deep_comparisons(&self) -> u64 {
        let kept = self.readers.last().map_or(0, RunReader::deep_comparisons);
        self.deep_comparisons + kept
    }

    /// Ends where `next`, a merge of the same runs from further on, begins; neither has begun.
    pub(crate) fn end_before(&mut self, next: &Self) {
        for (reader, next) in self.readers.iter_mut().zip(&next.readers) {
            reader.end_before(next);
        }
    }

    /// Records that are read, if the merge has not begun.
    pub(crate) fn records(&self) -> u64 {
        self.readers.iter().map(RunReader::left).sum()
    }

    /// Goes to the next record; `None` at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<Option<&RunReader>, Box<SortError>> {
        if self.is_started {
            if !self.advance_reader(self.winner)? {
                self.replay();
            }
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

    /// Goes on in one run. True if the record there is equal to its last one in all that is compared,
    /// so that it goes before every record before which its last one went.
    #[inline]
    fn advance_reader(&mut self, index: usize) -> Result<bool, Box<SortError>> {
        let reader = &mut self.readers[index];
        let head = if reader.advance()? {
            let (rules, key) = (reader.rules(), reader.key());
            let is_whole = key.len() <= rules.whole_key();
            Head {
                prefix: rules.prefix(key),
                second: rules.second(key),
                length: if is_whole { key.len() as u32 } else { LONG },
                timestamp: reader.timestamp(),
            }
        } else {
            self.alive[index] = false;
            ENDED
        };
        let last = std::mem::replace(&mut self.heads[index], head);
        Ok(head == last && head.length != LONG)
    }

    /// Plays the first tournament, from the leaves up.
    fn start(&mut self) -> Result<(), Box<SortError>> {
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
            self.losers[node] = self.player(loser);
        }
        self.winner = if count > 1 { winners[1] } else { 0 };
        Ok(())
    }

    /// Plays the matches on the path of the last winner.
    #[inline]
    fn replay(&mut self) {
        let mut winner = self.player(self.winner);
        let mut node = (self.readers.len() + self.winner) / 2;
        while node > 0 {
            let loser = self.losers[node];
            let is_before = if loser.prefix == winner.prefix {
                self.goes_before_deep(loser.reader, winner.reader)
            } else {
                loser.prefix < winner.prefix
            };
            let prefix = select_unpredictable(is_before, loser.prefix, winner.prefix);
            let reader = select_unpredictable(is_before, loser.reader, winner.reader);
            let lost = &mut self.losers[node];
            lost.prefix = select_unpredictable(is_before, winner.prefix, loser.prefix);
            lost.reader = select_unpredictable(is_before, winner.reader, loser.reader);
            winner = Player { prefix, reader };
            node /= 2;
        }
        self.winner = winner.reader;
    }

    #[inline]
    fn player(&self, reader: usize) -> Player {
        Player { prefix: self.heads[reader].prefix, reader }
    }

    fn goes_before(&mut self, a: usize, b: usize) -> bool {
        let (prefix_a, prefix_b) = (self.heads[a].prefix, self.heads[b].prefix);
        if prefix_a == prefix_b { self.goes_before_deep(a, b) } else { prefix_a < prefix_b }
    }

    fn goes_before_deep(&mut self, a: usize, b: usize) -> bool {
        if !(self.alive[a] && self.alive[b]) {
            return self.alive[a];
        }
        self.deep_comparisons += 1;
        let (left, right) = (&self.readers[a], &self.readers[b]);
        let (head_a, head_b) = (self.heads[a], self.heads[b]);
        let rules = left.rules();
        let keys = if head_a.second != head_b.second {
            head_a.second.cmp(&head_b.second)
        } else if head_a.length == head_b.length && head_a.length != LONG {
            Ordering::Equal
        } else {
            rules.compare_keys(left.key(), right.key())
        };
        keys.then_with(|| rules.compare_timestamps(head_a.timestamp, head_b.timestamp))
            .then(a.cmp(&b))
            .is_lt()
    }
}
