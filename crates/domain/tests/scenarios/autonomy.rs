//! Goals, tasks, runs and schedules: what goes on by itself, what makes it wait, what ends it.

use planwright_domain::{
    autonomy::{
        AutoRunKind, Run, RunPause, RunStatus, TaskEnd,
        budget::{Budget, Meter},
        event::AutoEvent,
        schedule::Rhythm,
    },
    command::{
        AutoCommand, Claim, LifeCommand, Missed, NewSchedule, Permit, PersonCommand, SystemCommand,
        Target,
    },
    id::{GoalId, RunId, ScheduleId, TaskId},
    next::{Due, Next, Waiting, next, waiting},
    refusal::Refusal,
    session::SessionEvent,
    time::Time,
    turn::{Cause, FailureKind},
};
use uuid::Uuid;

use crate::given::{Asks, World, a_failure, a_session, done, read, ready, tool, write};

const HOUR: i64 = 3_600_000_000;

fn goal_id() -> GoalId {
    Uuid::from_u128(70).into()
}

fn task_id(number: u128) -> TaskId {
    Uuid::from_u128(80 + number).into()
}

fn run_id() -> RunId {
    Uuid::from_u128(90).into()
}

fn schedule_id() -> ScheduleId {
    Uuid::from_u128(95).into()
}

fn auto(command: AutoCommand) -> PersonCommand {
    PersonCommand::Auto(command)
}

fn add_task(number: u128, goal: Option<GoalId>) -> PersonCommand {
    let title = format!("task number {number}");
    auto(AutoCommand::AddTask { task: task_id(number), goal, title })
}

fn on(target: Target, budget: Budget) -> PersonCommand {
    auto(AutoCommand::On { run: run_id(), target, budget, drafts: false })
}

fn off() -> PersonCommand {
    auto(AutoCommand::Off { run: None })
}

fn task_report(status: &'static str) -> Asks {
    let arguments = serde_json::json!({"status": status, "summary": format!("it is {status}")});
    tool("task_report", arguments)
}

/// A goal with so many tasks.
fn a_goal(tasks: u128) -> World {
    let title = "move to the new server".to_owned();
    let world = a_session().does(auto(AutoCommand::AddGoal { goal: goal_id(), title }));
    (1..=tasks).fold(world, |world, number| world.does(add_task(number, Some(goal_id()))))
}

/// A run on one task that stands alone, with this budget.
fn a_task_run(budget: Budget) -> World {
    a_session().does(add_task(1, None)).does(on(Target::NextTask, budget))
}

fn the_run(world: &World) -> &Run {
    world.session.auto.runs.values().next().expect("a run")
}

fn kinds(world: &World, from: usize) -> Vec<&'static str> {
    world.events[from..].iter().map(SessionEvent::kind).collect()
}

fn the_pause(world: &World) -> &RunPause {
    match &the_run(world).status {
        RunStatus::Paused(why) => why,
        RunStatus::Running => panic!("it goes on"),
    }
}

#[test]
fn without_a_goal_a_run_is_a_task_run_and_with_one_a_goal_run() {
    let world = a_task_run(Budget::default());
    let context = &the_run(&world).context;
    assert_eq!((context.kind, context.goal_id), (AutoRunKind::TaskRun, None));
    assert_eq!(
        (context.task_id, context.session.clone()),
        (task_id(1), world.session.identity.clone())
    );
    let world = a_goal(2).does(on(Target::Goal(goal_id()), Budget::default()));
    let context = &the_run(&world).context;
    assert_eq!((context.kind, context.goal_id), (AutoRunKind::GoalRun, Some(goal_id())));
    assert_eq!(context.task_id, task_id(1));
    assert_eq!(
        (AutoRunKind::GoalRun.name(), AutoRunKind::TaskRun.name()),
        ("GOAL_RUN", "TASK_RUN")
    );
}

/// Invariant: `run-output-stays-home`.
#[test]
fn the_context_travels_under_its_canonical_names() {
    let world = a_goal(1).does(on(Target::Goal(goal_id()), Budget::default()));
    let attributes = the_run(&world).context.attributes();
    let names: Vec<_> = attributes.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "SESSION_IDENTITY_CHANNEL",
            "SESSION_IDENTITY_CONVERSATION",
            "AUTO_RUN_KIND",
            "AUTO_RUN_ID",
            "AUTO_TASK_ID",
            "AUTO_GOAL_ID",
        ]
    );
    assert_eq!(attributes[2].1, "GOAL_RUN");
}

