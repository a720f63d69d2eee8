//! [`Results`]: the lines of `results.jsonl`, and curves through them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::{Curve, Result};

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Line(Value);

impl Line {
    /// A field that is a number.
    pub(crate) fn number(&self, field: &str) -> Option<f64> {
        self.0.get(field)?.as_f64()
    }

    /// A number among the options of its command.
    pub(crate) fn option(&self, key: &str) -> Option<f64> {
        let words = self.text("args").split_whitespace();
        let mut values = words.filter_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        values.next()?.parse().ok()
    }

    fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn pairs(&self, field: &str) -> Option<Vec<(f64, f64)>> {
        let pairs = self.0.get(field)?.as_array()?;
        pairs.iter().map(|pair| Some((pair.get(0)?.as_f64()?, pair.get(1)?.as_f64()?))).collect()
    }
}

/// All runs, in the order in which they ran.
#[derive(Debug)]
pub(crate) struct Results(Vec<Line>);

impl Results {
    /// Reads a file of one JSON object a line.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file)?;
        let lines = text.lines().map(|line| Ok(Line(serde_json::from_str(line)?)));
        lines.collect::<Result<Vec<_>>>().map(Self)
    }

    /// One curve a program over the runs of some groups: the medians of `y` by `x`.
    pub(crate) fn curves(
        &self,
        groups: &[&str],
        x: impl Fn(&Line) -> Option<f64>,
        y: impl Fn(&Line) -> Option<f64>,
    ) -> Vec<Curve> {
        let mut by_name = BTreeMap::<&str, Vec<(f64, f64)>>::new();
        for line in self.0.iter().filter(|line| groups.contains(&line.text("group"))) {
            if let (Some(x), Some(y)) = (x(line), y(line)) {
                by_name.entry(line.text("peer")).or_default().push((x, y));
            }
        }
        by_name.into_iter().map(|(name, points)| (name.to_owned(), medians(points))).collect()
    }

    /// The series of the last run of each program in a group.
    pub(crate) fn series(&self, group: &str, field: &str) -> Vec<Curve> {
        let mut by_name = BTreeMap::<&str, Vec<(f64, f64)>>::new();
        for line in self.0.iter().filter(|line| line.text("group") == group) {
            if let Some(pairs) = line.pairs(field) {
                by_name.insert(line.text("peer"), pairs);
            }
        }
        by_name.into_iter().map(|(name, points)| (name.to_owned(), points)).collect()
    }
}

/// The median of each x, by x.
fn medians(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let of_one = points.chunk_by(|a, b| a.0 == b.0);
    of_one.filter_map(|same| same.get(same.len() / 2).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(peer: &str, k: u64, rate: u64) -> Line {
        Line(serde_json::json!({
            "group": "j1", "peer": peer, "keys": k, "records_per_s": rate, "args": "ours J1 p=4 k=7",
        }))
    }

    #[test]
    fn a_curve_runs_through_the_medians_of_each_program() {
        let rates = [("a", 1, 30), ("a", 1, 10), ("a", 1, 20), ("a", 2, 5), ("b", 1, 7)];
        let results = Results(rates.map(|(peer, k, rate)| line(peer, k, rate)).to_vec());
        let curves =
            results.curves(&["j1"], |line| line.number("keys"), |l| l.number("records_per_s"));
        let expected =
            [("a".to_owned(), vec![(1.0, 20.0), (2.0, 5.0)]), ("b".to_owned(), vec![(1.0, 7.0)])];
        assert_eq!(curves, expected);
        assert_eq!(results.curves(&["j2"], |_| Some(1.0), |_| Some(1.0)), []);
    }

    #[test]
    fn an_option_is_read_from_the_command() {
        assert_eq!(line("a", 1, 1).option("p"), Some(4.0));
        assert_eq!(line("a", 1, 1).option("q"), None);
    }
}
