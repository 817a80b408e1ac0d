//! A data directory with many sessions in which a plan waits, made without asking for each.

use std::path::Path;

use planwright_domain::{
    actor::{Person, Standing},
    command::{Asked, Given, ModelCommand, PersonCommand, SessionCommand, SystemCommand},
    effect::Bracket,
    id::{Incarnation, Seq},
    identity::SessionIdentity,
    session::{Session, SessionEvent, decide},
    time::Time,
    turn::{Answer, CallKind, RequestedCall},
};
use planwright_outbound::journal_sqlite::SqliteJournal;
use rusqlite::{Connection, params};
use uuid::Uuid;

/// The session of this number.
pub(crate) fn session(number: usize) -> anyhow::Result<SessionIdentity> {
    Ok(SessionIdentity::parse(&format!("cli:waiting-{number:06}"))?)
}

/// Fills a journal with so many sessions, in each of which a plan waits for a decision.
pub(crate) fn fill(path: &Path, count: usize) -> anyhow::Result<()> {
    drop(SqliteJournal::open(path)?);
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    let transaction = connection.transaction()?;
    for number in 0..count {
        let identity = session(number)?;
        let (after, events) = ready(&identity, number)?;
        transaction
            .prepare_cached("INSERT INTO streams (id, identity, version, updated_at, waiting) VALUES (?1, ?2, ?3, ?4, 'decision')")?
            .execute(params![number as i64 + 1, identity.to_string(), after.version.0 as i64, number as i64])?;
        for (at, event) in events.iter().enumerate() {
            let mut body = vec![0];
            serde_json::to_writer(&mut body, event)?;
            transaction
                .prepare_cached(
                    "INSERT INTO events (stream, seq, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    number as i64 + 1,
                    at as i64 + 1,
                    number as i64,
                    event.kind(),
                    body
                ])?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// A session in which a plan waits, and the events that made it so.
fn ready(
    identity: &SessionIdentity,
    number: usize,
) -> anyhow::Result<(Session, Vec<SessionEvent>)> {
    let ada = Person::new("ada", "bench", Standing::Decides);
    let id = |at: u128| Uuid::from_u128((number as u128) << 8 | at);
    let turn = id(1).into();
    let bracket = Bracket { incarnation: Incarnation(id(2)), start_by: Time(1), deadline: Time(1) };
    let call = RequestedCall {
        id: id(3).into(),
        wire_id: "w".into(),
        tool: "plan_set_content".into(),
        arguments: format!(
            "{{\"plan_markdown\":\"# Plan {number}\\n\\n1. Wait for a person.\\n\"}}"
        ),
        kind: CallKind::Plan,
    };
    let answer = Answer { calls: vec![call], ..Answer::default() };
    let done = Answer { text: "There is the plan.".into(), ..Answer::default() };
    let commands = [
        SessionCommand::Person(
            ada.clone(),
            PersonCommand::StartPlan {
                plan: id(4).into(),
                strategy: planwright_domain::plan::Strategy::Document,
                reads: planwright_domain::plan::Reads::Record,
            },
        ),
        SessionCommand::Person(ada, PersonCommand::Say { text: "plan it".into() }),
        SessionCommand::System(SystemCommand::StartTurn {
            turn,
            queued: Seq(2),
            profile: None,
            recalled: Default::default(),
        }),
        SessionCommand::System(SystemCommand::StartModelCall {
            turn,
            round: 1,
            attempt: 1,
            bracket,
        }),
        SessionCommand::System(SystemCommand::RecordAnswer {
            turn,
            round: 1,
            attempt: 1,
            answer,
            others: 0,
        }),
        SessionCommand::Model(
            turn,
            ModelCommand::UsePlanTool {
                call: id(3).into(),
                given: Given {
                    fresh: id(5).into(),
                    profiles: [].into(),
                    memory: None,
                    markdown: None,
                },
            },
        ),
        SessionCommand::System(SystemCommand::StartModelCall {
            turn,
            round: 2,
            attempt: 1,
            bracket,
        }),
        SessionCommand::System(SystemCommand::RecordAnswer {
            turn,
            round: 2,
            attempt: 1,
            answer: done,
            others: 0,
        }),
    ];
    let mut session = Session::new(identity.clone());
    let mut all = Vec::new();
    for command in commands {
        let events = decide(&session, &Asked::new(id(9), Time(number as i64), command))?;
        session = session.fold(&events)?;
        all.extend(events);
    }
    Ok((session, all))
}
