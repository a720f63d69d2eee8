//! [`KeyCache`]: which keys are in memory over a store, least recently used first to go.
//!
//! It hands out an index for each cached key; each state keeps its cells for that index
//! ([`crate::slot`]). So all states and namespaces of a key enter and leave together, and the size of
//! the cache is a number of keys (FLIP-325).

use hashbrown::HashTable;

use crate::entry_key::EntryKey;
use crate::heap::spread;

const NONE: u32 = u32::MAX;

/// A key in the cache, linked to its neighbours by age.
#[derive(Debug)]
struct Node {
    hash: u64,
    key: EntryKey,
    /// Used less recently.
    older: u32,
    /// Used more recently.
    newer: u32,
}

/// Keys by age.
#[derive(Debug)]
pub(crate) struct KeyCache {
    nodes: Vec<Node>,
    /// All keys if there are several; a single one is found without it.
    index: HashTable<u32>,
    keys: usize,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl KeyCache {
    pub(crate) fn new() -> Self {
        let index = HashTable::new();
        Self { nodes: Vec::new(), index, keys: 0, free: Vec::new(), oldest: NONE, newest: NONE }
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.keys
    }

    /// The index of a key, which becomes the most recently used.
    pub(crate) fn find(&mut self, hash: u64, key: &EntryKey) -> Option<u32> {
        let nodes = &self.nodes;
        let same = |at: &u32| nodes[*at as usize].hash == hash && nodes[*at as usize].key == *key;
        if self.keys < 2 {
            return (self.keys == 1 && same(&self.newest)).then_some(self.newest);
        }
        let found = *self.index.find(spread(hash), same)?;
        if self.newest != found {
            self.unlink(found);
            self.link_newest(found);
        }
        Some(found)
    }

    /// Gives a key that is not there an index. It has no namespace.
    pub(crate) fn insert(&mut self, hash: u64, key: &EntryKey) -> u32 {
        let index = match self.free.pop() {
            Some(index) => {
                let node = &mut self.nodes[index as usize];
                (node.hash, node.older, node.newer) = (hash, NONE, NONE);
                node.key.become_same(key);
                index
            }
            None => {
                self.nodes.push(Node { hash, key: key.clone(), older: NONE, newer: NONE });
                u32::try_from(self.nodes.len() - 1).expect("a cache holds fewer than 2^32 keys")
            }
        };
        self.keys += 1;
        if self.keys == 2 {
            self.add_to_index(self.newest);
        }
        if self.keys > 1 {
            self.add_to_index(index);
        }
        self.link_newest(index);
        index
    }

    /// Gives the index of one key to another that is not there, which becomes the most recently used.
    pub(crate) fn replace(&mut self, index: u32, hash: u64, key: &EntryKey) -> u32 {
        if self.keys > 1 {
            self.remove(index);
            return self.insert(hash, key);
        }
        let node = &mut self.nodes[index as usize];
        node.hash = hash;
        node.key.become_same(key);
        index
    }

    /// The key that was not used for longest.
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Hash and key of an index.
    pub(crate) fn at(&self, index: u32) -> (u64, &[u8]) {
        let node = &self.nodes[index as usize];
        (node.hash, node.key.key())
    }

    /// Takes a key out.
    pub(crate) fn remove(&mut self, index: u32) {
        self.keys -= 1;
        if self.keys > 1 {
            let hash = self.nodes[index as usize].hash;
            if let Ok(entry) = self.index.find_entry(spread(hash), |at| *at == index) {
                entry.remove();
            }
        } else {
            self.index.clear();
        }
        self.unlink(index);
        self.free.push(index);
    }

    fn add_to_index(&mut self, index: u32) {
        let nodes = &self.nodes;
        let hash = spread(nodes[index as usize].hash);
        self.index.insert_unique(hash, index, |at| spread(nodes[*at as usize].hash));
    }

    /// All indices, the least recently used first.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = u32> + '_ {
        let next = move |at: &u32| {
            let newer = self.nodes[*at as usize].newer;
            (newer != NONE).then_some(newer)
        };
        std::iter::successors(self.oldest(), next)
    }

    fn unlink(&mut self, index: u32) {
        let (older, newer) = (self.nodes[index as usize].older, self.nodes[index as usize].newer);
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
        match self.nodes.get_mut(newer as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
    }

    fn link_newest(&mut self, index: u32) {
        let before = self.newest;
        if let Some(node) = self.nodes.get_mut(before as usize) {
            node.newer = index;
        } else {
            self.oldest = index;
        }
        self.newest = index;
        let node = &mut self.nodes[index as usize];
        node.older = before;
        node.newer = NONE;
    }
}
