//! [`Collected`]: the records of a stream, in the program that ran the job.

use std::fmt;
use std::ops::Deref;

use crate::JobReport;

/// Records that a job collected, with the job's report.
#[derive(Clone)]
pub struct Collected<T> {
    records: Vec<T>,
    report: JobReport,
}

impl<T> Collected<T> {
    pub(crate) fn new(records: Vec<T>, report: JobReport) -> Self {
        Self { records, report }
    }

    /// The job's report.
    #[must_use]
    pub fn report(&self) -> &JobReport {
        &self.report
    }

    /// The records.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.records
    }

    /// The records in order: a sorted copy of them.
    #[must_use]
    pub fn sorted(&self) -> Vec<T>
    where
        T: Clone + Ord,
    {
        let mut records = self.records.clone();
        records.sort();
        records
    }
}

impl<K: Clone + Ord, V: Clone + Ord> Collected<(K, V)> {
    /// The `n` pairs with the greatest values, greatest first; equal ones by key.
    #[must_use]
    pub fn top(&self, n: usize) -> Vec<(K, V)> {
        let mut pairs = self.records.clone();
        pairs.sort_by(|(k, v), (other_k, other_v)| other_v.cmp(v).then_with(|| k.cmp(other_k)));
        pairs.truncate(n);
        pairs
    }
}

/// As the records alone, so that a failed assertion is read at a glance.
impl<T: fmt::Debug> fmt::Debug for Collected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.records.fmt(f)
    }
}

impl<T> Deref for Collected<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.records
    }
}

impl<T> IntoIterator for Collected<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.records.into_iter()
    }
}

impl<T: PartialEq<U>, U, const N: usize> PartialEq<[U; N]> for Collected<T> {
    fn eq(&self, other: &[U; N]) -> bool {
        self.records == *other
    }
}

impl<T: PartialEq<U>, U> PartialEq<Vec<U>> for Collected<T> {
    fn eq(&self, other: &Vec<U>) -> bool {
        self.records == *other
    }
}
