//! The blocks of a document, and which of them a person has seen.

use planwright_domain::{
    actor::{Person, Standing},
    command::{PersonCommand, SessionCommand, Start},
    limits,
    plan::{
        block::{Block, BlockId, BlockSet, blocks},
        event::PlanEvent,
        refusal::PlanRefusal,
    },
    session::SessionEvent,
};
use proptest::prelude::*;

use crate::given::*;

/// The lines of a block, as they stand.
fn text(markdown: &str, block: &Block) -> String {
    let (first, last) = (block.first_line as usize, block.last_line as usize);
    let whole: String = markdown.split_inclusive('\n').take(last).skip(first - 1).collect();
    let whole = whole.strip_suffix('\n').unwrap_or(&whole);
    whole.strip_suffix('\r').unwrap_or(whole).to_owned()
}

fn texts(markdown: &str) -> Vec<String> {
    blocks(markdown).iter().map(|block| text(markdown, block)).collect()
}

#[test]
fn a_block_is_what_the_parser_says_and_an_entry_of_a_list_is_one_of_its_own() {
    let markdown = "---\ntools: x\nspend: 1\n---\n# Title\nwords\nmore\n\n1. one\n   - under it\n\n2. two\n\n\
                    ~~~sh\n# no heading\n\nrm x\n~~~\n\n    indented\n\n    still\n<div>\nhtml\n</div>\n\n\
                    | a | b |\n| - | - |\n| 1 | 2 |\n\n> quote\n\n[ref]: /url\n";
    assert_eq!(
        texts(markdown),
        [
            "---\ntools: x\nspend: 1\n---",
            "# Title",
            "words\nmore",
            "1. one\n   - under it",
            "2. two",
            "~~~sh\n# no heading\n\nrm x\n~~~",
            "    indented\n\n    still",
            "<div>\nhtml\n</div>",
            "| a | b |\n| - | - |\n| 1 | 2 |",
            "> quote\n\n[ref]: /url",
        ]
    );
}

#[test]
fn a_fence_that_is_never_closed_is_read_to_its_end_in_parts() {
    let body = (0..60).map(|at| format!("line {at}\n")).collect::<String>();
    let found = blocks(&format!("# Title\n\n```\n{body}"));
    let lengths: Vec<_> =
        found.iter().map(|block| block.last_line + 1 - block.first_line).collect();
    assert_eq!(lengths, [1, 24, 24, 13]);
}

#[test]
fn lines_may_end_as_they_like_and_the_blanks_between_blocks_do_not_count() {
    assert_eq!(texts("a\r\n\r\nb\r\nc\r\n"), ["a", "b\r\nc"]);
    assert_eq!(BlockSet::of("a\n\nb"), BlockSet::of("a\n\n\n\nb\n\n"));
    assert_ne!(BlockSet::of("a\n\nb"), BlockSet::of("a\n\nb "));
    assert_eq!((blocks(""), blocks(" \n\t\n\r\n")), (vec![], vec![]));
}

#[test]
fn equal_blocks_of_one_document_are_told_apart_and_keep_their_ids_in_the_next() {
    let ids = |markdown: &str| blocks(markdown).iter().map(|block| block.id).collect::<Vec<_>>();
    let first = ids("same\n\nsame\n\nother\n");
    assert_ne!(first[0], first[1]);
    assert_eq!(ids("new\n\nsame\n\nsame\n\nother\n")[1..], first);
}

#[test]
fn the_longest_document_has_no_more_blocks_than_the_limit_and_its_set_is_small() {
    for part in ["a\n\n", "a\n", "- a\n", "> \n", "```\n", "#\n", "a line of some length\n\n"] {
        let markdown = part.repeat(limits::PLAN_MARKDOWN_BYTES_MAX / part.len());
        let (found, set) = (blocks(&markdown), BlockSet::of(&markdown));
        assert!(!found.is_empty() && found.len() <= limits::BLOCKS_MAX, "{part:?}");
        covers(&markdown, &found).unwrap();
        let stored = serde_json::to_string(&set).unwrap();
        assert_eq!(stored.len(), found.len() * 32 + 2, "{part:?}");
        assert_eq!(serde_json::from_str::<BlockSet>(&stored).unwrap(), set);
    }
}

