//! A foreign agent works under a plan: it writes, a person decides, it reports, and its word stays its word.

use planwright_domain::{
    agent::{self, AgentCall, Answered, PROFILE},
    command::{Decision, Given, LifeCommand, PersonCommand, SessionCommand, Start, SystemCommand},
    id::CallId,
    identity::SessionKey,
    next::{Next, Waiting, next},
    outcome::PlanCard,
    plan::{
        Strategy, document_steps,
        event::{Account, PlanEvent},
        review::Comment,
        step::StepEnd,
    },
    refusal::Refusal,
    session::{Session, SessionEvent, erasure},
    turn::{CallKind, RequestedCall, ToolReply},
};
use proptest::strategy::Strategy as Strategy_;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::given::*;

fn a_foreign_session() -> World {
    World { session: Session::new(ada_key("mcp:window-0001")), ..a_session() }
}

impl World {
    /// The agent calls a tool, with what the journal holds beside it.
    fn agent(&mut self, tool: &str, arguments: Value) -> Result<Vec<SessionEvent>, Refusal> {
        let id = self.fresh().into();
        self.agent_call(id, tool, arguments, Answered::ByDecision)
    }

    /// The same, by this call, answered so.
    fn agent_call(
        &mut self,
        id: CallId,
        tool: &str,
        arguments: Value,
        answered: Answered,
    ) -> Result<Vec<SessionEvent>, Refusal> {
        let revision = self.events.iter().rev().find_map(|event| match event {
            SessionEvent::Plan(PlanEvent::RevisionAdded { revision, .. }) => {
                Some((**revision).clone())
            }
            _ => None,
        });
        let open = self.session.plan().map(|plan| plan.comments_open.clone()).unwrap_or_default();
        let comments = self.events.iter().filter_map(|event| match event {
            SessionEvent::Plan(PlanEvent::ChangesRequested { comments, .. }) => Some(comments),
            _ => None,
        });
        let comments: Vec<Comment> = comments.flatten().cloned().collect();
        let comments =
            comments.into_iter().filter(|comment| open.contains(&comment.number)).collect();
        let call = RequestedCall {
            id,
            wire_id: String::new(),
            tool: tool.into(),
            arguments: arguments.to_string(),
            kind: CallKind::Plan,
        };
        let given = Given { profiles: [PROFILE.to_owned()].into(), ..self.given() };
        let (owner, of, agent) = (ada().owner, ada().id, "claude-code".to_owned());
        let call = AgentCall { owner, of, agent, call, given, revision, comments, answered };
        self.ask(SessionCommand::Agent(Box::new(call)))
    }

    /// The same, and what it is told; every call is recorded with its answer.
    fn agent_told(&mut self, tool: &str, arguments: Value) -> String {
        let events = self.agent(tool, arguments).unwrap();
        let reply = events.iter().find_map(|event| match event {
            SessionEvent::AgentCalled { reply, .. } => Some(reply.clone()),
            _ => None,
        });
        match reply.expect("every call is answered") {
            ToolReply::Text { text } => text,
            ToolReply::Refused { kind, words } => format!("{kind}: {words}"),
            ToolReply::Revision { heading, .. } => heading,
            other => panic!("{other:?}"),
        }
    }

    fn agent_saves(mut self, markdown: &str) -> Self {
        self.agent_told("plan_set_content", json!({"plan_markdown": markdown}));
        self
    }

    fn agent_reports(&mut self, status: &str, step: Option<u32>) -> String {
        self.agent_told(
            "plan_report",
            json!({"status": status, "summary": "as asked", "evidence": "git log", "step": step}),
        )
    }
}

fn tools(world: &World) -> Vec<String> {
    agent::specs(&world.session).iter().map(|spec| spec.name.clone()).collect()
}

