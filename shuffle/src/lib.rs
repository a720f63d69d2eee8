//! Slackwater shuffle.
