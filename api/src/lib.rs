//! Slackwater api.
