//! Any commands, in any order: generated sequences against the pure domain, each with a seed.
//!
//! [`play`] runs one sequence and says what was hit, or which invariant broke. The generator
//! favours what leads on, so that late statuses are reached, and mixes in what must be refused:
//! stale digests, people who may not decide, reports about things that are no longer the case.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::people::ada_key;
use fastrand::Rng;
use planwright_domain::{
    actor::PersonId,
    command::{Issued, PersonCommand, SessionCommand},
    identity::{Root, SessionKey},
    plan::Strategy,
    policy::Policy,
    quota::{Quota, QuotaUse, Used},
    session::{Session, SessionEvent, decide},
    time::Time,
};
use planwright_format::{
    FormatError,
    body::Packer,
    event::{EventPlace, known_level, read_event},
};
use uuid::Uuid;

mod generate;
mod watch;

use generate::Generator;
pub use generate::{COMMANDS, STATUSES};
use watch::Watcher;

/// The fewest commands of one sequence.
pub const COMMANDS_MIN: usize = 30;
/// The most commands of one sequence.
pub const COMMANDS_MAX: usize = 80;

/// How often each command met each status.
pub type Hits = BTreeMap<(&'static str, &'static str), u64>;

/// What one sequence came to.
#[derive(Debug, Default)]
pub struct Played {
    /// How many commands were asked.
    pub commands: u64,
    /// How many of them were accepted.
    pub accepted: u64,
}

/// The commands of a seed, one after the other, as they fit the session that came of those before.
struct Sequence {
    rng: Rng,
    length: usize,
    at: usize,
    generator: Generator,
    policy: Arc<Policy>,
}

impl Sequence {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let length = rng.usize(COMMANDS_MIN..=COMMANDS_MAX);
        let strategies = [Strategy::Document, Strategy::Collect, Strategy::Build];
        let generator = Generator::new(strategies[(seed % 3) as usize]);
        let seconds = |rng: &mut Rng| (rng.u8(0..4) == 0).then(|| rng.i64(1..60) * 1_000_000);
        let policy = Policy {
            people: if rng.u8(0..8) == 0 { ["ada".to_owned()].into() } else { [].into() },
            surfaces: if rng.u8(0..8) == 0 { ["cli".to_owned()].into() } else { [].into() },
            remind_micros: seconds(&mut rng),
            expires_micros: seconds(&mut rng),
            roots: if rng.bool() { vec![Root("/work".into())] } else { Vec::new() },
            ..Policy::default()
        };
        Self { rng, length, at: 0, generator, policy: Arc::new(policy) }
    }

    /// The next command, and what it is called.
    fn next(&mut self, session: &Session) -> Option<(&'static str, Issued<SessionCommand>)> {
        if self.at == self.length {
            return None;
        }
        let (name, command) = self.generator.next(&mut self.rng, session);
        let now = Time(1_000_000 + self.at as i64 * 1_000_000);
        self.at += 1;
        let id = Uuid::from_u128(self.rng.u128(..));
        let issued = Issued::new(id, now, command).under(self.policy.clone());
        Some((name, issued.with_quota(quota(&mut self.rng))))
    }
}

/// How the owner stands with what they may use: seldom near a limit, more seldom at it.
fn quota(rng: &mut Rng) -> Option<Arc<QuotaUse>> {
    let tokens = rng.u64(0..2_000);
    let quota = Quota { tokens: Some(1_950), ..Quota::default() };
    let used = Used { tokens, ..Used::default() };
    let owner = PersonId("ada".into());
    (tokens > 1_500).then(|| Arc::new(QuotaUse { owner, quota, used }))
}

/// The commands of this seed, for a session of this identity, and the kinds of events that they lead to.
#[must_use]
pub fn commands(
    identity: SessionKey,
    seed: u64,
) -> (Vec<Issued<SessionCommand>>, BTreeSet<&'static str>) {
    let (mut session, mut sequence) = (Session::new(identity), Sequence::new(seed));
    let (mut all, mut kinds) = (Vec::new(), BTreeSet::new());
    while let Some((_, asked)) = sequence.next(&session) {
        if let Ok(news) = decide(&session, &asked)
            && let Ok(after) = session.fold(asked.at, &news)
        {
            kinds.extend(news.iter().map(SessionEvent::kind));
            session = after;
        }
        all.push(asked);
    }
    (all, kinds)
}

/// These events, stored and read again.
fn stored(
    identity: &SessionKey,
    events: &[SessionEvent],
) -> Result<Vec<SessionEvent>, FormatError> {
    let mut packer = Packer::new().map_err(|error| FormatError::Unwritable(error.to_string()))?;
    let session = identity.to_string();
    let again = (1..).zip(events).map(|(seq, event)| {
        let place = EventPlace { stream: &session, seq, at: 1 };
        let stored = packer.seal_event(place, event, known_level())?;
        read_event(place, stored.kind, &stored.body)
    });
    again.collect()
}

/// Plays the sequence of this seed; in words, what broke.
pub fn play(seed: u64, hits: &mut Hits) -> Result<Played, String> {
    let identity = ada_key("cli:machine-1").map_err(|error| error.to_string())?;
    let mut session = Session::new(identity.clone());
    let (mut events, mut times): (Vec<SessionEvent>, Vec<Time>) = (Vec::new(), Vec::new());
    let mut watcher = Watcher::default();
    let mut played = Played::default();
    let mut sequence = Sequence::new(seed);
    while let Some((name, asked)) = sequence.next(&session) {
        let (at, policy) = (played.commands, &asked.policy);
        let status = generate::status(&session);
        *hits.entry((status, name)).or_default() += 1;
        played.commands += 1;
        let decided = decide(&session, &asked);
        let broke =
            |what: String| format!("seed {seed}, command {at} ({name} in {status}): {what}");
        let Ok(news) = decided else {
            continue;
        };
        if let SessionCommand::Person(person, PersonCommand::Decide(_)) = &asked.command
            && !policy.admits(person)
        {
            return Err(broke("someone decided whom the policy does not admit".into()));
        }
        watcher.before(&session, &asked.command, &news).map_err(broke)?;
        session = session.fold(asked.at, &news).map_err(|error| broke(error.to_string()))?;
        watcher.after(&session, &asked.command, &news).map_err(broke)?;
        times.extend(news.iter().map(|_| asked.at));
        events.extend(news);
        played.accepted += 1;
    }
    let broke = |what: &str| format!("seed {seed}: {what}");
    let again = Session::new(identity.clone()).fold_all(times.into_iter().zip(&events));
    let again = again.map_err(|error| broke(&error.to_string()))?;
    if again != session {
        return Err(broke("replay-equals-state: folding the journal gives another state"));
    }
    if seed.is_multiple_of(97) {
        let read = stored(&identity, &events).map_err(|error| broke(&error.to_string()))?;
        if read != events {
            return Err(broke("replay-equals-state: an event is stored as another"));
        }
    }
    Ok(played)
}
