//! What came with an archive that nobody here vouches for waits for a person.

use planwright_domain::{
    autonomy::{budget::Budget, schedule::Rhythm},
    command::{AutoCommand, HoldReason, NewSchedule, Permit, PersonCommand, SystemCommand},
    next::{Next, next},
    plan::{PauseReason, PlanStatus, Progress},
    time::Time,
};

use crate::given::*;

fn hold(world: &mut World) {
    world.system(SystemCommand::Hold { by: ada(), why: HoldReason::Imported }).unwrap();
}

/// Whether anything would be done in this session without a person.
fn goes_on(world: &World) -> bool {
    !matches!(next(&world.session), Next::Nothing | Next::WaitForPerson(_))
}

#[test]
fn an_approval_that_was_given_elsewhere_runs_nothing_until_someone_here_resumes_it() {
    for mut world in [ready().approved(), held(), ready().approved().turn_starts()] {
        hold(&mut world);
        let status = &world.plan().status;
        let reason = PauseReason::Imported { approver: "ada".into() };
        assert!(
            matches!(status, PlanStatus::Executing(_, Progress::Paused(why)) if *why == reason),
            "{status:?}"
        );
        assert!(!goes_on(&world), "{:?}", next(&world.session));
        let resume = world.resume_command();
        world.person(resume).unwrap();
        assert!(goes_on(&world));
    }
}

#[test]
fn a_call_that_was_permitted_elsewhere_is_not_made() {
    let asks = a_session().says("x").turn_starts().answers("", vec![write("a")]).calls_start();
    let mut world = asks.permitted(Permit::Once);
    assert!(goes_on(&world));
    hold(&mut world);
    assert!(!goes_on(&world) && world.session.turn.is_none(), "{:?}", next(&world.session));
}

#[test]
fn a_plan_that_waits_for_a_decision_goes_on_waiting_for_it() {
    let mut world = ready();
    hold(&mut world);
    assert_eq!(world.plan().status, PlanStatus::Ready);
}

#[test]
fn schedules_and_runs_are_off() {
    let mut world = a_session();
    world
        .person(PersonCommand::Auto(AutoCommand::AddSchedule(NewSchedule {
            schedule: uuid::Uuid::from_u128(1).into(),
            rhythm: Rhythm::Every { micros: 3_600_000_000, from: Time(1) },
            title: "sweep".into(),
            goal: None,
            budget: Budget::default(),
            next: Time(7_200_000_000),
            jitter_micros_max: 0,
        })))
        .unwrap();
    hold(&mut world);
    assert!(world.session.auto.schedules.is_empty() && world.session.auto.runs.is_empty());
    assert_eq!(next(&world.session), Next::Nothing);
}
