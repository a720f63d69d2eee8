//! [`PaneGrid`]: how sliding windows are cut into panes, and the short names of both.
//!
//! ```text
//!   slides    0           1           2           3           size 2.4 slides
//!   window 0  |----------------------------|
//!   window 1              |----------------------------|
//!   panes     |-0--|--1---|-2--|--3---|-4--|--5---|-6--|      a cut where a window begins or ends
//! ```
//!
//! Panes and windows are numbers, counted from the offset: what lies next to what is found without a
//! division, and a name takes few bytes. In state and timers it lies beside a key of eight bytes without
//! an allocation (see `EntryKey`): panes of a second do for a thousand years.

use std::ops::{Deref, Range};

use super::assigner::Aligned;
use super::bounds::Window;

/// The panes of aligned windows: one a slide, or two where the size is no multiple of the slide.
#[derive(Clone, Copy, Debug)]
pub struct PaneGrid {
    aligned: Aligned,
    /// From a slide's begin to the cut within it; 0: there is none.
    cut: i128,
    /// Panes a slide.
    step: i128,
    /// Panes a window.
    span: i128,
}

impl PaneGrid {
    /// The grid of windows. A slide of nothing, which the assigner's own check refuses, counts as 1 ms.
    pub(crate) fn of(aligned: Aligned) -> Self {
        let aligned = Aligned { slide: aligned.slide.max(1), ..aligned };
        let (size, slide) = (i128::from(aligned.size), i128::from(aligned.slide));
        let cut = size % slide;
        let step = if cut == 0 { 1 } else { 2 };
        Self { aligned, cut, step, span: size / slide * step + step - 1 }
    }

    /// The pane that an instant lies in.
    pub(crate) fn pane(&self, at: i128) -> i128 {
        let (at, slide) = (at - i128::from(self.aligned.offset), self.aligned.slide);
        // The narrow division is the cheaper one, and does for all but the ends of time.
        let (slides, within) = match i64::try_from(at) {
            Ok(at) => (i128::from(at.div_euclid(slide)), i128::from(at.rem_euclid(slide))),
            Err(_) => (at.div_euclid(i128::from(slide)), at.rem_euclid(i128::from(slide))),
        };
        slides * self.step + i128::from(self.cut != 0 && within >= self.cut)
    }

    /// The first instant of a pane.
    pub(crate) fn start(&self, pane: i128) -> i128 {
        let start = self.last_window(pane) * i128::from(self.aligned.slide);
        let cut = if self.begins_window(pane) { 0 } else { self.cut };
        i128::from(self.aligned.offset) + start + cut
    }

    /// The panes of a window.
    pub(crate) fn panes(&self, window: i128) -> Range<i128> {
        window * self.step..window * self.step + self.span
    }

    /// Whether a window begins with a pane.
    pub(crate) fn begins_window(&self, pane: i128) -> bool {
        self.step == 1 || pane & 1 == 0
    }

    /// The panes that a window has and the next one does not.
    pub(crate) fn front(&self, window: i128) -> Range<i128> {
        window * self.step..(window + 1) * self.step
    }

    /// The panes that a window has and the one before it does not.
    pub(crate) fn back(&self, window: i128) -> Range<i128> {
        let end = self.panes(window).end;
        end - self.step..end
    }

    /// The first window that has a pane.
    pub(crate) fn first_window(&self, pane: i128) -> i128 {
        self.last_window(pane - self.span) + 1
    }

    /// The last window that has a pane.
    pub(crate) fn last_window(&self, pane: i128) -> i128 {
        if self.step == 1 { pane } else { pane >> 1 }
    }

    /// The bounds of a window, held at the ends of time.
    pub(crate) fn bounds(&self, window: i128) -> Window {
        let start = self.start(window * self.step);
        Window::clamped(start, start + i128::from(self.aligned.size))
    }

    /// The first window that ends behind an instant.
    pub(crate) fn first_ending_behind(&self, at: i128) -> i128 {
        let at = at - i128::from(self.aligned.offset) - i128::from(self.aligned.size);
        at.div_euclid(i128::from(self.aligned.slide)) + 1
    }
}

/// Bits of a name that are no part of its number: the sign, and the length.
const HEAD: u32 = 5;