#[test]
fn a_run_needs_something_to_work_on_and_says_so() {
    let mut world = a_session().does(add_task(1, None));
    let (run, target, budget) = (run_id(), Target::NextTask, Budget::default());
    let drafts = auto(AutoCommand::On { run, target, budget, drafts: true });
    assert_eq!(world.person(drafts).unwrap_err().kind(), "work_inactive", "/plan on comes first");
    let mut world = a_session();
    let refused = world.person(on(Target::NextTask, Budget::default())).unwrap_err();
    assert_eq!(refused, Refusal::NoOpenTask);
    let mut world = a_task_run(Budget::default());
    let again = auto(AutoCommand::On {
        run: Uuid::from_u128(91).into(),
        target: Target::Task(task_id(1)),
        budget: Budget::default(),
        drafts: false,
    });
    assert_eq!(world.person(again).unwrap_err(), Refusal::AlreadyRuns { number: 1 });
}

#[test]
fn a_goal_run_does_its_tasks_one_after_the_other_and_reaches_the_goal() {
    let mut world = a_goal(2).does(on(Target::Goal(goal_id()), Budget::default()));
    for _ in 0..2 {
        world = world
            .turn_starts()
            .answers("", vec![task_report("done")])
            .plan_tools_run()
            .answers("so be it", vec![]);
    }
    assert!(world.session.auto.runs.is_empty() && world.session.auto.goals.is_empty());
    let end = kinds(&world, world.events.len() - 4);
    assert_eq!(end, ["model_answered", "turn_finished", "run_ended", "goal_ended"]);
    assert_eq!(next(&world.session), Next::Nothing);
}

#[test]
fn the_second_task_is_told_what_the_first_one_came_to() {
    let world = a_goal(2)
        .does(on(Target::Goal(goal_id()), Budget::default()))
        .turn_starts()
        .answers("", vec![task_report("done")])
        .plan_tools_run()
        .answers("so be it", vec![]);
    let reply = serde_json::to_string(&world.events.last()).unwrap();
    assert!(reply.contains("it is done") && reply.contains("task number 2"), "{reply}");
}

#[test]
fn a_turn_that_reports_nothing_is_followed_by_another_until_it_stalls() {
    let mut world = a_task_run(Budget::default());
    for _ in 0..3 {
        world = world.turn_starts().answers("thinking", vec![]);
    }
    assert_eq!(the_pause(&world), &RunPause::Stalled);
    assert_eq!(waiting(&world.session), Some(Waiting::Run));
    let world = world.does(auto(AutoCommand::Resume { run: None })).turn_starts();
    assert!(matches!(world.session.turn.as_ref().unwrap().cause.cause, Cause::Tick { .. }));
}

#[test]
fn a_task_that_is_blocked_asks_and_one_that_failed_ends_its_run() {
    let blocked = a_task_run(Budget::default())
        .turn_starts()
        .answers("", vec![task_report("blocked")])
        .plan_tools_run()
        .answers("help", vec![]);
    assert_eq!(the_pause(&blocked).in_words(), "the model says: it is blocked");
    let failed = a_task_run(Budget::default())
        .turn_starts()
        .answers("", vec![task_report("failed")])
        .plan_tools_run()
        .answers("sorry", vec![]);
    assert!(failed.session.auto.runs.is_empty() && failed.session.auto.tasks.is_empty());
}

#[test]
fn a_report_outside_of_a_run_is_refused_and_changes_nothing() {
    let world = a_session().does(add_task(1, None)).says("hello").turn_starts();
    let before = world.session.auto.clone();
    let world = world.answers("", vec![task_report("done")]).plan_tools_run();
    assert_eq!(world.session.auto, before);
    let reply = serde_json::to_string(&world.events.last()).unwrap();
    assert!(reply.contains("policy_denied"), "{reply}");
}

