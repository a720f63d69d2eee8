//! A plan as text: who runs where, what is sorted, what blocks, what is cached, and why.
//!
//! ```text
//! plan        mixed mode: source `live` is unbounded and ...
//!             2 vertices, 1 edge, 1 region, 4 subtasks
//!
//! vertex 0    live -> parse
//!             parallelism 2, max parallelism 32768
//!   operator  live    source
//!   operator  parse   direct: not keyed
//!
//! vertex 1    delays -> print
//!             parallelism 2, max parallelism 32768
//!   input 0   from vertex 0 (parse): key group, pipelined: streaming
//!   operator  delays  auto: disk state: ...; 128.0 MiB a subtask
//!   operator  print   direct: not keyed
//!
//! regions     {0, 1}
//! ```
//!
//! The text depends on nothing but the plan; golden files of tests hold it fast.

use std::fmt::{self, Display, Write};

use element::{NodeId, hash_key_bytes};

use crate::{
    CacheDecision, CachePlan, ChainNode, Durability, Exchange, InputTreatment, JobEdge, JobGraph,
    JobVertex, OutputTag, ResolvedMode,
};

impl<N, E> JobGraph<N, E> {
    /// The plan as text, a few lines a vertex, each decision with its reason.
    #[must_use]
    pub fn explain(&self) -> String {
        Explained(self).to_string()
    }

    /// A number that is the same for the same plan, on every machine: vertices, uids, edges,
    /// treatments and caches all count, payloads do not.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut text = self.explain();
        for node in self.vertices.iter().flat_map(|vertex| &vertex.chain) {
            text.push_str(&node.uid);
            text.push('\n');
        }
        hash_key_bytes(text.as_bytes()).0
    }
}

struct Explained<'a, N, E>(&'a JobGraph<N, E>);

/// Width of the column of headings.
const HEADING: usize = 12;

/// Names up to this width are padded to a column.
const NAME: usize = 28;

impl<N, E> Display for Explained<'_, N, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let job = self.0;
        let subtasks: u64 = job.vertices.iter().map(|v| u64::from(v.parallelism)).sum();
        line(f, "plan", format_args!("{} mode: {}", job.mode, job.mode_reason))?;
        line(
            f,
            "",
            format_args!(
                "{}, {}, {}, {}",
                count(job.vertices.len() as u64, "vertex", "vertices"),
                count(job.edges.len() as u64, "edge", "edges"),
                count(job.regions.len() as u64, "region", "regions"),
                count(subtasks, "subtask", "subtasks"),
            ),
        )?;
        for vertex in &job.vertices {
            f.write_char('\n')?;
            explain_vertex(f, job, vertex)?;
        }
        f.write_char('\n')?;
        explain_regions(f, job)?;
        job.caches.iter().try_for_each(|cache| explain_cache(f, cache))
    }
}

fn line(f: &mut fmt::Formatter<'_>, heading: &str, text: fmt::Arguments<'_>) -> fmt::Result {
    writeln!(f, "{heading:HEADING$}{text}")
}

fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn explain_vertex<N, E>(
    f: &mut fmt::Formatter<'_>,
    job: &JobGraph<N, E>,
    vertex: &JobVertex<N, E>,
) -> fmt::Result {
    line(f, &format!("vertex {}", vertex.id), format_args!("{}", vertex.name))?;
    let (own, max) = (vertex.parallelism, vertex.max_parallelism);
    line(f, "", format_args!("parallelism {own}, max parallelism {max}"))?;
    for edge in vertex.inputs.iter().flatten().filter_map(|edge| job.edge(*edge)) {
        explain_input(f, job, edge)?;
    }
    let width = vertex.chain.iter().map(|node| node.name.len()).filter(|len| *len <= NAME).max();
    for node in &vertex.chain {
        explain_operator(f, vertex, node, width.unwrap_or(0))?;
    }
    for kept in &vertex.persistent {
        line(
            f,
            "  keeps",
            format_args!(
                "{} as data set {}, blocking and persistent, written by these subtasks",
                named(name_of(vertex, kept.node), &kept.output),
                kept.data_set
            ),
        )?;
    }
    Ok(())
}

