//! Under which id an operator's state is found again when nobody gave it one.
//!
//! A derived uid is the operator's name and a hash of its name and its place: the names and places
//! of all that it reads. So it stays when another part of the program changes, when a uid is given
//! to a neighbour, and when a parallelism changes; it changes with anything upstream. Of operators
//! with the same name at the same place, the later ones get a number.

use std::collections::BTreeMap;

use element::{NodeId, hash_key_bytes};

use crate::{OutputTag, PlanError, TransformationGraph};

/// The uids of some steps of a program.
pub(crate) struct Uids {
    /// By node; empty for what no sink needs.
    by_node: Vec<String>,
}

impl Uids {
    /// Takes the given uids and derives the others. `nodes` are closed under "reads" and by id.
    ///
    /// # Errors
    ///
    /// [`PlanError::DuplicateUid`].
    pub(crate) fn new<N, E>(
        graph: &TransformationGraph<N, E>,
        nodes: &[NodeId],
    ) -> Result<Self, PlanError> {
        let mut owners = given_uids(graph, nodes)?;
        let mut places = vec![0_u64; graph.len()];
        let mut by_node = vec![String::new(); graph.len()];
        for id in nodes {
            let Some(step) = graph.node(*id) else { continue };
            let place = place_of(
                &step.name,
                step.inputs.iter().map(|input| {
                    input.iter().map(|edge| (places[edge.from.0 as usize], &edge.output))
                }),
            );
            places[id.0 as usize] = place;
            let uid = step.uid.clone().unwrap_or_else(|| {
                let base = format!("{}-{place:016x}", slug(&step.name));
                let uid = first_free(&owners, base);
                owners.insert(uid.clone(), *id);
                uid
            });
            by_node[id.0 as usize] = uid;
        }
        Ok(Self { by_node })
    }

    /// The uid of a step.
    pub(crate) fn of(&self, node: NodeId) -> &str {
        self.by_node.get(node.0 as usize).map_or("", String::as_str)
    }

    /// The uid of the source that reads an output back.
    pub(crate) fn of_reader(&self, node: NodeId, output: &OutputTag) -> String {
        format!("{}-cached-{}", self.of(node), slug(&output.to_string()))
    }
}

/// The uids that the program gives, with their owners.
fn given_uids<N, E>(
    graph: &TransformationGraph<N, E>,
    nodes: &[NodeId],
) -> Result<BTreeMap<String, NodeId>, PlanError> {
    let mut owners: BTreeMap<String, NodeId> = BTreeMap::new();
    for id in nodes {
        let Some((step, uid)) = graph.node(*id).and_then(|step| Some((step, step.uid.as_ref()?)))
        else {
            continue;
        };
        if let Some(first) = owners.insert(uid.clone(), *id) {
            return Err(PlanError::DuplicateUid {
                uid: uid.clone(),
                first: graph.node(first).map(|step| step.name.clone()).unwrap_or_default(),
                first_node: first,
                second: step.name.clone(),
                second_node: *id,
            });
        }
    }
    Ok(owners)
}

/// The hash of a name and of the places read. Lengths are hashed too, so no two lists run together.
fn place_of<'a, I>(name: &str, inputs: impl Iterator<Item = I>) -> u64
where
    I: Iterator<Item = (u64, &'a OutputTag)>,
{
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    text(&mut bytes, name);
    for input in inputs {
        bytes.push(b'i');
        for (place, output) in input {
            bytes.push(b'e');
            bytes.extend(place.to_le_bytes());
            match output {
                OutputTag::Main => bytes.push(b'm'),
                OutputTag::Side(tag) => text(&mut bytes, tag),
            }
        }
    }
    hash_key_bytes(&bytes).0
}

fn first_free(owners: &BTreeMap<String, NodeId>, base: String) -> String {
    if !owners.contains_key(&base) {
        return base;
    }
    (2..=u64::MAX)
        .map(|number| format!("{base}-{number}"))
        .find(|uid| !owners.contains_key(uid))
        .unwrap_or(base)
}

/// Up to 24 letters, digits and dashes of a name: fit for a file name.
fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let slug: String = name.chars().map(plain).take(24).collect();
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests;
