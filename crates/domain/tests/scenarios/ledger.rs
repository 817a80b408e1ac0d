//! Review: numbered comments, a ledger that is kept, what changed for this reader, and a person's own text.

use planwright_domain::{
    actor::PersonId,
    command::{Decision, PersonCommand, SessionCommand},
    diff::{PartChange, parts},
    plan::{
        Strategy,
        event::PlanEvent,
        review::{Author, Comment, Reply},
    },
    session::SessionEvent,
    tools::PlanTool,
};
use serde_json::json;

use crate::given::*;

fn asked_for(comments: Vec<Comment>) -> World {
    let world = ready().shown();
    let digest = world.digest();
    let changes = PersonCommand::Decide(Decision::RequestChanges { digest, comments });
    world.does(changes).turn_starts()
}

fn two() -> World {
    asked_for(vec![Comment::on_line(3, "back up first"), Comment::on_the_whole("shorter")])
}

fn content(replies: serde_json::Value) -> Asks {
    tool("plan_set_content", json!({"plan_markdown": SECOND, "replies": replies}))
}

fn added(world: &World) -> (Author, Vec<Reply>) {
    let added = |event: &SessionEvent| match event {
        SessionEvent::Plan(PlanEvent::RevisionAdded { author, replies, .. }) => {
            Some((author.clone(), replies.clone()))
        }
        _ => None,
    };
    world.events.iter().rev().find_map(added).expect("a revision")
}

#[test]
fn a_new_revision_must_answer_every_comment() {
    let world = two().answers("", vec![set_content(SECOND)]).plan_tools_run();
    assert_eq!(
        world.last_refusal(),
        "every comment needs a reply, addressed or declined with a reason; left: 1, 2"
    );
    let world = world.answers("", vec![content(json!([{"comment": 2}]))]).plan_tools_run();
    assert!(world.last_refusal().ends_with("left: 1"));
    assert_eq!(world.plan().current.as_ref().unwrap().number, 1);
}

#[test]
fn a_comment_is_addressed_or_declined_with_a_reason() {
    let replies = json!([{"comment": 1}, {"comment": 2, "declined": "it is short"}]);
    let world = two().answers("", vec![content(replies)]).plan_tools_run();
    assert_eq!(world.plan().current.as_ref().unwrap().number, 2);
    let expected = vec![
        Reply { comment: 1, declined: None, answer: None },
        Reply { comment: 2, declined: Some("it is short".into()), answer: None },
    ];
    assert_eq!(added(&world), (Author::Model, expected));
    assert!(world.plan().comments_open.is_empty());
    let empty = json!([{"comment": 1, "declined": " "}, {"comment": 2}]);
    let world = two().answers("", vec![content(empty)]).plan_tools_run();
    assert_eq!(world.last_refusal(), "the reason to decline a comment is empty; say it in words");
}

#[test]
fn comments_are_numbered_through_the_whole_plan() {
    let world = two().answers("", vec![content(json!([{"comment": 1}, {"comment": 2}]))]);
    let world = world.plan_tools_run().answers("there", vec![]).shown();
    let command = world.changes_command(world.digest());
    let world = world.does(command);
    assert_eq!(world.plan().comments_open.iter().copied().collect::<Vec<_>>(), [3]);
}

#[test]
fn a_comment_speaks_of_what_is_there() {
    let ask = |world: World, comment| {
        let (mut world, digest) = (world.clone(), world.digest());
        let comments = vec![comment];
        world.person(PersonCommand::Decide(Decision::RequestChanges { digest, comments }))
    };
    let refused = ask(ready().shown(), Comment::on_line(9, "x")).unwrap_err();
    assert_eq!(refused.to_string(), "there is no line 9; the revision has 4");
    let refused = ask(built().shown(), Comment::on_step(7, "x")).unwrap_err();
    assert_eq!(refused.kind(), "no_such_step");
    assert!(ask(built().shown(), Comment::on_step(2, "x")).is_ok());
}

#[test]
fn every_tool_that_saves_a_plan_can_reply_to_comments() {
    for tool in PlanTool::ALL {
        let saves = matches!(tool, PlanTool::SetContent | PlanTool::Finalize | PlanTool::Submit);
        let schema = tool.spec().parameters.to_string();
        assert_eq!(schema.contains("replies"), saves, "{}", tool.name());
    }
}

