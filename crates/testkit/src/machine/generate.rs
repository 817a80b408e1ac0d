//! Which command comes next: what leads on, what a person might do, and what must be refused.

use std::collections::BTreeMap;

use crate::people::person;
use fastrand::Rng;
use planwright_domain::{
    actor::Standing,
    attempt::{CallAttempt, ModelAttempt},
    command::{
        Approving, Decision, Ending, Given, ModelCommand, Permit, PersonCommand, SessionCommand,
        Start, StartingCall, Summed, SystemCommand, Terms, Verdict,
    },
    digest::Digest,
    effect::{Aim, Bracket, Declared, Effect, FileChange, Repeat, ToolFacts, Touched},
    id::{CallId, Incarnation, TurnId},
    next::{Next, next},
    plan::{
        PlanStatus, Progress, Reads, Review, Strategy,
        block::BlockSet,
        review::{Comment, Said},
        step::OnFailure,
    },
    session::Session,
    time::Time,
    tools::FILE_TOOLS,
    turn::{
        Answer, CallKind, CallResult, FailureKind, ModelFailure, RequestedCall, Usage, Work,
        decide::profile_of, profile::Profile,
    },
};
use uuid::Uuid;

/// The statuses that a command can meet.
pub const STATUSES: [&str; 8] =
    ["inactive", "collecting", "ready", "withdrawn", "approved", "running", "paused", "failed"];

/// The commands that are counted.
pub const COMMANDS: [&str; 25] = [
    "compact",
    "on",
    "say",
    "shown",
    "seen",
    "approve",
    "approve-hold",
    "approve-stale",
    "approve-guest",
    "changes",
    "reject",
    "resume",
    "settle",
    "skip",
    "permit",
    "edit",
    "stop",
    "plan-stop",
    "done",
    "off",
    "reset",
    "content",
    "report",
    "step",
    "late",
];

/// Where a session's plan stands, as the table has it.
pub(super) fn status(session: &Session) -> &'static str {
    let Some(plan) = session.plan() else { return "inactive" };
    match &plan.status {
        PlanStatus::Collecting => "collecting",
        PlanStatus::Ready
            if plan.current.as_ref().is_some_and(|head| head.review != Review::Open) =>
        {
            "withdrawn"
        }
        PlanStatus::Ready => "ready",
        PlanStatus::Approved(_) => "approved",
        PlanStatus::Executing(_, Progress::Running) => "running",
        PlanStatus::Executing(_, Progress::Paused(_)) => "paused",
        PlanStatus::Failed(_) => "failed",
    }
}

/// Makes commands, and remembers what could be reported too late.
pub(super) struct Generator {
    seen: Vec<Digest>,
    attempts_made: Vec<ModelAttempt>,
    started: Vec<CallAttempt>,
    schema: Digest,
    strategy: Strategy,
}

