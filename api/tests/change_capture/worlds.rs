//! Random tables, interleavings, checkpoints and crashes against the naive reference.

use proptest::prelude::*;

use crate::sim::{Sim, check};
use crate::table::Table;

fn run(seed: u64, readers: usize, bounds: &[u32], crashes: u32) -> Sim {
    let table = Table::new(seed, 24, 120, bounds);
    let mut sim = Sim::new(table.clone(), seed ^ 0x5eed, readers);
    sim.run(crashes);
    check(&table, &sim.sent);
    sim
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// K9, case 12: whatever changes while chunks are read, each key's row and later changes come
    /// once and in order, over any interleaving of readers.
    #[test]
    fn no_interleaving_loses_doubles_or_turns_back_a_change(
        seed: u64,
        readers in 1..5_usize,
        bounds in prop::collection::btree_set(0..24_u32, 0..6),
    ) {
        run(seed, readers, &bounds.into_iter().collect::<Vec<_>>(), 0);
    }

    /// The same over checkpoints in either part and restores of them at other parallelisms.
    #[test]
    fn a_restore_in_either_part_goes_on_where_it_was(
        seed: u64,
        readers in 1..5_usize,
        bounds in prop::collection::btree_set(0..24_u32, 0..6),
    ) {
        run(seed, readers, &bounds.into_iter().collect::<Vec<_>>(), 6);
    }
}

/// The worlds above would show nothing if they never crashed behind a checkpoint.
#[test]
fn worlds_crash_behind_checkpoints() {
    let sims: Vec<Sim> = (0..40).map(|seed| run(seed, 3, &[5, 12, 18], 6)).collect();
    assert!(sims.iter().map(|sim| sim.crashes).sum::<u32>() > 40);
    assert!(sims.iter().map(|sim| sim.checkpoints).sum::<u32>() > 40);
}
