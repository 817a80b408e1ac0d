//! What an installation comes to that nobody tampered with: sessions with decisions, its audit log, and signed heads of it.

use fastrand::Rng;
use planwright_domain::{
    actor::{OWNER, PersonId, Standing},
    digest::Digest,
    id::{GrantId, Seq},
    identity::{ChannelType, SessionKey},
    installation::{self, Installation, InstallationCommand, InstallationEvent, NewGrant},
    log::{Entry, SessionHead, beginning, head_after},
    next::Due,
    session::{Session, SessionEvent, decide},
    time::Time,
};
use planwright_outbound::signing_key::{SigningKey, has_signed};
use planwright_runtime::{
    audit::{
        check::{Checker, Finding},
        head::{SignedLine, Statement},
    },
    ports::{
        audit::Signer,
        journal::{Append, Archive, Recorded, Stream},
    },
};
use planwright_testkit::{machine, people::ada_key};
use uuid::Uuid;

/// How many sessions there are.
const SESSIONS: usize = 4;
/// How many decisions a session has at least.
const DECISIONS_MIN: usize = 3;
/// The log's entries come at so many times after the decisions.
const BEGINS: i64 = 1_700_000_000_000_000;
const MINUTE: i64 = 60_000_000;

/// A session, event by event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) key: SessionKey,
    pub(super) events: Vec<(Time, SessionEvent)>,
}

impl Told {
    /// Where its decisions stand.
    pub(super) fn decisions(&self) -> Vec<usize> {
        let is_decision =
            |event: &SessionEvent| Entry::of(event).is_some_and(|it| it.is_decision());
        let events = self.events.iter().enumerate();
        events.filter(|(_, (_, event))| is_decision(event)).map(|(index, _)| index).collect()
    }

    /// Every head that the journal names, as it comes out, with the number of the event that names it.
    pub(super) fn heads(&self) -> Vec<(Seq, Digest)> {
        let (mut head, mut heads) = (beginning(&self.key), Vec::new());
        for (seq, (at, event)) in (1..).map(Seq).zip(&self.events) {
            if let Some(entry) = Entry::of(event) {
                head = head_after(head, seq, *at, &entry);
            }
            if matches!(event, SessionEvent::Logged { .. }) {
                heads.push((seq, head));
            }
        }
        heads
    }

    /// Chains it again, with the public algorithm.
    pub(super) fn rehash(&mut self) {
        for (Seq(seq), head) in self.heads() {
            self.events[seq as usize - 1].1 = SessionEvent::Logged { head };
        }
    }

    /// With which its chain begins.
    pub(super) fn begins(&self) -> Digest {
        beginning(&self.key)
    }
}

/// All that is stored, and what was handed over of it.
#[derive(Debug, Clone)]
pub(super) struct Story {
    pub(super) sessions: Vec<Told>,
    pub(super) log: Vec<(Time, InstallationEvent)>,
    /// The lines that were kept elsewhere.
    pub(super) kept: Vec<String>,
}

impl Story {
    /// One of this seed, whose heads this key signs.
    pub(super) fn new(rng: &mut Rng, key: &SigningKey) -> anyhow::Result<Self> {
        let mut sessions = Vec::new();
        while sessions.len() < SESSIONS {
            let told = session(sessions.len(), rng.u64(..))?;
            if told.decisions().len() >= DECISIONS_MIN {
                sessions.push(told);
            }
        }
        let (mut state, mut log, mut kept) = (Installation::default(), Vec::new(), Vec::new());
        let mut at = Time(BEGINS);
        let mut ask = |state: &mut Installation, at, command: InstallationCommand| {
            let events = installation::decide(state, &command).map_err(anyhow::Error::msg)?;
            *state = state.fold(at, &events)?;
            log.extend(events.into_iter().map(|event| (at, event)));
            anyhow::Ok(())
        };
        let hash = Digest::of(b"a passphrase");
        let owner = PersonId(OWNER.into());
        ask(&mut state, at, InstallationCommand::ChooseFirst { person: owner, hash })?;
        let settings = [("approval".to_owned(), Digest::of(b"everyone"))].into();
        ask(&mut state, at, InstallationCommand::Begin { settings, key: Signer::key(key) })?;
        let mut heads: Vec<_> = sessions.iter().map(Told::heads).collect();
        while heads.iter().any(|heads| !heads.is_empty()) {
            at = at.plus_micros(MINUTE);
            let mut taken = Vec::new();
            for (told, heads) in sessions.iter().zip(&mut heads) {
                let many = rng.usize(0..=heads.len());
                if let Some((seq, head)) = heads.drain(..many).next_back() {
                    taken.push(SessionHead { session: told.begins(), seq, head });
                }
            }
            if rng.bool() {
                ask(&mut state, at, give(rng, at))?;
            }
            ask(&mut state, at, InstallationCommand::TakeHeads(taken))?;
            let head = Statement::Head { entry: state.version, head: state.head, at };
            kept.push(head.signed_by(key).text());
        }
        Ok(Self { sessions, log, kept })
    }

