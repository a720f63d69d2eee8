//! What the command line says.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use slackwater::ByteSize;
use slackwater::options::StateBackendKind;

/// How the job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Record by record, history too.
    Stream,
    /// The history alone, as a batch job.
    Batch,
    /// The history sorted or combined, then live, on one state (FLIP-327).
    Mixed,
}

/// Where state lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// In memory.
    Heap,
    /// On disk.
    Disk,
    /// In RocksDB, where it is built in.
    Rocksdb,
}

impl State {
    /// The option's value.
    pub(crate) fn backend(self) -> StateBackendKind {
        match self {
            Self::Heap => StateBackendKind::Heap,
            Self::Disk => StateBackendKind::Disk,
            Self::Rocksdb => StateBackendKind::Rocksdb,
        }
    }
}

/// Flight departures per carrier and route: flights, mean and worst delay, running.
#[derive(Clone, Debug, Parser)]
#[command(name = "flights", version)]
pub(crate) struct Arguments {
    /// Short for --mode.
    #[arg(value_enum, value_name = "MODE", conflicts_with = "mode")]
    pub(crate) short_mode: Option<Mode>,
    /// How to run: stream, batch or mixed.
    #[arg(long, value_enum, default_value = "mixed")]
    pub(crate) mode: Mode,
    /// A CSV file of departures as the history, instead of generated ones.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Generated departures of the history.
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) rows: u64,
    /// Distinct routes among the generated departures.
    #[arg(long, default_value_t = 4_000)]
    pub(crate) keys: u64,
    /// Seconds of live departures behind the history, 50,000 a second [default: 5; 0 with --input].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) live: Option<u64>,
    /// Where state lives.
    #[arg(long, value_enum, default_value = "disk")]
    pub(crate) state: State,
    /// Subtasks of each operator [default: the cores].
    #[arg(long)]
    pub(crate) parallelism: Option<u32>,
    /// Memory of each sorted input, such as 64mb.
    #[arg(long, value_parser = parse_size)]
    pub(crate) memory: Option<ByteSize>,
    /// Keep checkpoints in this directory; the job also ends with one when it is interrupted.
    #[arg(long, value_name = "DIR", conflicts_with = "compare")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// Go on from the newest of the checkpoints, or from the beginning if there is none.
    #[arg(long, requires = "checkpoints")]
    pub(crate) resume: bool,
    /// Other options by key, such as `-o io.tmp.dirs=/fast`.
    #[arg(short = 'o', long = "option", value_name = "KEY=VALUE")]
    pub(crate) options: Vec<String>,
    /// Run the history as stream and as mixed, and compare.
    #[arg(long)]
    pub(crate) compare: bool,
    /// Write results and report for machines.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

fn parse_size(text: &str) -> Result<ByteSize, String> {
    <ByteSize as slackwater::OptionValue>::parse(text)
        .ok_or_else(|| format!("`{text}` is no size such as 64mb"))
}

impl Arguments {
    /// Reads the command line; `None` if it only asked for help.
    pub(crate) fn parse() -> Result<Option<Self>> {
        let mut arguments = match <Self as Parser>::try_parse() {
            Ok(arguments) => arguments,
            Err(asked) if !asked.use_stderr() => {
                asked.print()?;
                return Ok(None);
            }
            Err(wrong) => {
                let text = wrong.render().to_string();
                let first = text.split("\n\nUsage").next().unwrap_or(&text);
                bail!(
                    "{}",
                    first
                        .trim_start_matches("error: ")
                        .split_whitespace()
                        .collect::<Vec<_>>()
                        .join(" ")
                );
            }
        };
        arguments.mode = arguments.short_mode.unwrap_or(arguments.mode);
        if arguments.keys == 0 {
            bail!("--keys must be at least 1");
        }
        Ok(Some(arguments))
    }

    /// Seconds of live departures.
    pub(crate) fn live_seconds(&self) -> u64 {
        self.live.unwrap_or(if self.input.is_some() { 0 } else { 5 })
    }
}
