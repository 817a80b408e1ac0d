//! Named points at which a test may kill the process.
//!
//! Without the feature `failpoints` a hit is nothing at all. With it, the environment variable
//! `PLANWRIGHT_FAILPOINT=name:n` kills the process, as `kill -9` would, at the n-th hit of that
//! point: no destructor runs, no buffer is flushed. `PLANWRIGHT_FREEZEPOINT=name:n` stops it there
//! instead, until it is told to continue. `PLANWRIGHT_HANGPOINT=name:n` lets only the thread that came there hang,
//! for good.

/// A mistake that a proof makes on purpose, to show that it would be noticed. The environment variable
/// `PLANWRIGHT_MUTANT` names it; without the feature `failpoints` there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The journal syncs at checkpoints instead of at commits.
    SynchronousNormal,
    /// The journal acknowledges before it has committed.
    AnswerBeforeCommit,
    /// The journal leaves what is deleted in its file.
    LeavesDeleted,
}

impl Mutant {
    /// Whether this mistake is made.
    #[cfg(feature = "failpoints")]
    #[must_use]
    pub fn is_on(self) -> bool {
        use std::sync::OnceLock;
        static NAMED: OnceLock<Option<String>> = OnceLock::new();
        let named = NAMED.get_or_init(|| std::env::var("PLANWRIGHT_MUTANT").ok());
        let name = match self {
            Self::SynchronousNormal => "synchronous-normal",
            Self::AnswerBeforeCommit => "answer-before-commit",
            Self::LeavesDeleted => "leaves-deleted",
        };
        named.as_deref() == Some(name)
    }

    /// Whether this mistake is made: never.
    #[cfg(not(feature = "failpoints"))]
    #[inline]
    #[must_use]
    pub fn is_on(self) -> bool {
        false
    }
}

/// What a mistake does beside a slow disk: whoever was answered hears it before anything is committed.
#[cfg(feature = "failpoints")]
#[expect(
    clippy::disallowed_methods,
    reason = "the writer has a thread of its own, which waits as it would for a disk"
)]
pub fn slow_disk() {
    std::thread::sleep(std::time::Duration::from_millis(30));
}

/// What a mistake does beside a slow disk: nothing, as there is no mistake.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn slow_disk() {}

/// Every point that work comes to, for the proof that visits them all.
pub const POINTS: [&str; 25] = [
    "dispatch.before_append",
    "dispatch.after_append",
    "dispatch.before_wake",
    "journal.before_begin",
    "journal.after_events",
    "journal.after_snapshot",
    "journal.before_commit",
    "journal.after_commit",
    "journal.before_acknowledge",
    "lane.before_advance",
    "lane.after_advance",
    "advance.before_turn",
    "advance.before_plan_tool",
    "model.before_start",
    "model.after_start",
    "model.mid_stream",
    "model.before_record",
    "tool.before_start",
    "tool.after_start",
    "tool.mid_act",
    "tool.before_record",
    "tool.after_record",
    "audit.before_entries",
    "audit.after_entries",
    "audit.after_commit",
];

/// Those of an erasure, for the proof that deletes.
pub const ERASE_POINTS: [&str; 3] = ["erase.before_rows", "erase.after_rows", "erase.before_scrub"];

/// A hit of a named point.
#[cfg(feature = "failpoints")]
#[expect(clippy::disallowed_methods, reason = "a process that waits for its end does nothing else")]
pub fn hit(name: &'static str) {
    use rustix::process::Signal;
    use std::sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    };
    type Armed = OnceLock<Option<(String, AtomicU64)>>;
    static KILL: Armed = OnceLock::new();
    static FREEZE: Armed = OnceLock::new();
    static HANG: Armed = OnceLock::new();
    let points = [
        (&KILL, "PLANWRIGHT_FAILPOINT", Some(Signal::KILL)),
        (&FREEZE, "PLANWRIGHT_FREEZEPOINT", Some(Signal::STOP)),
        (&HANG, "PLANWRIGHT_HANGPOINT", None),
    ];
    for (point, variable, signal) in points {
        let armed = point.get_or_init(|| {
            let text = std::env::var(variable).ok()?;
            let (name, count) = text.split_once(':')?;
            Some((name.to_owned(), AtomicU64::new(count.parse().ok()?)))
        });
        if let Some((armed, left)) = armed
            && armed == name
            && left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            let Some(signal) = signal else {
                loop {
                    std::thread::park();
                }
            };
            let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
            // The signal may reach another thread first; this one must not go on meanwhile.
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

/// A hit of a named point: nothing at all.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn hit(_name: &'static str) {}
