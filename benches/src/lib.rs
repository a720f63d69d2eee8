//! Slackwater benches.
