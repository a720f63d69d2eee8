//! The grammar of one channel, and its check.

use crate::{Control, StreamElement};

/// What one channel may carry, in this order and no other:
///
/// ```text
/// channel := phase* EndOfInput
/// phase   := Attributes{backlog: true}  (Batch | Barrier | Idle | Active | Watermark*)*
///          | Attributes{backlog: false} (Batch | Barrier | Idle | Active | Watermark)*
/// ```
///
/// `Watermark*`: allowed in backlog only where watermarks are not withheld (decision D11). A channel
/// that opens without `Attributes` is in a phase without backlog. Watermarks do not go back. Channels
/// check it in debug builds.
#[derive(Debug)]
pub struct ElementOrder {
    backlog: bool,
    withholds_watermarks: bool,
    watermark: Option<crate::Timestamp>,
    ended: bool,
}

impl ElementOrder {
    /// A fresh channel. `withholds_watermarks`: whether the job runs in mixed mode.
    #[must_use]
    pub fn new(withholds_watermarks: bool) -> Self {
        Self { backlog: false, withholds_watermarks, watermark: None, ended: false }
    }

    /// Whether `next` may follow; remembers it.
    pub fn admits<T>(&mut self, next: &StreamElement<T>) -> bool {
        if self.ended {
            return false;
        }
        match next {
            StreamElement::Control(Control::Attributes(attributes)) => {
                self.backlog = attributes.is_backlog;
                true
            }
            StreamElement::Control(Control::Watermark(watermark)) => {
                let grows = self.watermark.is_none_or(|before| before <= *watermark);
                self.watermark = Some(*watermark);
                grows && !(self.backlog && self.withholds_watermarks)
            }
            StreamElement::Control(Control::EndOfInput) => {
                self.ended = true;
                true
            }
            StreamElement::Batch(_) | StreamElement::Control(_) => true,
        }
    }
}
