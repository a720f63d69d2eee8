//! SIGTERM and Ctrl-C: the program ends behind a final checkpoint, or says that there is none.

use std::path::Path;
use std::process::Command;

use crate::program::{ALL, HISTORY, HOME, Home, run};
use crate::support::wait_for;

const NAME: &str = "signals::a_program_that_gets_a_signal_ends_with_a_final_checkpoint";

/// Runs to `at`, gets the signal there, and says how it ended.
fn signalled_at(home: &Home, at: i64, signal: &str) -> String {
    let mut program = home.start(NAME);
    if at > HISTORY {
        // Behind the drain: a row is visible when a checkpoint has covered it.
        home.comes_to(1_100);
        wait_for("the history", || home.rows().len() >= 1_000);
    }
    home.comes_to(at);
    let pid = program.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    assert!(program.wait().unwrap().success(), "it ends by itself");
    home.ended().0
}

/// In live mode the final checkpoint covers all that was read: the next run reads the rest, and the
/// rest alone. In mixed-mode backlog there is none, which is said.
#[test]
fn a_program_that_gets_a_signal_ends_with_a_final_checkpoint() {
    if let Some(home) = std::env::var_os(HOME) {
        return run(Path::new(&home), false);
    }
    for signal in ["-TERM", "-INT"] {
        let home = Home::new();
        let ended = signalled_at(&home, 900, signal);
        assert!(
            ended.contains("without a final checkpoint") && ended.contains("backlog"),
            "{ended}"
        );
        assert_eq!(home.rows(), []);
        let ended = signalled_at(&home, 2_000, signal);
        assert!(ended.contains("was suspended with checkpoint"), "{ended}");
        assert_eq!(home.rows().len(), 2_000, "what the checkpoint covers is committed");
        home.passes_all();
        assert!(home.start(NAME).wait().unwrap().success());
        home.check();
        assert_eq!(home.ended(), ("finished".to_owned(), u64::try_from(ALL).unwrap() - 2_000));
    }
}
