//! Who goes next: two actors that stop at named points, and a script that says in which order they pass.
//!
//! The actors are explored like a tree. A run follows the script as far as it goes and then always lets the first
//! one pass; what could have been chosen instead is noted, and becomes the script of a later run.

use std::{
    panic,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::task::JoinError;

/// What is thrown where a process would have died.
pub(crate) struct Crashed;

/// How long an actor may take from one point to the next before it counts as waiting for the other.
const STEP_MAX: Duration = Duration::from_millis(1_500);

/// A point at which an actor stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// About to read the session.
    Reads,
    /// About to ask the journal.
    Asks,
    /// Decided, and nothing stored yet.
    Decided,
    /// Stored, and nobody was told yet.
    Stored,
    /// About to act on the world.
    Acts,
    /// Acted, and nothing recorded yet.
    Acted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Walking,
    At(Point),
    Gone,
}

/// One choice of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// This actor passes.
    Pass(usize),
    /// Everything dies here.
    Crash,
}

struct State {
    stands: [Stand; 2],
    passing: Option<usize>,
    crashed: bool,
}

/// Where the actors stop.
pub(crate) struct Turnstile {
    state: Mutex<State>,
    moved: Condvar,
    /// Whether an append has the journal for itself between its decision and its commit.
    one_writer: bool,
}

impl Turnstile {
    pub(crate) fn new(one_writer: bool) -> Self {
        let state = State { stands: [Stand::Walking; 2], passing: None, crashed: false };
        Self { state: Mutex::new(state), moved: Condvar::new(), one_writer }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An actor stops here until it may pass, or dies.
    pub(crate) fn reach(&self, actor: usize, point: Point) {
        tokio::task::block_in_place(|| {
            let mut state = self.state();
            state.stands[actor] = Stand::At(point);
            self.moved.notify_all();
            while state.passing != Some(actor) && !state.crashed {
                state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.crashed {
                drop(state);
                panic::panic_any(Crashed);
            }
            state.passing = None;
            state.stands[actor] = Stand::Walking;
        });
    }

    /// An actor has done what it came for, or has died.
    pub(crate) fn leave(&self, actor: usize) {
        self.state().stands[actor] = Stand::Gone;
        self.moved.notify_all();
    }

    /// Lets the actors pass as the script says, and then one by one; every choice, and what else there was.
    pub(crate) fn play(&self, script: &[Choice]) -> Vec<(Choice, Vec<Choice>)> {
        let mut played = Vec::new();
        loop {
            let open = self.open();
            if open.is_empty() {
                return played;
            }
            let choice = script.get(played.len()).copied().unwrap_or(open[0]);
            // Nobody would ever pass, and everything would wait.
            assert!(open.contains(&choice), "{choice:?} is not to be had of {open:?}: {played:?}");
            played.push((choice, open));
            let mut state = self.state();
            match choice {
                Choice::Pass(actor) => {
                    state.passing = Some(actor);
                    self.moved.notify_all();
                    while state.passing.is_some() {
                        state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
                    }
                }
                Choice::Crash => {
                    state.crashed = true;
                    self.moved.notify_all();
                    return played;
                }
            }
        }
    }

    /// What can be chosen once everyone has stopped; nothing when everyone is gone.
    fn open(&self) -> Vec<Choice> {
        let mut state = self.state();
        loop {
            let walking = state.stands.contains(&Stand::Walking);
            if !walking {
                break;
            }
            let (waited, late) =
                self.moved.wait_timeout(state, STEP_MAX).unwrap_or_else(PoisonError::into_inner);
            state = waited;
            let someone = state.stands.iter().any(|stand| matches!(stand, Stand::At(_)));
            if late.timed_out() && someone {
                break;
            }
        }
        let decided = Stand::At(Point::Decided);
        let may_pass = |actor: &usize| match state.stands[*actor] {
            Stand::At(Point::Asks) => !(self.one_writer && state.stands[1 - *actor] == decided),
            Stand::At(_) => true,
            Stand::Walking | Stand::Gone => false,
        };
        let mut open: Vec<_> = (0..2).filter(may_pass).map(Choice::Pass).collect();
        if !open.is_empty() {
            open.push(Choice::Crash);
        }
        open
    }
}

/// The script after this one, deepest first; nothing when the tree is done.
pub(crate) fn following(mut played: Vec<(Choice, Vec<Choice>)>) -> Option<Vec<Choice>> {
    while let Some((choice, open)) = played.pop() {
        let next = open.iter().skip_while(|other| **other != choice).nth(1);
        if let Some(next) = next {
            let before = played.iter().map(|(choice, _)| *choice);
            return Some(before.chain([*next]).collect());
        }
    }
    None
}

/// Whether an order ends in a crash.
pub(crate) fn crashed(played: &[(Choice, Vec<Choice>)]) -> bool {
    played.last().is_some_and(|(choice, _)| *choice == Choice::Crash)
}

/// What an actor was told: nothing if it died, whether its own task ended or one that worked for it.
pub(crate) fn answer_of<T>(
    played: &[(Choice, Vec<Choice>)],
    told: Result<anyhow::Result<T>, JoinError>,
) -> anyhow::Result<Option<T>> {
    match told {
        Ok(Ok(told)) => Ok(Some(told)),
        Ok(Err(_)) | Err(_) if crashed(played) => Ok(None),
        Ok(Err(error)) => Err(error),
        Err(error) => Err(error.into()),
    }
}
