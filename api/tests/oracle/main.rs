//! The three-way oracle: random programs agree as BATCH, as STREAMING and mixed, in the sense of
//! decision D17.
//!
//! A seed makes data, a program and four ways to run it (batch, streaming, mixed with sort, mixed with
//! auto), each with a parallelism, a state store, a sort budget and sometimes a crash of its own. What
//! differs by D17 is taken out: rolling emission by keeping each key's greatest value, which is its
//! last, for all rolling values only grow.
//!
//! `ORACLE_FIRST_SEED` and `ORACLE_COUNT` run more seeds than the few of a plain test run; a seed that
//! fails is printed and becomes a row of [`SEEDS_THAT_FAILED`]. With the feature `sim`, `simulated` does
//! the same in one thread, in an order that the seed gives.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod data;
mod program;
mod run;
#[cfg(feature = "sim")]
mod simulated;
#[cfg(feature = "sim")]
mod windows;

use data::Rng;

/// Seeds that have found a fault once. 9: a failed task counted as ended, so its checkpoint became
/// whole. 1353: the end of a task overtook its acknowledgement, with the same outcome.
/// 1306: a flag that came behind the end of a source was sent on.
const SEEDS_THAT_FAILED: &[u64] = &[9, 1306, 1353];

/// Seeds of a plain test run.
const COUNT: u64 = 16;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn check(seed: u64) {
    let mut rng = Rng::new(seed);
    let data = data::Data::random(&mut rng);
    let program = program::Program::random(&mut rng);
    let mut expected: Option<(String, Vec<(u32, i64)>)> = None;
    for way in run::ways(&mut rng) {
        let rows = run::run(&data, &program, &way);
        let description = format!("{way:?}");
        match &expected {
            None => expected = Some((description, rows)),
            Some((first, expected)) => assert!(
                *expected == rows,
                "seed {seed}: {program:?}\n{first}\n  gives {expected:?}\n{description}\n  gives {rows:?}"
            ),
        }
    }
}

/// D17, M13, M28, T1: every mode gives the same results.
#[test]
fn random_programs_agree_in_all_modes() {
    let (first, count) = (number("ORACLE_FIRST_SEED", 1), number("ORACLE_COUNT", COUNT));
    for seed in SEEDS_THAT_FAILED.iter().copied().chain(first..first + count) {
        let checked = std::panic::catch_unwind(|| check(seed));
        assert!(checked.is_ok(), "seed {seed} failed: ORACLE_FIRST_SEED={seed} ORACLE_COUNT=1");
    }
}
