//! A plan as a picture: Mermaid and Graphviz.
//!
//! Both show a box for each vertex, a frame for each region of several vertices, thick arrows for
//! blocking exchanges and a drum for each data set that is read or written. The reasons are in
//! [`JobGraph::explain`].

use std::fmt::{self, Display};

use element::{DataSetId, VertexId};

use crate::{CacheDecision, Exchange, InputTreatment, JobEdge, JobGraph, JobVertex};

impl<N, E> JobGraph<N, E> {
    /// The plan as a Mermaid flowchart.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        Mermaid(self).to_string()
    }

    /// The plan as a Graphviz digraph.
    #[must_use]
    pub fn to_dot(&self) -> String {
        Dot(self).to_string()
    }

    /// Data sets read and written: the vertex, and whether it writes.
    fn drums(&self) -> impl Iterator<Item = (usize, DataSetId, VertexId, bool)> {
        let drum = |(at, cache): (usize, &crate::CachePlan)| match cache.decision {
            CacheDecision::Hit { reader } => Some((at, cache.data_set, reader, false)),
            CacheDecision::Computed { producer } => Some((at, cache.data_set, producer, true)),
            CacheDecision::Uncached { .. } => None,
        };
        self.caches.iter().enumerate().filter_map(drum)
    }
}

/// The lines of a vertex's box: name, parallelism, and what is put before its head.
fn box_lines<N, E>(vertex: &JobVertex<N, E>) -> Vec<String> {
    let head = vertex.chain.first().map(|head| head.treatment);
    let mut lines = vec![vertex.name.clone(), format!("parallelism {}", vertex.parallelism)];
    lines.extend(
        head.filter(|treatment| *treatment != InputTreatment::Direct).map(|t| t.to_string()),
    );
    lines
}

/// The regions of several vertices, with their places in the order.
fn frames<N, E>(job: &JobGraph<N, E>) -> impl Iterator<Item = (usize, &Vec<VertexId>)> {
    job.regions.iter().enumerate().filter(|(_, region)| region.len() > 1)
}

fn edge_label<E>(edge: &JobEdge<E>) -> String {
    format!("{}, {}", edge.partitioner, edge.exchange)
}

struct Mermaid<'a, N, E>(&'a JobGraph<N, E>);

impl<N, E> Display for Mermaid<'_, N, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let job = self.0;
        let escape = |text: &str| {
            text.replace('#', "#35;")
                .replace('"', "#quot;")
                .replace('<', "#lt;")
                .replace('>', "#gt;")
        };
        writeln!(f, "flowchart LR")?;
        for vertex in &job.vertices {
            let lines: Vec<String> = box_lines(vertex).iter().map(|line| escape(line)).collect();
            writeln!(f, "  v{}[\"{}\"]", vertex.id, lines.join("<br/>"))?;
        }
        for (at, region) in frames(job) {
            writeln!(f, "  subgraph r{at}[\"region {at}\"]")?;
            region.iter().try_for_each(|vertex| writeln!(f, "    v{vertex}"))?;
            writeln!(f, "  end")?;
        }
        for edge in &job.edges {
            let arrow = if edge.exchange == Exchange::Blocking { "==>" } else { "-->" };
            let (from, to) = (edge.from.vertex, edge.to.vertex);
            writeln!(f, "  v{from} {arrow}|\"{}\"| v{to}", edge_label(edge))?;
        }
        for (at, data_set, vertex, writes) in job.drums() {
            writeln!(f, "  d{at}[(\"data set {data_set}\")]")?;
            if writes {
                writeln!(f, "  v{vertex} ==> d{at}")?;
            } else {
                writeln!(f, "  d{at} ==> v{vertex}")?;
            }
        }
        Ok(())
    }
}

struct Dot<'a, N, E>(&'a JobGraph<N, E>);

impl<N, E> Display for Dot<'_, N, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let job = self.0;
        let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        writeln!(f, "digraph job {{\n  rankdir=LR;\n  node [shape=box];")?;
        for vertex in &job.vertices {
            let lines: Vec<String> = box_lines(vertex).iter().map(|line| escape(line)).collect();
            writeln!(f, "  v{} [label=\"{}\"];", vertex.id, lines.join("\\n"))?;
        }
        for (at, region) in frames(job) {
            writeln!(f, "  subgraph cluster_{at} {{\n    label=\"region {at}\";")?;
            region.iter().try_for_each(|vertex| writeln!(f, "    v{vertex};"))?;
            writeln!(f, "  }}")?;
        }
        for edge in &job.edges {
            let style = if edge.exchange == Exchange::Blocking { "bold" } else { "solid" };
            let (from, to) = (edge.from.vertex, edge.to.vertex);
            writeln!(f, "  v{from} -> v{to} [label=\"{}\", style={style}];", edge_label(edge))?;
        }
        for (at, data_set, vertex, writes) in job.drums() {
            writeln!(f, "  d{at} [shape=cylinder, label=\"data set {data_set}\"];")?;
            if writes {
                writeln!(f, "  v{vertex} -> d{at} [style=bold];")?;
            } else {
                writeln!(f, "  d{at} -> v{vertex} [style=bold];")?;
            }
        }
        writeln!(f, "}}")
    }
}
