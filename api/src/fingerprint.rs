//! What a named cache is made of: steps, schema, sources and binary.
//!
//! Names, connections and order of all steps above the cached output count; parallelism does not, nor
//! does what else the program has. Functions count through the binary that holds them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use element::option_table::CacheSourceIdentity;
use element::{NodeId, hash_key_bytes};
use graph::OutputTag;
use runtime::cluster::{Fingerprint, hash_file};
use runtime::error::JobError;
use runtime::report::chain_of;

use crate::environment::Graph;

/// The fingerprint of an output as the program stands now.
///
/// # Errors
///
/// [`JobError::NamedCache`] if a source or the binary cannot be looked at.
pub(crate) fn fingerprint(
    graph: &Graph,
    (node, output): (NodeId, &OutputTag),
    name: &str,
    schema: &str,
    by: CacheSourceIdentity,
) -> Result<Fingerprint, JobError> {
    let failed = |reason| JobError::NamedCache { name: name.to_owned(), reason };
    let mut walk = Walk { graph, by, seen: BTreeMap::new(), text: String::new(), sources: vec![] };
    let last = walk.visit(node).map_err(|error| failed(format!("{error:#}")))?;
    let _ = writeln!(walk.text, "{last} {output}");
    Ok(Fingerprint {
        plan: hash_key_bytes(walk.text.as_bytes()).0,
        schema: schema.to_owned(),
        sources: walk.sources,
        binary: binary().map_err(failed)?,
    })
}

struct Walk<'a> {
    graph: &'a Graph,
    by: CacheSourceIdentity,
    /// Steps by their place in the walk, which does not depend on what else the program has.
    seen: BTreeMap<NodeId, usize>,
    text: String,
    sources: Vec<(String, String)>,
}

impl Walk<'_> {
    fn visit(&mut self, id: NodeId) -> anyhow::Result<usize> {
        if let Some(place) = self.seen.get(&id) {
            return Ok(*place);
        }
        let Some(step) = self.graph.node(id) else { anyhow::bail!("a step is missing") };
        let mut inputs = String::new();
        for (input, edge) in
            (0..).zip(&step.inputs).flat_map(|(i, e)| e.iter().map(move |e| (i, e)))
        {
            let from = self.visit(edge.from)?;
            // Writing to a string does not fail.
            let _ = write!(inputs, " {input}<{from}.{} by {}", edge.output, edge.partitioner);
        }
        if let Some(source) = step.payload.factory.source() {
            let identity = source.identity(self.by)?.unwrap_or_default();
            self.sources.push((step.name.clone(), identity));
        }
        let place = self.seen.len();
        self.seen.insert(id, place);
        let _ = writeln!(self.text, "{place} {}{inputs}", step.name);
        Ok(place)
    }
}

/// A hash of the running binary, computed once.
fn binary() -> Result<u64, String> {
    static BINARY: OnceLock<Result<u64, String>> = OnceLock::new();
    BINARY
        .get_or_init(|| {
            let hash = std::env::current_exe().and_then(|path| hash_file(&path));
            hash.map_err(|error| format!("the binary cannot be read: {}", chain_of(&error)))
        })
        .clone()
}
