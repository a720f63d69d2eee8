//! [`StreamExecutionEnvironment`]: where a program is built and its jobs run.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use element::{Clock, ConfigOption, Configuration, NodeId, OptionValue};
use graph::{PlanSettings, Transformation, TransformationGraph};
use parking_lot::{Mutex, MutexGuard};
use runtime::cluster::{DataSetListing, DataSets};
use runtime::error::JobError;
use runtime::factory::{EdgePayload, ExecutionPlan, NodePayload};
use runtime::nodes::SourceNode;
use runtime::session::{Session, SessionOptions, cores};
use shuffle::ShuffleService;
use state::ByteStoreFactory;

use crate::named_cache::compare_named;
use crate::upstream::Upstream;
use crate::{
    Cluster, CollectionSource, ConfigError, DataStream, GeneratorSource, JobHandle, JobReport,
    Source, Timestamp, WatermarkStrategy,
};

pub(crate) type Graph = TransformationGraph<NodePayload, EdgePayload>;

/// Builds an environment with layers of the user's own.
#[derive(Default)]
pub struct EnvironmentBuilder {
    options: SessionOptions,
}

impl EnvironmentBuilder {
    /// Options, instead of none.
    #[must_use]
    pub fn config(mut self, config: Configuration) -> Self {
        self.options.config = config;
        self
    }

    /// Sets one option.
    #[must_use]
    pub fn set<T: OptionValue>(mut self, option: &ConfigOption<T>, value: T) -> Self {
        self.options.config.set(option, value);
        self
    }

    /// Keyed state in a store of the user's, opened for each subtask and attempt.
    #[must_use]
    pub fn state_store(mut self, factory: impl ByteStoreFactory + 'static) -> Self {
        self.options.state_store = Some(Arc::new(factory));
        self
    }

    /// Blocking exchanges through a shuffle of the user's.
    #[must_use]
    pub fn shuffle(mut self, service: impl ShuffleService + 'static) -> Self {
        self.options.shuffle = Some(Arc::new(service));
        self
    }

    /// Another clock than the system's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.options.clock = Some(Arc::new(clock));
        self
    }

    /// Everything in one thread, in the order of a simulation's seed, on its clock, with files in
    /// memory. Jobs go on while somebody waits for them.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn simulation(mut self, simulation: &crate::sim::Simulation) -> Self {
        self.options.clock = Some(Arc::new(simulation.clock().clone()));
        self.options.executor = runtime::executor::Executor::Simulated(simulation.clone());
        self
    }

    /// The environment. Nothing is started before its first job.
    #[must_use]
    pub fn build(self) -> StreamExecutionEnvironment {
        StreamExecutionEnvironment {
            inner: Arc::new(Inner {
                config: Mutex::new(self.options.config.clone()),
                options: self.options,
                graph: Arc::new(Mutex::new(Graph::new())),
                sinks: Mutex::new(Vec::new()),
                session: OnceLock::new(),
                opening: Mutex::new(()),
                closed: Mutex::new(false),
            }),
        }
    }
}

pub(crate) struct Inner {
    pub(crate) config: Mutex<Configuration>,
    options: SessionOptions,
    pub(crate) graph: Arc<Mutex<Graph>>,
    sinks: Mutex<Vec<NodeId>>,
    pub(crate) session: OnceLock<Arc<Session>>,
    opening: Mutex<()>,
    closed: Mutex<bool>,
}

/// Where a program is built and its jobs run. Cheap to clone: clones are the same environment.
///
/// Jobs run on threads of this process. Closing it, or dropping its last clone, ends what runs and
/// removes what was kept.
#[derive(Clone)]
pub struct StreamExecutionEnvironment {
    pub(crate) inner: Arc<Inner>,
}

impl Default for StreamExecutionEnvironment {
    fn default() -> Self {
        Self::new()
    }
}

/// Sets options of an environment, one behind the other.
pub struct EnvironmentConfig<'a> {
    config: MutexGuard<'a, Configuration>,
}

impl EnvironmentConfig<'_> {
    /// Sets an option for all jobs from here on.
    pub fn set<T: OptionValue>(mut self, option: &ConfigOption<T>, value: T) -> Self {
        self.config.set(option, value);
        self
    }

    /// Sets an option by its key, as files do.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], naming the key.
    pub fn set_text(mut self, key: &str, value: &str) -> Result<Self, ConfigError> {
        self.config.set_text(key, value)?;
        Ok(self)
    }

    /// The value of an option.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if what was set does not parse.
    pub fn get<T: OptionValue>(&self, option: &ConfigOption<T>) -> Result<T, ConfigError> {
        self.config.get(option)
    }
}

