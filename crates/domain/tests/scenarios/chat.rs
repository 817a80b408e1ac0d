//! What people type.

use planwright_domain::{
    chat::{Act, ChatCommand, HELP, Line, Look, approval::RevisionName, parse},
    command::{Ending, Permit, Start, Verdict},
    effect::Declared,
    id::PlanId,
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
#[expect(clippy::too_many_lines, reason = "one line for each command")]
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
            named: Some(RevisionName::Number(2)),
            start: Start::Hold,
            on_failure: OnFailure::Stop,
            grant: None,
            note: None
        }
    );
    assert_eq!(
        act("/plan approve 2 continue"),
        Act::Approve {
            named: Some(RevisionName::Number(2)),
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

fn named(line: &str) -> Option<RevisionName> {
    match act(line) {
        Act::Approve { named, .. } => named,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn an_approval_names_a_revision_by_number_by_plan_or_by_eight_digits_of_its_digest() {
    let plan = "01890a5d-ac96-774b-bcce-b302099a8057";
    assert_eq!(named("/plan approve 12345678"), Some(RevisionName::Number(12_345_678)));
    let id = PlanId(plan.parse().unwrap());
    assert_eq!(named(&format!("/plan approve {plan} hold")), Some(RevisionName::Plan(id)));
    let digest = |digits: &str| Some(RevisionName::Digest(digits.into()));
    assert_eq!(named("/plan approve c510dfed"), digest("c510dfed"));
    assert_eq!(named("/plan approve C510DFED1"), digest("c510dfed1"));
    assert_eq!(named("/plan approve sha256:12345678"), digest("12345678"));
    let whole = "a".repeat(64);
    assert_eq!(named(&format!("/plan approve {whole}")), digest(&whole));
}

#[test]
fn a_deciding_command_with_a_word_that_it_does_not_know_is_refused_and_does_nothing() {
    let refused = |line: &str| parse(line).unwrap_err().to_string();
    insta::assert_snapshot!(refused("/plan approve hodl"), @r#"/plan approve does not know "hodl"; did you mean hold? (nothing was approved)"#);
    insta::assert_snapshot!(refused("/plan approve rev2"), @r#"/plan approve does not know "rev2"; name the current revision by its number, its plan id or at least 8 digits of its digest (nothing was approved)"#);
    insta::assert_snapshot!(refused("/plan approve +2"), @r#"/plan approve does not know "+2"; name the current revision by its number, its plan id or at least 8 digits of its digest (nothing was approved)"#);
    insta::assert_snapshot!(refused("/plan approve 1 2"), @r#"/plan approve names two revisions, the second "2"; nothing was approved"#);
    insta::assert_snapshot!(refused("/plan approve keynote mind the cat"), @r#"/plan approve does not know "keynote"; did you mean note? (nothing was approved)"#);
    insta::assert_snapshot!(refused("/plan approve note"), @"/plan approve needs the words of the note after note");
    insta::assert_snapshot!(refused("/plan approve calls=1 calls=900"), @"/plan approve has calls= twice; nothing was approved");
    insta::assert_snapshot!(refused("/allow 0a1b2c3d pan"), @r#"/allow knows plan after the id, not "pan"; did you mean plan? (nothing was allowed)"#);
    insta::assert_snapshot!(refused("/deny 0a1b2c3d please"), @r#"/deny takes the id of a call and nothing more, not "please"; to say what should change, send /plan replan <text>"#);
    for line in [
        "/plan approve c510dfe",
        "/plan approve sha256:1234567",
        "/plan approve sha256:",
        "/plan approve yes",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn a_note_begins_at_the_word_note_and_is_taken_verbatim() {
    let note = |line: &str| match act(line) {
        Act::Approve { note, .. } => note,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(
        note("/plan approve hold note keep  hold=2 note x"),
        Some("keep  hold=2 note x".into())
    );
    assert_eq!(note("/plan approve hold"), None);
}

#[test]
fn no_command_ignores_a_word() {
    let commands = [
        "/plan off",
        "/plan done",
        "/plan status",
        "/plan list",
        "/plan comments",
        "/plan resume",
        "/plan stop",
        "/plan on build",
        "/plan show 1",
        "/plan diff 1 2",
        "/plan skip 1",
        "/plan settle ab not",
        "/compact",
        "/stop",
        "/reset",
        "/help",
        "/sessions",
        "/new",
        "/archive",
        "/delete",
        "/delete yes",
        "/goal list",
        "/goal done 1",
        "/task list",
        "/task drop t1",
        "/auto status",
        "/auto off r1",
        "/auto resume 1",
        "/auto on g1",
        "/schedule list",
        "/schedule off s1",
        "/notebook on",
        "/notebook off",
        "/allow 0a1b2c3d plan",
        "/deny 0a1b2c3d",
    ];
    for command in commands {
        assert!(parse(command).is_ok(), "{command}");
        assert!(parse(&format!("{command} xyzzy")).is_err(), "{command} xyzzy");
    }
    for wrong in ["/auto on g1 t2", "/auto on calls=1 calls=2", "/auto off +1", "/plan skip +1"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_mistyped_command_suggests_the_one_that_was_meant() {
    let meant = [
        ("/plna on", "/plan on"),
        ("/plna", "/plan status"),
        ("/pln aprove", "/plan approve"),
        ("/approve", "/plan approve"),
        ("/aprove 2", "/plan approve"),
        ("/settle x not", "/plan settle"),
        ("/plan stp", "/plan stop"),
        ("/stpo", "/stop"),
        ("/memroy x", "/memory"),
        ("/alow 0a1b2c3d", "/allow"),
        ("/seshions", "/sessions"),
    ];
    for (typed, command) in meant {
        let refusal = parse(typed).unwrap_err().to_string();
        assert!(refusal.contains(&format!("did you mean {command}?")), "{typed}: {refusal}");
    }
}
