//! What a surface says of a turn: derived, never written into an answer.

use planwright_domain::{
    command::{Ending, PersonCommand},
    effect::Envelope,
    outcome::{OutgoingResponse, PlanCard, TurnOutcome, unconfined},
    plan::{Strategy, observation::Basis},
    turn::{FailureKind, event::TurnEnd},
};

use crate::given::*;

#[test]
fn an_answer_is_its_text_and_nothing_else() {
    let world = a_session().says("x").turn_starts().answers("hi", vec![]);
    let outcome = TurnOutcome::of(&TurnEnd::Answered, &world.session, "hi");
    assert_eq!(outcome, TurnOutcome::Answer { text: "hi".into() });
    let response = OutgoingResponse::of(&outcome, &world.session, &Envelope::default());
    assert_eq!(
        response,
        OutgoingResponse { text: "hi".into(), card: None, quick_commands: vec![] }
    );
}

#[test]
fn a_card_names_the_leased_tools_that_nothing_confines() {
    let envelope = ready().plan().envelope(&schemas(), ready().now);
    let leased = envelope.tools.keys().next().unwrap().as_str();
    let words = format!(
        "use {leased} unconfined: on this machine they reach whatever the server's user does"
    );
    assert_eq!(unconfined(&envelope, ["another", leased].into_iter()), Some(words));
    assert_eq!(unconfined(&envelope, ["another"].into_iter()), None);
}

#[test]
fn a_plan_that_is_ready_is_a_card_that_says_what_approval_allows() {
    let world = ready();
    let end = TurnEnd::Planned { plan: world.plan().id };
    let outcome = TurnOutcome::of(&end, &world.session, "there");
    let status = "Ready".to_owned();
    assert_eq!(
        outcome,
        TurnOutcome::Plan {
            plan_id: world.plan().id,
            status,
            planner: Some("proposal".into()),
            text: "there".into()
        }
    );
    let envelope = world.plan().envelope(&schemas(), world.now);
    let response = OutgoingResponse::of(&outcome, &world.session, &envelope);
    let card = PlanCard {
        plan_id: world.plan().id,
        strategy: Some(Strategy::Document),
        title: "Move the photos".into(),
        status: "Ready".into(),
        revision: Some(1),
        digest: Some(world.digest()),
        allows: envelope.in_words(),
        outside: None,
        waits: None,
        claimed: None,
        basis: None,
        observed: vec![],
        gaps: vec![],
        steps: vec![],
        drafted: None,
    };
    let quick = ["/plan show", "/plan approve", "/plan changes <text>", "/plan reject"];
    let quick_commands = quick.map(str::to_owned).to_vec();
    assert_eq!(
        response,
        OutgoingResponse { text: "there".into(), card: Some(card), quick_commands }
    );
}

#[test]
fn a_plan_says_what_came_from_outside_before_it_was_written() {
    let words = |world: &World| {
        let envelope = world.plan().envelope(&schemas(), world.now);
        PlanCard::of(&world.session, &envelope).unwrap().outside
    };
    let draft = || vec![set_content("# Move the photos\n")];
    let plain = collecting().says("x").turn_starts().answers("", draft()).plan_tools_run();
    assert_eq!(words(&plain), None);
    let reads = collecting().says("x").turn_starts().answers("", vec![read("a.txt")]);
    let reads = reads.calls_start().calls_give(&wrote("a.txt"));
    let after = reads.answers("", draft()).plan_tools_run();
    let label =
        "Written after reading what came from outside (read_file), which may have steered it.";
    assert_eq!(words(&after).as_deref(), Some(label));
    // It was read in this conversation, so a later turn has it before it, too; and what is read later says nothing of a plan
    // that is written.
    let later = after.answers("done", vec![]).says("again").turn_starts();
    let later = later.answers("", vec![set_content("# Move them\n")]).plan_tools_run();
    assert_eq!(words(&later).as_deref(), Some(label));
    let mut read_later = plain.answers("", vec![read("a.txt")]).calls_start();
    read_later = read_later.calls_give(&wrote("a.txt"));
    assert_eq!(words(&read_later), None);
    assert_eq!(read_later.session.outside, ["read_file".to_owned()].into());
    // A conversation that begins anew has nothing before it.
    read_later.person(PersonCommand::Reset).unwrap();
    assert_eq!(read_later.session.outside, [].into());
}