impl Generator {
    pub(super) fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            seen: Vec::new(),
            attempts_made: Vec::new(),
            started: Vec::new(),
            schema: Digest::of(b"schema"),
        }
    }

    pub(super) fn next(
        &mut self,
        rng: &mut Rng,
        session: &Session,
    ) -> (&'static str, SessionCommand) {
        if let Some(head) = session.plan().and_then(|plan| plan.current.as_ref())
            && self.seen.last() != Some(&head.digest)
        {
            self.seen.push(head.digest);
        }
        // Few sequences get that far: a person meets such a status more often before a step leaves it.
        let steps = match status(session) {
            "approved" | "paused" | "failed" => 56,
            _ => 68,
        };
        match rng.u8(0..100) {
            at if at < steps => self.step(rng, session),
            at if at < steps + 3 => self.late(rng),
            _ => self.person(rng, session),
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each thing that a person may do")]
    fn person(&mut self, rng: &mut Rng, session: &Session) -> (&'static str, SessionCommand) {
        let ada = person("ada", if rng.u8(..) < 180 { "cli" } else { "web" }, Standing::Decides);
        let guest = person("guest", "cli", Standing::Speaks);
        let current = session.plan().and_then(|plan| plan.current.as_ref()).map(|head| head.digest);
        let current = current.unwrap_or(self.schema);
        let stale =
            self.seen.get(rng.usize(0..self.seen.len().max(1))).copied().unwrap_or(self.schema);
        let stale = if stale == current { Digest::of(b"never seen") } else { stale };
        let on_failure = if rng.bool() { OnFailure::Stop } else { OnFailure::Continue };
        let grant = granted(rng);
        let approve = |digest, start, schemas| {
            let profiles = BTreeMap::from([("coder".to_owned(), coder().digest)]);
            let plain = Approving::of(digest, Terms { schemas, profiles, priced: true });
            let notes = vec!["mind the gap".into()];
            PersonCommand::Decide(Decision::Approve(Approving {
                notes,
                start,
                on_failure,
                grant: grant.clone(),
                ..plain
            }))
        };
        let schemas: BTreeMap<_, _> =
            FILE_TOOLS.into_iter().map(|name| (name.to_owned(), self.schema)).collect();
        let doubt =
            session.doubts.keys().next().copied().unwrap_or(Uuid::from_u128(rng.u128(..)).into());
        let reads = if rng.bool() { Reads::Record } else { Reads::Run };
        let (plan, strategy) = (fresh(rng).into(), self.strategy);
        let start_plan = PersonCommand::StartPlan { plan, strategy, reads };
        let shown = session.plan().is_some_and(|plan| plan.shown_to(&ada) == Some(current));
        let leads_on = if rng.bool() { status(session) } else { "" };
        let (name, command) = match (leads_on, rng.u8(0..90)) {
            ("inactive", _) => ("on", start_plan),
            ("collecting" | "withdrawn", _) => {
                ("say", PersonCommand::Say { text: "write it".into() })
            }
            ("ready", at) if !shown && at < 36 => {
                ("shown", PersonCommand::RecordShown { digest: current })
            }
            ("ready", at) if !shown && at < 66 => ("seen", seen(rng, session, current)),
            ("ready", _) if rng.u8(0..9) < 5 => {
                ("approve", approve(current, Start::AtOnce, schemas))
            }
            ("ready", _) => ("approve-hold", approve(current, Start::Hold, schemas)),
            ("approved" | "paused", 0..=59) => ("resume", PersonCommand::Decide(Decision::Resume)),
            (_, 0..=13) => ("say", PersonCommand::Say { text: "go on".into() }),
            (_, 14..=17) => ("on", start_plan),
            (_, 18..=19) => ("shown", PersonCommand::RecordShown { digest: current }),
            (_, 20..=22) => ("seen", seen(rng, session, current)),
            (_, 23..=27) => ("approve", approve(current, Start::AtOnce, schemas)),
            (_, 28..=31) => ("approve-hold", approve(current, Start::Hold, schemas)),
            (_, 32..=36) => ("approve-stale", approve(stale, Start::AtOnce, schemas)),
            (_, 37..=40) => {
                let command = approve(current, Start::AtOnce, schemas);
                return ("approve-guest", SessionCommand::Person(guest, command));
            }
            (_, 41..=46) => {
                let comments = vec![Comment::on_the_whole("shorter")];
                let digest = if rng.u8(..) < 200 { current } else { stale };
                ("changes", PersonCommand::Decide(Decision::RequestChanges { digest, comments }))
            }
            (_, 47..=49) => {
                ("reject", PersonCommand::Decide(Decision::Reject { digest: current, why: None }))
            }
            (_, 50..=54) => ("resume", PersonCommand::Decide(Decision::Resume)),
            (_, 55..=59) => {
                let verdict = if rng.bool() { Verdict::Happened } else { Verdict::DidNotHappen };
                ("settle", PersonCommand::Decide(Decision::SettleDoubt { call: doubt, verdict }))
            }
            (_, 60..=61) => ("permit", permit(rng, session, self.schema)),
            (_, 62..=63 | 84..=85) => {
                ("skip", PersonCommand::Decide(Decision::SkipStep { step: rng.u32(1..4) }))
            }
            (_, 86 | 88..=89) => ("compact", PersonCommand::Compact),
            (_, 64..=65) => ("stop", PersonCommand::Stop),
            (_, 66..=68) => ("plan-stop", PersonCommand::PausePlan),
            (_, 69 | 80..=83) => {
                let base = Some(current);
                let (markdown, fresh) = (format!("# Mine {}\n", rng.u32(..)), fresh(rng).into());
                ("edit", PersonCommand::EditPlan { base, markdown, fresh, suggested: rng.bool() })
            }
            (_, 76..=77) => ("discuss", discussed(rng, session, current)),
            (_, 70..=72) => ("done", PersonCommand::EndPlan(Ending::Done)),
            (_, 73..=75) => ("off", PersonCommand::EndPlan(Ending::Off)),
            (_, _) => ("reset", PersonCommand::Reset),
        };
        (name, SessionCommand::Person(ada, command))
    }

    /// What `next` says, done well or badly.
    fn step(&mut self, rng: &mut Rng, session: &Session) -> (&'static str, SessionCommand) {
        let system = |command| ("step", SessionCommand::System(command));
        match next(session) {
            Next::Nothing
            | Next::WaitForPerson(_)
            | Next::AwaitSlot { .. }
            | Next::Erase { .. } => self.person(rng, session),
            Next::StartTurn(queued) => {
                let named = profile_of(session, queued);
                let profile = named.map(|_| coder()).filter(|_| rng.u8(..) < 250);
                let turn = fresh(rng).into();
                // The other half are turns of earlier builds, and those whose first call was held back.
                let call = rng.bool().then(|| bracket(rng));
                if call.is_some() {
                    self.attempts_made.push(ModelAttempt::first(turn));
                }
                let recalled = Default::default();
                system(SystemCommand::StartTurn { turn, queued, profile, recalled, call })
            }
            Next::AwaitLimit { .. } if rng.bool() => system(SystemCommand::ResumeTurn),
            Next::CallModel { attempt, .. } | Next::AwaitLimit { attempt, .. } => {
                self.attempts_made.push(attempt);
                system(SystemCommand::StartModelCall { attempt, bracket: bracket(rng) })
            }
            Next::AwaitModel { attempt, .. } => system(self.model_outcome(rng, session, attempt)),
            Next::UsePlanTool { turn, call } => plan_tool(rng, session, turn, call),
            Next::RunCalls(due) => {
                let calls = due.iter().map(|due| self.starting(rng, session, *due)).collect();
                self.started.extend(&due);
                let ask_until = Time(1_000_000 * rng.i64(1..100));
                system(SystemCommand::StartCalls { calls, bracket: bracket(rng), ask_until })
            }
            Next::RemovePages { attempt, .. } => {
                system(SystemCommand::StartRemoval { attempt, bracket: bracket(rng) })
            }
            Next::AwaitRemoval { attempt, .. } => system(match rng.u8(0..3) {
                0 => SystemCommand::RecordPagesRemoved { attempt, pages: rng.u32(0..4) },
                1 => {
                    let why = "the disk is gone".into();
                    SystemCommand::RecordRemovalFailure { attempt, why }
                }
                _ => SystemCommand::OrphanRemoval { attempt },
            }),
            Next::AwaitDecision { .. } if rng.u8(..) < 60 => system(SystemCommand::RingDecision),
            Next::AwaitDecision { .. } => self.person(rng, session),
            Next::AwaitPermission { call, .. } if rng.u8(..) < 60 => {
                system(SystemCommand::ExpireAsk { call })
            }
            Next::AwaitPermission { .. } => {
                let ada = person("ada", "cli", Standing::Decides);
                ("permit", SessionCommand::Person(ada, permit(rng, session, self.schema)))
            }
            Next::AwaitCalls(open) => {
                let open = open[rng.usize(0..open.len())];
                let attempt = open.attempt;
                system(match rng.u8(..) {
                    0..190 => {
                        SystemCommand::RecordResult { attempt, result: result(rng), note_every: 0 }
                    }
                    190..220 => SystemCommand::AbandonCall { attempt, why: "too late".into() },
                    220.. => SystemCommand::OrphanCall { attempt },
                })
            }
        }
    }

    /// What became of the model call that is under way.
    fn model_outcome(
        &self,
        rng: &mut Rng,
        session: &Session,
        attempt: ModelAttempt,
    ) -> SystemCommand {
        match rng.u8(0..100) {
            0..=84 if sums_up(session) || rng.u8(0..40) == 0 => {
                let summed = rng.bool().then(|| Summed {
                    upto: session.version,
                    messages: 2,
                    summary: "what was said".into(),
                    usage: Usage { cost_micros: 1_000, ..Usage::tokens(1, 1) },
                    by: "m".into(),
                });
                SystemCommand::RecordCompaction { attempt, summed }
            }
            0..=84 => SystemCommand::RecordAnswer {
                attempt,
                answer: self.answer(rng, session),
                others: 0,
            },
            85..=88 => SystemCommand::OrphanModelCall { attempt },
            89..=91 => SystemCommand::AbandonModelCall { attempt, why: "too late".into() },
            _ => SystemCommand::RecordModelFailure {
                attempt,
                failure: failure(rng),
                others: rng.u32(0..3),
                sent: None,
            },
        }
    }

    /// A report about something that may no longer be the case.
    fn late(&mut self, rng: &mut Rng) -> (&'static str, SessionCommand) {
        let command = match (self.attempts_made.last(), self.started.last()) {
            (Some(attempt), _) if rng.bool() => SystemCommand::RecordAnswer {
                attempt: *attempt,
                others: 0,
                answer: Answer { text: "late".into(), ..Answer::default() },
            },
            (_, Some(_)) => {
                let attempt = self.started[rng.usize(0..self.started.len())];
                match rng.u8(..) {
                    0..128 => {
                        SystemCommand::RecordResult { attempt, result: result(rng), note_every: 0 }
                    }
                    128..160 => SystemCommand::AbandonCall { attempt, why: "too late".into() },
                    160.. => SystemCommand::OrphanCall { attempt },
                }
            }
            (_, None) => SystemCommand::OrphanCall {
                attempt: CallAttempt { call: fresh(rng).into(), number: 1 },
            },
        };
        ("late", SessionCommand::System(command))
    }

    fn starting(&self, rng: &mut Rng, session: &Session, due: CallAttempt) -> StartingCall {
        let calls = session.turn.as_ref().map(|turn| turn.calls()).unwrap_or_default();
        let facts = calls.iter().find(|call| call.requested.id == due.call).and_then(|call| {
            match &call.requested.kind {
                CallKind::Tool(facts) => Some(facts.clone()),
                CallKind::Plan | CallKind::Unusable { .. } => None,
            }
        });
        let tool = match rng.u8(0..50) {
            0 => None,
            1 => facts.map(|facts| ToolFacts { schema: Digest::of(b"another"), ..facts }),
            _ => facts,
        };
        let paths = ["a.txt", "src/a.txt", "../a.txt"].map(str::to_owned);
        let paths = paths.into_iter().filter(|_| rng.u8(0..3) == 0).collect();
        let aim = Aim { paths, ..Aim::default() };
        StartingCall { attempt: due, tool, aim }
    }

    fn answer(&self, rng: &mut Rng, session: &Session) -> Answer {
        let text = if rng.u8(..) < 200 { "words" } else { "" };
        let executes = session.turn.as_ref().is_some_and(|turn| turn.executes().is_some());
        let count = if rng.u8(0..10) < 3 { 0 } else { rng.usize(1..=3) };
        let calls = (0..count).map(|_| self.requested(rng, session, executes));
        let mut calls: Vec<_> = calls.collect();
        let writes = session.plan().is_some_and(|plan| plan.strategy == Strategy::Build);
        if writes && !executes && rng.u8(0..10) < 4 {
            calls.extend(whole(rng, session));
        }
        Answer {
            text: text.into(),
            calls,
            usage: Usage { cost_micros: 100_000, ..Usage::tokens(1, 1) },
            ..Answer::default()
        }
    }
    /// One call that the model requests: of a tool, or of a plan tool, well or badly.
    fn requested(&self, rng: &mut Rng, session: &Session, executes: bool) -> RequestedCall {
        let facts =
            |effect, repeat| CallKind::Tool(ToolFacts { effect, repeat, schema: self.schema });
        let (tool, arguments, kind) = match rng.u8(0..100) {
            0..=19 => ("read_file", "{}".to_owned(), facts(Effect::Read, Repeat::Harmless)),
            20..=34 if executes || rng.u8(0..5) == 0 => {
                ("write_file", "{}".to_owned(), facts(Effect::Write, Repeat::AskFirst))
            }
            35..=37 if executes || rng.u8(0..5) == 0 => {
                ("send_mail", "{}".to_owned(), facts(Effect::External, Repeat::AskFirst))
            }
            38..=44 => ("plan_get", "{}".to_owned(), CallKind::Plan),
            45..=47 => ("plan_approve", "{\"approved\":true}".to_owned(), CallKind::Plan),
            48..=50 => {
                ("fly", "{}".to_owned(), CallKind::Unusable { problem: "no such tool".into() })
            }
            51..=70 if executes => {
                let status = ["done", "failed", "failed", "blocked"][rng.usize(0..4)];
                (
                    "plan_report",
                    format!("{{\"status\":\"{status}\",\"summary\":\"s\"}}"),
                    CallKind::Plan,
                )
            }
            51..=54 => {
                ("plan_report", "{\"status\":\"done\",\"summary\":\"s\"}".into(), CallKind::Plan)
            }
            55..=57 => ("plan_set_content", "{\"plan_markdown\":\" \"}".into(), CallKind::Plan),
            58..=63 if self.strategy == Strategy::Collect => {
                ("write_file", "{}".to_owned(), facts(Effect::Write, Repeat::AskFirst))
            }
            _ if self.strategy == Strategy::Collect => {
                let replies = replies(rng, session);
                ("plan_finalize", format!("{{\"summary\":\"s\"{replies}}}"), CallKind::Plan)
            }
            58..=60 if self.strategy == Strategy::Build => {
                ("plan_remove_step", format!("{{\"step\":{}}}", rng.u32(1..4)), CallKind::Plan)
            }
            61..=64 if self.strategy == Strategy::Build => (
                "plan_update_step",
                format!("{{\"step\":{},\"title\":\"t{}\"}}", rng.u32(1..4), rng.u8(0..3)),
                CallKind::Plan,
            ),
            65..=69 if self.strategy == Strategy::Build => {
                let replies = replies(rng, session);
                let replies = replies.trim_start_matches(',');
                ("plan_submit", format!("{{{replies}}}"), CallKind::Plan)
            }
            _ if self.strategy == Strategy::Build => building(rng),
            _ => (
                "plan_set_content",
                format!(
                    "{{\"plan_markdown\":\"# Plan {}\\n\\nThe goal.\\n\\n1. Dig.\\n2. Plant.\"{}}}",
                    rng.u32(..),
                    replies(rng, session)
                ),
                CallKind::Plan,
            ),
        };
        RequestedCall {
            id: fresh(rng).into(),
            wire_id: "w".into(),
            tool: tool.into(),
            arguments,
            kind,
        }
    }
}

/// The plan tool that the model called is used.
fn plan_tool(
    rng: &mut Rng,
    session: &Session,
    turn: TurnId,
    call: CallId,
) -> (&'static str, SessionCommand) {
    let given = Given {
        fresh: fresh(rng).into(),
        profiles: ["coder".to_owned()].into(),
        memory: None,
        markdown: None,
    };
    let command = ModelCommand::UsePlanTool { call, given };
    let requested = session
        .turn
        .as_ref()
        .and_then(|turn| turn.calls().iter().find(|one| one.requested.id == call));
    let name = match requested.map(|call| call.requested.tool.as_str()) {
        Some("plan_set_content" | "plan_finalize" | "plan_submit") => "content",
        Some("plan_report") => "report",
        Some(_) | None => "step",
    };
    (name, SessionCommand::Model(turn, command))
}

fn sums_up(session: &Session) -> bool {
    session.turn.as_ref().is_some_and(|turn| turn.work == Work::Compacts)
}

/// What an approver grants instead, now and then.
fn granted(rng: &mut Rng) -> Option<Declared> {
    let paths = if rng.bool() { "src/" } else { "./" };
    let some = Declared {
        tools: ["write_file".to_owned()].into(),
        paths: [paths.to_owned()].into(),
        calls_max: Some(rng.u32(0..3)),
        spend_micros_max: Some(rng.u64(0..1_000_000)),
        lasts_micros: Some(rng.i64(1..50) * 1_000_000),
        ..Declared::default()
    };
    match rng.u8(0..10) {
        0 => Some(Declared::default()),
        1 | 2 => Some(some),
        _ => None,
    }
}

/// Some blocks of the current revision were seen, or all of them, or one that it does not have.
fn seen(rng: &mut Rng, session: &Session, digest: Digest) -> PersonCommand {
    let head = session.plan().and_then(|plan| plan.current.as_ref());
    let all = head.map(|head| head.blocks.0.clone()).unwrap_or_default();
    let share = rng.u8(0..6);
    let mut blocks: Vec<_> = all.into_iter().filter(|_| rng.u8(0..3) < share).collect();
    if rng.u8(0..20) == 0 {
        blocks.extend(BlockSet::of("a block that no revision has").0);
    }
    PersonCommand::MarkSeen { digest, blocks }
}

/// A comment, a reply, other words for one, or a thread that is settled or not: of a comment that is there, or nearly.
fn discussed(rng: &mut Rng, session: &Session, current: Digest) -> PersonCommand {
    let number = rng.u32(0..session.plan().map_or(0, |plan| plan.commented) + 2);
    let on = |comment| Said::Comment { comment };
    let said = match rng.u8(0..8) {
        0..=2 => on(Comment::on_line(rng.u32(0..4), "why?")),
        3 | 4 => on(Comment { reply_to: Some(number), ..Comment::on_the_whole("and how?") }),
        5 => Said::Edit { number, text: "why so?".into() },
        6 => Said::Resolve { number },
        _ => Said::Reopen { number },
    };
    PersonCommand::Discuss { plan: None, base: Some(current), said }
}

/// A decision on the call that waits, or on one that does not.
fn permit(rng: &mut Rng, session: &Session, other: Digest) -> PersonCommand {
    let digest = session.ask.as_ref().map_or(other, |ask| ask.digest);
    let digest = if rng.u8(..) < 240 { digest } else { other };
    let permit = match rng.u8(0..8) {
        0..=2 => Permit::Once,
        3 | 4 => Permit::UntilPlanEnds,
        5 => Permit::Replan { text: "otherwise".into() },
        _ => Permit::Deny,
    };
    PersonCommand::Decide(Decision::Permit { digest, permit })
}

fn coder() -> Profile {
    Profile::new("coder", "", "m", None, None)
}

const GOAL: (&str, &str) = ("plan_create", "{\"goal\":\"g\"}");
const METADATA: (&str, &str) = (
    "plan_set_metadata",
    "{\"assumptions\":[\"a\"],\"risks\":[\"r\"],\"verification\":[\"v\"],\"files\":[\"f\"]}",
);
const STEP: (&str, &str) =
    ("plan_add_step", "{\"title\":\"t\",\"instructions\":\"i\",\"profile\":\"coder\"}");
const SUBMIT: (&str, &str) = ("plan_submit", "{}");

/// Replies to the open comments, now and then to none.
fn replies(rng: &mut Rng, session: &Session) -> String {
    let open = session.plan().into_iter().flat_map(|plan| &plan.comments_open);
    let reply = |number: &u32| format!("{{\"comment\":{number}}}");
    let replies: Vec<_> = open.map(reply).collect();
    if replies.is_empty() || rng.u8(..) < 20 {
        return String::new();
    }
    format!(",\"replies\":[{}]", replies.join(","))
}

/// One call that builds.
fn building(rng: &mut Rng) -> (&'static str, String, CallKind) {
    let (tool, arguments) = [GOAL, METADATA, STEP, SUBMIT][rng.usize(0..4)];
    (tool, arguments.into(), CallKind::Plan)
}

/// The calls that build a whole plan.
fn whole(rng: &mut Rng, session: &Session) -> Vec<RequestedCall> {
    let replies = replies(rng, session);
    let submit = format!("{{{}}}", replies.trim_start_matches(','));
    let call = |(tool, arguments): (&str, &str)| RequestedCall {
        id: fresh(rng).into(),
        wire_id: "w".into(),
        tool: tool.into(),
        arguments: arguments.into(),
        kind: CallKind::Plan,
    };
    [GOAL, METADATA, STEP, STEP, ("plan_submit", &submit)].map(call).into()
}

fn fresh(rng: &mut Rng) -> Uuid {
    Uuid::from_u128(rng.u128(..))
}

fn bracket(rng: &mut Rng) -> Bracket {
    let deadline = Time(1_000_000 * rng.i64(1..100));
    Bracket { incarnation: Incarnation(Uuid::from_u128(1)), start_by: deadline, deadline }
}

fn result(rng: &mut Rng) -> CallResult {
    if rng.u8(..) >= 200 {
        return CallResult::failed("no");
    }
    let (before, after) = (Digest::of(b"old"), Digest::of(b"new"));
    let diff = rng.bool().then(|| "@@ -1 +1 @@\n-old\n+new\n".to_owned());
    let change = FileChange { path: "a".into(), before: Some(before), after, diff };
    let touched = vec![Touched::Wrote { path: "a".into(), bytes: 3 }];
    CallResult { touched, changes: vec![change], ..CallResult::done("ok") }
}

fn failure(rng: &mut Rng) -> ModelFailure {
    let kinds = [
        FailureKind::Transient,
        FailureKind::Malformed,
        FailureKind::Permanent,
        FailureKind::TooLarge,
    ];
    ModelFailure {
        kind: kinds[rng.usize(0..kinds.len())],
        message: "no".into(),
        retry_after_micros: Some(1),
    }
}
