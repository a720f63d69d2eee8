//! What a person sees: a bar while the history is read, tables and a report at the end.

use std::time::Instant;

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

use crate::departure::{Delays, Route};
use crate::job::Run;

/// Progress while the job runs.
pub(crate) struct Display {
    bar: ProgressBar,
    begun: Instant,
}

impl Display {
    /// A bar over the history, if its rows are known.
    pub(crate) fn new(expected: Option<u64>) -> Self {
        let (bar, template) = match expected {
            Some(rows) => (
                ProgressBar::new(rows),
                "history {bar:32} {human_pos} of {human_len} rows, {per_sec}, {eta} left",
            ),
            None => (ProgressBar::new_spinner(), "history {spinner} {human_pos} rows, {per_sec}"),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, begun: Instant::now() }
    }

    /// Rows read so far.
    pub(crate) fn rows(&self, rows: u64) {
        self.bar.set_position(rows);
    }

    /// The source has left its backlog.
    pub(crate) fn tide_turns(&mut self, rows: u64) {
        let seconds = self.begun.elapsed().as_secs_f64();
        self.bar.finish_and_clear();
        println!("the tide turns: {} rows in {seconds:.2} s, now live", HumanCount(rows));
        self.bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("live {spinner} {human_pos} rows") {
            self.bar.set_style(style);
        }
    }

    /// The job has ended.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Tables of routes, and what the engine did.
pub(crate) fn summary(run: &Run) {
    table("busiest routes", &run.routes, |delays| Some(delays.flights as f64));
    table("worst routes (of those with 20 flights or more)", &run.routes, |delays| {
        delays.mean().filter(|_| delays.flights >= 20)
    });
    println!("\nreport");
    for (name, phase) in [("history", &run.backlog), ("live", &run.live)] {
        println!(
            "  {name:<8} {:>12} rows in {:>7.2} s",
            HumanCount(phase.rows).to_string(),
            phase.seconds
        );
    }
    for line in run.report.backlog().lines() {
        println!("  {line}");
    }
    println!("  peak memory {}", HumanBytes(run.report.peak_memory));
    println!("  {} checkpoints", run.report.checkpoints.len());
    for failure in &run.report.recovered {
        println!("  recovered from: {failure}");
    }
}

/// The ten routes with the greatest measure.
fn table<'a>(
    title: &str,
    routes: impl IntoIterator<Item = (&'a Route, &'a Delays)>,
    measure: impl Fn(&Delays) -> Option<f64>,
) {
    let mut rows: Vec<_> = routes
        .into_iter()
        .filter_map(|(route, delays)| Some((measure(delays)?, route, delays)))
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    println!("\n{title}");
    println!("  carrier origin dest     flights   mean delay  worst delay");
    for (_, route, delays) in rows.iter().take(10) {
        println!(
            "  {:<7} {:<6} {:<6} {:>9} {:>8} min {:>8} min",
            route.carrier,
            route.origin,
            route.dest,
            delays.flights,
            delays.mean().map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}")),
            delays.worst.map_or_else(|| "-".to_owned(), |worst| worst.to_string()),
        );
    }
}