#[test]
fn a_plan_that_a_model_reports_done_keeps_what_was_observed_apart_from_the_claim() {
    let world = running()
        .answers("", vec![write("a.txt"), report("done")])
        .calls_start()
        .calls_give(&wrote("a.txt"));
    let world = world.plan_tools_run();
    let card = PlanCard::of(&world.session, &Envelope::default()).unwrap();
    let words = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    assert_eq!((card.status.as_str(), card.basis), ("Done", Some(Basis::Claimed)));
    assert_eq!(card.claimed.as_deref(), Some("the model reports: as asked"));
    assert_eq!(card.observed, words(&["1 call ran", "wrote a.txt (1 bytes)"]));
    assert_eq!(
        card.gaps,
        words(&["1. Stop the service", "2. Copy the files"]),
        "nothing ties a call to a step"
    );
}

#[test]
fn a_report_without_a_call_is_a_claim_of_which_nothing_was_observed() {
    let world = running().answers("", vec![report("done")]).plan_tools_run();
    let card = PlanCard::of(&world.session, &Envelope::default()).unwrap();
    assert_eq!((card.basis, card.observed), (Some(Basis::Claimed), vec![]));
}

#[test]
fn what_a_person_calls_done_is_declared_by_that_person() {
    let world = running().does(PersonCommand::EndPlan(Ending::Done));
    let card = PlanCard::of(&world.session, &Envelope::default()).unwrap();
    assert_eq!(card.basis, Some(Basis::Declared));
    assert_eq!(card.claimed.as_deref(), Some("declared done by ada"));
}

#[test]
fn a_plan_that_did_not_end_as_done_has_no_basis_and_no_gaps() {
    let world = running().does(PersonCommand::EndPlan(Ending::Off));
    let card = PlanCard::of(&world.session, &Envelope::default()).unwrap();
    assert_eq!((card.basis, card.gaps), (None, vec![]));
}

#[test]
fn a_plan_that_waits_says_why() {
    let waits = |world: World| {
        PlanCard::of(&world.session, &Envelope::default()).unwrap().waits.unwrap_or_default()
    };
    assert_eq!(
        waits(paused()),
        "the model ended its turn without reporting done, failed or blocked"
    );
    assert_eq!(waits(held()), "approved and held; /plan resume starts it");
    assert_eq!(waits(failed()), "the model reported failure; /plan resume tries again");
    assert_eq!(waits(withdrawn()), "changes were requested; a newer revision is needed");
    assert_eq!(waits(in_doubt()), "the outcome of a call is unknown; say what became of it");
}

#[test]
fn failures_and_interruptions_say_what_is_the_case() {
    let world = a_session();
    let failure = a_failure(FailureKind::Permanent);
    let outcome = TurnOutcome::of(&TurnEnd::Failed { failure }, &world.session, "");
    assert_eq!(
        outcome,
        TurnOutcome::Failure { kind: FailureKind::Permanent, message: "busy".into() }
    );
    let outcome = TurnOutcome::of(&TurnEnd::Stopped { by: ada() }, &world.session, "");
    assert_eq!(
        OutgoingResponse::of(&outcome, &world.session, &Envelope::default()).text,
        "stopped"
    );
}

#[test]
fn a_card_lists_two_hundred_things_and_counts_the_rest() {
    let mut world = running();
    for at in 0..planwright_domain::limits::TOUCHED_MAX + 3 {
        if at % 50 == 0 && at > 0 {
            world = world.answers("", vec![report("blocked")]).plan_tools_run().answers("", vec![]);
            let command = world.resume_command();
            world = world.does(command).turn_starts();
        }
        world = world.answers("", vec![write("a.txt")]).calls_start().calls_give(&wrote("a.txt"));
    }
    let card = PlanCard::of(&world.session, &Envelope::default()).unwrap();
    let observed = card.observed;
    assert_eq!(observed.first().map(String::as_str), Some("203 calls ran"));
    assert_eq!((observed.len(), observed.last().map(String::as_str)), (202, Some("and 3 more")));
}
