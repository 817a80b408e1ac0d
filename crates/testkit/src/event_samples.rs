//! Events of the kinds that no command of the golden journal leads to.

use planwright_domain::{
    actor::{Person, PersonId, Standing},
    autonomy::{
        Pinned, RunPause,
        budget::{Budget, Meter},
        event::AutoEvent,
        schedule::SlotEnd,
    },
    command::Verdict,
    digest::Digest,
    notebook::{AgentNotebookCall, NotebookEvent, Page},
    plan::{
        event::PlanEvent,
        review::{Comment, Said},
    },
    quota::{Limit, LimitReached},
    session::{SessionEvent, life::LifeEvent},
    time::Time,
    turn::{ToolReply, event::TurnEvent},
};
use uuid::Uuid;

use crate::people::person;

fn id<T: From<Uuid>>(number: u128) -> T {
    Uuid::from_u128(number).into()
}

fn of_limits() -> [SessionEvent; 3] {
    let reached = LimitReached {
        limit: Limit::Money,
        owner: PersonId("ada".into()),
        used: 1_020_000,
        max: 1_000_000,
        until: Some(Time(86_400_000_000)),
    };
    let near = LimitReached { limit: Limit::Bytes, until: None, ..reached.clone() };
    [
        TurnEvent::TurnPaused { turn: id(6), reached, until: Time(86_400_000_000) },
        TurnEvent::TurnResumed { turn: id(6) },
        TurnEvent::LimitWarned { near },
    ]
    .map(SessionEvent::Turn)
}

/// What somebody said in the discussion of a revision, of every kind.
fn discussed(by: &Person) -> [SessionEvent; 5] {
    let comment =
        Comment { number: 3, last_line: Some(4), ..Comment::on_line(3, "Is there a copy?") };
    let reply = Comment { number: 4, reply_to: Some(3), ..Comment::on_the_whole("And where?") };
    [
        Said::Comment { comment },
        Said::Comment { comment: reply },
        Said::Edit { number: 4, text: "And where is it?".into() },
        Said::Resolve { number: 3 },
        Said::Reopen { number: 3 },
    ]
    .map(|said| SessionEvent::Plan(PlanEvent::Discussed { said, by: by.clone() }))
}

/// One event of each of them, and of each choice that matters in it.
#[must_use]
pub fn by_hand() -> Vec<SessionEvent> {
    let (run, schedule, digest) = (id(1), id(2), Digest::of(b"a plan"));
    let mut events: Vec<_> = [
        AutoEvent::RunMoved { run, task: id(3) },
        AutoEvent::RunPinned { run, plan: Pinned { plan: id(4), digest } },
        AutoEvent::RunWarned { run, meter: Meter::ModelCalls },
        AutoEvent::RunPaused { run, why: RunPause::Loop { tool: "read_file".into() } },
        AutoEvent::RunPaused { run, why: RunPause::Stalled },
        AutoEvent::RunResumed {
            run,
            budget: Budget::default(),
            by: Some(person("ada", "cli", Standing::Decides)),
        },
        AutoEvent::SlotsMissed {
            schedule,
            first: Time(1),
            last: Time(1_700_000_000_123_456),
            count: 7,
        },
        AutoEvent::SlotClaimed { schedule, slot: Time(3), next: None },
        AutoEvent::SlotEnded { schedule, slot: Time(3), end: SlotEnd::Skipped },
    ]
    .map(SessionEvent::Auto)
    .into();
    events.extend(of_limits());
    let made = AgentNotebookCall {
        of: PersonId("ada".into()),
        agent: "codex".into(),
        tool: "notebook_write".into(),
        arguments: "{}".into(),
    };
    events.extend(
        [
            NotebookEvent::NoteDue { call: id(5), page: Page::Progress },
            NotebookEvent::AgentCallStarted { call: id(6), made },
        ]
        .map(SessionEvent::Notebook),
    );
    let (title, by) = ("Back up the photographs".into(), "codex".into());
    events.push(SessionEvent::Plan(PlanEvent::StepBegun { step: 1, title, by }));
    events.push(SessionEvent::Plan(PlanEvent::StepQueued { plan: id(4), step: 2 }));
    events.push(SessionEvent::Plan(PlanEvent::DecisionReminded { digest, next: Time(4) }));
    let by = person("ada", "cli", Standing::Decides);
    events.extend(discussed(&by));
    let (call, verdict) = (id(8), Verdict::Happened);
    events.push(SessionEvent::Turn(TurnEvent::DoubtSettled { call, verdict, by: by.clone() }));
    events.push(SessionEvent::Life(LifeEvent::Deleted { by }));
    for reply in [
        ToolReply::Text { text: "Grüße".into() },
        ToolReply::Planned,
        ToolReply::Plans,
        ToolReply::Revision { digest, heading: "Plan (rev 2)".into() },
        ToolReply::Refused { kind: "plan_stale".into(), words: "read it again".into() },
        ToolReply::LeftRunning,
    ] {
        events.push(SessionEvent::AgentCalled {
            call: id(7),
            of: PersonId("ada".into()),
            agent: "codex".into(),
            tool: "plan_get".into(),
            arguments: "{}".into(),
            reply,
        });
    }
    events
}