impl StreamExecutionEnvironment {
    /// An environment with every option at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// An environment with options from `slackwater.toml`, if there is one in the working directory
    /// (or where `SLACKWATER_CONF_FILE` says), and then from environment variables.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], naming the file or the key.
    pub fn from_env() -> Result<Self, ConfigError> {
        let mut config = Configuration::new();
        match std::env::var_os("SLACKWATER_CONF_FILE") {
            Some(file) => {
                config.merge_file(Path::new(&file))?;
            }
            None if Path::new("slackwater.toml").exists() => {
                config.merge_file(Path::new("slackwater.toml"))?;
            }
            None => {}
        }
        config.merge_environment(std::env::vars())?;
        Ok(Self::builder().config(config).build())
    }

    /// Builds an environment with layers of the user's own.
    #[must_use]
    pub fn builder() -> EnvironmentBuilder {
        EnvironmentBuilder::default()
    }

    /// The options, to set or read. Holds a lock: not to be kept.
    pub fn config(&self) -> EnvironmentConfig<'_> {
        EnvironmentConfig { config: self.inner.config.lock() }
    }

    /// Sets one option for all jobs from here on.
    pub fn set<T: OptionValue>(&self, option: &ConfigOption<T>, value: T) -> &Self {
        self.inner.config.lock().set(option, value);
        self
    }

    /// Appends a step to the program.
    pub(crate) fn add(&self, name: &str, inputs: &[&[Upstream]], payload: NodePayload) -> NodeId {
        let inputs =
            inputs.iter().map(|edges| edges.iter().map(Upstream::input).collect()).collect();
        self.inner.graph.lock().add(Transformation::new(name, inputs, payload))
    }

    pub(crate) fn add_sink(&self, sink: NodeId) {
        self.inner.sinks.lock().push(sink);
    }

    /// A source, with its event time.
    pub fn from_source<S: Source>(
        &self,
        source: S,
        strategy: WatermarkStrategy<S::Item>,
        name: &str,
    ) -> DataStream<S::Item> {
        let payload = NodePayload::new(SourceNode::new(Arc::new(source), strategy));
        let node = self.add(name, &[], payload);
        DataStream::of(self, Upstream::main::<S::Item>(node))
    }

    /// Records that the program holds, in order at parallelism 1.
    pub fn from_collection<T>(&self, records: impl IntoIterator<Item = T>) -> DataStream<T>
    where
        T: Clone + Send + Sync + 'static,
    {
        let source = CollectionSource::new(records);
        self.from_source(source, WatermarkStrategy::none(), "collection")
    }

    /// Records with timestamps, in order at parallelism 1; event time ends with them.
    pub fn from_timestamped<T>(
        &self,
        records: impl IntoIterator<Item = (T, Timestamp)>,
    ) -> DataStream<T>
    where
        T: Clone + Send + Sync + 'static,
    {
        let source = CollectionSource::stamped(records);
        self.from_source(source, WatermarkStrategy::monotonous(), "collection")
    }

    /// Records of an iterator; it is made anew by `make` for each attempt, and read by one subtask.
    pub fn from_iter<I>(&self, make: impl Fn() -> I + Send + Sync + 'static) -> DataStream<I::Item>
    where
        I: IntoIterator,
        I::IntoIter: Send + 'static,
        I::Item: Send + 'static,
    {
        let source = runtime::source::iterator::IteratorSource::new(make);
        self.from_source(source, WatermarkStrategy::none(), "iterator").parallelism(1)
    }

    /// Records 0 to `count` of a function of their number.
    pub fn generate<T, F>(&self, count: u64, make: F) -> DataStream<T>
    where
        T: Send + 'static,
        F: Fn(u64) -> T + Send + Sync + 'static,
    {
        let source = GeneratorSource::bounded(count, move |i| (make(i), None));
        self.from_source(source, WatermarkStrategy::none(), "generator")
    }

    /// The session, started by its first job.
    pub(crate) fn session(&self) -> Result<Arc<Session>, JobError> {
        if *self.inner.closed.lock() {
            return Err(JobError::Closed);
        }
        let _opening = self.inner.opening.lock();
        if let Some(session) = self.inner.session.get() {
            return Ok(Arc::clone(session));
        }
        let mut options = self.inner.options.clone();
        options.config = self.inner.config.lock().clone();
        let session = Session::open(options)?;
        Ok(Arc::clone(self.inner.session.get_or_init(|| session)))
    }

    /// Plans a job that ends in `sinks`.
    pub(crate) fn plan(&self, sinks: &[NodeId]) -> Result<ExecutionPlan, JobError> {
        let config = self.inner.config.lock().clone();
        plan_of(&self.inner.graph, &config, self.data_sets(), sinks)
    }

    /// The cached results of this environment.
    pub(crate) fn data_sets(&self) -> &Arc<DataSets> {
        &self.inner.options.data_sets
    }

    /// What is kept of cached streams, as the workers report it; by id.
    #[must_use]
    pub fn datasets(&self) -> Vec<DataSetListing> {
        self.data_sets().list()
    }

    /// The workers that run this environment's jobs, for tests of what happens without one of them.
    ///
    /// # Errors
    ///
    /// [`JobError`] if they cannot be started.
    pub fn cluster(&self) -> Result<Cluster, JobError> {
        Ok(Cluster::new(self.session()?, Arc::clone(self.data_sets())))
    }

    /// The plan of all sinks declared since the last job, as text, with the reasons of its decisions.
    ///
    /// # Errors
    ///
    /// [`JobError::Plan`] if the program is not valid.
    pub fn explain(&self) -> Result<String, JobError> {
        let sinks = self.inner.sinks.lock().clone();
        Ok(self.plan(&sinks)?.explain())
    }

    /// The same plan as a Mermaid flowchart: a box for each vertex, a frame for each region, thick
    /// arrows for blocking exchanges.
    ///
    /// # Errors
    ///
    /// As [`explain`](Self::explain).
    pub fn explain_mermaid(&self) -> Result<String, JobError> {
        let sinks = self.inner.sinks.lock().clone();
        Ok(self.plan(&sinks)?.to_mermaid())
    }

    /// The same plan as a Graphviz digraph.
    ///
    /// # Errors
    ///
    /// As [`explain`](Self::explain).
    pub fn explain_dot(&self) -> Result<String, JobError> {
        let sinks = self.inner.sinks.lock().clone();
        Ok(self.plan(&sinks)?.to_dot())
    }

    /// Runs the job of all sinks declared since the last one, and waits for its end.
    ///
    /// # Errors
    ///
    /// [`JobError`]: what could not be planned, started or finished, by name.
    pub fn execute(&self, name: &str) -> Result<JobReport, JobError> {
        self.submit(name)?.wait()
    }

    /// Starts the job of all sinks declared since the last one.
    ///
    /// # Errors
    ///
    /// [`JobError`]: what could not be planned or started, by name.
    pub fn submit(&self, name: &str) -> Result<JobHandle, JobError> {
        let sinks = std::mem::take(&mut *self.inner.sinks.lock());
        self.submit_sinks(name, &sinks)
    }

    pub(crate) fn submit_sinks(&self, name: &str, sinks: &[NodeId]) -> Result<JobHandle, JobError> {
        let session = self.session()?;
        let plan = self.plan(sinks)?;
        let config = self.inner.config.lock().clone();
        let restore = config.get(&element::option_table::SAVEPOINT_PATH)?;
        // Not the environment itself: a job must not keep it from being dropped.
        let (graph, data_sets) = (Arc::clone(&self.inner.graph), Arc::clone(self.data_sets()));
        let (again, config_again) = (sinks.to_vec(), config.clone());
        let replan = Box::new(move || plan_of(&graph, &config_again, &data_sets, &again));
        let running =
            session.submit(name, plan, &config, restore.as_deref().map(Path::new), replan)?;
        Ok(JobHandle::new(running))
    }

    /// Ends what runs and removes what was kept. Harmless when done twice; jobs asked for afterwards
    /// are refused by name.
    ///
    /// # Errors
    ///
    /// [`JobError::NotReleased`] with every cached result that could not be removed; all others, and
    /// everything else, are gone (tC16).
    pub fn close(&self) -> Result<(), JobError> {
        *self.inner.closed.lock() = true;
        self.inner.session.get().map_or(Ok(()), |session| session.close())
    }
}

/// Plans a job that ends in `sinks`, with the data sets that are complete now.
fn plan_of(
    graph: &Mutex<Graph>,
    config: &Configuration,
    data_sets: &DataSets,
    sinks: &[NodeId],
) -> Result<ExecutionPlan, JobError> {
    compare_named(&graph.lock(), config, data_sets)?;
    let available = |data_set| data_sets.is_complete(data_set);
    let settings = PlanSettings::from_configuration(config, cores(), &available)?;
    Ok(graph::plan(&graph.lock(), sinks, &settings)?)
}
