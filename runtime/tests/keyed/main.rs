//! A keyed operator through its phases: order, state, time, timers, restores.

mod harness;
mod lag;
mod phases;
mod restores;
mod timers;