#[test]
fn a_set_that_is_not_made_of_ids_is_not_read() {
    for text in
        ["\"ab\"", "\"+f345678901234567890123456789012\"", "\"é345678901234567890123456789012\""]
    {
        assert!(serde_json::from_str::<BlockSet>(text).is_err(), "{text}");
    }
}

/// Whether every line that is not blank stands in exactly one block, in order, and each block begins and ends with one.
fn covers(markdown: &str, found: &[Block]) -> Result<(), String> {
    let mut next = 1;
    let is_blank = |line: &str| line.bytes().all(|byte| b" \t\r\n".contains(&byte));
    let lines: Vec<_> = markdown.split_inclusive('\n').collect();
    let blank = |from: u32, to: u32| (from..to).all(|line| is_blank(lines[line as usize - 1]));
    for block in found {
        let Block { first_line, last_line, .. } = *block;
        if first_line < next || last_line < first_line || last_line as usize > lines.len() {
            return Err(format!("{block:?} is out of order"));
        }
        if !blank(next, first_line) {
            return Err(format!("a line before {block:?} is in no block"));
        }
        if is_blank(lines[first_line as usize - 1]) || is_blank(lines[last_line as usize - 1]) {
            return Err(format!("{block:?} begins or ends with a blank line"));
        }
        next = last_line + 1;
    }
    let end = lines.len() as u32 + 1;
    if blank(next, end) { Ok(()) } else { Err("the last lines are in no block".into()) }
}

/// Lines as they occur in plans, and some that no plan should have.
fn line() -> impl proptest::strategy::Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("---".into()),
        Just("```".into()),
        Just("~~~ sh".into()),
        Just("   ~~~".into()),
        Just("    code".into()),
        Just("\tcode".into()),
        Just("<!-- a comment".into()),
        Just("-->".into()),
        Just("<div>".into()),
        Just("| a | b |".into()),
        Just("| - | - |".into()),
        Just("[ref]: /url".into()),
        Just("===".into()),
        Just("\r".into()),
        Just("a\rb".into()),
        "(#{1,6} |> |- |\\* |[1-9][.)] |  - |   1\\. )?[a-z ]{0,12}",
        "\\PC{0,12}",
    ]
}

proptest! {
    #[test]
    fn every_line_that_is_not_blank_stands_in_exactly_one_block(
        lines in prop::collection::vec((line(), prop_oneof![Just("\n"), Just("\r\n")]), 0..80),
        front in any::<bool>(),
    ) {
        let body: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
        let markdown = if front { format!("---\ntools: x\n---\n{body}") } else { body };
        let found = blocks(&markdown);
        prop_assert_eq!(covers(&markdown, &found), Ok(()));
        let set = BlockSet::of(&markdown);
        prop_assert_eq!(set.0.len(), found.len(), "two blocks share an id");
        let again = blocks(&format!("{markdown}\n\n"));
        prop_assert_eq!(again, found, "blank lines at the end change nothing");
    }
}

// Who has seen what.

const FIRST: &str = "# Title\n\nThe goal.\n\n1. Dig.\n2. Plant.\n";
const SECOND: &str = "# Title\n\nThe goal.\n\n1. Dig.\n2. Plant a tree.\n";

fn a_page() -> Person {
    person("ada", "web 7", Standing::Decides)
}

fn written(markdown: &str) -> World {
    let world = collecting().says("plan it").turn_starts();
    world.answers("", vec![set_content(markdown)]).plan_tools_run().answers("there", vec![])
}

fn rewritten(world: World, markdown: &str) -> World {
    let world = world.says("again").turn_starts();
    world.answers("", vec![set_content(markdown)]).plan_tools_run().answers("there", vec![])
}

fn ids(markdown: &str) -> Vec<BlockId> {
    blocks(markdown).into_iter().map(|block| block.id).collect()
}

fn sees(world: &mut World, by: &Person, blocks: &[BlockId]) -> Vec<&'static str> {
    let seen = PersonCommand::MarkSeen { digest: world.digest(), blocks: blocks.to_vec() };
    let reply = world.ask(SessionCommand::Person(by.clone(), seen)).unwrap();
    let kinds = reply.iter().map(SessionEvent::kind).filter(|kind| *kind != "logged");
    kinds.collect()
}

