//! Threads: comments that are posted before anybody asks for a newer revision, replies, and what is settled.

use planwright_domain::{
    command::{Decision, PersonCommand, SessionCommand},
    plan::{
        event::PlanEvent,
        review::{Comment, Reply, Said},
    },
    session::SessionEvent,
};
use serde_json::json;

use crate::given::*;

fn discuss(world: &World, said: Said) -> PersonCommand {
    PersonCommand::Discuss { plan: None, base: Some(world.digest()), said }
}

fn posts(world: World, comment: Comment) -> World {
    let command = discuss(&world, Said::Comment { comment });
    world.does(command)
}

fn reply(to: u32, text: &str) -> Comment {
    Comment { reply_to: Some(to), ..Comment::on_the_whole(text) }
}

fn says(world: World, said: Said) -> World {
    let command = discuss(&world, said);
    world.does(command)
}

/// Nothing of one's own: what was posted is asked for.
fn asks(world: World) -> World {
    let (digest, comments) = (world.digest(), Vec::new());
    world.does(PersonCommand::Decide(Decision::RequestChanges { digest, comments }))
}

fn asked(world: &World) -> Vec<Comment> {
    let asked = |event: &SessionEvent| match event {
        SessionEvent::Plan(PlanEvent::ChangesRequested { comments, .. }) => Some(comments.clone()),
        _ => None,
    };
    world.events.iter().rev().find_map(asked).expect("a request")
}

fn refused(world: &World, person: planwright_domain::actor::Person, said: Said) -> String {
    let command = SessionCommand::Person(person, discuss(world, said));
    world.clone().ask(command).unwrap_err().to_string()
}

#[test]
fn a_posted_comment_asks_for_nothing_until_somebody_requests_changes() {
    let world = posts(ready().shown(), Comment::on_line(3, "is there a copy?"));
    assert!(world.plan().awaits_decision(), "it can still be approved");
    assert!(world.plan().comments_open.is_empty());
    let world = asks(posts(world, reply(1, "and where?")));
    assert_eq!(
        asked(&world),
        [Comment { number: 1, ..Comment::on_line(3, "is there a copy?\n  ada: and where?") }]
    );
    assert!(world.plan().posted.is_empty());
    assert_eq!(world.plan().comments_open.iter().copied().collect::<Vec<_>>(), [1]);
}

