//! Slackwater graph.