/// Invariant: `approved-as-read`.
#[test]
fn a_page_can_approve_when_the_last_block_was_seen_and_not_before() {
    let mut world = written(FIRST);
    let blocks = ids(FIRST);
    let approve = world.approve_command(world.digest(), Start::AtOnce);
    let approve = SessionCommand::Person(a_page(), approve);
    let whole = PersonCommand::RecordShown { digest: world.digest() };
    let refused = world.ask(SessionCommand::Person(a_page(), whole)).unwrap_err();
    assert_eq!(refused, PlanRefusal::ShownInBlocks.into());
    assert_eq!(sees(&mut world, &a_page(), &[]), [""; 0]);
    for block in &blocks[..3] {
        assert_eq!(sees(&mut world, &a_page(), &[*block]), ["blocks_seen"]);
        let refused = world.ask(approve.clone()).unwrap_err();
        assert_eq!(refused, PlanRefusal::NotShown { number: 1 }.into());
    }
    assert_eq!(sees(&mut world, &a_page(), &blocks[..3]), [""; 0], "nothing is new");
    assert_eq!(sees(&mut world, &a_page(), &blocks), ["blocks_seen", "revision_shown"]);
    world.ask(approve).unwrap();
    assert_eq!(world.status(), "executing");
    assert_eq!(world.plan().blocks_seen.len(), 0, "nobody needs to know any more");
    assert_eq!(sees(&mut world, &a_page(), &blocks), [""; 0]);
}

#[test]
fn of_a_newer_revision_only_what_changed_must_be_seen() {
    let mut world = written(FIRST);
    sees(&mut world, &a_page(), &ids(FIRST));
    let mut world = rewritten(world, SECOND);
    let unseen: Vec<_> = ids(SECOND)
        .into_iter()
        .filter(|block| !world.plan().has_seen(&a_page().id, *block))
        .collect();
    assert_eq!(unseen, ids(SECOND)[3..]);
    assert_eq!(sees(&mut world, &a_page(), &unseen), ["blocks_seen", "revision_shown"]);
}

#[test]
fn what_a_terminal_wrote_out_was_seen_on_every_surface_by_that_person_alone() {
    let mut world = written(FIRST).shown();
    assert_eq!(sees(&mut world, &a_page(), &[]), ["revision_shown"]);
    let other = person("bea", "web 8", Standing::Decides);
    assert_eq!(sees(&mut world, &other, &[]), [""; 0]);
    let mut world = rewritten(world, SECOND);
    assert_eq!(sees(&mut world, &a_page(), &ids(SECOND)[3..]), ["blocks_seen", "revision_shown"]);
}

#[test]
fn seeing_everything_on_a_page_is_not_being_shown_it_elsewhere() {
    let mut world = written(FIRST);
    sees(&mut world, &a_page(), &ids(FIRST));
    let approve = world.approve_command(world.digest(), Start::AtOnce);
    assert_eq!(world.person(approve).unwrap_err(), PlanRefusal::NotShown { number: 1 }.into());
    let other_page = person("ada", "web 9", Standing::Decides);
    assert_eq!(sees(&mut world, &other_page, &[]), ["revision_shown"]);
}

#[test]
fn blocks_that_are_not_there_and_revisions_that_are_not_current_are_refused_in_words() {
    let world = written(FIRST);
    let old = world.digest();
    let mut world = rewritten(world, SECOND);
    let mut refused = |digest, blocks: &[BlockId]| {
        let seen = PersonCommand::MarkSeen { digest, blocks: blocks.to_vec() };
        world.ask(SessionCommand::Person(a_page(), seen)).unwrap_err().to_string()
    };
    let current = rewritten(written(FIRST), SECOND).digest();
    assert_eq!(
        refused(old, &[]),
        PlanRefusal::ShownNotCurrent { seen: old }.to_string(),
        "a revision that was replaced"
    );
    let gone = ids(FIRST)[3];
    let words = format!("revision 2 has no block {gone}; read its blocks again");
    assert_eq!(refused(current, &[ids(SECOND)[0], gone]), words);
    let many = vec![ids(SECOND)[0]; limits::BLOCKS_MAX + 1];
    assert_eq!(
        refused(current, &many),
        "the list of blocks is too long: 1025, and the limit is 1024"
    );
}

