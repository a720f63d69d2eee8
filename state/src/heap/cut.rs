//! [`Cut`]: how the hash range of a subtask is cut into the shards of its tables.

use element::KeyGroups;

/// How the hash range is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    first: u64,
    shift: u32,
    shards: usize,
}

impl Cut {
    /// The range of these groups in 64 to 128 shards, fewer if it is as narrow as that.
    pub(crate) fn of(groups: KeyGroups) -> Self {
        let (first, last) =
            groups.hash_range().map_or((0, 0), |range| (*range.start(), *range.end()));
        let span = last - first;
        let shift = (64 - span.leading_zeros()).saturating_sub(7);
        let shards = usize::try_from(span >> shift).expect("seven bits are left") + 1;
        Self { first, shift, shards }
    }

    /// The same range in one or two shards, for tables of few entries.
    pub(super) fn few(self) -> Self {
        Self { shift: self.shift + 6, shards: ((self.shards - 1) >> 6) + 1, ..self }
    }

    /// The number of shards.
    pub(crate) fn shards(self) -> usize {
        self.shards
    }

    /// The shard of a hash; hashes outside of the range fall into its first and last.
    #[inline]
    pub(crate) fn shard_of(self, hash: u64) -> usize {
        let shard = self.place_of(hash);
        if shard < self.shards { shard } else { self.outside(hash) }
    }

    /// The shard of a hash of the range. Of one outside of it: none, or any.
    #[inline]
    pub(super) fn place_of(self, hash: u64) -> usize {
        (hash.wrapping_sub(self.first) >> self.shift) as usize
    }

    /// The shard of a hash for which [`place_of`](Self::place_of) finds none.
    #[cold]
    pub(super) fn outside(self, hash: u64) -> usize {
        if hash < self.first { 0 } else { self.shards - 1 }
    }
}

#[cfg(test)]
mod tests {
    use element::{MaxParallelism, SubtaskIndex};

    use super::*;

    #[test]
    fn shards_are_in_the_order_of_hashes_and_few_are_many_taken_together() {
        let all = MaxParallelism::DEFAULT;
        for groups in [KeyGroups::all(all), all.groups_of(SubtaskIndex(1), 3)] {
            let many = Cut::of(groups);
            let few = many.few();
            assert!((64..=128).contains(&many.shards()) && (1..=2).contains(&few.shards()));
            let range = groups.hash_range().expect("there are groups");
            let step = (range.end() - range.start()) / 999;
            let hashes = (0..1_000).map(|i| range.start() + i * step);
            let shards: Vec<_> =
                hashes.map(|hash| (many.shard_of(hash), few.shard_of(hash))).collect();
            assert!(shards.is_sorted());
            assert!(shards.iter().all(|(many, few)| many >> 6 == *few));
            assert_eq!(shards.last(), Some(&(many.shards() - 1, few.shards() - 1)));
            for outside in [0, u64::MAX] {
                assert!(
                    many.shard_of(outside) < many.shards() && few.shard_of(outside) < few.shards()
                );
            }
        }
    }
}
