//! Any commands, in any order: generated sequences against the pure domain, each with a seed.
//!
//! [`play`] runs one sequence and says what was hit, or which invariant broke. The generator
//! favours what leads on, so that late statuses are reached, and mixes in what must be refused:
//! stale digests, people who may not decide, reports about things that are no longer the case.

use std::{collections::BTreeMap, sync::Arc};

use fastrand::Rng;
use planwright_domain::{
    command::{Asked, PersonCommand, SessionCommand},
    identity::SessionIdentity,
    plan::Strategy,
    policy::Policy,
    session::{Session, SessionEvent, decide},
    time::Time,
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

/// Plays the sequence of this seed; in words, what broke.
pub fn play(seed: u64, hits: &mut Hits) -> Result<Played, String> {
    let mut rng = Rng::with_seed(seed);
    let length = rng.usize(COMMANDS_MIN..=COMMANDS_MAX);
    let identity = SessionIdentity::parse("cli:machine-1").map_err(|error| error.to_string())?;
    let mut session = Session::new(identity.clone());
    let mut events: Vec<SessionEvent> = Vec::new();
    let mut watcher = Watcher::default();
    let strategies = [Strategy::Document, Strategy::Collect, Strategy::Build];
    let mut generator = Generator::new(strategies[(seed % 3) as usize]);
    let mut played = Played::default();
    let seconds = |rng: &mut Rng| (rng.u8(0..4) == 0).then(|| rng.i64(1..60) * 1_000_000);
    let policy = Policy {
        people: if rng.u8(0..8) == 0 { ["ada".to_owned()].into() } else { [].into() },
        surfaces: if rng.u8(0..8) == 0 { ["cli".to_owned()].into() } else { [].into() },
        remind_micros: seconds(&mut rng),
        expires_micros: seconds(&mut rng),
    };
    let policy = Arc::new(policy);
    for at in 0..length {
        let (name, command) = generator.next(&mut rng, &session);
        let status = generate::status(&session);
        *hits.entry((status, name)).or_default() += 1;
        played.commands += 1;
        let now = Time(1_000_000 + at as i64 * 1_000_000);
        let asked = Asked::new(Uuid::from_u128(rng.u128(..)), now, command).under(policy.clone());
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
        session = news
            .iter()
            .try_fold(session, Session::evolve)
            .map_err(|error| broke(error.to_string()))?;
        watcher.after(&session, &asked.command, &news).map_err(broke)?;
        events.extend(news);
        played.accepted += 1;
    }
    let broke = |what: &str| format!("seed {seed}: {what}");
    let again =
        Session::new(identity.clone()).fold(&events).map_err(|error| broke(&error.to_string()))?;
    if again != session {
        return Err(broke("replay-equals-state: folding the journal gives another state"));
    }
    if seed.is_multiple_of(97) {
        let stored = serde_json::to_string(&events).map_err(|error| error.to_string())?;
        let stored: Vec<SessionEvent> =
            serde_json::from_str(&stored).map_err(|error| error.to_string())?;
        if Session::new(identity).fold(&stored).as_ref() != Ok(&session) {
            return Err(broke("replay-equals-state: the stored journal gives another state"));
        }
    }
    Ok(played)
}
