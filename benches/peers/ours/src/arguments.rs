//! The command line: a job, then `key=value`.

use std::collections::BTreeMap;

use slackwater::{Error, Result};

/// A job and its options.
#[derive(Debug)]
pub(crate) struct Arguments {
    job: String,
    options: BTreeMap<String, String>,
}

impl Arguments {
    /// Reads them; a word without `=` is set to `true`.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let job = words.next().ok_or_else(|| Error::msg("usage: ours JOB [k=v ...]"))?;
        let pair = |word: String| match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), value.to_owned()),
            None => (word, "true".to_owned()),
        };
        Ok(Self { job, options: words.map(pair).collect() })
    }

    /// The job.
    pub(crate) fn job(&self) -> &str {
        &self.job
    }

    /// An option, if it is set.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    /// Whether an option is set to `true`.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.text(key) == Some("true")
    }

    /// A number, if it is set; underscores are left out.
    pub(crate) fn maybe_number(&self, key: &str) -> Result<Option<u64>> {
        let Some(text) = self.text(key) else { return Ok(None) };
        text.replace('_', "").parse().map(Some).map_err(|_| refused(key, text))
    }

    /// A number, or what it usually is.
    pub(crate) fn number(&self, key: &str, usual: u64) -> Result<u64> {
        Ok(self.maybe_number(key)?.unwrap_or(usual))
    }
}

/// The error for a value that an option does not take.
pub(crate) fn refused(key: &str, value: &str) -> Error {
    Error::msg(format!("{key} cannot be `{value}`"))
}
