//! Log, journal and ledger, held against each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use planwright_domain::{
    command::{PersonCommand, SessionCommand},
    id::{CallId, Seq},
    identity::SessionIdentity,
    next::{Waiting, waiting},
    plan::event::PlanEvent,
    session::{Session, SessionEvent},
    turn::event::{Arrival, TurnEvent},
};
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::{
    dispatch::dispatch,
    ports::journal::{Answer, Journal, Recorded},
};

use super::{Acknowledged, Campaign, journal_path};
use crate::ledger;

/// What was found.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Acknowledged commands that the journal does not hold, or holds differently.
    pub lost: Vec<String>,
    /// Effects that happened more than once, or without a recorded start.
    pub repeated: Vec<String>,
    /// Effects that happened and whose outcome the journal neither knows nor doubts.
    pub unexplained: Vec<String>,
    /// How many calls were shown in doubt.
    pub in_doubt: usize,
    /// How many effects happened.
    pub effects: usize,
    /// How many approvals wait, and can be decided.
    pub pending: usize,
    /// Pending approvals that cannot be decided.
    pub undecidable: Vec<String>,
}

impl Verdict {
    /// Whether every promise was kept.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.lost.is_empty()
            && self.repeated.is_empty()
            && self.unexplained.is_empty()
            && self.undecidable.is_empty()
    }
}

/// Looks at everything that is left of a campaign.
pub async fn verdict(campaign: &Campaign) -> anyhow::Result<Verdict> {
    let journal = SqliteJournal::open(&journal_path(&campaign.data()))?;
    let sessions: Vec<_> = Campaign::sessions().collect();
    judge(&journal, &campaign.ledger(), &sessions, &campaign.acknowledged).await
}

/// Holds a journal, a ledger and what was acknowledged in these sessions against each other.
pub async fn judge(
    journal: &dyn Journal,
    ledger: &Path,
    sessions: &[String],
    sent: &[Acknowledged],
) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::default();
    let ledger = ledger::read(ledger)?;
    verdict.effects = ledger.len();
    let mut calls: BTreeMap<CallId, Outcome> = BTreeMap::new();
    for key in sessions {
        let identity = SessionIdentity::parse(&format!("cli:{key}"))?;
        let events = journal.events(&identity, Seq(0), usize::MAX).await?;
        let session = journal.session(&identity).await?;
        let folded =
            events.iter().try_fold(Session::new(identity.clone()), |session, recorded| {
                session.evolve(&recorded.event)
            })?;
        if folded != *session {
            verdict.lost.push(format!("{key}: the stored session is not the fold of its events"));
        }
        acknowledged(sent, journal, key, &identity, &events, &mut verdict).await?;
        outcomes(&events, &mut calls);
        moved_twice(key, &events, &mut verdict);
        pending(journal, &identity, &session, &mut verdict).await?;
    }
    for (call, count) in ledger {
        match calls.get(&call) {
            _ if count > 1 => verdict.repeated.push(format!("{call} took effect {count} times")),
            None => verdict.repeated.push(format!("{call} took effect without a recorded start")),
            Some(Outcome::Started) => {
                verdict.unexplained.push(format!("{call} took effect and was forgotten"))
            }
            Some(Outcome::Finished | Outcome::InDoubt) => {}
        }
    }
    verdict.in_doubt = calls.values().filter(|outcome| **outcome == Outcome::InDoubt).count();
    Ok(verdict)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Started,
    Finished,
    InDoubt,
}