/// Invariant: `run-output-stays-home`.
#[test]
fn off_stops_the_turn_withdraws_the_tick_and_lets_nothing_start() {
    let working = a_task_run(Budget::default()).turn_starts().answers("", vec![read("a.txt")]);
    let world = working.does(off());
    assert!(world.session.turn.is_none() && world.session.auto.runs.is_empty());
    assert_eq!(next(&world.session), Next::Nothing, "0 new effects");
    let ticking = a_task_run(Budget::default()).does(off());
    assert!(ticking.session.queue.is_empty());
    assert_eq!(next(&ticking.session), Next::Nothing);
    assert_eq!(ticking.clone().person(off()).unwrap_err(), Refusal::NoRuns);
}

#[test]
fn what_had_started_when_off_was_said_ends_and_is_recorded_but_moves_nothing() {
    let world = a_task_run(Budget::default())
        .turn_starts()
        .answers("", vec![read("a.txt")])
        .calls_start()
        .does(off());
    let world = world.calls_give(&done("late"));
    assert_eq!(world.events.last().map(SessionEvent::kind), Some("call_finished"));
    assert_eq!(next(&world.session), Next::Nothing);
}

#[test]
fn off_by_name_leaves_the_others_alone() {
    let mut world = a_task_run(Budget::default()).does(add_task(2, None));
    let second: RunId = Uuid::from_u128(91).into();
    let start = AutoCommand::On {
        run: second,
        target: Target::Task(task_id(2)),
        budget: Budget::default(),
        drafts: false,
    };
    world = world.does(auto(start));
    world = world.does(auto(AutoCommand::Off { run: Some(run_id()) }));
    assert_eq!(world.session.auto.runs.keys().copied().collect::<Vec<_>>(), [second]);
    let unknown = auto(AutoCommand::Off { run: Some(run_id()) });
    assert_eq!(world.person(unknown).unwrap_err().kind(), "not_there");
}

#[test]
fn a_person_comes_before_a_run_and_nothing_of_either_is_lost() {
    let world = a_task_run(Budget::default()).says("a question").turn_starts();
    assert_eq!(world.session.turn.as_ref().unwrap().cause.cause, Cause::Message);
    let world = world.answers("an answer", vec![]).turn_starts();
    assert!(matches!(world.session.turn.as_ref().unwrap().cause.cause, Cause::Tick { .. }));
}

#[test]
fn a_run_makes_way_for_a_person_at_its_next_model_call_and_goes_on_afterwards() {
    let world = a_task_run(Budget::default())
        .turn_starts()
        .answers("", vec![read("a.txt")])
        .calls_start()
        .calls_give(&done("a"))
        .says("wait, one question");
    let world = world.model_is_asked().turn_starts();
    assert_eq!(world.session.turn.as_ref().unwrap().cause.cause, Cause::Message);
    let world = world.answers("yes", vec![]).turn_starts();
    assert!(matches!(world.session.turn.as_ref().unwrap().cause.cause, Cause::Tick { .. }));
    assert!(!world.events.iter().any(|event| event.kind() == "cause_withdrawn"));
}

#[test]
fn most_of_a_budget_warns_once_and_all_of_it_pauses_and_asks() {
    let mut world = a_task_run(Budget { model_calls: Some(5), ..Budget::default() }).turn_starts();
    for number in 0..5 {
        world = world
            .answers("", vec![read(&format!("{number}.txt"))])
            .calls_start()
            .calls_give(&done(&format!("{number}")));
    }
    let warned = world.events.iter().filter(|event| event.kind() == "run_warned").count();
    assert_eq!(warned, 1, "at four of five");
    let world = world.model_is_asked();
    assert_eq!(the_pause(&world), &RunPause::OutOfBudget { meter: Meter::ModelCalls });
    assert_eq!(waiting(&world.session), Some(Waiting::Run));
    assert!(world.session.turn.is_none());
    let world = world.does(auto(AutoCommand::Resume { run: Some(run_id()) }));
    assert_eq!(the_run(&world).budget.model_calls, Some(10), "as much again");
    assert!(matches!(next(&world.session), Next::StartTurn(_)));
}

