//! Checking the audit log and the decisions of all sessions against each other, and against heads that were kept elsewhere.
//!
//! First every entry of the log, then every session. Nothing is believed but what comes out when it is chained again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use planwright_domain::{
    digest::Digest,
    id::Seq,
    identity::SessionKey,
    installation::beginning as log_beginning,
    log::{Entry, SessionHead, beginning, head_after},
    time::Time,
};

use super::head::Statement;

/// For so long a decision may wait to be taken up.
pub const TAKEN_UP_WITHIN_MICROS: i64 = 60 * 1_000_000;

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// An entry is missing, or stands twice.
    Entry {
        /// Which should stand there.
        expected: Seq,
    },
    /// The chain comes out as another one than was kept.
    OtherHead {
        /// At this entry.
        entry: Seq,
    },
    /// What is kept of the log so that it need not be read again from its beginning is not what its entries come to.
    OtherState {
        /// After this entry.
        entry: Seq,
    },
    /// There are fewer entries than when a head was kept.
    CutLog {
        /// How many there were.
        kept: Seq,
        /// How many there are.
        found: Seq,
    },
    /// A session is gone, and nobody erased it.
    RemovedSession {
        /// The digest with which its chain began.
        session: Digest,
        /// The entry that took it up.
        entry: Seq,
    },
    /// A session is there that an entry says was erased.
    ErasedSession {
        /// Which.
        session: String,
        /// The entry.
        entry: Seq,
    },
    /// The decisions of a session are not those that were taken up or kept.
    ChangedSession {
        /// Which.
        session: String,
        /// Up to this event.
        seq: Seq,
    },
    /// A decision was handed over before it was stored, and is not there.
    NotStored {
        /// The digest with which its session's chain began.
        session: Digest,
        /// Where it would stand.
        seq: Seq,
    },
    /// A decision was not taken up in time.
    NotTakenUp {
        /// Of which session.
        session: String,
        /// Which.
        seq: Seq,
    },
    /// A line of the kept heads is of no use.
    KeptLine {
        /// Which.
        line: u64,
        /// Why.
        why: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry { expected } => {
                write!(out, "entry {expected} of the audit log is not where it should be")
            }
            Self::OtherHead { entry } => write!(
                out,
                "the audit log was changed: its entries up to {entry} are not those whose head was signed"
            ),
            Self::OtherState { entry } => write!(
                out,
                "who is let in is read from a state that entries 1 to {entry} of the audit log do not come to: somebody wrote it, or removed entries"
            ),
            Self::CutLog { kept, found } => write!(
                out,
                "the audit log was cut: it had {kept} entries when its head was signed, and has {found}"
            ),
            Self::RemovedSession { session, entry } => write!(
                out,
                "a session is gone that entry {entry} of the audit log took up, and nobody erased it ({})",
                session.short()
            ),
            Self::ErasedSession { session, entry } => write!(
                out,
                "{session} is there, and entry {entry} of the audit log says that it was erased"
            ),
            Self::ChangedSession { session, seq } => write!(
                out,
                "{session} was changed: its decisions up to event {seq} are not those that were taken up"
            ),
            Self::NotStored { session, seq } => write!(
                out,
                "a decision was handed over that is not there (event {seq} of {}): the program was cut off at that moment, or somebody removed it",
                session.short()
            ),
            Self::NotTakenUp { session, seq } => write!(
                out,
                "the decision at event {seq} of {session} is older than a minute, and the audit log did not take it up; start the server, or look into its log"
            ),
            Self::KeptLine { line, why } => {
                write!(out, "line {line} of the kept heads cannot be used: {why}")
            }
        }
    }
}

/// Something that the chain of a session must have come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Promise {
    seq: Seq,
    head: Digest,
    source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// This entry of the log took it up.
    Entry(Seq),
    /// It was handed over before it was stored.
    Handed,
}

/// Checks a log, then the sessions.
#[derive(Debug)]
pub struct Checker {
    now: Time,
    head: Digest,
    version: Seq,
    kept: BTreeMap<Seq, BTreeSet<Digest>>,
    promises: BTreeMap<Digest, Vec<Promise>>,
    erased: BTreeMap<Digest, Seq>,
    /// Up to which entry heads were kept.
    covered: Seq,
    findings: BTreeSet<Finding>,
    /// How many entries of sessions were looked at.
    pub decisions: u64,
    /// How many sessions were looked at.
    pub sessions: u64,
    /// How many sessions were erased by entries that no kept head covers.
    pub uncovered_erasures: u64,
}

impl Checker {
    /// A checker that knows what was kept elsewhere.
    #[must_use]
    pub fn new(now: Time, kept: impl IntoIterator<Item = Statement>) -> Self {
        let mut checker = Self {
            now,
            head: log_beginning(),
            version: Seq(0),
            kept: BTreeMap::new(),
            promises: BTreeMap::new(),
            erased: BTreeMap::new(),
            covered: Seq(0),
            findings: BTreeSet::new(),
            decisions: 0,
            sessions: 0,
            uncovered_erasures: 0,
        };
        for statement in kept {
            match statement {
                Statement::Head { entry, head, .. } => {
                    checker.kept.entry(entry).or_default().insert(head);
                    checker.covered = checker.covered.max(entry);
                }
                Statement::Decision { of, .. } => checker.promise(of, Source::Handed),
                Statement::NotStored { of: SessionHead { session, seq, head }, .. } => {
                    let handed = Promise { seq, head, source: Source::Handed };
                    checker.promises.entry(session).or_default().retain(|known| *known != handed);
                }
            }
        }
        checker
    }