#[test]
fn an_agent_writes_a_plan_is_asked_for_changes_revises_and_reports_step_by_step() {
    let mut world = a_foreign_session().plan_on();
    assert_eq!(tools(&world), ["plan_get", "plan_set_content"]);
    world = world.agent_saves(FIRST);
    assert_eq!(tools(&world), ["plan_get", "plan_set_content", "plan_ask"]);
    assert_eq!(next(&world.session), Next::WaitForPerson(Waiting::Decision));
    assert_eq!(
        world.agent_told("plan_ask", json!({})),
        "Revision 1 waits for a person's decision. Only a person can give it; do not begin before."
    );

    let changes = world.changes_command(world.digest());
    world = world.shown().does(changes);
    assert_eq!(next(&world.session), Next::Nothing, "nobody here takes a turn for it");
    let reply = world.agent_told("plan_get", json!({}));
    assert!(reply.contains("- comment 1, on line 3: back up first"), "{reply}");
    let refused = world.agent_told("plan_set_content", json!({"plan_markdown": SECOND}));
    assert!(refused.starts_with("comments_unanswered"), "{refused}");
    let saved = world.agent_told(
        "plan_set_content",
        json!({"plan_markdown": SECOND, "replies": [{"comment": 1}]}),
    );
    assert!(saved.starts_with("Saved as revision 2"), "{saved}");

    world = world.approved();
    assert_eq!(world.status(), "executing");
    assert_eq!(next(&world.session), Next::Nothing, "the agent is not ours to run");
    assert_eq!(tools(&world), ["plan_get", "plan_set_content", "plan_report"]);
    let reply = world.agent_told("plan_get", json!({}));
    assert_eq!(
        reply,
        "Running, revision 2: Move the photos\nApproved by ada.\n\nDo step 1 of 3 now, and no other: Back up\nThen call plan_report."
    );
    assert_eq!(
        world.agent_reports("done", None),
        "Step 1 is recorded, as your word. Do step 2 of 3 now, and no other: Stop the service\nThen call plan_report."
    );
    assert_eq!(
        world.agent_reports("done", Some(2)),
        "Step 2 is recorded, as your word. Do step 3 of 3 now, and no other: Copy the files\nThen call plan_report."
    );
    let last = world.agent_reports("done", Some(3));
    assert!(last.contains("the plan is Done"), "{last}");

    let ends = world.events.iter().filter_map(|event| match event {
        SessionEvent::Plan(PlanEvent::StepEnded { step, end, .. }) => Some((*step, end.clone())),
        _ => None,
    });
    let reported = StepEnd::Reported { by: "claude-code".into(), evidence: Some("git log".into()) };
    assert_eq!(ends.collect::<Vec<_>>(), [1, 2, 3].map(|step| (step, reported.clone())));
    let ended = world.session.last_ended.as_ref().unwrap();
    assert_eq!(world.status(), "done");
    let word = Account::Agent {
        agent: "claude-code".into(),
        summary: "as asked".into(),
        evidence: Some("git log".into()),
    };
    assert_eq!(ended.account, word);
    assert_eq!(
        word.in_words(),
        "claude-code reports: as asked (see git log); Planwright saw none of it done"
    );
    assert_eq!(tools(&world), Vec::<String>::new());
}

/// Invariant: `inactive-is-inert`
#[test]
fn without_plan_work_every_plan_tool_is_refused_in_words_and_only_that_is_recorded() {
    let mut world = a_foreign_session();
    assert_eq!(tools(&world), Vec::<String>::new());
    for tool in ["plan_get", "plan_set_content", "plan_report", "plan_ask", "plan_submit"] {
        let before = world.session.clone();
        let reply = world.agent_told(tool, json!({}));
        assert_eq!(
            reply,
            format!(
                "policy_denied: policy_denied: {tool} is not available while plan work is not active; a person sends /plan on"
            )
        );
        let after = Session { version: before.version, log: before.log, ..world.session.clone() };
        assert_eq!(after, before, "{tool}");
    }
}

/// Invariant: `model-never-approves`
#[test]
fn no_tool_and_no_argument_approves_and_the_attempt_stands_in_the_log() {
    let mut world = a_foreign_session().plan_on().agent_saves(FIRST).shown();
    for (tool, arguments) in [
        ("plan_approve", json!({"digest": world.digest().to_string()})),
        ("plan_ask", json!({"approve": true})),
        ("plan_get", json!({"decision": "approve"})),
        ("plan_report", json!({"status": "done", "summary": "approved"})),
        ("plan_set_content", json!({"plan_markdown": SECOND, "approved_by": "ada"})),
    ] {
        let head = world.session.log;
        let reply = world.agent_told(tool, arguments);
        assert!(
            reply.starts_with("policy_denied") || reply.starts_with("bad_arguments"),
            "{reply}"
        );
        assert_ne!(world.session.log, head, "{tool} is in the log");
        assert_eq!(world.status(), "ready");
    }
}

#[test]
fn what_was_approved_since_the_agent_looked_cannot_be_replaced_unseen() {
    let mut world = a_foreign_session().plan_on().agent_saves(FIRST).approved();
    let reply = world.agent_told("plan_set_content", json!({"plan_markdown": SECOND}));
    assert!(reply.contains("the plan was approved since you last looked"), "{reply}");
    assert_eq!(world.status(), "executing");
    world.agent_told("plan_get", json!({}));
    let reply = world.agent_told("plan_set_content", json!({"plan_markdown": SECOND}));
    assert!(reply.starts_with("Saved as revision 1"), "{reply}");
    assert_eq!(world.status(), "ready", "a new plan, which needs an approval of its own");
}

