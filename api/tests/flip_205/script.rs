//! A session by script, harmed at each of its stages: right results, and counts of what ran again.
//!
//! ```text
//!   produce -> promote -> consume -> second consume -> invalidate -> consume -> close
//!      ^          ^          ^             ^               ^                      ^
//!      '----------'----------'-- a kill, a deletion, or a flipped bit -'----------'
//! ```

use std::cell::Cell;
use std::sync::{Mutex, mpsc};

use slackwater::CachedDataStream;
use slackwater::prelude::*;

use crate::support::*;

const ROWS: u64 = 900;

/// Tasks of a job that reads the cache: reader and collector in one.
const HIT: u64 = 1;

/// Tasks of a job without the cache: the source; the doubling that is kept, with its consumers.
const COMPUTED: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The producing job runs: the parts are written, and not promoted.
    Produce,
    /// They have been promoted.
    Promote,
    /// A job reads them.
    Consume,
    /// Another job has read them.
    SecondConsume,
    /// They are given up next.
    Invalidate,
    /// The environment is closed next.
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    Kill,
    Delete,
    Flip,
}

/// What is harmed, and when.
struct Session {
    env: StreamExecutionEnvironment,
    cached: CachedDataStream<u64>,
    calls: Calls,
    stage: Stage,
    harm: Harm,
    /// Rows of the parts that a killed worker held.
    lost: Cell<u64>,
}

impl Session {
    fn new(stage: Stage, harm: Harm) -> Self {
        let (env, calls) = (env(3, 2), Calls::default());
        let cached = doubled(&env, ROWS, &calls).cache();
        Self { env, cached, calls, stage, harm, lost: Cell::new(0) }
    }

    /// Does the harm if this is its stage.
    fn at(&self, stage: Stage) {
        if self.stage != stage {
            return;
        }
        let (cluster, id) = (self.env.cluster().unwrap(), self.cached.data_set());
        // The last part: the first may be read just now.
        let parts = u32::try_from(cluster.partition_files(id).len() / 2).unwrap();
        let last = parts - 1;
        match self.harm {
            Harm::Delete => remove(&self.env, &self.cached, last),
            Harm::Flip => flip(&data_file(&self.env, id, last)),
            Harm::Kill => {
                let home = |worker| cluster.directory().join(format!("worker-{worker}"));
                let file = data_file(&self.env, id, last);
                let mut workers = cluster.workers().into_iter();
                let holder = workers.find(|worker| file.starts_with(home(*worker))).unwrap();
                let held = |part: &u32| data_file(&self.env, id, *part).starts_with(home(holder));
                let lost = (0..parts).filter(held).count() as u64;
                self.lost.set(lost * ROWS / u64::from(parts));
                assert!(cluster.kill(holder).unwrap());
            }
        }
    }

    /// Runs a job over the cached stream that is held at its first record, for harm to be done.
    fn consume_and(&self, stage: Stage) -> Vec<u64> {
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let gate = Mutex::new(Some((begun, may_go)));
        // Behind an exchange: what is above has ended when the first record comes.
        let read = self.cached.key_by(|n| *n).count().map(move |(n, count)| {
            assert_eq!(count, 1, "no row twice");
            if let Some((begun, may_go)) = gate.lock().unwrap().take() {
                begun.send(()).unwrap();
                may_go.recv().unwrap();
            }
            n
        });
        std::thread::scope(|scope| {
            let job = scope.spawn(|| read.execute_and_collect().unwrap());
            has_begun.recv().unwrap();
            self.at(stage);
            go.send(()).unwrap();
            job.join().unwrap().sorted()
        })
    }

