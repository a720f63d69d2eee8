//! From a program to what one job needs of it, with everything settled.
//!
//! Steps: walk the whole program and check it; derive uids; walk again with complete data sets cut
//! out; resolve the mode; put readers in place of what is cut; settle parallelisms and
//! partitioners. Left out on purpose: how inputs are treated and who shares a task.

use std::collections::BTreeMap;

use element::NodeId;

use crate::cache_rules::CacheCut;
use crate::reach::reach;
use crate::stream_graph::{CacheOutcome, StreamCache, StreamEdge, StreamGraph, StreamNode};
use crate::uid::Uids;
use crate::{
    Describe, InputEdge, OperatorAttributes, OperatorKind, OutputTag, PlanError, PlanSettings,
    TransformationGraph, mode, validate,
};

/// What the sinks need, settled.
///
/// # Errors
///
/// [`PlanError`], but for what concerns chains and exchanges, which cannot fail.
pub(crate) fn translate<'g, N: Describe, E>(
    graph: &'g TransformationGraph<N, E>,
    sinks: &[NodeId],
    settings: &PlanSettings<'_>,
) -> Result<StreamGraph<'g, N, E>, PlanError> {
    let program = check(graph, sinks)?;
    let cut = CacheCut::new(graph, settings);
    let steps = steps(graph, sinks, &cut)?;
    let (mode, mode_reason) = mode::resolve(
        settings,
        steps.iter().filter_map(|step| match step {
            Step::Run(id) => Some((*id, graph.node(*id)?.name.as_str(), program.attributes(*id)?)),
            Step::Read(_) => None,
        }),
    )?;
    let stream = StreamGraph {
        mode,
        mode_reason,
        nodes: Vec::with_capacity(steps.len()),
        edges: Vec::with_capacity(steps.len()),
        caches: Vec::new(),
    };
    let mut build = Build {
        graph,
        settings,
        program,
        cut,
        running: vec![None; graph.len()],
        readers: BTreeMap::new(),
        stream,
    };
    for step in steps {
        match step {
            Step::Run(id) => build.run(id)?,
            Step::Read(mark) => build.read(mark)?,
        }
    }
    Ok(build.finish())
}

/// What is known of the whole program.
struct Program {
    /// By node; `None` for what no sink needs.
    attributes: Vec<Option<OperatorAttributes>>,
    uids: Uids,
}

impl Program {
    fn attributes(&self, node: NodeId) -> Option<OperatorAttributes> {
        self.attributes.get(node.0 as usize).copied().flatten()
    }
}

/// Walks and checks the whole program; asks each step for its attributes once.
fn check<N: Describe, E>(
    graph: &TransformationGraph<N, E>,
    sinks: &[NodeId],
) -> Result<Program, PlanError> {
    let nodes = reach(graph, sinks, |_| true)?;
    let mut attributes: Vec<Option<OperatorAttributes>> = vec![None; graph.len()];
    for id in &nodes {
        let step = graph.node(*id).ok_or(PlanError::UnknownNode { node: *id })?;
        let own = step.payload.attributes();
        validate::inputs(*id, step, &own)?;
        for edge in step.inputs.iter().flatten() {
            if let (Some(from), Some(said)) =
                (graph.node(edge.from), attributes[edge.from.0 as usize])
            {
                validate::producer(*id, step, &from.name, &said)?;
            }
        }
        attributes[id.0 as usize] = Some(own);
    }
    let uids = Uids::new(graph, &nodes)?;
    Ok(Program { attributes, uids })
}

/// A step of the job. A reader stands where the step whose output it reads would stand, before it:
/// that step may run as well, for another of its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read(usize),
    Run(NodeId),
}

/// The steps of the job in topological order.
fn steps<N, E>(
    graph: &TransformationGraph<N, E>,
    sinks: &[NodeId],
    cut: &CacheCut<'_, N, E>,
) -> Result<Vec<Step>, PlanError> {
    let mut hits = Vec::new();
    let nodes = reach(graph, sinks, |edge| match cut.hit(edge) {
        Some(mark) => {
            hits.push(mark);
            false
        }
        None => true,
    })?;
    hits.sort_unstable();
    hits.dedup();
    let mut steps: Vec<(NodeId, bool, Step)> = Vec::with_capacity(nodes.len() + hits.len());
    steps.extend(hits.into_iter().map(|at| (cut.mark(at).node, false, Step::Read(at))));
    steps.extend(nodes.into_iter().map(|id| (id, true, Step::Run(id))));
    steps.sort_by_key(|(node, run, _)| (*node, *run));
    Ok(steps.into_iter().map(|(_, _, step)| step).collect())
}

fn reader_name(name: &str, output: &OutputTag) -> String {
    match output {
        OutputTag::Main => format!("cached {name}"),
        OutputTag::Side(tag) => format!("cached {name}/{tag}"),
    }
}