#[test]
fn every_meter_pauses_a_run_when_it_is_full() {
    let tools = a_task_run(Budget { tool_calls: Some(1), ..Budget::default() })
        .turn_starts()
        .answers("", vec![read("a.txt")])
        .calls_start()
        .calls_give(&done("a"))
        .answers("", vec![read("b.txt")])
        .calls_start();
    assert_eq!(the_pause(&tools), &RunPause::OutOfBudget { meter: Meter::ToolCalls });
    let mut time = a_task_run(Budget { micros: Some(10), ..Budget::default() }).turn_starts();
    time.now = time.now.plus_micros(HOUR);
    let time = time.model_is_asked();
    assert_eq!(the_pause(&time), &RunPause::OutOfBudget { meter: Meter::Time });
    for (budget, meter) in [
        (Budget { tokens: Some(100), ..Budget::default() }, Meter::Tokens),
        (Budget { cost_micros: Some(7), ..Budget::default() }, Meter::Money),
    ] {
        let mut world = a_task_run(budget).turn_starts().model_is_asked();
        let attempt = world.open_model_call();
        let mut answer = world.answer("", vec![read("a.txt")]);
        answer.usage.input = 100;
        answer.usage.cost_micros = 7;
        world.system(SystemCommand::RecordAnswer { attempt, answer, others: 0 }).unwrap();
        let world = world.calls_start();
        assert_eq!(the_pause(&world), &RunPause::OutOfBudget { meter });
    }
}

#[test]
fn the_same_call_with_the_same_observation_a_third_time_parks_the_run() {
    let mut world = a_task_run(Budget::default()).turn_starts();
    for _ in 0..2 {
        world = world.answers("", vec![read("a.txt")]).calls_start().calls_give(&done("same"));
    }
    assert_eq!(the_run(&world).status, RunStatus::Running);
    let other =
        world.clone().answers("", vec![read("a.txt")]).calls_start().calls_give(&done("new"));
    assert_eq!(the_run(&other).status, RunStatus::Running, "another observation is progress");
    let world = world.answers("", vec![read("a.txt")]).calls_start().calls_give(&done("same"));
    assert_eq!(the_pause(&world), &RunPause::Loop { tool: "read_file".into() });
    assert!(world.session.turn.is_none());
}

#[test]
fn a_run_is_told_no_more_than_a_person_about_what_may_be_changed() {
    let world =
        a_task_run(Budget::default()).turn_starts().answers("", vec![write("a.txt")]).calls_start();
    assert_eq!(waiting(&world.session), Some(Waiting::Permission), "no setting opens the gate");
}

#[test]
fn a_failed_turn_a_stop_and_a_doubt_make_a_run_wait() {
    let mut failing = a_task_run(Budget::default()).turn_starts().model_is_asked();
    let failure = a_failure(FailureKind::Permanent);
    failing = failing.fails(failure, 0);
    assert_eq!(the_pause(&failing), &RunPause::TurnFailed { message: "busy".into() });
    let stopped = a_task_run(Budget::default()).turn_starts().does(PersonCommand::Stop);
    assert_eq!(the_pause(&stopped), &RunPause::Stopped);
    let mut doubted = a_task_run(Budget::default())
        .turn_starts()
        .answers("", vec![write("a.txt")])
        .calls_start()
        .permitted(Permit::Once)
        .calls_start()
        .the_process_dies();
    assert_eq!(the_pause(&doubted), &RunPause::InDoubt);
    let refused = doubted.person(auto(AutoCommand::Resume { run: None })).unwrap_err();
    assert_eq!(refused.kind(), "run_waits_for_doubt");
}

#[test]
fn a_run_that_drafts_waits_for_approval_and_is_pinned_to_what_was_approved() {
    let world = a_session().plan_on().does(add_task(1, None)).does(auto(AutoCommand::On {
        run: run_id(),
        target: Target::NextTask,
        budget: Budget::default(),
        drafts: true,
    }));
    let world = world
        .turn_starts()
        .answers("", vec![crate::given::set_content(crate::given::FIRST)])
        .plan_tools_run()
        .answers("there", vec![]);
    assert_eq!(the_pause(&world), &RunPause::AwaitsApproval);
    let refused = world.clone().person(auto(AutoCommand::Resume { run: None })).unwrap_err();
    assert_eq!(refused.kind(), "run_waits_for_plan");
    let world = world.approved();
    let digest = world.digest();
    assert_eq!(the_run(&world).plan.map(|plan| plan.digest), Some(digest));
    assert_eq!(the_run(&world).status, RunStatus::Running);
    let world = world
        .turn_starts()
        .answers("", vec![crate::given::report("done")])
        .plan_tools_run()
        .answers("done", vec![]);
    assert!(world.session.auto.runs.is_empty() && world.session.plan().is_none());
    let ended = serde_json::to_string(&world.events).unwrap();
    assert!(ended.contains("its plan is done"), "the plan's end is the task's");
}

