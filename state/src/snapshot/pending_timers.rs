//! [`PendingTimers`]: the timers of a snapshot that is yet to be written.
//!
//! Those in memory have been copied, those in a store are read page by page from its view; both are
//! handed out as one sequence, in the order of a snapshot.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use crate::StoreFailure;
use crate::store::{StoreSnapshot, WriteBatch};

/// Timers read from a view at once.
const PAGE: usize = 16 << 10;

/// All timers of a subtask at one moment.
#[derive(Debug)]
pub(crate) struct PendingTimers {
    /// By store key.
    pub(crate) near: WriteBatch,
    /// By one byte that is 0, and the store key; what begins with another byte is no timer.
    pub(crate) later: Option<Box<dyn StoreSnapshot>>,
}

impl PendingTimers {
    /// The store keys of all timers, in order.
    pub(super) fn in_order(&self) -> TimersInOrder<'_> {
        TimersInOrder {
            near: Box::new(self.near.iter().map(|(key, _)| key)),
            next_near: None,
            later: self.later.as_deref(),
            page: VecDeque::new(),
            from: Some(vec![0]),
        }
    }
}

/// Reads the timers of a snapshot.
pub(super) struct TimersInOrder<'a> {
    near: Box<dyn Iterator<Item = &'a [u8]> + 'a>,
    next_near: Option<&'a [u8]>,
    later: Option<&'a dyn StoreSnapshot>,
    page: VecDeque<Box<[u8]>>,
    /// Where the next page begins; `None` behind the last.
    from: Option<Vec<u8>>,
}

impl TimersInOrder<'_> {
    /// The store key of the next timer, if it is wanted.
    ///
    /// # Errors
    ///
    /// [`StoreFailure`] of the view.
    pub(super) fn next_if(
        &mut self,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Box<[u8]>>, StoreFailure> {
        if self.next_near.is_none() {
            self.next_near = self.near.next();
        }
        if self.page.is_empty() {
            self.read_page()?;
        }
        let is_near = match (self.next_near, self.page.front()) {
            (Some(near), Some(later)) => *near < **later,
            (near, _) => near.is_some(),
        };
        Ok(if is_near {
            self.next_near.take_if(|near| wanted(near)).map(Into::into)
        } else {
            self.page.pop_front_if(|later| wanted(later))
        })
    }

    fn read_page(&mut self) -> Result<(), StoreFailure> {
        let (Some(later), Some(from)) = (self.later, self.from.take()) else { return Ok(()) };
        let page = &mut self.page;
        later.scan(&from, Some(&[1]), &mut |key, _| {
            page.extend(key.get(1..).map(Into::into));
            if page.len() < PAGE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if let Some(last) = self.page.back().filter(|_| self.page.len() == PAGE) {
            // Right behind the last.
            self.from = Some([&[0], &last[..], &[0]].concat());
        }
        Ok(())
    }
}
