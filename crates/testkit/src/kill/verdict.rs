//! Log, journal and ledger, held against each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::people::{key_in, person};
use planwright_domain::{
    command::{PersonCommand, SessionCommand},
    effect::{Effect, Touched},
    id::{CallId, Seq},
    identity::SessionKey,
    next::{Waiting, waiting},
    plan::event::PlanEvent,
    session::{Session, SessionEvent},
    turn::{
        CallStatus,
        event::{Arrival, TurnEvent},
    },
};
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::journal::{Answer, Journal, Recorded},
};

use super::{Acknowledged, Campaign, journal_path};
use crate::ledger;

/// What was found.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Acknowledged commands that the journal does not hold, or holds differently.
    pub lost: Vec<String>,
    /// Files that a finished call wrote and that are not there.
    pub undone: Vec<String>,
    /// Effects that happened more than once, or without a recorded start.
    pub repeated: Vec<String>,
    /// Effects that happened and whose outcome the journal neither knows nor doubts.
    pub unexplained: Vec<String>,
    /// How many calls were shown in doubt.
    pub in_doubt: usize,
    /// How many effects happened.
    pub effects: usize,
    /// How many files finished calls wrote.
    pub files: usize,
    /// How many brackets were left open by a process that died, of calls and of questions to a model.
    pub orphans: usize,
    /// How many approvals wait, and can be decided.
    pub pending: usize,
    /// Pending approvals that cannot be decided.
    pub undecidable: Vec<String>,
}

impl Verdict {
    /// Whether every promise was kept.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.complaints().next().is_none()
    }

    /// Every promise that was not kept, in words.
    pub fn complaints(&self) -> impl Iterator<Item = &String> {
        let Self { lost, undone, repeated, unexplained, undecidable, .. } = self;
        [lost, undone, repeated, unexplained, undecidable].into_iter().flatten()
    }
}

/// Looks at everything that is left of a campaign.
pub async fn verdict(campaign: &Campaign) -> anyhow::Result<Verdict> {
    let copy = campaign.copy_of_journal()?;
    let journal = SqliteJournal::open(&journal_path(copy.path()))?;
    let sessions: Vec<_> = Campaign::sessions().collect();
    let mut verdict =
        judge(&journal, &campaign.ledger(), &sessions, &campaign.acknowledged).await?;
    for key in &sessions {
        let identity = key_in(&journal, &format!("cli:{key}")).await?;
        let events = journal.events(&identity, Seq(0), usize::MAX).await?;
        undone(key, &events, &campaign.workspace(), &mut verdict);
    }
    Ok(verdict)
}

/// What a finished call wrote is there, as long as it was. No two calls of a campaign write to one path.
fn undone(key: &str, events: &[Recorded], workspace: &Path, verdict: &mut Verdict) {
    for recorded in events {
        let SessionEvent::Turn(TurnEvent::CallFinished { call, result, .. }) = &recorded.event
        else {
            continue;
        };
        for touched in &result.touched {
            let Touched::Wrote { path, bytes } = touched else { continue };
            verdict.files += 1;
            let there = std::fs::metadata(workspace.join(path)).map(|meta| meta.len());
            if there.ok() != Some(*bytes) {
                verdict.undone.push(format!("{key}: {call} wrote {path}, and it is not there"));
            }
        }
    }
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
    let mut calls = Calls::default();
    for key in sessions {
        let identity = key_in(journal, &format!("cli:{key}")).await?;
        let events = journal.events(&identity, Seq(0), usize::MAX).await?;
        let session = journal.session(&identity).await?;
        let folded =
            events.iter().try_fold(Session::new(identity.clone()), |session, recorded| {
                session.evolve(recorded.at, &recorded.event)
            })?;
        if folded != *session {
            verdict.lost.push(format!("{key}: the stored session is not the fold of its events"));
        }
        acknowledged(sent, journal, key, &identity, &events, &mut verdict).await?;
        events.iter().for_each(|recorded| calls.look(&recorded.event));
        moved_twice(key, &events, &mut verdict);
        pending(journal, &identity, &session, &mut verdict).await?;
    }
    calls.hold_against(&ledger, &mut verdict);
    Ok(verdict)
}

/// What the journal says of calls.
#[derive(Debug, Default)]
struct Calls {
    outcomes: BTreeMap<CallId, Outcome>,
    /// Those that change something outside of the journal.
    effects: BTreeSet<CallId>,
    orphans: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Started,
    /// It did what it was called for.
    Done,
    /// It did not, and said why.
    Failed,
    InDoubt,
}