#[test]
fn a_run_pinned_to_a_plan_waits_when_the_plan_does_and_goes_on_with_it() {
    let world =
        ready().approved().does(add_task(1, None)).does(on(Target::NextTask, Budget::default()));
    let plan = world.plan().id;
    assert_eq!(the_run(&world).plan.map(|pinned| pinned.plan), Some(plan));
    let world = world.turn_starts().answers("I am off", vec![]);
    assert!(matches!(the_pause(&world), RunPause::PlanWaits { .. }));
    let resume = world.resume_command();
    let world = world.does(resume);
    assert_eq!(the_run(&world).status, RunStatus::Running);
    let world = world.does(off());
    assert_eq!(world.status(), "executing_paused", "its execution does not go on without it");
}

#[test]
fn a_reset_and_a_deletion_end_every_run() {
    let world = a_task_run(Budget::default()).turn_starts().does(PersonCommand::Reset);
    assert!(world.session.auto.runs.is_empty() && world.session.turn.is_none());
    assert!(!world.session.auto.tasks.is_empty(), "its task can be taken up again");
    let mut world =
        every_hour(a_task_run(Budget::default())).does(PersonCommand::Life(LifeCommand::Delete));
    assert!(world.session.auto.runs.is_empty() && world.session.auto.schedules.is_empty());
    assert_eq!(next(&world.session), Next::RemovePages { attempt: 1, not_before: None });
    let refused = world.person(PersonCommand::Say { text: "hello?".into() }).unwrap_err();
    assert_eq!(refused.kind(), "session_deleted");
}

// Schedules.

fn every_hour(world: World) -> World {
    let rhythm = Rhythm::Every { micros: HOUR, from: Time(0) };
    world.does(auto(AutoCommand::AddSchedule(NewSchedule {
        schedule: schedule_id(),
        rhythm,
        title: "look after the backups".into(),
        goal: None,
        budget: Budget::default(),
        next: Time(HOUR),
        jitter_micros_max: 0,
    })))
}

fn claim(slot: i64, missed: Option<Missed>) -> SystemCommand {
    SystemCommand::ClaimSlot(Claim {
        schedule: schedule_id(),
        missed,
        slot: Time(slot * HOUR),
        next: Some(Time((slot + 1) * HOUR)),
        until: Time(slot * HOUR + HOUR / 2),
        task: task_id(u128::try_from(slot).unwrap()),
        run: Uuid::from_u128(1_000 + u128::try_from(slot).unwrap()).into(),
    })
}

fn at(mut world: World, micros: i64) -> World {
    world.now = Time(micros);
    world
}

/// Invariant: `slot-once`.
#[test]
fn a_slot_is_waited_for_claimed_once_and_its_run_ends_it() {
    let world = every_hour(a_session());
    assert_eq!(next(&world.session).due(), Due::At(Time(HOUR)));
    let mut early = world.clone();
    assert_eq!(early.system(claim(1, None)).unwrap_err().kind(), "moved_on", "not before its time");
    let mut world = at(world, HOUR);
    world.system(claim(1, None)).unwrap();
    assert_eq!(world.system(claim(1, None)).unwrap_err().kind(), "moved_on", "never twice");
    let world = world
        .turn_starts()
        .answers("", vec![task_report("done")])
        .plan_tools_run()
        .answers("fine", vec![]);
    assert_eq!(kinds(&world, world.events.len() - 2), ["run_ended", "slot_ended"]);
    assert_eq!(next(&world.session).due(), Due::At(Time(2 * HOUR)));
}