    /// Something about the kept heads themselves.
    pub fn find(&mut self, finding: Finding) {
        self.findings.insert(finding);
    }

    /// How far the log has come, and its head.
    #[must_use]
    pub fn log_head(&self) -> (Seq, Digest) {
        (self.version, self.head)
    }

    fn promise(&mut self, SessionHead { session, seq, head }: SessionHead, source: Source) {
        self.promises.entry(session).or_default().push(Promise { seq, head, source });
    }

    /// The next entry of the audit log.
    pub fn entry(&mut self, seq: Seq, at: Time, entry: &Entry) {
        let expected = self.version.following();
        if seq != expected {
            self.findings.insert(Finding::Entry { expected });
        }
        self.version = seq;
        self.head = head_after(self.head, seq, at, entry);
        if let Some(kept) = self.kept.remove(&seq)
            && (kept.len() > 1 || !kept.contains(&self.head))
        {
            self.findings.insert(Finding::OtherHead { entry: seq });
        }
        match entry.kind.as_str() {
            // What is written while sessions are looked at may be of one that was looked at before.
            "head_taken" if self.sessions > 0 => {}
            "head_taken" | "session_erased" => match head_of(entry) {
                Some(head) if entry.kind == "head_taken" => {
                    self.promise(head, Source::Entry(seq));
                }
                Some(head) => self.erase(seq, head),
                None => drop(self.findings.insert(Finding::Entry { expected: seq })),
            },
            _ => {}
        }
    }

    /// A session was erased: what it had come to by then is excused, and nothing after it.
    fn erase(&mut self, entry: Seq, SessionHead { session, seq, .. }: SessionHead) {
        if self.erased.insert(session, entry).is_some() {
            self.findings.insert(Finding::Entry { expected: entry });
        }
        self.uncovered_erasures += u64::from(entry > self.covered);
        if let Some(promises) = self.promises.get_mut(&session) {
            promises.retain(|promise| promise.seq > seq);
        }
    }

    /// A session, whose entries come next.
    #[must_use]
    pub fn session(&mut self, key: &SessionKey) -> SessionCheck<'_> {
        self.sessions += 1;
        let begins = beginning(key);
        if let Some(entry) = self.erased.get(&begins) {
            let (session, entry) = (key.to_string(), *entry);
            self.findings.insert(Finding::ErasedSession { session, entry });
        }
        let mut promises = self.promises.remove(&begins).unwrap_or_default();
        promises.sort_unstable();
        promises.reverse();
        let last = promises.iter().find(|known| known.source != Source::Handed);
        let taken = last.map_or(Seq(0), |last| last.seq);
        let name = key.to_string();
        SessionCheck { name, begins, head: begins, promises, taken, checker: self }
    }

    /// What was found, once every entry was looked at, and every session or some of them.
    #[must_use]
    pub fn finish(mut self, is_whole: bool) -> BTreeSet<Finding> {
        if let Some((kept, _)) = self.kept.last_key_value() {
            let (kept, found) = (*kept, self.version);
            self.findings.insert(Finding::CutLog { kept, found });
        }
        for (session, promises) in &self.promises {
            if !is_whole {
                continue;
            }
            for promise in promises {
                let session = *session;
                self.findings.insert(match promise.source {
                    Source::Entry(entry) => Finding::RemovedSession { session, entry },
                    Source::Handed => Finding::NotStored { session, seq: promise.seq },
                });
            }
        }
        self.findings
    }
}

/// Checks one session.
#[derive(Debug)]
pub struct SessionCheck<'a> {
    name: String,
    begins: Digest,
    head: Digest,
    /// The first comes last.
    promises: Vec<Promise>,
    /// Up to which event it was taken up.
    taken: Seq,
    checker: &'a mut Checker,
}

impl SessionCheck<'_> {
    /// The next of its entries; the head after it.
    pub fn entry(&mut self, seq: Seq, at: Time, entry: &Entry) -> Digest {
        self.keep_promises(seq);
        self.checker.decisions += 1;
        self.head = head_after(self.head, seq, at, entry);
        let waits = self.checker.now.0.saturating_sub(at.0);
        if entry.is_decision() && seq > self.taken && waits > TAKEN_UP_WITHIN_MICROS {
            let session = self.name.clone();
            self.checker.findings.insert(Finding::NotTakenUp { session, seq });
        }
        self.head
    }

    /// What its journal says the head is at this place.
    pub fn anchor(&mut self, seq: Seq, head: Digest) {
        if head != self.head {
            let session = self.name.clone();
            self.checker.findings.insert(Finding::ChangedSession { session, seq });
        }
    }

    /// There are no more.
    pub fn end(mut self) {
        self.keep_promises(Seq(u64::MAX));
    }

    /// Looks at all that the chain must have come to before this event.
    fn keep_promises(&mut self, before: Seq) {
        while let Some(promise) = self.promises.pop_if(|promise| promise.seq < before) {
            if promise.head != self.head {
                let seq = promise.seq;
                self.checker.findings.insert(match promise.source {
                    Source::Entry(_) => Finding::ChangedSession { session: self.name.clone(), seq },
                    Source::Handed => Finding::NotStored { session: self.begins, seq },
                });
            }
        }
    }
}

fn head_of(entry: &Entry) -> Option<SessionHead> {
    let [seq, head, ..] = entry.arguments.as_slice() else { return None };
    let session = Digest::parse(&entry.subject)?;
    Some(SessionHead { session, seq: Seq(seq.parse().ok()?), head: Digest::parse(head)? })
}
