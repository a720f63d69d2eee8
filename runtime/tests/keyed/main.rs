//! A keyed operator through its phases: order, state, time, timers, restores.

mod harness;
mod phases;
mod restores;
mod timers;