/// Invariant: `slot-once`.
#[test]
fn slots_that_nobody_claimed_are_one_run_and_are_said_to_be_missed() {
    let mut world = at(every_hour(a_session()), 5 * HOUR + 1);
    let missed = Missed { first: Time(HOUR), last: Time(4 * HOUR), count: 4 };
    let wrong = Missed { first: Time(2 * HOUR), ..missed };
    assert_eq!(world.system(claim(5, Some(wrong))).unwrap_err().kind(), "moved_on");
    let news = world.system(claim(5, Some(missed))).unwrap();
    let kinds: Vec<_> = news.iter().map(SessionEvent::kind).collect();
    assert_eq!(kinds, ["slots_missed", "slot_claimed", "task_added", "run_started", "ticked"]);
}

/// Invariant: `slot-once`.
#[test]
fn a_slot_begins_a_little_after_its_time_where_that_is_set_always_as_much_and_keeps_its_time() {
    const SECOND: i64 = 1_000_000;
    let begins = |id: u128, jitter_micros_max: i64| {
        let world = a_session().does(auto(AutoCommand::AddSchedule(NewSchedule {
            schedule: Uuid::from_u128(id).into(),
            rhythm: Rhythm::Every { micros: HOUR, from: Time(0) },
            title: "look after the backups".into(),
            goal: None,
            budget: Budget::default(),
            next: Time(HOUR),
            jitter_micros_max,
        })));
        match next(&world.session).due() {
            Due::At(Time(at)) => at - HOUR,
            Due::Now | Due::Never => panic!("it is waited for"),
        }
    };
    let ids: Vec<u128> = (1..200).map(|at| at * 0x9E37_79B9_7F4A_7C15).collect();
    assert!(ids.iter().all(|id| begins(*id, 0) == 0 && begins(*id, -SECOND) == 0), "off");
    assert!(ids.iter().all(|id| begins(*id, 9 * SECOND) == begins(*id, 5 * SECOND)), "at most 5 s");
    let spread: Vec<_> = ids.iter().map(|id| begins(*id, 5 * SECOND)).collect();
    assert!(spread.iter().all(|micros| (0..=5 * SECOND).contains(micros)), "{spread:?}");
    for second in 0..5 {
        let within = |micros: &&i64| **micros / SECOND == second;
        assert!(spread.iter().filter(within).count() > 20, "{second}: {spread:?}");
    }

    let jitter = SECOND * 3;
    let mut world = every_hour(a_session());
    world.session.auto.schedules.values_mut().for_each(|known| known.jitter_micros = jitter);
    assert_eq!(next(&world.session).due(), Due::At(Time(HOUR + jitter)));
    let early = at(world.clone(), HOUR + jitter - SECOND).system(claim(1, None)).unwrap_err();
    assert_eq!(early.kind(), "moved_on", "its time has come, and not its beginning");
    let mut world = at(world, HOUR + jitter);
    let news = world.system(claim(1, None)).unwrap();
    let (schedule, slot, next) = (schedule_id(), Time(HOUR), Some(Time(2 * HOUR)));
    let claimed = SessionEvent::Auto(AutoEvent::SlotClaimed { schedule, slot, next });
    assert!(news.contains(&claimed), "{news:?}");
}

#[test]
fn a_slot_whose_predecessor_still_runs_is_skipped() {
    let mut world = at(every_hour(a_session()), HOUR);
    world.system(claim(1, None)).unwrap();
    let mut world = at(world, 2 * HOUR);
    // A turn that waits leaves the clock to the schedule.
    let news = world.system(claim(2, None)).unwrap();
    let kinds: Vec<_> = news.iter().map(SessionEvent::kind).collect();
    assert_eq!(kinds, ["slot_claimed", "slot_ended"]);
    assert_eq!(world.session.auto.runs.len(), 1);
}

#[test]
fn a_slot_that_fails_is_tried_again_inside_its_window_and_not_after() {
    let mut world = at(every_hour(a_session()), HOUR);
    world.system(claim(1, None)).unwrap();
    let fails = |mut world: World| {
        world = world.turn_starts().model_is_asked();
        let failure = a_failure(FailureKind::Permanent);
        world = world.fails(failure, 0);
        world
    };
    let world = fails(world);
    assert!(matches!(next(&world.session), Next::StartTurn(_)), "again");
    let world = fails(at(world, HOUR + HOUR / 2));
    assert_eq!(kinds(&world, world.events.len() - 3), ["task_ended", "run_ended", "slot_ended"]);
    assert!(world.session.auto.tasks.is_empty() && world.session.auto.runs.is_empty());
}

