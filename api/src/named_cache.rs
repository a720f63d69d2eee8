//! Named caches: kept between runs of the program (`execution.cache.dir`).
//!
//! A name stands for one data set in that directory. Before each job its fingerprint is taken anew; a
//! cache of another one is given up, and the job's report says what has changed.

use std::path::Path;

use element::option_table::{CACHE_DIR, CACHE_SOURCE_IDENTITY};
use element::{Configuration, DataSetId, Record, Schema};
use runtime::cluster::{DataSets, Deletion, NamedCache, Shelf};
use runtime::error::JobError;
use runtime::report::chain_of;

use crate::cached_data_stream::CachedDataStream;
use crate::environment::Graph;
use crate::fingerprint::fingerprint;
use crate::{DataStream, StreamExecutionEnvironment};

impl<T: Record + Clone> DataStream<T> {
    /// Keeps this stream's records as [`cache`](Self::cache) does, and beyond the end of the program:
    /// in `execution.cache.dir`, under this name.
    ///
    /// A later run of the program reads them if they were made of the same: the binary, the steps above,
    /// the schema, and the files of the sources by path, size and modification time (or their content,
    /// `execution.cache.source-identity`). Otherwise they are made anew, and the report says why. What a
    /// program reads past its sources is not noticed: its arguments and environment, a clock, a
    /// service, records of a collection or generator that are not in the binary. Such a cache is to be
    /// given up by [`invalidate`](CachedDataStream::invalidate). It stays when the environment is closed.
    /// One program at a time should use a name.
    ///
    /// # Errors
    ///
    /// [`JobError::NamedCache`] if the stream is cached already, or the name is taken in this
    /// environment.
    pub fn cache_named(self, name: &str) -> Result<CachedDataStream<T>, JobError> {
        let id = DataSetId::named(name);
        let refused = |reason: &str| {
            Err(JobError::NamedCache { name: name.to_owned(), reason: reason.to_owned() })
        };
        if self.env.data_sets().is_named(id) {
            return refused("another stream of this environment has the name");
        }
        let cached = self.cache_as(id);
        if cached.data_set() != id {
            return refused("the stream is cached already");
        }
        cached.env().data_sets().name(id, name, &Schema::of::<T>().to_string());
        Ok(cached)
    }
}

impl StreamExecutionEnvironment {
    /// The named caches in `execution.cache.dir`, by name, those of other programs included.
    ///
    /// # Errors
    ///
    /// [`JobError::NamedCache`] if there is no such directory to be read.
    pub fn named_caches(&self) -> Result<Vec<NamedCache>, JobError> {
        let directory = directory_of(&self.inner.config.lock(), "")?;
        let listed = Shelf::new(Path::new(&directory)).list();
        listed.map_err(|error| unusable("", &error))
    }

    /// Removes a named cache with every file of it; whether there was one.
    ///
    /// # Errors
    ///
    /// [`JobError::NamedCache`] if a file cannot be removed.
    pub fn free_named_cache(&self, name: &str) -> Result<bool, JobError> {
        let directory = directory_of(&self.inner.config.lock(), name)?;
        let (data_sets, id) = (self.data_sets(), DataSetId::named(name));
        let was_kept = data_sets.is_complete(id);
        if let Deletion::Failed(failures) = data_sets.wait(data_sets.delete(id)) {
            let reasons: Vec<String> = failures.iter().map(ToString::to_string).collect();
            let reason = reasons.join("; ");
            return Err(JobError::NamedCache { name: name.to_owned(), reason });
        }
        let freed = Shelf::new(Path::new(&directory)).free(name);
        freed.map(|freed| freed || was_kept).map_err(|error| unusable(name, &error))
    }
}

fn unusable(name: &str, error: &dyn std::error::Error) -> JobError {
    JobError::NamedCache { name: name.to_owned(), reason: chain_of(error) }
}

fn directory_of(config: &Configuration, name: &str) -> Result<String, JobError> {
    config.get(&CACHE_DIR)?.ok_or_else(|| JobError::NamedCache {
        name: name.to_owned(),
        reason: format!("option `{}` is not set", CACHE_DIR.key),
    })
}

/// Holds every named cache of a program against what it would be made of now.
///
/// # Errors
///
/// [`JobError::NamedCache`] if that cannot be told.
pub(crate) fn compare_named(
    graph: &Graph,
    config: &Configuration,
    data_sets: &DataSets,
) -> Result<(), JobError> {
    for mark in graph.marks().iter().filter(|mark| mark.data_set.is_named()) {
        let Some((name, schema)) = data_sets.name_of(mark.data_set) else { continue };
        let shelf = data_sets.shelf(Path::new(&directory_of(config, &name)?));
        let by = config.get(&CACHE_SOURCE_IDENTITY)?;
        let now = fingerprint(graph, (mark.node, &mark.output), &name, &schema, by)?;
        data_sets.compare(mark.data_set, &shelf, now);
    }
    Ok(())
}
