//! The guide's examples: every block of Rust in `docs/book` is a doctest of its chapter here.
//!
//! Exists for `cargo test --doc` alone. That each chapter is listed is checked by `cargo xtask tidy`.

macro_rules! chapters {
    ($($name:ident: $file:literal;)*) => {$(
        #[doc = include_str!(concat!("../../docs/book/src/", $file))]
        struct $name;
    )*};
}

chapters! {
    Introduction: "introduction.md";
    Concepts: "concepts.md";
    FirstJob: "first-job.md";
    SourcesAndSinks: "sources-and-sinks.md";
    StateAndTimers: "state-and-timers.md";
    TimeAndWindows: "time-and-windows.md";
    Joins: "joins.md";
    Testing: "testing.md";
    BatchAndStream: "batch-and-stream.md";
    Backlog: "backlog.md";
    Cache: "cache.md";
    CheckpointsAndUpgrades: "checkpoints-and-upgrades.md";
    Options: "options.md";
    SwappingLayers: "swapping-layers.md";
    ComingFromFlink: "coming-from-flink.md";
    ComingFromRenoirAndTimely: "coming-from-renoir-and-timely.md";
    Limits: "limits.md";
}