#[test]
fn every_strategy_keeps_the_ledger() {
    let world = collected().shown();
    let command = world.changes_command(world.digest());
    let world = world.does(command).turn_starts();
    let world = world.answers("", vec![write("c"), finalize()]).plan_tools_run();
    assert!(world.last_refusal().ends_with("left: 1"));
    let replies = json!({"replies": [{"comment": 1}]});
    let world = world.answers("", vec![tool("plan_finalize", replies)]).plan_tools_run();
    assert_eq!(world.plan().current.as_ref().unwrap().number, 2);
}

#[test]
fn a_reader_reads_against_what_they_last_saw_or_decided_on() {
    let ada = PersonId("ada".into());
    let world = ready();
    assert_eq!(world.plan().read_against(&ada), 0, "all of it is new");
    let world = new_content(new_content(world.shown()));
    assert_eq!(
        (world.plan().current.as_ref().unwrap().number, world.plan().read_against(&ada)),
        (3, 1)
    );
    let world = world.shown();
    assert_eq!(world.plan().read_against(&ada), 1, "it stays so while they read");
    assert_eq!(world.plan().read_against(&PersonId("bob".into())), 0);
}

#[test]
fn a_person_writes_a_revision_and_may_approve_it_at_once() {
    let mut world = withdrawn();
    let (base, fresh) = (Some(world.digest()), world.fresh().into());
    world
        .person(PersonCommand::EditPlan { base, markdown: SECOND.into(), fresh, suggested: false })
        .unwrap();
    let (author, replies) = added(&world);
    assert_eq!((author, replies.len()), (Author::Person(ada()), 1));
    let command = world.approve_command(world.digest(), planwright_domain::command::Start::AtOnce);
    assert_eq!(world.does(command).status(), "executing");
}

#[test]
fn an_edit_of_a_replaced_revision_or_by_a_guest_or_of_steps_is_refused() {
    let edit = |base, fresh| PersonCommand::EditPlan {
        base,
        markdown: SECOND.into(),
        fresh,
        suggested: false,
    };
    let mut world = new_content(ready());
    let fresh = world.fresh().into();
    assert_eq!(world.person(edit(Some(schema()), fresh)).unwrap_err().kind(), "stale_decision");
    let base = Some(world.digest());
    let guest = SessionCommand::Person(a_guest(), edit(base, fresh));
    assert_eq!(world.ask(guest).unwrap_err().kind(), "may_not_decide");
    let mut world = built();
    let base = Some(world.digest());
    let refusal = world.person(edit(base, fresh)).unwrap_err();
    assert_eq!(refusal.kind(), "not_a_document");
    assert!(refusal.to_string().starts_with(&format!("a {} plan", Strategy::Build.name())));
}

#[test]
fn an_edit_in_mid_execution_replaces_the_plan_and_stops_it() {
    let mut world = running().answers("", vec![write("a"), write("b")]).calls_start();
    let (base, fresh) = (Some(world.digest()), world.fresh().into());
    world
        .person(PersonCommand::EditPlan { base, markdown: SECOND.into(), fresh, suggested: false })
        .unwrap();
    assert_eq!((world.status().as_str(), world.session.turn.is_none()), ("ready", true));
    assert!(world.plan().predecessor.is_some());
}

#[test]
fn what_changed_is_told_by_step_and_ordinals_do_not_count() {
    let change = |before: &str, after: &str| -> Vec<(String, PartChange)> {
        parts(before, after).into_iter().map(|part| (part.title, part.change)).collect()
    };
    assert_eq!(
        change(FIRST, SECOND),
        [
            ("Move the photos".to_owned(), PartChange::Same),
            ("Back up".to_owned(), PartChange::Added),
            ("Stop the service".to_owned(), PartChange::Same),
            ("Copy the files".to_owned(), PartChange::Same),
        ]
    );
    let before =
        "# P\n\n## Step 1: copy (coder)\n\nall of it\n\n## Step 2: check (writer)\n\ntwice\n";
    let after = "# P\n\n## Step 2: check (writer)\n\nonce\n\n## Step 3: tidy (coder)\n\nup\n";
    assert_eq!(
        change(before, after),
        [
            ("P".to_owned(), PartChange::Same),
            ("check (writer)".to_owned(), PartChange::Changed),
            ("tidy (coder)".to_owned(), PartChange::Added),
            ("copy (coder)".to_owned(), PartChange::Removed),
        ]
    );
}