struct Build<'g, 's, N, E> {
    graph: &'g TransformationGraph<N, E>,
    settings: &'s PlanSettings<'s>,
    program: Program,
    cut: CacheCut<'g, N, E>,
    /// The index of each step of the program that runs.
    running: Vec<Option<usize>>,
    /// The index of the reader of each mark.
    readers: BTreeMap<usize, usize>,
    stream: StreamGraph<'g, N, E>,
}

impl<'g, N: Describe, E> Build<'g, '_, N, E> {
    /// Adds a step of the program and the edges that it reads.
    fn run(&mut self, id: NodeId) -> Result<(), PlanError> {
        let step = self.graph.node(id).ok_or(PlanError::UnknownNode { node: id })?;
        let (parallelism, max_parallelism) = validate::parallelism(id, step, self.settings)?;
        let attributes = self.program.attributes(id).ok_or(PlanError::UnknownNode { node: id })?;
        let mode = self.stream.mode;
        validate::batch_state(id, &step.name, &attributes, mode, self.settings)?;
        let at = self.add(StreamNode {
            id,
            name: step.name.clone(),
            uid: self.program.uids.of(id).to_owned(),
            parallelism,
            max_parallelism,
            attributes,
            payload: &step.payload,
            inputs: vec![Vec::new(); step.inputs.len()],
            outputs: Vec::new(),
        });
        self.running[id.0 as usize] = Some(at);
        for (input, edges) in step.inputs.iter().enumerate() {
            edges.iter().try_for_each(|edge| self.connect(edge, input))?;
        }
        Ok(())
    }

    /// Adds the reader of a complete data set, as parallel as the step that it stands for.
    fn read(&mut self, at: usize) -> Result<(), PlanError> {
        let mark = self.cut.mark(at);
        let step = self.graph.node(mark.node).ok_or(PlanError::UnknownNode { node: mark.node })?;
        let (parallelism, max_parallelism) = validate::parallelism(mark.node, step, self.settings)?;
        let past_the_program = self.graph.len() + at;
        let node = self.add(StreamNode {
            id: NodeId(
                u32::try_from(past_the_program).expect("ids of steps and marks fit 32 bits"),
            ),
            name: reader_name(&step.name, &mark.output),
            uid: self.program.uids.of_reader(mark.node, &mark.output),
            parallelism,
            max_parallelism,
            attributes: OperatorAttributes {
                kind: OperatorKind::Source { bounded: true },
                ..mark.reader.attributes()
            },
            payload: &mark.reader,
            inputs: Vec::new(),
            outputs: Vec::new(),
        });
        self.readers.insert(at, node);
        let outcome = CacheOutcome::Hit;
        self.stream.caches.push(StreamCache { mark, node, name: step.name.clone(), outcome });
        Ok(())
    }

    fn add(&mut self, node: StreamNode<'g, N>) -> usize {
        self.stream.nodes.push(node);
        self.stream.nodes.len() - 1
    }

    /// Adds an edge to the step that was added last.
    fn connect(&mut self, edge: &'g InputEdge<E>, input: usize) -> Result<(), PlanError> {
        let from = match self.cut.hit(edge) {
            Some(mark) => self.readers.get(&mark).copied(),
            None => self.running[edge.from.0 as usize],
        };
        let from = from.ok_or(PlanError::UnknownNode { node: edge.from })?;
        let to = self.stream.nodes.len() - 1;
        let (producer, consumer) = (&self.stream.nodes[from], &self.stream.nodes[to]);
        let partitioner = validate::partitioner(
            edge.partitioner,
            (&producer.name, producer.parallelism),
            (&consumer.name, consumer.parallelism),
        )?;
        let at = self.stream.edges.len();
        self.stream.nodes[from].outputs.push(at);
        self.stream.nodes[to].inputs[input].push(at);
        self.stream.edges.push(StreamEdge {
            from,
            output: &edge.output,
            to,
            input,
            partitioner,
            payload: &edge.payload,
            bytes: edge.bytes,
        });
        self.keep(edge, from)
    }

    /// Decides about a missing data set when the first edge that reads its output is added.
    fn keep(&mut self, edge: &'g InputEdge<E>, producer: usize) -> Result<(), PlanError> {
        let Some(at) = self.cut.mark_of(edge) else { return Ok(()) };
        let mark = self.cut.mark(at);
        if self.stream.caches.iter().any(|cache| cache.mark.data_set == mark.data_set) {
            return Ok(());
        }
        let name = self.stream.nodes[producer].name.clone();
        let outcome = self.cut.outcome(at, &name, self.stream.mode, self.settings)?;
        self.stream.caches.push(StreamCache { mark, node: producer, name, outcome });
        Ok(())
    }

    /// Puts the caches in the order of their marks.
    fn finish(mut self) -> StreamGraph<'g, N, E> {
        let order: BTreeMap<_, usize> =
            self.graph.marks().iter().map(|mark| mark.data_set).zip(0..).collect();
        self.stream.caches.sort_by_key(|cache| order.get(&cache.mark.data_set).copied());
        self.stream
    }
}
