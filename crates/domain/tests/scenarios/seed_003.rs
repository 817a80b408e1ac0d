//! Every rule of seed 003: drafts built by tools, submitted whole, done step by step by agent profiles.

use planwright_domain::{
    command::{Decision, PersonCommand, SystemCommand},
    next::{Next, Waiting, next},
    outcome::TurnOutcome,
    plan::{PauseReason, PlanStatus, Progress, Strategy, event::PlanEvent, observe::observe},
    session::SessionEvent,
    tools::{self, PlanTool},
    turn::{ToolReply, Work, event::TurnEnd},
};
use serde_json::json;

use crate::given::*;

fn drafting() -> World {
    a_session().plan_on_with(Strategy::Build).says("plan it").turn_starts()
}

#[test]
fn a_draft_is_built_call_by_call_and_submitted_as_a_proposal() {
    let world = built();
    assert_eq!((world.status().as_str(), world.plan().steps().len()), ("ready", 2));
    let added = world.events.iter().rev().find_map(|event| match event {
        SessionEvent::Plan(PlanEvent::RevisionAdded { revision, .. }) => Some(revision.clone()),
        _ => None,
    });
    insta::assert_snapshot!(added.unwrap().markdown, @r"
    # Move the photos

    **Goal.** Move the photos

    ## Step 1: copy (coder)

    copy, well

    ## Step 2: check (writer)

    check, well

    ## Assumptions

    - a

    ## Risks

    - r

    ## Verification

    - v

    ## Files

    - f
    ");
}

#[test]
fn a_submit_with_six_gaps_names_six_and_stays_a_draft() {
    let world = drafting().answers("", vec![submit()]).plan_tools_run();
    assert_eq!(
        world.last_refusal(),
        "the plan stays a draft; 6 missing: the goal is missing (plan_create); there is no step \
         (plan_add_step); assumptions are missing (plan_set_metadata); risks are missing \
         (plan_set_metadata); verification are missing (plan_set_metadata); files are missing \
         (plan_set_metadata)"
    );
    assert_eq!(world.status(), "collecting");
}

#[test]
fn each_call_is_validated_when_it_is_made() {
    let refused = |asks: Asks| drafting().answers("", vec![asks]).plan_tools_run().last_refusal();
    assert_eq!(
        refused(add_step("x", "pilot")),
        "there is no profile \"pilot\"; there are coder, writer"
    );
    assert_eq!(refused(add_step(" ", "coder")), "title is empty; say it in words");
    assert_eq!(refused(tool("plan_create", json!({"goal": ""}))), "goal is empty; say it in words");
    assert_eq!(
        refused(tool("plan_remove_step", json!({"step": 7}))),
        "there is no such step 7; there are none"
    );
    assert_eq!(
        refused(tool("plan_set_metadata", json!({"files": [""]}))),
        "files is empty; say it in words"
    );
    assert!(refused(tool("plan_add_step", json!({"title": "x"}))).contains("missing field"));
}

#[test]
fn the_goal_is_set_once() {
    let world = drafting().answers("", vec![create(), create()]).plan_tools_run();
    assert!(world.last_refusal().starts_with("the goal is set: Move the photos"));
}

#[test]
fn steps_keep_their_numbers_while_others_come_and_go() {
    let world = drafting()
        .answers("", vec![add_step("a", "coder"), add_step("b", "coder"), add_step("c", "coder")])
        .plan_tools_run()
        .answers(
            "",
            vec![
                tool("plan_remove_step", json!({"step": 3})),
                tool("plan_update_step", json!({"step": 2, "title": "B", "profile": "writer"})),
                add_step("d", "coder"),
            ],
        )
        .plan_tools_run();
    let draft = world.plan().draft.as_ref().unwrap();
    let steps: Vec<_> = draft.steps.iter().map(|step| (step.number, step.head())).collect();
    let words: Vec<_> = steps.iter().map(|(number, head)| (*number, head.in_words())).collect();
    assert_eq!(words, [(1, "a"), (2, "B"), (4, "d")]);
}

#[test]
fn the_outcome_of_the_turn_is_a_reference_with_the_planner_s_word() {
    let world = drafting().answers("", vec![create()]).plan_tools_run().answers("begun", vec![]);
    let end = TurnEnd::Planned { plan: world.plan().id };
    let outcome = TurnOutcome::of(&end, &world.session, "begun");
    let planner = |outcome| match outcome {
        TurnOutcome::Plan { planner, .. } => planner,
        _ => None,
    };
    assert_eq!(planner(outcome).as_deref(), Some("draft"));
    let world = built();
    let end = TurnEnd::Planned { plan: world.plan().id };
    assert_eq!(planner(TurnOutcome::of(&end, &world.session, "")).as_deref(), Some("proposal"));
}

#[test]
fn an_interrupted_draft_is_gone_on_with() {
    let world = drafting()
        .answers("", vec![create(), add_step("a", "coder")])
        .plan_tools_run()
        .model_is_asked()
        .does(PersonCommand::Stop);
    let id = world.plan().id;
    let world = world
        .says("go on")
        .turn_starts()
        .answers("", vec![get(), metadata(), submit()])
        .plan_tools_run();
    assert_eq!((world.status().as_str(), world.plan().id), ("ready", id));
    let shown = world.reply().iter().any(|reply| {
        matches!(reply, ToolReply::Text { text } if text.starts_with(&format!("Draft of plan {id}")))
    });
    assert!(shown, "the plan's id is what one goes on with");
}

#[test]
fn a_submitted_plan_is_changed_through_a_copy_of_it() {
    let world = built()
        .says("one more")
        .turn_starts()
        .answers("", vec![add_step("tidy", "coder"), submit()])
        .plan_tools_run();
    let numbers: Vec<_> = world.plan().steps().iter().map(|step| step.number).collect();
    assert_eq!((numbers, world.plan().current.as_ref().unwrap().number), (vec![1, 2, 3], 2));
}

#[test]
fn a_draft_that_was_not_submitted_ends_with_the_approval() {
    let world = built().says("x").turn_starts().answers("", vec![add_step("tidy", "coder")]);
    let world = world.plan_tools_run().approved();
    assert_eq!((world.plan().draft.clone(), world.plan().steps().len()), (None, 2));
    let world = world.answers("", vec![add_step("late", "coder")]).plan_tools_run();
    assert!(world.last_refusal().starts_with("policy_denied: the plan was approved while"));
}

/// Invariant: `mode-gating`.
#[test]
fn the_building_tools_are_usable_while_a_plan_is_built_and_only_two_in_a_step() {
    let usable = |world: &World| {
        let turn = world.session.turn.as_ref().unwrap();
        tools::available(&world.session, turn)
    };
    assert_eq!(usable(&drafting()).len(), 8);
    assert_eq!(usable(&building()), [PlanTool::Get, PlanTool::Report]);
}

#[test]
fn each_step_is_a_turn_of_its_profile() {
    let world = building();
    let turn = world.session.turn.as_ref().unwrap();
    assert_eq!(
        (turn.work, turn.profile.as_ref().unwrap().name.as_str()),
        (Work::Does { step: 1 }, "coder")
    );
    let world = world.answers("", vec![report("done")]).plan_tools_run().answers("copied", vec![]);
    assert_eq!((world.status().as_str(), world.step_ends()), ("executing", vec![(1, "done")]));
    let world = world.turn_starts();
    let turn = world.session.turn.as_ref().unwrap();
    assert_eq!(
        (turn.work, turn.profile.as_ref().unwrap().name.as_str()),
        (Work::Does { step: 2 }, "writer")
    );
    let world = world.answers("", vec![report("done")]).plan_tools_run().answers("checked", vec![]);
    assert_eq!((world.status().as_str(), next(&world.session)), ("done", Next::Nothing));
}

#[test]
fn a_profile_cannot_use_a_tool_that_it_does_not_list() {
    let world = building().answers("", vec![report("done")]).plan_tools_run().answers("", vec![]);
    let mut mail = write("x");
    mail.0 = "edit_file";
    let world = world.turn_starts().answers("", vec![mail]).calls_start();
    assert_eq!(world.last_refusal(), "policy_denied: the profile writer may not use edit_file");
}

#[test]
fn a_profile_that_is_gone_or_another_pauses_the_execution() {
    for profile in [None, Some(a_profile("writer"))] {
        let mut world = built().approved();
        let Next::StartTurn(queued) = next(&world.session) else { panic!("a turn is due") };
        let (turn, bracket) = (world.fresh().into(), world.bracket());
        world
            .system(SystemCommand::StartTurn {
                turn,
                queued,
                profile,
                recalled: Default::default(),
                call: Some(bracket),
            })
            .unwrap();
        let reason = PauseReason::ProfileChanged { profile: "coder".into() };
        assert!(
            matches!(&world.plan().status, PlanStatus::Executing(_, Progress::Paused(why)) if *why == reason)
        );
        assert_eq!(next(&world.session), Next::WaitForPerson(Waiting::Resume));
    }
}

#[test]
fn a_plan_whose_profile_is_unknown_cannot_be_approved() {
    let mut world = built().shown();
    let mut approving = planwright_domain::command::Approving::of(world.digest(), terms());
    approving.terms.profiles.clear();
    let refusal = world.person(PersonCommand::Decide(Decision::Approve(approving))).unwrap_err();
    assert_eq!(refusal.kind(), "profile_unknown");
}

#[test]
fn after_its_report_a_step_has_no_lease() {
    let world = building().answers("", vec![report("done"), write("late.txt")]).plan_tools_run();
    let world = world.calls_start();
    assert_eq!(world.session.open.len(), 0);
}

#[test]
fn a_step_that_fails_fails_the_plan_and_is_tried_again_when_resumed() {
    let world = building().answers("", vec![report("failed")]).plan_tools_run().answers("", vec![]);
    assert_eq!((world.status().as_str(), world.step_ends()), ("failed", vec![(1, "failed")]));
    let command = world.resume_command();
    let world = world.does(command).turn_starts();
    assert_eq!(world.session.turn.as_ref().unwrap().work, Work::Does { step: 1 });
}

#[test]
fn a_step_that_ends_unreported_pauses_and_goes_on_with_the_same_step() {
    let world = building().answers("I am off", vec![]);
    assert_eq!(world.status(), "executing_paused");
    let command = world.resume_command();
    let world = world.does(command).turn_starts();
    assert_eq!(world.session.turn.as_ref().unwrap().work, Work::Does { step: 1 });
}

#[test]
fn a_report_on_another_step_is_refused() {
    let other = json!({"status": "done", "summary": "s", "step": 2});
    let world = building().answers("", vec![tool("plan_report", other)]).plan_tools_run();
    assert_eq!(world.last_refusal(), "this turn does step 1, not 2; report on that one");
}

#[test]
fn a_successor_keeps_the_equal_finished_steps() {
    let world = building().answers("", vec![report("done")]).plan_tools_run().answers("", vec![]);
    let world = world.does(PersonCommand::Stop).says("change the second step").turn_starts();
    let update = tool("plan_update_step", json!({"step": 2, "title": "check twice"}));
    let world = world.answers("", vec![update, submit()]).plan_tools_run().answers("", vec![]);
    assert_eq!((world.status().as_str(), world.plan().carried.len()), ("ready", 1));
    let world = world.approved();
    assert_eq!(world.step_ends(), [(1, "done"), (1, "done before")]);
    let gaps: Vec<_> =
        observe(world.plan()).steps_without_calls.iter().map(|step| step.number).collect();
    assert_eq!(gaps, [1, 2], "that step 1 is done was only claimed, and stays a claim");
    let world = world.turn_starts();
    assert_eq!(world.session.turn.as_ref().unwrap().work, Work::Does { step: 2 });
}

#[test]
fn a_successor_whose_steps_are_all_done_is_complete_at_its_approval() {
    let world = building().answers("", vec![report("done")]).plan_tools_run().answers("", vec![]);
    let world = world.does(PersonCommand::Stop).says("leave it at that").turn_starts();
    let remove = tool("plan_remove_step", json!({"step": 2}));
    let world = world.answers("", vec![remove, submit()]).plan_tools_run().answers("", vec![]);
    assert_eq!(world.approved().status(), "done");
}

#[test]
fn plan_list_names_the_plans() {
    let world = drafting().answers("", vec![tool("plan_list", json!({}))]).plan_tools_run();
    assert_eq!(world.reply(), [ToolReply::Plans]);
}