#[test]
fn a_step_that_was_handed_out_and_not_reported_is_said_to_be_so() {
    let mut world = a_foreign_session().plan_on().agent_saves(FIRST).approved();
    let first = world.agent_told("plan_get", json!({}));
    assert!(!first.contains("handed out before"), "{first}");
    let again = world.agent_told("plan_get", json!({}));
    assert!(again.contains("It was handed out before and not reported"), "{again}");
    let card = PlanCard::of(&world.session, &Default::default()).unwrap();
    assert_eq!(
        card.waits.as_deref(),
        Some("claude-code was given step 1 (Stop the service) and has not reported it yet")
    );
    assert_eq!(
        card.allows,
        ["let the agent work with its own tools, which Planwright neither sees nor limits"]
    );
}

#[test]
fn steps_are_reported_in_their_order_and_only_while_the_plan_runs() {
    let mut world = a_foreign_session().plan_on().agent_saves(FIRST);
    assert!(world.agent_reports("done", None).contains("the plan is Ready"));
    world = world.approved();
    let reply = world.agent_reports("done", Some(2));
    assert!(reply.starts_with("not_this_step"), "{reply}");
    world = world.does(PersonCommand::PausePlan);
    let reply = world.agent_reports("done", Some(1));
    assert!(reply.contains("the plan is Paused"), "{reply}");
    let reply = world.agent_told("plan_ask", json!({"wait_seconds": 5}));
    assert!(reply.starts_with("The execution is paused: you stopped it."), "{reply}");
    let resume = world.resume_command();
    world = world.does(resume);
    let reply = world.agent_reports("blocked", None);
    assert!(reply.contains("waits for a person"), "{reply}");
    assert_eq!(world.status(), "executing_paused");
    let resume = world.resume_command();
    world = world.does(resume);
    world.agent_reports("failed", None);
    assert_eq!(world.status(), "failed");
    let resume = world.resume_command();
    world = world.does(resume);
    let reply = world.agent_told("plan_get", json!({}));
    assert!(reply.contains("Do step 1 of 2 now"), "a failed step is tried again: {reply}");
}

#[test]
fn an_agent_builds_steps_without_naming_profiles() {
    let mut world = a_foreign_session().plan_on_with(Strategy::Build);
    world.agent_told("plan_create", json!({"goal": "photos are safe"}));
    world.agent_told(
        "plan_set_metadata",
        json!({"assumptions": ["a"], "risks": ["r"], "verification": ["v"], "files": ["f"]}),
    );
    let added =
        world.agent_told("plan_add_step", json!({"title": "Copy", "instructions": "with rsync"}));
    assert_eq!(added, "Step 1 was added.");
    let submitted = world.agent_told("plan_submit", json!({}));
    assert!(submitted.starts_with("Saved as revision 1"), "{submitted}");
    world = world.approved();
    let reply = world.agent_told("plan_get", json!({}));
    assert!(
        reply.ends_with(
            "Do step 1 of 1 now, and no other: Copy\nwith rsync\nThen call plan_report."
        ),
        "{reply}"
    );
    world.agent_reports("done", None);
    assert_eq!(world.status(), "done");
}

#[test]
fn a_person_speaks_to_a_foreign_agent_where_it_runs() {
    let mut world = a_foreign_session().plan_on();
    let elsewhere = Refusal::AgentElsewhere { identity: "mcp:window-0001".into() };
    assert_eq!(world.person(PersonCommand::Say { text: "hello".into() }), Err(elsewhere));
    let mut world = a_foreign_session();
    let plan = world.fresh().into();
    let collect = start_plan(plan, Strategy::Collect);
    assert_eq!(world.person(collect), Err(Refusal::NothingToCollect));
}