/// Every acknowledged command is there, once, and asking again gives the same answer.
async fn acknowledged(
    sent: &[Acknowledged],
    journal: &dyn Journal,
    key: &str,
    identity: &SessionIdentity,
    events: &[Recorded],
    verdict: &mut Verdict,
) -> anyhow::Result<()> {
    for sent in sent.iter().filter(|sent| sent.session == key) {
        let texts = events.iter().filter(|recorded| matches!(&recorded.event, SessionEvent::MessageQueued { text, .. } if *text == sent.line));
        if !sent.line.starts_with('/') && texts.count() != 1 {
            verdict.lost.push(format!("{key}: {:?} is not there exactly once", sent.line));
        }
        let person = planwright_domain::actor::Person::new(
            "x",
            "x",
            planwright_domain::actor::Standing::Speaks,
        );
        let again =
            SessionCommand::Person(person, PersonCommand::Say { text: "asked again".into() });
        let asked = planwright_domain::command::Asked::new(
            sent.id,
            planwright_domain::time::Time(1),
            again,
        );
        match dispatch(journal, identity, asked).await? {
            Answer::Accepted { version, .. } if version.0 == sent.version => {}
            other => verdict.lost.push(format!(
                "{key}: {:?} at version {} is now {other:?}",
                sent.line, sent.version
            )),
        }
    }
    Ok(())
}

/// No two answers, and no two results, move one turn.
fn moved_twice(key: &str, events: &[Recorded], verdict: &mut Verdict) {
    let mut moved = BTreeSet::new();
    for recorded in events {
        let what = match &recorded.event {
            SessionEvent::Turn(TurnEvent::ModelAnswered {
                turn,
                round,
                arrival: Arrival::InTime,
                ..
            }) => {
                format!("round {round} of turn {turn}")
            }
            SessionEvent::Turn(TurnEvent::CallAnswered { call, .. }) => format!("call {call}"),
            SessionEvent::Turn(TurnEvent::TurnFinished { turn, .. }) => format!("turn {turn}"),
            _ => continue,
        };
        if !moved.insert(what.clone()) {
            verdict.repeated.push(format!("{key}: {what} was moved twice"));
        }
    }
}

fn outcomes(events: &[Recorded], calls: &mut BTreeMap<CallId, Outcome>) {
    for recorded in events {
        match &recorded.event {
            SessionEvent::Turn(TurnEvent::CallStarted { call, .. }) => {
                calls.insert(*call, Outcome::Started);
            }
            SessionEvent::Turn(TurnEvent::CallFinished { call, .. }) => {
                calls.insert(*call, Outcome::Finished);
            }
            SessionEvent::Turn(TurnEvent::CallInDoubt { call, .. }) => {
                calls.insert(*call, Outcome::InDoubt);
            }
            _ => {}
        }
    }
}

/// Every approval that waits can be shown and decided.
async fn pending(
    journal: &dyn Journal,
    identity: &SessionIdentity,
    session: &Session,
    verdict: &mut Verdict,
) -> anyhow::Result<()> {
    use planwright_domain::{
        actor::{Person, Standing},
        command::{Approving, Asked, Decision, Start, Terms},
        time::Time,
    };
    if waiting(session) != Some(Waiting::Decision) {
        return Ok(());
    }
    let head = session
        .plan()
        .and_then(|plan| plan.current.as_ref())
        .ok_or_else(|| anyhow::anyhow!("no revision"))?;
    let person = Person::new("judge", "verdict", Standing::Decides);
    let ask = async |command| {
        let asked = Asked::new(
            uuid::Uuid::now_v7(),
            Time(2),
            SessionCommand::Person(person.clone(), command),
        );
        dispatch(journal, identity, asked).await
    };
    let digest = head.digest;
    let seq = session.plan().and_then(|plan| plan.revision_seq(head.number)).unwrap_or(Seq(1));
    let found = journal.events(identity, Seq(seq.0 - 1), 1).await?;
    let text = found.iter().any(|recorded| matches!(&recorded.event, SessionEvent::Plan(PlanEvent::RevisionAdded { digest: there, .. }) if *there == digest));
    ask(PersonCommand::RecordShown { digest }).await?;
    let plain = Approving::of(digest, Terms::default());
    let approve = Decision::Approve(Approving { start: Start::Hold, ..plain });
    match ask(PersonCommand::Decide(approve)).await? {
        Answer::Accepted { .. } if text => verdict.pending += 1,
        other => verdict.undecidable.push(format!("{identity}: {other:?}")),
    }
    Ok(())
}
