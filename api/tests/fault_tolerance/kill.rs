//! `kill -9` of the whole program, twice, at several places; the next run goes on from the last
//! checkpoint, and its files have every row once.

use std::path::Path;

use crate::program::{HOME, Home, run};

const NAME: &str = "kill::a_program_killed_twice_anywhere_loses_and_doubles_nothing";

/// Runs to `at` and is killed there.
fn killed_at(home: &Home, at: i64) {
    let mut program = home.start(NAME);
    home.comes_to(at);
    program.kill().unwrap();
    program.wait().unwrap();
}

/// F4, F6, tK15: killed in backlog, before the switch and live, in pairs.
#[test]
fn a_program_killed_twice_anywhere_loses_and_doubles_nothing() {
    if let Some(home) = std::env::var_os(HOME) {
        return run(Path::new(&home), false);
    }
    for (first, second) in [(10, 900), (900, 1_100), (1_100, 2_000), (2_000, 2_990), (10, 2_990)] {
        let home = Home::new();
        killed_at(&home, first);
        killed_at(&home, second);
        home.passes_all();
        assert!(home.start(NAME).wait().unwrap().success());
        home.check();
    }
}