/// The bytes of a pane or window in state and timers: as few as its number takes, and ordered as
/// numbers are.
///
/// ```text
///   not below 0:  1  length:4  number         in big-endian bytes; the length counts them
///   below 0:      the same of the number's complement, all bits turned
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    word: [u8; 16],
    start: usize,
}

impl Name {
    /// The name of a number, which has 115 bits at most.
    pub(crate) fn of(number: i128) -> Self {
        let sign = number >> 127;
        let magnitude = (number ^ sign).unsigned_abs();
        let len = (u128::BITS - magnitude.leading_zeros() + HEAD).div_ceil(8);
        let head = u128::from(0x10 | len) << (8 * len - HEAD);
        let word = (head | magnitude) ^ if sign == 0 { 0 } else { u128::MAX };
        Self { word: word.to_be_bytes(), start: 16 - len as usize }
    }

    /// The number of a name; `None` if it is none.
    pub(crate) fn number(name: &[u8]) -> Option<i128> {
        let positive = name.first()? & 0x80 != 0;
        let mut word = [if positive { 0 } else { 0xff }; 16];
        let place = word.len().checked_sub(name.len())?;
        word.get_mut(place..)?.copy_from_slice(name);
        let word = u128::from_be_bytes(word) ^ if positive { 0 } else { u128::MAX };
        let number = i128::try_from(word & (u128::MAX >> (8 * place as u32 + HEAD))).ok()?;
        let number = if positive { number } else { !number };
        (*Self::of(number) == *name).then_some(number)
    }
}

impl Deref for Name {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.word.get(self.start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRIDS: [(i64, i64, i64); 5] =
        [(10, 5, 0), (25, 10, -3), (1, 1, 0), (7, 3, 2), (i64::MAX, i64::MAX - 1, 5)];

    #[test]
    fn a_pane_lies_in_its_windows_and_in_no_other() {
        for (size, slide, offset) in GRIDS {
            let aligned = Aligned { size, slide, offset };
            let grid = PaneGrid::of(aligned);
            for at in (-60..60).chain([i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX]) {
                let pane = grid.pane(i128::from(at));
                assert!((grid.start(pane)..grid.start(pane + 1)).contains(&i128::from(at)));
                let mut windows = Vec::new();
                aligned.assign(element::Timestamp(at), &mut windows);
                let (first, last) = (grid.first_window(pane), grid.last_window(pane));
                let ours: Vec<Window> = (first..=last).rev().map(|at| grid.bounds(at)).collect();
                assert_eq!(ours, windows, "{aligned:?} at {at}");
                assert!((first..=last).all(|window| grid.panes(window).contains(&pane)));
            }
        }
    }

    #[test]
    fn windows_follow_each_other_by_their_fronts_and_backs() {
        for (size, slide, offset) in GRIDS {
            let grid = PaneGrid::of(Aligned { size, slide, offset });
            for window in -9..9 {
                let (panes, next) = (grid.panes(window), grid.panes(window + 1));
                assert_eq!(grid.front(window), panes.start..next.start);
                assert_eq!(grid.back(window + 1), panes.end..next.end);
                assert!(grid.begins_window(panes.start));
                let end = grid.start(panes.end);
                assert_eq!(end, grid.start(panes.start) + i128::from(size));
                assert_eq!(grid.first_ending_behind(end), window + 1);
                assert_eq!(grid.first_ending_behind(end - 1), window);
            }
        }
    }

    #[test]
    fn a_name_is_short_gives_its_number_back_and_orders_as_numbers_do() {
        let mut numbers: Vec<i128> = (-300..300).collect();
        for power in 7..67 {
            let number = 1_i128 << power;
            numbers.extend([-1, 0, 1].map(|more| number + more));
            numbers.extend([-1, 0, 1].map(|more| more - number));
        }
        numbers.sort_unstable();
        numbers.dedup();
        for pair in numbers.windows(2) {
            assert!(*Name::of(pair[0]) < *Name::of(pair[1]), "{pair:?}");
        }
        for number in numbers {
            assert_eq!(Name::number(&Name::of(number)), Some(number));
        }
        assert_eq!(Name::of((1 << 35) - 1).len(), 5);
        for other in [&[][..], &[0], b"other", &[0; 16], &[0xff; 17]] {
            assert_eq!(Name::number(other), None, "{other:?}");
        }
    }
}
