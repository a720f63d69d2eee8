//! Slackwater sort.
