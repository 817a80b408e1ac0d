//! A conversation far longer than the model's window.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use planwright_domain::{
    command::{Issued, PersonCommand, SessionCommand, SystemCommand},
    effect::Bracket,
    id::Incarnation,
    identity::SessionKey,
    next::{Next, next, waiting},
    session::{Session, decide},
    time::Time,
    turn::{Answer, Usage},
};
use planwright_runtime::ports::journal::{Append, Journal, Undecided};
use planwright_testkit::{
    house::{House, ada, session},
    scripted_model::{ScriptedReply, SeenRequest},
};
use uuid::Uuid;

const WINDOW_TOKENS: usize = 16_000;
const QUESTION: &str = "Where did we leave the gate valve, and what is still open about the pump?";
const ANSWER: &str = "The valve is closed and tagged. Open is the seal of pump 3: it was ordered, and nobody has said when it comes.";

/// Stores so many turns at once, as they would have been decided one by one.
async fn talked(journal: &dyn Journal, identity: &SessionKey, turns: usize) {
    let decide_all = move |session: &Session| {
        let mut session = session.clone();
        let mut events = Vec::new();
        for _ in 0..turns {
            let say = PersonCommand::Say { text: QUESTION.into() };
            let mut command = Some(SessionCommand::Person(ada(), say));
            while let Some(due) = command {
                let asked = Issued::new(Uuid::now_v7(), Time(1_000_000), due);
                let news = decide(&session, &asked)?;
                session = session.fold(asked.at, &news)?;
                events.extend(news);
                command = following(&session).map(SessionCommand::System);
            }
        }
        let due = next(&session).due();
        Ok::<_, Undecided>(Append {
            events,
            waiting: waiting(&session),
            due,
            after: session,
            turns: None,
        })
    };
    journal.append(identity, None, Time(1_000_000), Box::new(decide_all)).await.unwrap();
}

fn following(session: &Session) -> Option<SystemCommand> {
    match next(session) {
        Next::StartTurn(queued) => Some(SystemCommand::StartTurn {
            turn: Uuid::now_v7().into(),
            queued,
            profile: None,
            recalled: Default::default(),
            call: Some(Bracket {
                incarnation: Incarnation::from(Uuid::nil()),
                start_by: Time(2_000_000),
                deadline: Time(2_000_000),
            }),
        }),
        Next::AwaitModel { attempt, .. } => Some(SystemCommand::RecordAnswer {
            attempt,
            answer: Answer {
                text: ANSWER.into(),
                usage: Usage::tokens(900, 30),
                ..Answer::default()
            },
            others: 0,
        }),
        Next::Nothing
        | Next::WaitForPerson(_)
        | Next::CallModel { .. }
        | Next::UsePlanTool { .. }
        | Next::AwaitLimit { .. }
        | Next::AwaitDecision { .. }
        | Next::AwaitSlot { .. }
        | Next::AwaitPermission { .. }
        | Next::RemovePages { .. }
        | Next::AwaitRemoval { .. }
        | Next::Erase { .. }
        | Next::RunCalls(_)
        | Next::AwaitCalls(_) => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_on_a_conversation_far_longer_than_the_window_comes_to_rest() {
    let summaries = Arc::new(AtomicUsize::new(0));
    let seen = summaries.clone();
    let conduct = move |told: &SeenRequest| {
        let system = told.body["messages"][0]["content"].as_str().unwrap_or_default();
        if system.starts_with("You keep the memory") {
            seen.fetch_add(1, Ordering::SeqCst);
            return ScriptedReply::text(
                "They talk about a valve and a pump; the seal of pump 3 is open.",
            );
        }
        ScriptedReply::text("On the workbench.")
    };
    let house = House::with_window(Arc::new(conduct), WINDOW_TOKENS).await;
    let talk = session("long-0001");
    for _ in 0..4 {
        talked(&*house.ports.journal, &talk, 500).await;
    }
    house.says(&talk, "And where is the seal?").await;
    let rested = house.rests(&talk).await;
    assert!(summaries.load(Ordering::SeqCst) > 5, "it takes several to get below the window");
    let kinds = house.kinds(&talk).await;
    assert_eq!(kinds[kinds.len() - 3..], ["model_call_started", "model_answered", "turn_finished"]);
    assert_eq!(rested.version.0, kinds.len() as u64);
}
