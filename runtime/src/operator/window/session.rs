//! [`Sessions`]: the merging windows of a key, and where the contents of each are.
//!
//! A session that grows keeps its contents where they are: in the namespace of the window that it
//! began as. Which that is stands in keyed state and is written with each change, so that every
//! snapshot has it (tW10).
//!
//! **Invariant:** no two sessions of a key touch; they are in order of time.

use element::Timestamp;
use state::{KeyedStateBackend, StateAccess, ValueState};

use super::bounds::Window;

/// A session's window and the window whose namespace holds its contents.
type Stored = (Timestamp, Timestamp, Timestamp, Timestamp);

/// One open session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) window: Window,
    pub(super) home: Window,
}

/// What adding a window has done.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Merge {
    /// The session that the window belongs to.
    pub(super) session: Session,
    /// The sessions that it has taken in, in order of time; one of the same window if nothing grew.
    pub(super) taken: Vec<Session>,
}

impl Merge {
    /// Whether the record lies inside a session that is as it was.
    pub(super) fn is_inside(&self) -> bool {
        matches!(&*self.taken, [only] if only.window == self.session.window)
    }
}

/// The sessions of the key at hand.
#[derive(Debug)]
pub(super) struct Sessions {
    state: ValueState<Vec<Stored>>,
}

impl Sessions {
    pub(super) fn new() -> Self {
        Self { state: ValueState::new("window sessions") }
    }

    pub(super) fn bind(&self, backend: &mut KeyedStateBackend) -> anyhow::Result<()> {
        Ok(self.state.bind(backend)?)
    }

    /// What adding `window` would come to. Changes nothing.
    pub(super) fn plan(
        &self,
        context: &mut impl StateAccess,
        window: Window,
    ) -> anyhow::Result<Merge> {
        let taken: Vec<Session> = self.all(context)?;
        let taken: Vec<Session> =
            taken.into_iter().filter(|session| session.window.touches(window)).collect();
        let merged = taken.iter().fold(window, |sum, session| sum.cover(session.window));
        let home = taken.first().map_or(window, |session| session.home);
        Ok(Merge { session: Session { window: merged, home }, taken })
    }

    /// Writes what was planned.
    pub(super) fn commit(
        &self,
        context: &mut impl StateAccess,
        merge: &Merge,
    ) -> anyhow::Result<()> {
        Ok(self.state.update(context, |held| {
            let sessions = held.get_or_insert_default();
            sessions.retain(|stored| {
                let window = session_of(*stored).window;
                !merge.taken.iter().any(|taken| taken.window == window)
            });
            let place = sessions
                .partition_point(|stored| session_of(*stored).window < merge.session.window);
            sessions.insert(place, stored_of(merge.session));
        })?)
    }

    /// The home of a session; `None` if there is no session of this window any more.
    pub(super) fn home(
        &self,
        context: &mut impl StateAccess,
        window: Window,
    ) -> anyhow::Result<Option<Window>> {
        let sessions = self.all(context)?;
        Ok(sessions.into_iter().find(|session| session.window == window).map(|found| found.home))
    }

    /// Forgets a session.
    pub(super) fn remove(
        &self,
        context: &mut impl StateAccess,
        window: Window,
    ) -> anyhow::Result<()> {
        Ok(self.state.update(context, |held| {
            if let Some(sessions) = held {
                sessions.retain(|stored| session_of(*stored).window != window);
            }
            *held = held.take().filter(|sessions| !sessions.is_empty());
        })?)
    }

    fn all(&self, context: &mut impl StateAccess) -> anyhow::Result<Vec<Session>> {
        let stored = self.state.get(context)?.unwrap_or_default();
        Ok(stored.into_iter().map(session_of).collect())
    }
}

fn session_of((start, end, home_start, home_end): Stored) -> Session {
    Session { window: Window::new(start, end), home: Window::new(home_start, home_end) }
}

fn stored_of(session: Session) -> Stored {
    let Session { window, home } = session;
    (window.start(), window.end(), home.start(), home.end())
}

#[cfg(test)]
mod tests {
    use element::{KeyGroups, MaxParallelism, hash_key_bytes, key_bytes};

    use super::*;

    fn window(start: i64, end: i64) -> Window {
        Window::new(Timestamp(start), Timestamp(end))
    }

    #[test]
    fn a_record_between_two_sessions_joins_them_at_the_home_of_the_first() {
        let mut backend = KeyedStateBackend::heap(KeyGroups::all(MaxParallelism::DEFAULT));
        let key = key_bytes(&1_u64);
        backend.set_current_key(hash_key_bytes(&key), &key);
        let sessions = Sessions::new();
        for alone in [window(18, 28), window(0, 10)] {
            let merge = sessions.plan(&mut backend, alone).unwrap();
            assert_eq!(merge.taken, []);
            sessions.commit(&mut backend, &merge).unwrap();
        }
        let merge = sessions.plan(&mut backend, window(9, 19)).unwrap();
        assert_eq!(merge.session, Session { window: window(0, 28), home: window(0, 10) });
        assert_eq!(merge.taken.len(), 2);
        assert!(!merge.is_inside());
        sessions.commit(&mut backend, &merge).unwrap();
        assert_eq!(sessions.home(&mut backend, window(0, 10)).unwrap(), None);
        assert_eq!(sessions.home(&mut backend, window(0, 28)).unwrap(), Some(window(0, 10)));
        assert!(sessions.plan(&mut backend, window(3, 13)).unwrap().is_inside());
        sessions.remove(&mut backend, window(0, 28)).unwrap();
        assert_eq!(sessions.plan(&mut backend, window(3, 13)).unwrap().taken, []);
    }
}