    /// As [`consume_and`](Self::consume_and), held while the first part is read, the others unopened;
    /// answers how many tasks were started.
    fn read_and(&self, stage: Stage) -> u64 {
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let gate = Mutex::new(Some((begun, may_go)));
        let read = self.cached.map(move |n| {
            if let Some((begun, may_go)) = gate.lock().unwrap().take() {
                begun.send(()).unwrap();
                may_go.recv().unwrap();
            }
            n
        });
        std::thread::scope(|scope| {
            let job = scope.spawn(|| read.execute_and_collect().unwrap());
            has_begun.recv().unwrap();
            self.at(stage);
            go.send(()).unwrap();
            let rows = job.join().unwrap();
            let tasks = rows.report().tasks;
            assert_eq!(rows.sorted(), doubles(ROWS), "{:?} at {:?}", self.harm, self.stage);
            tasks
        })
    }

    #[track_caller]
    fn consume(&self) -> u64 {
        let rows = self.cached.execute_and_collect().unwrap();
        let tasks = rows.report().tasks;
        assert_eq!(rows.sorted(), doubles(ROWS), "{:?} at {:?}", self.harm, self.stage);
        tasks
    }

    /// Runs the script; answers how many rows were computed before the cache was given up, but for
    /// those that the producing job itself had to make again.
    fn run(self) -> u64 {
        assert_eq!(self.consume_and(Stage::Produce), doubles(ROWS));
        self.at(Stage::Promote);
        // One reader, which opens a part when the one before is read.
        self.env.set(&options::PARALLELISM, Some(1));
        let harmed = |stage| (self.stage == stage).then_some(self.harm);
        let tasks = self.read_and(Stage::Consume);
        match (self.stage, self.harm) {
            (Stage::Produce, Harm::Kill) => assert_eq!(tasks, HIT),
            (Stage::Promote, Harm::Kill) => assert_eq!(tasks, COMPUTED),
            // The reader itself may have run on the worker.
            (Stage::Consume, Harm::Kill) => {
                assert!((HIT + COMPUTED..=HIT + COMPUTED + 1).contains(&tasks), "{tasks}")
            }
            (Stage::Produce | Stage::Promote | Stage::Consume, _) => {
                assert_eq!(tasks, HIT + COMPUTED, "{:?} at {:?}", self.harm, self.stage);
            }
            _ => assert_eq!(tasks, HIT),
        }
        self.at(Stage::SecondConsume);
        let expected = match harmed(Stage::SecondConsume) {
            Some(Harm::Kill) => COMPUTED,
            Some(_) => HIT + COMPUTED,
            None => HIT,
        };
        assert_eq!(self.consume(), expected, "{:?} at {:?}", self.harm, self.stage);
        assert_eq!(self.consume(), HIT);
        let before = self.calls.get();
        self.at(Stage::Invalidate);
        self.cached.invalidate().unwrap();
        assert!(self.env.datasets().is_empty());
        self.consume();
        assert_eq!(self.calls.get(), before + ROWS, "given up, and computed once");
        self.at(Stage::Close);
        let directory = self.env.cluster().unwrap().directory().to_owned();
        self.env.close().unwrap();
        assert!(!directory.exists(), "{:?} at {:?} leaves files", self.harm, self.stage);
        before - if self.stage == Stage::Produce { self.lost.get() } else { 0 }
    }
}

/// A15, A16, A17, A18, A19, A20, P2, P10, P11, P12 as one story: every kind of harm at every stage.
#[test]
fn a_session_harmed_at_any_stage_ends_in_right_results() {
    use Harm::{Delete, Flip, Kill};
    use Stage::{Close, Consume, Invalidate, Produce, Promote, SecondConsume};
    for stage in [Produce, Promote, Consume, SecondConsume, Invalidate, Close] {
        for harm in [Kill, Delete, Flip] {
            let computed = Session::new(stage, harm).run();
            let expected = match stage {
                Produce if harm == Kill => ROWS,
                // One run for the cache, and one more once it was lost.
                Produce | Promote | Consume | SecondConsume => 2 * ROWS,
                Invalidate | Close => ROWS,
            };
            assert_eq!(computed, expected, "{harm:?} at {stage:?}");
        }
    }
}