#[test]
fn a_run_of_a_schedule_waits_for_nobody_what_would_make_it_wait_fails_its_slot() {
    let claimed = || {
        let mut world = at(every_hour(a_session()), HOUR);
        world.system(claim(1, None)).unwrap();
        world.turn_starts()
    };
    let ends = |world: &World| kinds(world, world.events.len() - 3);
    let failed = ["task_ended", "run_ended", "slot_ended"];
    let blocked = claimed()
        .answers("", vec![task_report("blocked")])
        .plan_tools_run()
        .answers("help", vec![]);
    assert_eq!(ends(&blocked), failed);
    let mut idle = claimed().answers("thinking", vec![]);
    for _ in 0..2 {
        idle = idle.turn_starts().answers("thinking", vec![]);
    }
    assert_eq!(ends(&idle), failed);
    let mut circles = claimed();
    for _ in 0..3 {
        circles = circles.answers("", vec![read("a.txt")]).calls_start().calls_give(&done("same"));
    }
    assert_eq!(ends(&circles), failed);
    let stopped = claimed().does(PersonCommand::Stop);
    let last: Vec<_> = kinds(&stopped, 0).into_iter().filter(|kind| *kind != "logged").collect();
    assert_eq!(last[last.len() - 3..], failed);
    for world in [blocked, idle, circles, stopped] {
        assert_eq!(waiting(&world.session), None, "nobody is asked");
        assert_eq!(next(&world.session).due(), Due::At(Time(2 * HOUR)), "the next slot comes");
    }
}

#[test]
fn a_schedule_whose_goal_is_gone_is_turned_off_and_says_why() {
    let rhythm = Rhythm::Every { micros: HOUR, from: Time(0) };
    let world = a_goal(0).does(auto(AutoCommand::AddSchedule(NewSchedule {
        schedule: schedule_id(),
        rhythm,
        title: "report".into(),
        goal: Some(goal_id()),
        budget: Budget::default(),
        next: Time(HOUR),
        jitter_micros_max: 0,
    })));
    let world = world.does(auto(AutoCommand::EndGoal { goal: goal_id(), reached: false }));
    let mut world = at(world, HOUR);
    let news = world.system(claim(1, None)).unwrap();
    let kinds: Vec<_> = news.iter().map(SessionEvent::kind).collect();
    assert_eq!(kinds, ["slots_missed", "schedule_ended"]);
    assert_eq!(next(&world.session), Next::Nothing);
}

#[test]
fn a_schedule_runs_at_most_once_a_minute_and_lists_are_bounded() {
    let mut world = a_session();
    let too_often = auto(AutoCommand::AddSchedule(NewSchedule {
        schedule: schedule_id(),
        rhythm: Rhythm::Every { micros: 1, from: Time(0) },
        title: "spin".into(),
        goal: None,
        budget: Budget::default(),
        next: Time(1),
        jitter_micros_max: 0,
    }));
    assert_eq!(world.person(too_often).unwrap_err(), Refusal::TooOften);
    let full = (1..=200).fold(a_session(), |world, number| world.does(add_task(number, None)));
    let refused = full.clone().person(add_task(201, None)).unwrap_err();
    assert_eq!(refused.kind(), "too_many");
}

#[test]
fn a_task_can_be_ended_by_a_person_and_its_run_with_it() {
    let end = TaskEnd::Done { summary: "by hand".into() };
    let world =
        a_task_run(Budget::default()).does(auto(AutoCommand::EndTask { task: task_id(1), end }));
    assert!(world.session.auto.runs.is_empty() && world.session.auto.tasks.is_empty());
    let world = a_goal(2)
        .does(on(Target::Goal(goal_id()), Budget::default()))
        .does(auto(AutoCommand::EndGoal { goal: goal_id(), reached: true }));
    assert_eq!(world.session.auto.runs.len() + world.session.auto.tasks.len(), 0);
}
