//! [`RecordAttributes`]: what a source says about the records that follow (FLIP-327, FLIP-309).

use crate::Timestamp;

/// Attributes of all records from here to the next attributes on the same channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordAttributes {
    /// Whether the records that follow are history to be chewed through (true) or live (false).
    pub is_backlog: bool,
    /// With `is_backlog == false`: the channel's greatest watermark of the phase that ends here, if
    /// it had one. Operators drain with the least of it over their channels (decision D11).
    pub watermark: Option<Timestamp>,
}

impl RecordAttributes {
    /// A backlog begins.
    pub const BACKLOG: Self = Self { is_backlog: true, watermark: None };

    /// A backlog ends, or there was none.
    #[must_use]
    pub const fn live(watermark: Option<Timestamp>) -> Self {
        Self { is_backlog: false, watermark }
    }
}
