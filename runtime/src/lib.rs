//! Slackwater runtime.
