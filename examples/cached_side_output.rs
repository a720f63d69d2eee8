//! A side output kept by itself: what a first job put aside, a later one looks into.
//!
//! Run: `cargo run --example cached_side_output`

use slackwater::prelude::*;

/// Sends good readings on and puts the others aside.
struct Check {
    doubtful: SideTag<(String, i64)>,
}

impl KeyedProcessFunction<String, (String, i64), (String, i64)> for Check {
    fn process(
        &mut self,
        reading: (String, i64),
        context: &mut KeyedContext<'_, String, (String, i64)>,
    ) -> Result<()> {
        match reading.1 {
            -40..=60 => context.collect(reading),
            _ => context.side_output(&self.doubtful, reading),
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let env = StreamExecutionEnvironment::new();
    let readings = [("quay", 12), ("buoy", 999), ("quay", 13), ("buoy", -273), ("pier", 9)];
    let tag = SideTag::new("doubtful");
    let of = tag.clone();
    let checked = env
        .from_collection(readings.map(|(place, degrees)| (place.to_owned(), degrees)))
        .key_by(|(place, _)| place.clone())
        .process(move || Check { doubtful: of.clone() })
        .name("check");
    let doubtful = checked.side_output(&tag).cache();

    let good = checked.union(doubtful.filter(|_| false)).execute_and_collect()?;
    assert_eq!(good.len(), 3, "the main output is unaffected");
    let by_place = doubtful.key_by(|(place, _)| place.clone()).count().execute_and_collect()?;
    println!("doubtful by place: {:?}", by_place.top(3));
    assert_eq!(by_place.top(3), [("buoy".to_owned(), 2)]);
    assert!(by_place.report().cache("check/doubtful").is_some_and(|cache| cache.is_hit()));
    Ok(env.close()?)
}
