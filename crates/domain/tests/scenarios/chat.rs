//! What people type.

use planwright_domain::{
    chat::{Act, ChatCommand, HELP, Line, Look, parse},
    command::{Ending, Permit, Start, Verdict},
    effect::Declared,
    plan::{Strategy, step::OnFailure},
};

fn act(line: &str) -> Act {
    match parse(line).unwrap() {
        Line::Command(ChatCommand::Act(act)) => act,
        other => panic!("{line}: {other:?}"),
    }
}

fn look(line: &str) -> Look {
    match parse(line).unwrap() {
        Line::Command(ChatCommand::Look(look)) => look,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn every_command_is_read() {
    assert_eq!(act("/plan on"), Act::PlanOn(Strategy::Document));
    assert_eq!(act(" /plan   on  build "), Act::PlanOn(Strategy::Build));
    assert_eq!(act("/plan off"), Act::PlanEnd(Ending::Off));
    assert_eq!(act("/plan done"), Act::PlanEnd(Ending::Done));
    assert_eq!(look("/plan"), Look::Status);
    assert_eq!(look("/plan show"), Look::Show(None));
    assert_eq!(look("/plan show rev2"), Look::Show(Some(2)));
    assert_eq!(look("/plan diff"), Look::Diff(None));
    assert_eq!(look("/plan diff 1 2"), Look::Diff(Some((1, 2))));
    assert_eq!(look("/plan list"), Look::List);
    assert_eq!(
        act("/plan approve"),
        Act::Approve {
            named: None,
            start: Start::AtOnce,
            on_failure: OnFailure::Stop,
            grant: None,
            note: None
        }
    );
    assert_eq!(
        act("/plan approve 2 hold"),
        Act::Approve {
            named: Some("2".into()),
            start: Start::Hold,
            on_failure: OnFailure::Stop,
            grant: None,
            note: None
        }
    );
    assert_eq!(
        act("/plan approve 2 continue"),
        Act::Approve {
            named: Some("2".into()),
            start: Start::AtOnce,
            on_failure: OnFailure::Continue,
            grant: None,
            note: None,
        }
    );
    assert_eq!(act("/plan skip 3"), Act::Skip(3));
    let grant = Some(Declared {
        tools: ["write_file".to_owned()].into(),
        paths: ["src/".to_owned()].into(),
        spend_micros_max: Some(2_500_000),
        lasts_micros: Some(7_200_000_000),
        ..Declared::default()
    });
    assert_eq!(
        act("/plan approve tools=write_file paths=./src/ spend=$2.50 expires=2h note mind the cat"),
        Act::Approve {
            named: None,
            start: Start::AtOnce,
            on_failure: OnFailure::Stop,
            grant,
            note: Some("mind the cat".into())
        }
    );
    let permit =
        |named: Option<&str>, permit| Act::Permit { named: named.map(str::to_owned), permit };
    assert_eq!(act("/allow 0a1b2c3d"), permit(Some("0a1b2c3d"), Permit::Once));
    assert_eq!(act("/allow 0a1b2c3d plan"), permit(Some("0a1b2c3d"), Permit::UntilPlanEnds));
    assert_eq!(act("/deny"), permit(None, Permit::Deny));
    let text = "no mail".to_owned();
    assert_eq!(act("/plan replan no mail"), permit(None, Permit::Replan { text }));
    assert_eq!(
        act("/plan approve hold"),
        Act::Approve {
            named: None,
            start: Start::Hold,
            on_failure: OnFailure::Stop,
            grant: None,
            note: None
        }
    );
    assert_eq!(act("/plan changes 3: more  care"), Act::Changes("3: more  care".into()));
    assert_eq!(act("/plan reject"), Act::Reject(None));
    assert_eq!(act("/plan reject too risky"), Act::Reject(Some("too risky".into())));
    assert_eq!(act("/plan resume"), Act::Resume);
    assert_eq!(act("/plan stop"), Act::PlanStop);
    assert_eq!(
        act("/plan settle ab happened"),
        Act::Settle { call: "ab".into(), verdict: Verdict::Happened }
    );
    assert_eq!(
        act("/plan settle ab not"),
        Act::Settle { call: "ab".into(), verdict: Verdict::DidNotHappen }
    );
    assert_eq!(act("/stop"), Act::Stop);
    assert_eq!(act("/reset"), Act::Reset);
    assert_eq!(parse("/help"), Ok(Line::Command(ChatCommand::Help)));
}

#[test]
fn words_are_words_and_two_slashes_are_one() {
    assert_eq!(parse("approve the plan"), Ok(Line::Message("approve the plan".into())));
    assert_eq!(parse("//plan on"), Ok(Line::Message("/plan on".into())));
    assert_eq!(parse("2"), Ok(Line::Message("2".into())));
}

#[test]
fn what_is_no_command_is_refused_and_the_nearest_is_named() {
    insta::assert_snapshot!(parse("/plan aprove").unwrap_err(), @r#""/plan aprove" is not a command; did you mean /plan approve? (/help lists them; begin with // to say it to the agent)"#);
    insta::assert_snapshot!(parse("/rest").unwrap_err(), @r#""/rest" is not a command; did you mean /reset? (/help lists them; begin with // to say it to the agent)"#);
    insta::assert_snapshot!(parse("/plan on poems").unwrap_err(), @r#"/plan on knows document, collect and build, not "poems""#);
    insta::assert_snapshot!(parse("/plan show two").unwrap_err(), @r#"/plan show needs the number of a revision, not "two""#);
    insta::assert_snapshot!(parse("/plan changes").unwrap_err(), @"/plan changes needs the words of what should change");
    insta::assert_snapshot!(parse("/plan edit").unwrap_err(), @"/plan edit needs the whole document");
    insta::assert_snapshot!(parse("/plan replan").unwrap_err(), @"/plan replan needs the words of what should change");
    insta::assert_snapshot!(parse("/plan settle happened").unwrap_err(), @"/plan settle needs a call and then happened or not");
    insta::assert_snapshot!(parse("/plan settle x maybe").unwrap_err(), @"/plan settle needs a call and then happened or not");
}

#[test]
fn every_line_of_the_help_begins_with_a_command_that_is_read() {
    for (words, _) in HELP {
        let first = words.split(" · ").next().unwrap().split(['[', '<']).next().unwrap().trim();
        let line = match first {
            "/plan changes" => "/plan changes x",
            "/plan settle" => "/plan settle x not",
            "/plan skip" => "/plan skip 1",
            "/plan edit" => "/plan edit # x",
            "/plan replan" => "/plan replan x",
            "/goal add" => "/goal add x",
            "/task add" => "/task add g1 x",
            "/schedule add" => "/schedule add every 2h x",
            "/rename" => "/rename x",
            other => other,
        };
        assert!(parse(line).is_ok(), "{words}");
    }
}

#[test]
fn work_is_named_by_number_and_when_it_begins_is_said_with_its_zone() {
    use planwright_domain::{
        autonomy::budget::Meter,
        chat::work::{Named, When, WorkAct},
    };
    let work = |line: &str| match parse(line) {
        Ok(Line::Command(ChatCommand::Act(Act::Work(act)))) => act,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(work("/goal add move the photos"), WorkAct::AddGoal("move the photos".into()));
    let title = "back up".to_owned();
    assert_eq!(
        work("/task add g3 back up"),
        WorkAct::AddTask { goal: Some(3), title: title.clone() }
    );
    assert_eq!(work("/task add back up"), WorkAct::AddTask { goal: None, title });
    assert_eq!(
        work("/auto on g3 plan time=90m calls=5 spend=0.5"),
        WorkAct::On {
            target: Some(Named::Goal(3)),
            drafts: true,
            budget: vec![
                (Meter::Time, 5_400_000_000),
                (Meter::ModelCalls, 5),
                (Meter::Money, 500_000),
            ],
        }
    );
    assert_eq!(work("/auto off r4"), WorkAct::Off(Some(4)));
    assert_eq!(work("/auto off"), WorkAct::Off(None));
    let (expression, zone) = ("0 9 * * 1-5".to_owned(), "Europe/Berlin".to_owned());
    assert_eq!(
        work("/schedule add 0 9 * * 1-5 Europe/Berlin g1 report"),
        WorkAct::AddSchedule {
            when: When::Cron { expression, zone },
            goal: Some(1),
            title: "report".into(),
        }
    );
    let at = "2026-11-16T09:00".to_owned();
    assert_eq!(
        work("/schedule add at 2026-11-16T09:00 UTC report"),
        WorkAct::AddSchedule {
            when: When::Once { at, zone: "UTC".into() },
            goal: None,
            title: "report".into(),
        }
    );
    for wrong in [
        "/auto on everything",
        "/auto on calls=many",
        "/schedule add every now x",
        "/goal win",
        "/task done soon",
        "/schedule add 0 9 * * *",
        "/switch",
        "/memory edit 1",
    ] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
