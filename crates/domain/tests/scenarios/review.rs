//! What a reviewer reads: the changes, by line, without the noise of renumbering.

use planwright_domain::{
    diff::{Change, rows},
    plan::review::Comment,
    prompt::{changes_opening, execution_opening},
    session::SessionEvent,
};

use crate::given::*;

fn changed(before: &str, after: &str) -> Vec<String> {
    let sign = |change| match change {
        Change::Added => "+",
        Change::Removed => "-",
        Change::Same => " ",
    };
    let rows = rows(before, after).into_iter().filter(|row| row.change != Change::Same);
    rows.map(|row| format!("{} {}", sign(row.change), row.text)).collect()
}

#[test]
fn an_inserted_step_is_one_added_row() {
    assert_eq!(changed(FIRST, SECOND), ["+ 1. Back up"]);
}

#[test]
fn renumbering_alone_is_no_change() {
    assert_eq!(changed("1. a\n2. b\n", "3) a\n4) b\n"), Vec::<String>::new());
}

#[test]
fn a_changed_step_is_removed_and_added() {
    assert_eq!(changed("1. a\n2. b\n", "1. a\n2. c\n"), ["- 2. b", "+ 2. c"]);
}

#[test]
fn a_number_that_is_no_ordinal_counts() {
    assert_eq!(
        changed("2026 was fine\n", "2025 was fine\n"),
        ["- 2026 was fine", "+ 2025 was fine"]
    );
}

#[test]
fn comments_reach_the_model_with_their_lines() {
    let comments = [
        Comment { number: 1, ..Comment::on_line(3, "back up first") },
        Comment { number: 2, ..Comment::on_the_whole("shorter") },
    ];
    insta::assert_snapshot!(changes_opening(2, &comments), @r#"
    Changes were requested on revision 2 of the plan. Save it again, with a reply to each comment in replies: {"comment": 1} if you addressed it, {"comment": 1, "declined": "why"} if not.
    - comment 1, on line 3: back up first
    - comment 2, on the whole: shorter
    "#);
}

#[test]
fn an_execution_opens_with_the_approved_text_its_terms_and_every_note() {
    let world = ready().approved();
    let revision = world.events.iter().find_map(|event| match event {
        SessionEvent::Plan(planwright_domain::plan::event::PlanEvent::RevisionAdded {
            revision,
            ..
        }) => Some(revision.clone()),
        _ => None,
    });
    let mut approval = world.plan().status.approval().unwrap().clone();
    approval.notes = vec!["one".into(), "two".into()];
    let text = execution_opening(&revision.unwrap(), &approval, false);
    assert!(text.contains(FIRST) && text.contains(&world.digest().to_string()));
    assert!(text.ends_with("\nNote from the approver: one\n\nNote from the approver: two\n"));
    assert!(text.contains("The approval allows you to change files under the workspace root"));
}