#[test]
fn a_plan_remembers_no_more_than_its_limit_and_never_forgets_what_is_being_read() {
    let revision = |number: usize| {
        (0..limits::BLOCKS_MAX).map(|at| format!("{number} {at}\n\n")).collect::<String>()
    };
    let total = |world: &World| -> usize {
        world.plan().blocks_seen.values().map(|seen| seen.0.len()).sum()
    };
    let mut world = written(&revision(0));
    for number in 1..=5 {
        sees(&mut world, &a_page(), &ids(&revision(number - 1)));
        assert!(total(&world) <= limits::BLOCKS_SEEN_MAX);
        world = rewritten(world, &revision(number));
    }
    for reader in 0..6 {
        let reader = person(&format!("reader-{reader}"), "web 1", Standing::Decides);
        let (first, rest) = (ids(&revision(5))[..9].to_vec(), ids(&revision(5))[9..].to_vec());
        sees(&mut world, &reader, &first);
        assert_eq!(sees(&mut world, &reader, &rest), ["blocks_seen", "revision_shown"]);
        assert!(total(&world) <= limits::BLOCKS_SEEN_MAX);
    }
    let stored = serde_json::to_string(&world.session).unwrap().len();
    assert!(stored < 40 * (limits::BLOCKS_SEEN_MAX + limits::BLOCKS_MAX), "{stored} bytes");
}

/// Invariant: `approved-as-read`.
#[test]
fn who_edits_the_text_on_a_page_has_seen_what_they_wrote_and_not_the_rest() {
    let edit_to = |mut world: World, by: Person, markdown: &str| {
        let (base, fresh) = (Some(world.digest()), uuid::Uuid::from_u128(99).into());
        let markdown = markdown.to_owned();
        let edit = PersonCommand::EditPlan { base, markdown, fresh, suggested: false };
        let reply = world.ask(SessionCommand::Person(by, edit)).unwrap();
        let kinds = reply.iter().map(SessionEvent::kind).filter(|kind| *kind != "logged");
        (kinds.collect::<Vec<_>>(), world)
    };
    let edit = |world: World, by: Person| edit_to(world, by, SECOND);
    let mut world = written(FIRST);
    sees(&mut world, &a_page(), &ids(FIRST)[3..]);
    let (kinds, mut world) = edit(world, a_page());
    assert_eq!(kinds, ["revision_added", "blocks_seen"]);
    assert_eq!(sees(&mut world, &a_page(), &ids(SECOND)[..3]), ["blocks_seen", "revision_shown"]);
    let (kinds, mut world) = edit(written(FIRST), a_page());
    assert_eq!(kinds, ["revision_added"], "what was replaced had not been seen");
    assert_eq!(sees(&mut world, &a_page(), &ids(SECOND)), ["blocks_seen", "revision_shown"]);
    let fenced = format!("~~~\n{FIRST}");
    assert_eq!(
        edit_to(written(FIRST), a_page(), &fenced).0,
        ["revision_added"],
        "one line hides all"
    );
    let mut world = written(FIRST);
    sees(&mut world, &a_page(), &ids(FIRST));
    assert_eq!(edit(world, a_page()).0, ["revision_added", "blocks_seen", "revision_shown"]);
    assert_eq!(edit(written(FIRST), ada()).0, ["revision_added", "revision_shown"]);
}

#[test]
fn a_plan_that_replaces_another_begins_unseen() {
    let world = rewritten(written(FIRST).approved(), FIRST);
    assert_eq!(world.status(), "ready");
    assert_eq!(world.plan().blocks_seen.len(), 0);
    let stored = serde_json::to_string(&PlanEvent::BlocksSeen {
        digest: world.digest(),
        blocks: BlockSet(ids("a").into_iter().collect()),
        by: a_page(),
    });
    let read: PlanEvent = serde_json::from_str(&stored.unwrap()).unwrap();
    assert!(matches!(read, PlanEvent::BlocksSeen { blocks, .. } if blocks == BlockSet::of("a")));
}