impl Calls {
    fn look(&mut self, event: &SessionEvent) {
        let SessionEvent::Turn(event) = event else { return };
        match event {
            TurnEvent::ModelAnswered { answer, .. } => {
                let changes = |effect| matches!(effect, Effect::Write | Effect::External);
                let effects = answer.calls.iter().filter(|call| changes(call.kind.effect()));
                self.effects.extend(effects.map(|call| call.id));
            }
            TurnEvent::CallStarted { call, .. } => {
                self.outcomes.insert(*call, Outcome::Started);
            }
            TurnEvent::CallFinished { call, result, .. } => {
                let outcome = match result.status {
                    CallStatus::Done => Outcome::Done,
                    CallStatus::Failed => Outcome::Failed,
                };
                self.outcomes.insert(*call, outcome);
            }
            TurnEvent::CallInDoubt { call, .. } => {
                self.outcomes.insert(*call, Outcome::InDoubt);
                self.orphans += 1;
            }
            TurnEvent::ModelCallOrphaned { .. } | TurnEvent::CallOrphaned { .. } => {
                self.orphans += 1;
            }
            _ => {}
        }
    }

    /// Both ways: what took effect is known, and what is known as done took effect.
    fn hold_against(&self, ledger: &BTreeMap<CallId, u32>, verdict: &mut Verdict) {
        for (call, count) in ledger {
            match self.outcomes.get(call) {
                _ if *count > 1 => {
                    verdict.repeated.push(format!("{call} took effect {count} times"))
                }
                None => {
                    verdict.repeated.push(format!("{call} took effect without a recorded start"))
                }
                Some(Outcome::Started) => {
                    verdict.unexplained.push(format!("{call} took effect and was forgotten"))
                }
                Some(Outcome::Done | Outcome::Failed | Outcome::InDoubt) => {}
            }
        }
        for (call, outcome) in &self.outcomes {
            let took_effect = ledger.contains_key(call) || !self.effects.contains(call);
            if *outcome == Outcome::Done && !took_effect {
                verdict.lost.push(format!("{call} is recorded as done and took no effect"));
            }
        }
        let in_doubt = self.outcomes.values().filter(|outcome| **outcome == Outcome::InDoubt);
        verdict.in_doubt = in_doubt.count();
        verdict.orphans = self.orphans;
    }
}

/// Every acknowledged command is there, once, and asking again gives the same answer.
async fn acknowledged(
    sent: &[Acknowledged],
    journal: &dyn Journal,
    key: &str,
    identity: &SessionKey,
    events: &[Recorded],
    verdict: &mut Verdict,
) -> anyhow::Result<()> {
    for sent in sent.iter().filter(|sent| sent.session == key) {
        let texts = events.iter().filter(|recorded| matches!(&recorded.event, SessionEvent::MessageQueued { text, .. } if *text == sent.line));
        if !sent.line.starts_with('/') && texts.count() != 1 {
            verdict.lost.push(format!("{key}: {:?} is not there exactly once", sent.line));
        }
        let person = person("x", "x", planwright_domain::actor::Standing::Speaks);
        let again =
            SessionCommand::Person(person, PersonCommand::Say { text: "asked again".into() });
        let asked = planwright_domain::command::Issued::new(
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

/// Every approval that waits can be shown and decided.
async fn pending(
    journal: &dyn Journal,
    identity: &SessionKey,
    session: &Session,
    verdict: &mut Verdict,
) -> anyhow::Result<()> {
    use planwright_domain::{
        actor::Standing,
        command::{Approving, Decision, Issued, Start, Terms},
        time::Time,
    };
    if waiting(session) != Some(Waiting::Decision) {
        return Ok(());
    }
    let head = session
        .plan()
        .and_then(|plan| plan.current.as_ref())
        .ok_or_else(|| anyhow::anyhow!("no revision"))?;
    let person = person("judge", "verdict", Standing::Decides);
    let ask = async |command| {
        let asked = Issued::new(
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

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u128) -> CallId {
        uuid::Uuid::from_u128(number).into()
    }

    fn calls(outcome: Outcome) -> Calls {
        let outcomes = BTreeMap::from([(call(1), outcome)]);
        Calls { outcomes, effects: BTreeSet::from([call(1)]), orphans: 0 }
    }

    #[test]
    fn a_call_that_is_recorded_as_done_and_not_in_the_ledger_is_a_loss() {
        let lost = |outcome, ledger: &[CallId]| {
            let mut verdict = Verdict::default();
            let ledger = ledger.iter().map(|call| (*call, 1)).collect();
            calls(outcome).hold_against(&ledger, &mut verdict);
            verdict.lost.len()
        };
        assert_eq!(lost(Outcome::Done, &[]), 1);
        assert_eq!(lost(Outcome::Done, &[call(1)]), 0);
        assert_eq!(lost(Outcome::Failed, &[]), 0);
        assert_eq!(lost(Outcome::InDoubt, &[]), 0);
    }
}