#[test]
fn what_was_posted_goes_with_new_comments_and_each_has_its_number() {
    let world = posts(ready().shown(), Comment::on_line(3, "one"));
    let (digest, comments) = (world.digest(), vec![Comment::on_line(4, "two")]);
    let world = world.does(PersonCommand::Decide(Decision::RequestChanges { digest, comments }));
    let numbers: Vec<_> = asked(&world).iter().map(|comment| comment.number).collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn nothing_posted_and_nothing_new_is_no_request() {
    let mut world = ready().shown();
    let (digest, comments) = (world.digest(), Vec::new());
    let command = PersonCommand::Decide(Decision::RequestChanges { digest, comments });
    assert_eq!(world.person(command).unwrap_err().kind(), "no_comments");
}

#[test]
fn a_question_gets_an_answer_and_a_reply_to_it_is_asked_in_the_same_thread() {
    let world = asks(posts(ready().shown(), Comment::on_line(3, "why?"))).turn_starts();
    let replies = json!([{"comment": 1, "answer": "because it locks"}]);
    let content = tool("plan_set_content", json!({"plan_markdown": SECOND, "replies": replies}));
    let world = world.answers("", vec![content]).plan_tools_run().answers("there", vec![]);
    let answered = world.events.iter().rev().find_map(|event| match event {
        SessionEvent::Plan(PlanEvent::RevisionAdded { replies, .. }) => Some(replies.clone()),
        _ => None,
    });
    let answer = Some("because it locks".to_owned());
    assert_eq!(answered, Some(vec![Reply { comment: 1, declined: None, answer }]));
    let world = asks(posts(world.shown(), reply(1, "for how long?")));
    assert_eq!(asked(&world), [Comment { number: 1, ..reply(1, "for how long?") }]);
    assert_eq!(asked(&world)[0].place(), "what was answered");
}

#[test]
fn a_thread_that_is_settled_is_not_asked_for_and_needs_no_answer() {
    let world = posts(ready().shown(), Comment::on_line(3, "one"));
    let world = posts(posts(world, Comment::on_line(4, "two")), reply(1, "and"));
    let world = asks(says(world, Said::Resolve { number: 1 }));
    assert_eq!(asked(&world), [Comment { number: 2, ..Comment::on_line(4, "two") }]);
    let world = says(world.turn_starts(), Said::Resolve { number: 2 });
    // It was being answered when it was settled: with a reply or without one, the revision is taken.
    for replies in [json!([]), json!([{"comment": 2}])] {
        let is_answered = replies != json!([]);
        let content = json!({"plan_markdown": SECOND, "replies": replies});
        let content = tool("plan_set_content", content);
        let world = world.clone().answers("", vec![content]).plan_tools_run();
        assert_eq!(world.plan().current.as_ref().unwrap().number, 2);
        // What has its answer is not open when somebody opens the thread again.
        assert_eq!(world.plan().comments_open.contains(&2), !is_answered);
    }
}

#[test]
fn what_was_settled_and_opened_again_is_asked_for_as_it_was() {
    let world = posts(ready().shown(), Comment::on_line(3, "never restart it"));
    let settled = says(world, Said::Resolve { number: 1 });
    let nothing = PersonCommand::Decide(Decision::RequestChanges {
        digest: settled.digest(),
        comments: Vec::new(),
    });
    assert_eq!(settled.clone().person(nothing).unwrap_err().kind(), "no_comments");
    let again = asks(says(settled.clone(), Said::Reopen { number: 1 }));
    let expected = Comment { number: 1, ..Comment::on_line(3, "never restart it") };
    assert_eq!(asked(&again), [expected]);
    let replied = asks(posts(settled, reply(1, "I mean it")));
    assert_eq!(asked(&replied)[0].text, "never restart it\n  ada: I mean it");
    // One that was sent, settled and opened again while it is answered must be answered.
    let world = says(again.turn_starts(), Said::Resolve { number: 1 });
    let world = says(world, Said::Reopen { number: 1 });
    let world = world.answers("", vec![set_content(SECOND)]).plan_tools_run();
    assert!(world.last_refusal().ends_with("left: 1"), "{}", world.last_refusal());
}

#[test]
fn what_was_settled_before_its_answer_and_opened_again_is_asked_for_once_more() {
    let world = asks(posts(ready().shown(), Comment::on_line(3, "never restart it")));
    let world = says(world.turn_starts(), Said::Resolve { number: 1 });
    let world = world.answers("", vec![set_content(SECOND)]).plan_tools_run();
    let again = asks(says(world.shown(), Said::Reopen { number: 1 }));
    let words = "(opened again: it was asked for before, and has no answer yet)";
    assert_eq!(asked(&again), [Comment { number: 1, ..Comment::on_the_whole(words) }]);
}

#[test]
fn what_is_settled_leaves_room_for_more() {
    let mut world = ready().shown();
    let long = "x".repeat(8 * 1024);
    for number in 1..=12 {
        world = posts(world, Comment::on_line(3, &long));
        world = says(world, Said::Resolve { number });
    }
    // Opened again, all of it would be sent: that needs room, too.
    for number in 1..=8 {
        world = says(world, Said::Reopen { number });
    }
    let opened =
        PersonCommand::Discuss { plan: None, base: None, said: Said::Reopen { number: 9 } };
    assert_eq!(world.person(opened).unwrap_err().kind(), "too_long");
}

#[test]
fn a_comment_on_an_older_revision_says_so_to_the_author() {
    let world = posts(ready().shown(), Comment::on_line(4, "which files?"));
    let world = asks(new_content(world).shown());
    let text = "(on line 4 of revision 1) which files?";
    assert_eq!(asked(&world), [Comment { number: 1, ..Comment::on_the_whole(text) }]);
}

#[test]
fn a_thread_begins_with_a_comment_and_belongs_to_its_plan() {
    let world = posts(posts(ready(), Comment::on_line(3, "one")), reply(1, "two"));
    for said in [
        Said::Comment { comment: reply(2, "x") },
        Said::Resolve { number: 2 },
        Said::Reopen { number: 2 },
    ] {
        assert_eq!(refused(&world, ada(), said), "there is no open comment 2");
    }
    let plan = Some(uuid::Uuid::nil().into());
    let said = Said::Resolve { number: 1 };
    let other = PersonCommand::Discuss { plan, base: None, said };
    assert_eq!(world.clone().person(other).unwrap_err().kind(), "work_inactive");
}

#[test]
fn a_suggestion_that_is_taken_over_was_not_read_by_writing_it() {
    for (suggested, is_shown) in [(false, true), (true, false)] {
        let mut world = ready().shown();
        let (base, fresh) = (Some(world.digest()), world.fresh().into());
        let markdown = SECOND.replace("Back up", "Delete everything");
        world.person(PersonCommand::EditPlan { base, markdown, fresh, suggested }).unwrap();
        let start = planwright_domain::command::Start::AtOnce;
        let approved = world.clone().person(world.approve_command(world.digest(), start));
        assert_eq!(approved.is_ok(), is_shown, "{approved:?}");
    }
}

#[test]
fn whoever_replies_to_a_settled_thread_opens_it_again() {
    let world = says(posts(ready(), Comment::on_line(3, "one")), Said::Resolve { number: 1 });
    assert!(world.plan().resolved.contains(&1));
    let again = posts(world.clone(), reply(1, "not yet"));
    assert!(again.plan().resolved.is_empty());
    assert_eq!(asked(&asks(again.shown()))[0].text, "one\n  ada: not yet");
    let reopened = says(world, Said::Reopen { number: 1 });
    assert!(reopened.plan().resolved.is_empty());
    let nothing =
        PersonCommand::Discuss { plan: None, base: None, said: Said::Reopen { number: 1 } };
    assert_eq!(reopened.clone().person(nothing).unwrap(), []);
}

#[test]
fn only_its_author_changes_a_comment_and_only_before_it_is_asked_for() {
    let edit = |text: &str| Said::Edit { number: 1, text: text.into() };
    let world = posts(ready().shown(), Comment::on_line(3, "teh copy"));
    let bob = || person("ada", "cli", planwright_domain::actor::Standing::Decides);
    let other = planwright_domain::actor::Person {
        id: planwright_domain::actor::PersonId("bob".into()),
        ..bob()
    };
    assert_eq!(refused(&world, other, edit("x")), "comment 1 is by ada; reply to it instead");
    let world = asks(says(world, edit("the copy")));
    assert_eq!(asked(&world)[0].text, "the copy");
    assert_eq!(
        refused(&world, ada(), edit("x")),
        "comment 1 was sent to the author already; reply to it instead"
    );
    assert_eq!(
        refused(&world, ada(), Said::Edit { number: 7, text: "x".into() }),
        "there is no open comment 7"
    );
}

#[test]
fn a_comment_is_posted_on_what_was_read_and_on_lines_that_are_there() {
    let world = new_content(ready());
    let said = |comment| Said::Comment { comment };
    let stale = PersonCommand::Discuss {
        plan: None,
        base: Some(schema()),
        said: said(Comment::on_line(1, "x")),
    };
    assert_eq!(world.clone().person(stale).unwrap_err().kind(), "stale_decision");
    let range = |line, last| Comment { last_line: Some(last), ..Comment::on_line(line, "x") };
    for (comment, refusal) in [
        (Comment::on_line(9, "x"), "there is no line 9; the revision has 5"),
        (range(3, 9), "there is no line 9; the revision has 5"),
        (range(3, 2), "there is no line 2; the revision has 5"),
        (Comment::on_line(1, " "), "the comment is empty; say it in words"),
        (reply(3, "x"), "there is no open comment 3"),
    ] {
        assert_eq!(refused(&world, ada(), said(comment)), refusal);
    }
    let world = posts(world, range(3, 4));
    assert_eq!(asked(&asks(world.shown()))[0].place(), "lines 3 to 4");
}

#[test]
fn somebody_elses_session_is_discussed_by_who_may_decide_there() {
    let said = Said::Comment { comment: Comment::on_line(3, "x") };
    let world = ready();
    let guest = SessionCommand::Person(a_guest(), discuss(&world, said));
    assert!(world.clone().ask(guest).is_err());
}

#[test]
fn what_is_posted_has_a_limit_and_says_so() {
    let mut world = ready();
    let long = "x".repeat(8 * 1024);
    for _ in 0..8 {
        world = posts(world, Comment::on_line(3, &long));
    }
    let refusal = refused(&world, ada(), Said::Comment { comment: Comment::on_line(3, "x") });
    assert_eq!(
        refusal,
        "what was posted and not asked for yet is too long: 65537, and the limit is 65536"
    );
    let world =
        posts(says(ready(), Said::Comment { comment: Comment::on_line(3, "x") }), reply(1, &long));
    let mut world = world;
    for _ in 0..6 {
        world = posts(world, reply(1, &long));
    }
    let world = posts(world, reply(1, "y"));
    let edit = Said::Edit { number: 1, text: long.clone() };
    assert!(
        refused(&world, ada(), edit).contains("is too long"),
        "other words have the same limit"
    );
}