    /// Stores it all in an empty journal, whatever it says.
    pub(super) async fn store(&self, journal: &dyn Archive) -> anyhow::Result<()> {
        for Told { key, events } in &self.sessions {
            let numbered = (1..).map(Seq).zip(events);
            let recorded =
                numbered.map(|(seq, (at, event))| Recorded { seq, at: *at, event: event.clone() });
            let stream = Stream {
                key: key.clone(),
                events: recorded.collect(),
                answers: Default::default(),
                outputs: Default::default(),
            };
            let after = Session::new(key.clone());
            let after = Session { version: Seq(events.len() as u64), ..after };
            let append = Append {
                events: events.iter().map(|(_, event)| event.clone()).collect(),
                after,
                due: Due::Never,
                waiting: None,
                turns: None,
            };
            anyhow::ensure!(journal.restore(stream, append).await?, "{key} is there already");
        }
        for together in self.log.chunk_by(|(one, _), (other, _)| one == other) {
            let events: Vec<_> = together.iter().map(|(_, event)| event.clone()).collect();
            let decide = Box::new(move |_: &Installation| Ok(events.clone()));
            journal.append_installation(together[0].0, decide).await??;
        }
        Ok(())
    }
}

/// What is found in a journal that is compared with these lines.
pub(super) async fn found(journal: &dyn Archive, kept: &[String]) -> anyhow::Result<Vec<Finding>> {
    let read = kept.iter().map(|line| SignedLine::read(line, has_signed));
    let statements: Result<Vec<_>, _> = read.map(|line| line.map(|line| line.statement)).collect();
    let statements = statements.map_err(anyhow::Error::msg)?;
    let mut checker = Checker::new(Time(BEGINS).plus_micros(1_000 * MINUTE), statements);
    planwright_runtime::audit::log_file::check(journal, &mut checker).await?;
    Ok(checker.finish(true).into_iter().collect())
}

/// A session that came out of generated commands.
fn session(number: usize, seed: u64) -> anyhow::Result<Told> {
    let key = ada_key(&format!("cli:record-{number:04}"))?;
    let (commands, _) = machine::commands(key.clone(), seed);
    let (mut session, mut events) = (Session::new(key.clone()), Vec::new());
    for asked in commands {
        let Ok(news) = decide(&session, &asked) else { continue };
        session = session.fold(asked.at, &news)?;
        events.extend(news.into_iter().map(|event| (asked.at, event)));
    }
    Ok(Told { key, events })
}

/// Somebody gets a token.
fn give(rng: &mut Rng, now: Time) -> InstallationCommand {
    let grant = NewGrant {
        id: GrantId(Uuid::from_u128(rng.u128(..))),
        person: PersonId(OWNER.into()),
        standing: Standing::Speaks,
        surface: ChannelType::Api,
        expires: None,
        authenticated: None,
        is_page: false,
        token: None,
        details: Digest::of(&rng.u64(..).to_be_bytes()),
    };
    InstallationCommand::Give { grant, now }
}
