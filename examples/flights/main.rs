//! The main job: flight departures, history at batch speed, then live, on one state.
//!
//! Per carrier and route it keeps the number of flights and the mean and worst delay. Run it without
//! arguments for ten million generated departures and five live seconds; `--help` lists the rest.

mod arguments;
mod departure;
mod display;
mod job;
mod results;

use std::process::ExitCode;

use anyhow::Result;
use slackwater::JobError;

use arguments::{Arguments, Mode};
use job::Run;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // What was asked for is no failure.
        Err(error) if matches!(error.downcast_ref(), Some(JobError::Suspended { .. })) => {
            eprintln!("flights: {}; --resume goes on", paragraph(&error));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("flights: {}", paragraph(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes as one paragraph.
fn paragraph(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn run() -> Result<()> {
    let Some(arguments) = Arguments::parse()? else { return Ok(()) };
    if arguments.compare {
        return compare(&arguments);
    }
    let run = job::run(&arguments, arguments.mode)?;
    display::summary(&run);
    match &arguments.json {
        Some(file) => results::write_json(&run, file),
        None => Ok(()),
    }
}

/// Runs the history as a stream and then mixed, and says how they compare.
fn compare(arguments: &Arguments) -> Result<()> {
    let history = Arguments { live: Some(0), ..arguments.clone() };
    let stream = job::run(&history, Mode::Stream)?;
    let mixed = job::run(&history, Mode::Mixed)?;
    anyhow::ensure!(stream.routes == mixed.routes, "stream and mixed mode do not agree");
    display::summary(&mixed);
    let rate = |run: &Run| run.backlog.rows as f64 / run.backlog.seconds;
    println!("stream {:>12.0} rows/s", rate(&stream));
    println!("mixed  {:>12.0} rows/s", rate(&mixed));
    println!("mixed is {:.1} times as fast as stream", rate(&mixed) / rate(&stream));
    Ok(())
}