/// Invariant: `effects-bracketed`.
#[test]
fn a_page_written_while_the_pages_are_removed_makes_the_removal_due_once_more() {
    let mut world = a_foreign_session();
    let id: CallId = Uuid::from_u128(77).into();
    world.agent_call(id, "append_progress", json!({}), Answered::ByNotebook).unwrap();
    let delete = PersonCommand::Life(LifeCommand::Delete);
    let mut world = world.does(delete);
    let (attempt, bracket) = (1, world.bracket());
    world.system(SystemCommand::StartRemoval { attempt, bracket }).unwrap();
    let reply = ToolReply::Text { text: "written".into() };
    world.system(SystemCommand::RecordAgentCall { call: id, reply }).unwrap();
    assert_eq!(next(&world.session), Next::AwaitRemoval { attempt, bracket }, "it goes on");
    world.system(SystemCommand::RecordPagesRemoved { attempt, pages: 2 }).unwrap();
    assert_eq!(next(&world.session), Next::RemovePages { attempt: 2, not_before: None });
    let attempt = 2;
    world.system(SystemCommand::StartRemoval { attempt, bracket }).unwrap();
    let late = world.system(SystemCommand::RecordPagesRemoved { attempt: 1, pages: 2 });
    assert_eq!(late.unwrap_err().kind(), "moved_on", "its number was used once");
    world.system(SystemCommand::RecordPagesRemoved { attempt, pages: 1 }).unwrap();
    assert_eq!(next(&world.session), Next::Erase { not_before: None });
}

#[test]
fn a_session_in_which_an_agent_may_be_writing_a_page_is_erased_half_an_hour_later() {
    let mut world = a_foreign_session();
    let id: CallId = Uuid::from_u128(77).into();
    world.agent_call(id, "append_progress", json!({}), Answered::ByNotebook).unwrap();
    let mut world = world.does(PersonCommand::Life(LifeCommand::Delete));
    let (attempt, bracket) = (1, world.bracket());
    let deleted = world.session.deletion.clone().unwrap().at;
    world.system(SystemCommand::StartRemoval { attempt, bracket }).unwrap();
    world.system(SystemCommand::RecordPagesRemoved { attempt, pages: 1 }).unwrap();
    let half_an_hour = deleted.plus_micros(30 * 60 * 1_000_000);
    assert_eq!(next(&world.session), Next::Erase { not_before: Some(half_an_hour) });
    assert_eq!(erasure(&world.session, half_an_hour.plus_micros(-1)), None);
    assert!(erasure(&world.session, half_an_hour).is_some());
    let reply = ToolReply::Text { text: "written".into() };
    world.system(SystemCommand::RecordAgentCall { call: id, reply }).unwrap();
    assert_eq!(next(&world.session), Next::RemovePages { attempt: 2, not_before: None });
}

#[test]
fn of_too_many_open_notebook_calls_the_one_that_began_first_is_given_up() {
    let mut world = a_foreign_session();
    // Ids fall: the order of ids is not the order in which calls begin.
    let ids = (1..=33_u128).rev().map(|id| CallId::from(Uuid::from_u128(id)));
    for id in ids {
        world.agent_call(id, "read_plan", json!({}), Answered::ByNotebook).unwrap();
    }
    let open: Vec<_> = world.session.notebook.agent_calls.iter().map(|open| open.call.0).collect();
    let left: Vec<_> = (1..=32_u128).rev().map(Uuid::from_u128).collect();
    assert_eq!(open, left);
}

#[test]
fn agents_work_in_sessions_of_their_own_that_are_there_and_their_persons() {
    let mut ours = a_session().plan_on();
    let refused = Refusal::NotAnAgents { identity: "cli:talk-0001".into() };
    assert_eq!(ours.agent("plan_get", json!({})), Err(refused));
    let deleted = Refusal::SessionDeleted { identity: "mcp:window-0001".into() };
    let mut world = a_foreign_session().plan_on().does(PersonCommand::Life(LifeCommand::Delete));
    assert_eq!(world.agent("plan_get", json!({})), Err(deleted));
    let session = Session::new(SessionKey::named("mcp:window-0001", a_guest().owner).unwrap());
    let mut world = World { session, ..a_session() };
    let plan = world.fresh().into();
    world.ask(SessionCommand::Person(a_guest(), start_plan(plan, Strategy::Document))).unwrap();
    let not_yours = Refusal::NotYours { identity: "mcp:window-0001".into() };
    assert_eq!(world.agent("plan_get", json!({})), Err(not_yours));
}

#[test]
fn what_an_agents_plan_declares_is_told_to_it_with_the_approval_and_its_notes() {
    let declared =
        "---\ntools: Bash\npaths: src/\n---\n# Tidy up\n\n- [ ] Sort imports\n- [ ] Run tests\n";
    let world = a_foreign_session().plan_on().agent_saves(declared).shown();
    let PersonCommand::Decide(Decision::Approve(approving)) =
        world.approve_command(world.digest(), Start::AtOnce)
    else {
        panic!()
    };
    let notes = vec!["mind the tests".to_owned()];
    let approve = PersonCommand::Decide(Decision::Approve(planwright_domain::command::Approving {
        notes,
        ..approving
    }));
    let mut world = world.does(approve);
    let reply = world.agent_told("plan_get", json!({}));
    assert!(reply.contains("Stay within what was approved: "), "{reply}");
    assert!(reply.contains("src/") && reply.contains("Bash"), "{reply}");
    assert!(reply.contains("Note from the approver: mind the tests"), "{reply}");
    assert!(reply.contains("Do step 1 of 2 now, and no other: Sort imports"), "{reply}");
}

