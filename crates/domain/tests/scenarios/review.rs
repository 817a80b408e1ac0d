//! What a reviewer reads: the changes, by line, without the noise of renumbering.

use planwright_domain::{
    diff::{Change, PartChange, parts, rows},
    openings::changes_opening,
    plan::review::Comment,
    prompt::execution_opening,
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
fn an_ordinal_is_one_to_three_digits_and_a_mark() {
    for (before, after) in [
        ("2026. was fine\n", "2025. was fine\n"),
        ("12 monkeys\n", "13 monkeys\n"),
        (". a\n", "1. a\n"),
        ("1.a\n", "2.a\n"),
    ] {
        assert_eq!(changed(before, after).len(), 2, "{before}");
    }
    assert_eq!(changed("998. a\n", "999. a\n"), Vec::<String>::new());
}

fn became(before: &str, after: &str) -> Vec<(String, PartChange)> {
    parts(before, after).into_iter().map(|part| (part.title, part.change)).collect()
}

fn named(parts: &[(&str, PartChange)]) -> Vec<(String, PartChange)> {
    parts.iter().map(|(title, change)| ((*title).to_owned(), *change)).collect()
}

#[test]
fn a_part_with_the_same_title_or_much_the_same_words_is_one_that_changed() {
    let (before, after) = ("# Copy\none\ntwo\nthree\n", "# Copy\nx\ny\nz\nquite other\n");
    assert_eq!(became(before, after), named(&[("Copy", PartChange::Changed)]));
    let (before, after) = ("# Copy\none\ntwo\nthree\n", "# Move\none\ntwo\nthree\n");
    assert_eq!(became(before, after), named(&[("Move", PartChange::Changed)]));
    let (before, after) = ("# Copy\none\n", "# Move\nother words\n");
    assert_eq!(
        became(before, after),
        named(&[("Move", PartChange::Added), ("Copy", PartChange::Removed)])
    );
}

#[test]
fn parts_begin_at_headings_and_at_entries_of_any_outermost_list() {
    let text = "# A\n- one\n  - inner\n* two\n3. three\n    4. inner\nmore\n## Step 5: five\n## Step x: six\n";
    let same = ["A", "one", "two", "three", "five", "Step x: six"];
    assert_eq!(became(text, text), named(&same.map(|title| (title, PartChange::Same))));
}

#[test]
fn what_is_fenced_is_no_heading_until_a_fence_as_long_closes_it() {
    let text = "# A\n````\n```\n# not one\n````\n# B\n```\n# nor this\n`````\n# C\n";
    assert_eq!(became(text, text), named(&["A", "B", "C"].map(|title| (title, PartChange::Same))));
}

#[test]
fn comments_reach_the_model_with_their_lines() {
    let comments = [
        Comment { number: 1, ..Comment::on_line(3, "back up first") },
        Comment { number: 2, ..Comment::on_the_whole("shorter") },
    ];
    insta::assert_snapshot!(changes_opening(2, &comments), @r#"
    Changes were requested on revision 2 of the plan. Save it again, with a reply to each comment in replies: {"comment": 1} if you addressed it, {"comment": 1, "declined": "why"} if not, with "answer": "…" where it asks something.
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
    assert!(text.contains("\nNote from the approver: one\n\nNote from the approver: two\n"));
    assert!(text.ends_with(
        "\nDo only what it says, then call plan_report. New content needs a new approval.\n"
    ));
    assert!(text.contains("The approval allows you to change files under its root"));
}

#[test]
fn what_stands_in_a_fence_of_any_kind_is_no_part_of_its_own() {
    let fences =
        [("~~~\n", "~~~"), ("```\n", "```"), ("````\n```\n", "````"), ("  ~~~\n", "  ~~~")];
    for (open, close) in fences {
        let text =
            format!("# Plan\n\n{open}# a comment\n- an option\n1. a line\n{close}\n\n- a step\n");
        let titles: Vec<_> = parts("", &text).into_iter().map(|part| part.title).collect();
        assert_eq!(titles, ["Plan", "a step"], "{text}");
    }
    let nested = "1. write it\n\n   ~~~sh\n   # a comment\n   ~~~\n\n2. run it\n";
    let titles: Vec<_> = parts("", nested).into_iter().map(|part| part.title).collect();
    assert_eq!(titles, ["write it", "run it"]);
}

#[test]
fn a_number_counts_where_it_is_no_ordinal() {
    let text =
        |number: u32| format!("# Plan\n\n```\n{number}. replicas\n```\n\n{number}. a step\n");
    let changed: Vec<_> =
        rows(&text(3), &text(30)).into_iter().filter(|row| row.change != Change::Same).collect();
    let changed: Vec<_> = changed.iter().map(|row| (row.change, row.text.as_str())).collect();
    assert_eq!(changed, [(Change::Removed, "3. replicas"), (Change::Added, "30. replicas")]);
}

#[test]
fn the_rows_of_all_parts_are_the_later_text() {
    let texts = [
        "",
        "a\n",
        "# A\n\ntext\n\n1. x\n   - y\n2. z\n",
        "---\ntools: a\n---\n\nA\n===\n\n* one\n\n  more\n",
    ];
    for before in texts {
        for after in texts {
            let kept = parts(before, after).into_iter().flat_map(|part| part.rows);
            let kept = kept.filter(|row| row.change != Change::Removed).map(|row| row.text);
            assert_eq!(kept.collect::<Vec<_>>(), after.lines().collect::<Vec<_>>());
        }
    }
}
