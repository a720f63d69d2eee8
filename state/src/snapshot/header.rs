//! [`SnapshotHeader`]: what a snapshot is of, and what its bytes mean.
//!
//! Written by the backend, read by restores and by the inspection of savepoints.

use std::time::Duration;

use element::{CodecError, KeyGroups, Record, Schema, Timestamp};

use super::handle::{groups_from, groups_parts};
use crate::handle::StateKind;
use crate::store_key::StateId;
use crate::{StateDescriptor, TtlClock, TtlConfig, TtlUpdate, TtlVisibility};

/// What a snapshot says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotHeader {
    /// The operator's uid.
    pub operator: String,
    /// The key groups whose entries it holds.
    pub groups: KeyGroups,
    /// The operator's watermark at the snapshot.
    pub watermark: Timestamp,
    /// The states, by name.
    pub states: Vec<StateHeader>,
}

/// What a snapshot says about one state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateHeader {
    /// Name, kind, schema and time to live.
    pub descriptor: StateDescriptor,
    pub(crate) id: StateId,
}

impl SnapshotHeader {
    /// The state with this id, if it is one of ours.
    pub(crate) fn state(&self, id: StateId) -> Option<&StateHeader> {
        self.states.iter().find(|state| state.id == id)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.operator.encode(out);
        groups_parts(self.groups).encode(out);
        self.watermark.encode(out);
        (self.states.len() as u32).encode(out);
        for state in &self.states {
            state.encode(out);
        }
    }

    pub(crate) fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let operator = String::decode(input)?;
        let parts = <(u32, u32, u32)>::decode(input)?;
        let groups = groups_from(parts)
            .ok_or(CodecError::Tag { what: "key groups", found: parts.2.into() })?;
        let watermark = Timestamp::decode(input)?;
        let count = u32::decode(input)?;
        let states =
            (0..count).map(|_| StateHeader::decode(input)).collect::<Result<_, CodecError>>()?;
        Ok(Self { operator, groups, watermark, states })
    }
}

const KINDS: [StateKind; 5] = [
    StateKind::Value,
    StateKind::List,
    StateKind::Map,
    StateKind::Reducing,
    StateKind::Aggregating,
];

impl StateHeader {
    fn encode(&self, out: &mut Vec<u8>) {
        let StateDescriptor { name, kind, schema, ttl } = &self.descriptor;
        name.encode(out);
        self.id.0.encode(out);
        out.push(KINDS.iter().position(|known| known == kind).unwrap_or_default() as u8);
        schema.encode(out);
        ttl.map(ttl_parts).encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let name = String::decode(input)?;
        let id = StateId(u32::decode(input)?);
        let tag = u8::decode(input)?;
        let kind = *KINDS
            .get(usize::from(tag))
            .ok_or(CodecError::Tag { what: "state kind", found: tag.into() })?;
        let schema = Schema::decode(input)?;
        let ttl = Option::<TtlParts>::decode(input)?.map(ttl_from);
        Ok(Self { descriptor: StateDescriptor { name, kind, schema, ttl }, id })
    }
}

type TtlParts = (u64, bool, bool, bool);

fn ttl_parts(ttl: TtlConfig) -> TtlParts {
    (
        u64::try_from(ttl.duration.as_millis()).unwrap_or(u64::MAX),
        ttl.update == TtlUpdate::OnReadAndWrite,
        ttl.visibility == TtlVisibility::ReturnExpiredIfNotCleanedUp,
        ttl.clock == TtlClock::EventTime,
    )
}

fn ttl_from((millis, on_read, shows, event): TtlParts) -> TtlConfig {
    let mut ttl = TtlConfig::new(Duration::from_millis(millis));
    if on_read {
        ttl.update = TtlUpdate::OnReadAndWrite;
    }
    if shows {
        ttl.visibility = TtlVisibility::ReturnExpiredIfNotCleanedUp;
    }
    if event {
        ttl.clock = TtlClock::EventTime;
    }
    ttl
}
