//! States of a savepoint against those of the program, before any task starts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use element::Record as ElementRecord;
use slackwater::prelude::*;
use slackwater::{JobError, KeyedStateBackend, ScriptStep, ScriptedSource, options};

use crate::support::{Recorded, Row, TwoPhase, streaming, wait_for};

/// Sums into a state of type `S`; keeps a note beside it where it is told to.
struct Sums<S> {
    sum: ValueState<S>,
    note: Option<ValueState<String>>,
    /// Binds when it opens, or only as it runs.
    binds: bool,
}

impl<S> KeyedProcessFunction<String, Row, Row> for Sums<S>
where
    S: ElementRecord + Clone + TryFrom<i64> + Into<i64>,
{
    fn open(&mut self, states: &mut KeyedStateBackend) -> Result<()> {
        if self.binds {
            self.sum.bind(states)?;
            if let Some(note) = &self.note {
                note.bind(states)?;
            }
        }
        Ok(())
    }

    fn process(&mut self, row: Row, context: &mut KeyedContext<'_, String, Row>) -> Result<()> {
        let sum = self.sum.get(context)?.map_or(0, Into::into) + row.1;
        let small = S::try_from(sum).ok();
        self.sum.update(context, |held| *held = small)?;
        if let Some(note) = &self.note {
            note.set(context, format!("{} rows", row.0))?;
        }
        context.collect((row.0, sum));
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Setting {
    note: bool,
    binds: bool,
    allow: bool,
}

const PLAIN: Setting = Setting { note: false, binds: true, allow: false };

/// A program's second run, or its first where there is no savepoint; counts records that are read.
fn run<S>(
    setting: Setting,
    from: Option<&Path>,
    home: &Path,
    visible: &Recorded<Row>,
    read: &Arc<AtomicU64>,
) -> Result<Option<PathBuf>, JobError>
where
    S: ElementRecord + Clone + TryFrom<i64> + Into<i64>,
{
    let stops = from.is_none();
    let env = streaming();
    env.set(&options::SAVEPOINT_PATH, from.map(|path| path.display().to_string()))
        .set(&options::ALLOW_NON_RESTORED_STATE, setting.allow);
    let row = |at: i64| ScriptStep::at(at, ("k".to_owned(), at));
    let steps = vec![row(1), row(2), ScriptStep::until(move || !stops), row(3)];
    let read = Arc::clone(read);
    env.from_source(ScriptedSource::new(steps), WatermarkStrategy::none(), "script")
        .uid("source")
        .map(move |row: Row| {
            read.fetch_add(1, Ordering::SeqCst);
            row
        })
        .uid("read")
        .key_by(|row: &Row| row.0.clone())
        .process(move || Sums::<S> {
            sum: ValueState::new("sum"),
            note: setting.note.then(|| ValueState::new("note")),
            binds: setting.binds,
        })
        .uid("sums")
        .sink_to(TwoPhase::new(visible))
        .uid("sink");
    let job = env.submit("sums")?;
    let savepoint = stops.then(|| {
        let progress = job.progress();
        wait_for("the input", || job.is_finished() || progress.records_read() >= 2);
        job.stop_with_savepoint(home).unwrap()
    });
    job.wait().map(|_| savepoint)
}

struct Stored {
    home: tempfile::TempDir,
    savepoint: PathBuf,
}

fn stored<S>(setting: Setting) -> Stored
where
    S: ElementRecord + Clone + TryFrom<i64> + Into<i64>,
{
    let home = tempfile::tempdir().unwrap();
    let savepoint = run::<S>(setting, None, home.path(), &Recorded::new(), &Arc::default());
    Stored { savepoint: savepoint.unwrap().unwrap(), home }
}

impl Stored {
    /// The result of going on, and how many records were read until then.
    fn restored<S>(&self, setting: Setting) -> (Result<Vec<Row>, JobError>, u64)
    where
        S: ElementRecord + Clone + TryFrom<i64> + Into<i64>,
    {
        let (visible, read) = (Recorded::new(), Arc::default());
        let from = Some(self.savepoint.as_path());
        let result = run::<S>(setting, from, self.home.path(), &visible, &read);
        (result.map(|_| visible.all()), read.load(Ordering::SeqCst))
    }
}

/// A sum that is stored with a name.
#[derive(Clone, Debug, Record)]
struct Named {
    name: String,
    sum: i64,
}

/// The same with a field that no longer fits.
#[derive(Clone, Debug, Record)]
struct Renumbered {
    name: u64,
    sum: i64,
}

macro_rules! as_sum {
    ($type:ty, $name:expr) => {
        impl From<i64> for $type {
            fn from(sum: i64) -> Self {
                Self { name: $name, sum }
            }
        }

        impl From<$type> for i64 {
            fn from(held: $type) -> Self {
                held.sum
            }
        }
    };
}

as_sum!(Named, String::new());
as_sum!(Renumbered, 0);

#[test]
fn a_state_whose_type_does_not_fit_is_refused_before_any_task_starts() {
    let stored = stored::<Named>(PLAIN);
    let (result, read) = stored.restored::<Renumbered>(PLAIN);
    let error = result.unwrap_err();
    assert_eq!(read, 0);
    let JobError::RestoreState { operator, source, .. } = &error else { panic!("{error}") };
    assert_eq!(operator, "sums");
    let chain: Vec<String> =
        std::iter::successors(Some(source.as_ref() as &dyn std::error::Error), |error| {
            error.source()
        })
        .map(ToString::to_string)
        .collect();
    assert_eq!(chain, ["state `sum` cannot be restored", "name: cannot read String as u64"]);
    let (result, _) = stored.restored::<Named>(PLAIN);
    assert_eq!(
        result.unwrap().last(),
        Some(&("k".to_owned(), 6)),
        "the savepoint is as good as before"
    );
}

#[test]
fn a_state_that_is_wider_now_is_restored() {
    let (result, _) = stored::<i32>(PLAIN).restored::<i64>(PLAIN);
    assert_eq!(result.unwrap().last(), Some(&("k".to_owned(), 6)));
    let (result, read) = stored::<i64>(PLAIN).restored::<i32>(PLAIN);
    assert!(matches!(result.unwrap_err(), JobError::RestoreState { .. }));
    assert_eq!(read, 0);
}

#[test]
fn a_state_removed_from_the_program_is_refused_unless_allowed() {
    let stored = stored::<i64>(Setting { note: true, ..PLAIN });
    let (result, read) = stored.restored::<i64>(PLAIN);
    let error = result.unwrap_err();
    assert_eq!(read, 0);
    assert!(matches!(error, JobError::Restore { .. }), "{error}");
    let text = error.to_string();
    for part in ["`note`", "`sums`", options::ALLOW_NON_RESTORED_STATE.key] {
        assert!(text.contains(part), "{text}");
    }
    let (result, _) = stored.restored::<i64>(Setting { allow: true, ..PLAIN });
    assert_eq!(result.unwrap().last(), Some(&("k".to_owned(), 6)));
}

/// Which states a function binds as it runs nobody knows before: they are compared then.
#[test]
fn states_bound_as_they_are_used_are_compared_then() {
    let late = Setting { binds: false, ..PLAIN };
    let stored = stored::<i64>(Setting { note: true, ..late });
    let (result, _) = stored.restored::<i64>(late);
    assert_eq!(result.unwrap().last(), Some(&("k".to_owned(), 6)), "what it uses no more is kept");
    let (result, read) = stored.restored::<i32>(late);
    assert!(matches!(result.unwrap_err(), JobError::Failed { .. }));
    assert!(read > 0);
}

#[test]
fn a_missing_snapshot_file_is_refused_before_any_task_starts() {
    let stored = stored::<i64>(PLAIN);
    let manifest = stored.savepoint.join("manifest");
    for entry in std::fs::read_dir(&stored.savepoint).unwrap() {
        let path = entry.unwrap().path();
        if path != manifest {
            std::fs::remove_file(path).unwrap();
        }
    }
    let (result, read) = stored.restored::<i64>(PLAIN);
    assert!(matches!(result.unwrap_err(), JobError::RestoreState { .. }));
    assert_eq!(read, 0);
}
