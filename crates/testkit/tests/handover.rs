//! Decisions that count only once their head was handed over.

#![expect(clippy::expect_used, reason = "a broken expectation in a suite is a failed test")]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use planwright_domain::{actor::Standing, refusal::Refusal, time::Time};
use planwright_outbound::{
    journal_sqlite::SqliteJournal,
    signing_key::{SigningKey, has_signed},
};
use planwright_runtime::{
    audit::{
        check::{Checker, Finding},
        head::{SignedLine, Statement},
        log_file,
    },
    commands::reply::Reply,
    ports::audit::{Handover, HeadKeeper},
};
use planwright_testkit::{
    house::{House, session},
    people::person,
    scratch,
    scripted_model::{ScriptedReply, SeenRequest},
};
use serde_json::json;
use tokio::sync::Semaphore;

/// Takes lines or not, and not before it is let.
struct Keeper {
    takes: AtomicBool,
    lets: Semaphore,
    lines: Mutex<Vec<String>>,
}

#[async_trait]
impl HeadKeeper for Keeper {
    async fn hand_over(&self, line: &str) -> Result<(), String> {
        self.lets.acquire().await.expect("it is open").forget();
        if !self.takes.load(Ordering::SeqCst) {
            return Err("the disk is full".into());
        }
        self.lines.lock().expect("nobody panicked").push(line.to_owned());
        Ok(())
    }
}

impl Keeper {
    fn statements(&self) -> Vec<Statement> {
        let lines = self.lines.lock().expect("nobody panicked").clone();
        let read = |line: &String| SignedLine::read(line, has_signed).expect("signed").statement;
        lines.iter().map(read).collect()
    }
}

fn replies(seen: &SeenRequest) -> ScriptedReply {
    let plan = json!({"plan_markdown": "# Write it\n\n1. Write `made.txt`.\n"});
    let file = json!({"path": "made.txt", "content": "made by the plan\n"});
    let done = json!({"status": "done", "summary": "written"});
    match seen.earlier {
        0 => ScriptedReply::call("plan_set_content", &plan),
        1 => ScriptedReply::text("There is the plan."),
        2 => ScriptedReply::call("write_file", &file),
        3 => ScriptedReply::call("plan_report", &done),
        _ => ScriptedReply::text("All done."),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_waits_for_its_handover_and_without_it_nothing_is_executed() {
    let keys = scratch::directory("handover").unwrap();
    let keeper = Arc::new(Keeper {
        takes: AtomicBool::new(false),
        lets: Semaphore::new(1),
        lines: Mutex::default(),
    });
    let signer = Arc::new(SigningKey::open(keys.path()).unwrap());
    let house = House::local(Arc::new(replies)).await;
    let house = house.handing_over(Handover { signer, keeper: keeper.clone() });
    let talk = session("talk-0001");
    house.does(&talk, "/plan on").await;
    house.does(&talk, "write it").await;
    house.does(&talk, "/plan show").await;

    // Whoever keeps the heads refuses: so is the decision, in words, and nothing happened.
    let before = house.rests(&talk).await;
    let Reply::Refused(refusal) = house.says(&talk, "/plan approve").await else {
        panic!("it is refused");
    };
    assert_eq!(refusal, Refusal::NotHandedOver { why: "the disk is full".into() });
    let words = refusal.to_string();
    assert!(words.contains("the disk is full") && words.contains("again"), "{words}");
    assert_eq!((house.rests(&talk).await, house.file("made.txt").exists()), (before, false));

    // They take it after a while: the answer waits as long.
    keeper.takes.store(true, Ordering::SeqCst);
    let approving = house.says(&talk, "/plan approve");
    tokio::pin!(approving);
    let early = tokio::time::timeout(std::time::Duration::from_millis(200), &mut approving).await;
    assert!(early.is_err() && !house.file("made.txt").exists(), "{early:?}");
    keeper.lets.add_permits(1);
    assert!(matches!(approving.await, Reply::Accepted { .. }));
    let done = house.rests(&talk).await;
    assert_eq!(done.last_ended.as_ref().map(|ended| ended.ended.label()), Some("Done"));
    assert!(house.file("made.txt").exists());

    // What was handed over is what is there, and is missed if it is not.
    let statements = keeper.statements();
    let found = async |now: Time, statements: Vec<Statement>| {
        let mut checker = Checker::new(now, statements);
        let journal = SqliteJournal::open_read_only(&house.data().join("journal.sqlite")).unwrap();
        log_file::check(&journal, &mut checker).await.unwrap();
        checker.finish(true)
    };
    let [Statement::Decision { of, at }] = statements[..] else { panic!("{statements:?}") };
    assert_eq!(found(Time(0), statements.clone()).await, [].into());
    let mut other = of;
    other.seq.0 += 1_000;
    other.head = of.session;
    let missing = Finding::NotStored { session: of.session, seq: other.seq };
    assert_eq!(found(Time(0), vec![Statement::Decision { of: other, at }]).await, [missing].into());

    // Nobody takes decisions up here: after a minute that is told of each.
    let late = found(at.plus_micros(61_000_000), Vec::new()).await;
    let is_late = |finding: &Finding| matches!(finding, Finding::NotTakenUp { .. });
    assert!(!late.is_empty() && late.iter().all(is_late), "{late:?}");

    // Whoever may not decide hands nothing over.
    let reader = person("ada", "story", Standing::Speaks);
    let refused = house.hears(reader, &talk, "/plan approve").await;
    assert!(matches!(refused, Reply::Refused(_)), "{refused:?}");
    assert_eq!(keeper.statements().len(), 1);
}
