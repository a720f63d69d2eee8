//! Event time in batch mode.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slackwater::WatermarkGenerator;
use slackwater::prelude::*;

/// Declares everything late at once, and counts how often it is asked.
struct AllLate(Arc<AtomicU64>);

impl WatermarkGenerator<(u64, i64)> for AllLate {
    fn on_record(&mut self, _: &(u64, i64), _: Timestamp) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn current(&mut self) -> Option<Timestamp> {
        Some(Timestamp::from_millis(1_000_000))
    }
}

/// T5: in batch mode records far out of order lie in the windows of their timestamps, nothing is late,
/// and the program's generator of watermarks is not asked; in streaming mode it is, and most are late.
#[test]
fn in_batch_mode_nothing_is_late_and_timestamps_count() {
    for (mode, late) in [(options::RuntimeMode::Batch, 0), (options::RuntimeMode::Streaming, 900)] {
        let env = StreamExecutionEnvironment::new();
        env.set(&options::PARALLELISM, Some(1)).set(&options::RUNTIME_MODE, mode);
        let asked: Arc<AtomicU64> = Arc::default();
        let count = Arc::clone(&asked);
        let strategy = WatermarkStrategy::generator(move || Box::new(AllLate(Arc::clone(&count))))
            .with_timestamps(|row: &(u64, i64)| Timestamp::from_millis(row.1));
        let counts = env
            .generate(2_000, |i| (i % 2, i64::try_from(1_999 - i).unwrap_or(0)))
            .assign_timestamps_and_watermarks(strategy)
            .key_by(|row: &(u64, i64)| row.0)
            .window(TumblingEventTime::of(std::time::Duration::from_millis(100)))
            .aggregate(slackwater::Count)
            .name("windows")
            .execute_and_collect()
            .unwrap();
        let report = counts.report().operator("windows").unwrap();
        if mode == options::RuntimeMode::Batch {
            assert_eq!(report.late, late);
            assert_eq!(counts.len(), 40);
            assert!(counts.iter().all(|row| row.2 == 50), "{:?}", &counts[..]);
            assert_eq!(asked.load(Ordering::SeqCst), 0);
        } else {
            assert!(report.late >= late, "{}", report.late);
            assert_eq!(asked.load(Ordering::SeqCst), 2_000);
        }
    }
}
