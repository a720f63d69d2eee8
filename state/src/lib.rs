//! Slackwater state.