/// One thing that an agent or a person may do.
fn anything() -> impl Strategy_<Value = (u8, u8, bool)> {
    (0..24_u8, 0..4_u8, proptest::bool::ANY)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]

    /// Invariant: `model-never-approves`
    #[test]
    fn whatever_an_agent_calls_only_a_person_approves_nothing_of_ours_runs_and_replay_is_state(
        moves in proptest::collection::vec(anything(), 1..40), builds in proptest::bool::ANY
    ) {
        let strategy = if builds { Strategy::Build } else { Strategy::Document };
        let mut world = a_foreign_session().plan_on_with(strategy);
        for (what, variant, flag) in moves {
            let approved = world.session.plan().is_some_and(|plan| plan.status.approval().is_some());
            let is_agent = what < 16;
            let text = ["# A\n\n1. One\n2. Two\n", "# B", "", "- [ ] x\n"][variant as usize];
            let status = ["done", "failed", "blocked", "approved"][variant as usize];
            let (tool, arguments) = match what {
                0..3 => ("plan_set_content", json!({"plan_markdown": text})),
                3 => ("plan_set_content", json!({"plan_markdown": text, "replies": [{"comment": variant}]})),
                4 | 5 => ("plan_get", json!({})),
                6..9 => ("plan_report", json!({"status": status, "summary": "s", "step": flag.then_some(variant)})),
                9 => ("plan_ask", json!({"approve": flag})),
                10 => ("plan_approve", json!({})),
                11 => ("plan_create", json!({"goal": text})),
                12 => ("plan_add_step", json!({"title": "t", "instructions": "i"})),
                13 => ("plan_set_metadata", json!({"assumptions": ["a"], "risks": ["r"], "verification": ["v"], "files": ["f"]})),
                14 => ("plan_submit", json!({})),
                _ => ("memory_save", json!({"text": "m"})),
            };
            if is_agent {
                world.agent(tool, arguments).unwrap();
            } else {
                let digest = world.session.plan().and_then(|plan| plan.current.as_ref()).map(|head| head.digest);
                let command = match (what, digest) {
                    (16 | 17, Some(digest)) => {
                        let _ = world.person(PersonCommand::RecordShown { digest });
                        world.approve_command(digest, if flag { Start::Hold } else { Start::AtOnce })
                    }
                    (18, Some(digest)) => world.changes_command(digest),
                    (19, Some(digest)) if flag => world.reject_command(digest),
                    (20, _) => PersonCommand::PausePlan,
                    (21, _) => world.resume_command(),
                    (22, _) if flag => PersonCommand::Reset,
                    (23, _) => start_plan(world.fresh().into(), strategy),
                    (_, _) => PersonCommand::Stop,
                };
                let _ = world.person(command);
            }
            let stands = world.session.plan().is_some_and(|plan| plan.status.approval().is_some());
            proptest::prop_assert!(!is_agent || approved || !stands, "an agent approved");
            proptest::prop_assert!(world.session.turn.is_none() && world.session.queue.is_empty());
            proptest::prop_assert!(world.session.open.is_empty() && next(&world.session).is_rest());
            let again = world.folded(&world.events).unwrap();
            proptest::prop_assert_eq!(&again, &world.session);
        }
    }
}

#[test]
fn the_steps_of_a_document_are_its_first_numbered_list_else_its_boxes() {
    for (markdown, steps) in [
        (
            "# A\n\n- note\n\n1. One `x`\n   - part\n2. Two\n   words\n\n## B\n\n1. Other\n",
            vec!["One x", "Two words"],
        ),
        ("# A\n\n- [ ] One\n- [x] Two\n", vec!["One", "Two"]),
        ("# A\n\n- plain\n- list\n", vec![]),
        ("```\n1. code\n```\n", vec![]),
        ("1. One\n\n   more of it\n\n2. Two\n", vec!["One", "Two"]),
        ("", vec![]),
    ] {
        assert_eq!(document_steps::steps(markdown), steps, "{markdown:?}");
    }
}