fn explain_input<N, E>(
    f: &mut fmt::Formatter<'_>,
    job: &JobGraph<N, E>,
    edge: &JobEdge<E>,
) -> fmt::Result {
    let producer = job.vertex(edge.from.vertex).map_or("", |from| name_of(from, edge.from.node));
    line(
        f,
        &format!("  input {}", edge.to.input),
        format_args!(
            "from vertex {} ({}): {}, {}: {}{}",
            edge.from.vertex,
            named(producer, &edge.from.output),
            edge.partitioner,
            edge.exchange,
            edge.reason,
            if edge.combined { "; its producers combine first" } else { "" }
        ),
    )
}

fn explain_operator<N, E>(
    f: &mut fmt::Formatter<'_>,
    vertex: &JobVertex<N, E>,
    node: &ChainNode<N>,
    width: usize,
) -> fmt::Result {
    let name = &node.name;
    let mut text = match (node.attributes.is_source(), node.attributes.is_unbounded()) {
        (true, true) => "unbounded source".to_owned(),
        (true, false) => "bounded source".to_owned(),
        (false, _) => format!("{}: {}", node.treatment, node.reason),
    };
    if let Some(memory) = node.sort_memory {
        text.push_str(&format!("; {memory} a subtask and input"));
    }
    match &node.durability {
        Durability::Lost => {}
        Durability::Kept => text.push_str("; sealed runs survive a crash"),
        Durability::Refused { stateful } => text.push_str(&format!(
            "; its runs do not survive a crash: `{stateful}` upstream keeps state"
        )),
    }
    if let Some(link) = vertex.links.iter().find(|link| link.to == node.node) {
        let branches = vertex.links.iter().filter(|other| other.from == link.from).count() > 1;
        if branches || link.output != OutputTag::Main {
            text.push_str(&format!("; reads {}", named(name_of(vertex, link.from), &link.output)));
        }
    }
    line(f, "  operator", format_args!("{name:width$}  {text}"))
}

fn explain_regions<N, E>(f: &mut fmt::Formatter<'_>, job: &JobGraph<N, E>) -> fmt::Result {
    let regions = job.regions.iter().map(|region| {
        let vertices: Vec<String> = region.iter().map(ToString::to_string).collect();
        format!("{{{}}}", vertices.join(", "))
    });
    line(f, "regions", format_args!("{}", regions.collect::<Vec<_>>().join(" then ")))
}

fn explain_cache(f: &mut fmt::Formatter<'_>, cache: &CachePlan) -> fmt::Result {
    let name = named(&cache.name, &cache.output);
    let decision = match cache.decision {
        CacheDecision::Hit { reader } => {
            format!("hit, read by vertex {reader}; nothing upstream that only it needs runs")
        }
        CacheDecision::Computed { producer } => format!("computed and kept by vertex {producer}"),
        CacheDecision::Uncached { producer } => format!(
            "computed by vertex {producer}, not kept: option `execution.cache.outside-batch` is \
             recompute"
        ),
    };
    line(f, "cache", format_args!("{name}, data set {}: {decision}", cache.data_set))
}

fn name_of<N, E>(vertex: &JobVertex<N, E>, node: NodeId) -> &str {
    vertex.chain.iter().find(|link| link.node == node).map_or("", |link| link.name.as_str())
}

/// An output's name: the operator's if it is the main one.
fn named(name: &str, output: &OutputTag) -> String {
    match output {
        OutputTag::Main => name.to_owned(),
        OutputTag::Side(_) => format!("{name}, {output}"),
    }
}

impl Display for ResolvedMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Streaming => "streaming",
            Self::Mixed => "mixed",
            Self::Batch => "batch",
        })
    }
}

impl Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pipelined => "pipelined",
            Self::Blocking => "blocking",
        })
    }
}

impl Display for InputTreatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Sort => "sort",
            Self::Combine => "combine",
            Self::Auto => "auto",
            Self::Internal => "internal sort",
            Self::BatchSort => "batch sort",
        })
    }
}
