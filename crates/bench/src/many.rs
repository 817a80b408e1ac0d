//! A data directory with many sessions in which a plan waits, made without asking for each.

use std::path::Path;

use futures_util::future::try_join_all;
use planwright_domain::{
    actor::Standing,
    attempt::ModelAttempt,
    command::{Given, Issued, ModelCommand, PersonCommand, SessionCommand, SystemCommand},
    effect::Bracket,
    id::{Incarnation, Seq},
    identity::SessionKey,
    next::{Next, next},
    session::{Session, SessionEvent, decide},
    time::Time,
    turn::{self, CallKind, RequestedCall},
};
use planwright_format::{body::Packer, event::EventPlace};
use planwright_outbound::{clock_system::SystemClock, journal_sqlite::SqliteJournal};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::{
        Clock as _,
        journal::{Answer, Journal as _},
    },
};
use planwright_testkit::people::{ada_key, person};
use rusqlite::{Connection, params};
use uuid::Uuid;

use crate::payload::{TURNS, nth};

/// The session of this number.
pub(crate) fn session(number: usize) -> anyhow::Result<SessionKey> {
    Ok(ada_key(&format!("cli:waiting-{number:06}"))?)
}

/// Fills a journal with so many sessions, in each of which a plan waits for a decision. They count as indexed.
pub(crate) fn fill(path: &Path, count: usize) -> anyhow::Result<()> {
    drop(SqliteJournal::open(path)?);
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    let transaction = connection.transaction()?;
    let mut packer = Packer::new()?;
    for number in 0..count {
        let identity = session(number)?;
        let (after, events) = ready(&identity, number, "ada")?;
        transaction
            .prepare_cached("INSERT INTO streams (id, owner, identity, version, updated_at, listed_at, waiting, plan, searched) VALUES (?1, ?5, ?2, ?3, ?4, ?4, 'decision', 'ready', ?3)")?
            .execute(params![number as i64 + 1, identity.identity.to_string(), after.version.0 as i64, number as i64, identity.owner.0.as_bytes()])?;
        for (at, event) in events.iter().enumerate() {
            let (seq, time) = (at as u64 + 1, number as i64);
            let text = identity.to_string();
            let place = EventPlace { stream: &text, seq, at: time };
            let stored = packer.seal_event(place, event, 1)?;
            transaction
                .prepare_cached(
                    "INSERT INTO events (id, at, kind, body) VALUES (?1 << 32 | ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    number as i64 + 1,
                    seq.cast_signed(),
                    time,
                    stored.kind,
                    stored.body
                ])?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Begins a turn in so many new sessions, each of whose model was asked by a process that is gone.
pub(crate) async fn begin_turns(path: &Path, round: usize, count: usize) -> anyhow::Result<()> {
    let journal = SqliteJournal::open(path)?;
    let numbers: Vec<_> = (0..count).collect();
    for some in numbers.chunks(100) {
        try_join_all(some.iter().map(|number| begin_turn(&journal, round, *number))).await?;
    }
    Ok(())
}

async fn begin_turn(journal: &SqliteJournal, round: usize, number: usize) -> anyhow::Result<()> {
    let identity = ada_key(&format!("cli:flight-{round:02}-{number:06}"))?;
    let ada = person("ada", "bench", Standing::Decides);
    let now = SystemClock.now();
    let until = now.plus_micros(600_000_000);
    let bracket =
        Bracket { incarnation: Incarnation(Uuid::now_v7()), start_by: until, deadline: until };
    let asks = async |command| match dispatch(
        journal,
        &identity,
        Issued::new(Uuid::now_v7(), now, command),
    )
    .await?
    {
        Answer::Accepted { .. } => Ok(()),
        Answer::Refused(refusal) => anyhow::bail!("{identity}: {refusal}"),
    };
    let text = nth(&TURNS, number as u64).into();
    asks(SessionCommand::Person(ada, PersonCommand::Say { text })).await?;
    let session = journal.session(&identity).await?;
    let Next::StartTurn(queued) = next(&session) else {
        anyhow::bail!("{identity}: no turn is due");
    };
    let (turn, recalled) = (Uuid::now_v7().into(), Default::default());
    let call = Some(bracket);
    let start = SystemCommand::StartTurn { turn, queued, profile: None, recalled, call };
    asks(SessionCommand::System(start)).await
}

/// How many places are asked for: each in so many sessions as there are more.
const PLACES: usize = 5_000;

/// What a plan is asked for with: prose, and a place that few others name.
fn request(number: usize) -> String {
    format!("{} Plan it for the depot{:04}.", nth(&TURNS, number as u64), number % PLACES)
}

/// A session in which a plan waits, and the events that made it so.
pub(crate) fn ready(
    identity: &SessionKey,
    number: usize,
    owner: &str,
) -> anyhow::Result<(Session, Vec<SessionEvent>)> {
    let ada = person(owner, "bench", Standing::Decides);
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
    let answer = turn::Answer { calls: vec![call], ..turn::Answer::default() };
    let done = turn::Answer { text: "There is the plan.".into(), ..turn::Answer::default() };
    let commands = [
        SessionCommand::Person(
            ada.clone(),
            PersonCommand::StartPlan {
                plan: id(4).into(),
                strategy: planwright_domain::plan::Strategy::Document,
                reads: planwright_domain::plan::Reads::Record,
            },
        ),
        SessionCommand::Person(ada, PersonCommand::Say { text: request(number) }),
        SessionCommand::System(SystemCommand::StartTurn {
            turn,
            queued: Seq(2),
            profile: None,
            recalled: Default::default(),
            call: Some(bracket),
        }),
        SessionCommand::System(SystemCommand::RecordAnswer {
            attempt: ModelAttempt { turn, round: 1, number: 1 },
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
            attempt: ModelAttempt { turn, round: 2, number: 1 },
            bracket,
        }),
        SessionCommand::System(SystemCommand::RecordAnswer {
            attempt: ModelAttempt { turn, round: 2, number: 1 },
            answer: done,
            others: 0,
        }),
    ];
    let (mut session, mut all) = (Session::new(identity.clone()), Vec::new());
    let at = Time(number as i64);
    for command in commands {
        let events = decide(&session, &Issued::new(id(9), at, command))?;
        session = session.fold(at, &events)?;
        all.extend(events);
    }
    Ok((session, all))
}
