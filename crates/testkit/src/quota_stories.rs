//! What owners may use, told once and run on every deployment.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use planwright_domain::{
    actor::{Person, Standing},
    identity::SessionKey,
    next::{Waiting, waiting},
    quota::{Limit, Quota},
    refusal::Refusal,
    session::{Session, life::Life},
};
use planwright_runtime::{
    commands::reply::Reply,
    settings::{Limits, Retention, Settings},
};

use crate::{
    house::{House, ada, session},
    people::{introduce, person},
    scripted_model::{Conduct, ScriptedReply, SeenRequest},
};

/// Makes one test of each story, for houses that this function builds from a model's conduct.
#[macro_export]
macro_rules! quota_stories {
    ($build:expr) => {
        $crate::quota_stories!(@each $build;
            a_day_that_is_used_up_pauses_and_asks_and_goes_on_when_it_is_raised
            turns_beyond_the_limit_wait_and_keep_nobody_else_waiting
            who_has_stored_what_they_may_is_told_so_until_something_is_deleted
            what_is_older_than_sessions_are_kept_is_erased_unless_it_waits
        );
    };
    (@each $build:expr; $($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $crate::quota_stories::$name($build).await;
        }
    )*};
}

/// How often it is looked at how many turns are under way.
const LOOK: Duration = Duration::from_millis(20);

fn limited(quota: Quota) -> Settings {
    let limits = Limits { everyone: quota, ..Limits::default() };
    Settings { limits: Arc::new(limits), ..Settings::default() }
}

fn answers() -> Conduct {
    Arc::new(|seen: &SeenRequest| {
        let thinks = if seen.last_message == "slowly" { 400 } else { 0 };
        ScriptedReply { thinks: Duration::from_millis(thinks), ..ScriptedReply::text("there") }
    })
}

async fn of_bea(house: &House) -> (Person, SessionKey) {
    introduce(&*house.ports.journal, &["bea"]).await.expect("bea is known");
    let bea = person("bea", "story", Standing::Speaks);
    let key = SessionKey::named("cli:zulu-0001", bea.owner).expect("a key");
    (bea, key)
}

fn has_answered(session: &Session) -> bool {
    session.turn.is_none() && session.queue.is_empty()
}

/// At 80 % a person is told, at 100 % the turn waits: through a restart, and until someone who may decide raises it. Others go
/// on. What was used is counted once, also when its session is erased.
///
/// Invariant: `usage-counted-once`.
pub async fn a_day_that_is_used_up_pauses_and_asks_and_goes_on_when_it_is_raised(
    build: impl AsyncFn(Conduct) -> House,
) {
    let quota = Quota { tokens: Some(125), ..Quota::default() };
    let mut house = build(answers()).await.with_settings(limited(quota)).await;
    let (talk, other) = (session("talk-0001"), session("talk-0002"));
    house.does(&other, "hello").await;
    house.does(&talk, "hello").await;
    let warned = house.kinds(&talk).await.iter().filter(|kind| **kind == "limit_warned").count();
    assert_eq!(warned, 1, "a hundred of 125 are most of them");
    let paused = house.does(&talk, "and now?").await;
    assert_eq!(waiting(&paused), Some(Waiting::Limit));
    house.dies_and_starts_again().await;
    let view = house.runtime.queries.status(&talk).await.expect("a view");
    let reached = view.limit.expect("it says which limit");
    assert_eq!((reached.limit, reached.owner.0.as_str(), reached.max), (Limit::Tokens, "ada", 125));
    let words = reached.in_words();
    assert!(words.starts_with("ada may use 125 tokens a day, and 2") && words.contains("until 20"));
    let (bea, hers) = of_bea(&house).await;
    house.hears(bea.clone(), &hers, "hello").await;
    house.until(&hers, has_answered).await;
    let speaks = Person { standing: Standing::Speaks, ..ada() };
    let refused = house.hears(speaks, &talk, "/limits raise").await;
    assert!(matches!(&refused, Reply::Refused(Refusal::Plan(_))), "{refused:?}");
    let raised = house.says(&talk, "/limits raise").await;
    assert!(matches!(&raised, Reply::Accepted { .. }), "{raised:?}");
    house.until(&talk, has_answered).await;
    let raised = house.runtime.queries.quotas().now(ada().owner).await.expect("a sum").1;
    assert_eq!(raised.quota.tokens, Some(reached.used + 125), "as much again, for today");
    let used = async |house: &House| {
        let (_, stands) = house.runtime.queries.quotas().now(ada().owner).await.expect("a sum");
        stands.used.tokens
    };
    let before = used(&house).await;
    assert_eq!(house.runtime.housekeeping.count().await.expect("it counts"), 3, "and of bea's");
    assert_eq!(house.runtime.housekeeping.count().await.expect("it counts"), 0);
    assert_eq!(used(&house).await, before, "counted once");
    house.says(&other, "/delete yes").await;
    house.until(&other, |session| session.version.0 == 0).await;
    house.dies_and_starts_again().await;
    assert_eq!(used(&house).await, before, "what an erased session used stays counted");
}

/// However many turns are asked for at once, no more than the limit are under way; the rest begin by themselves. Another owner
/// is answered meanwhile.
pub async fn turns_beyond_the_limit_wait_and_keep_nobody_else_waiting(
    build: impl AsyncFn(Conduct) -> House,
) {
    let quota = Quota { turns: Some(2), ..Quota::default() };
    let house = build(answers()).await.with_settings(limited(quota)).await;
    let (bea, hers) = of_bea(&house).await;
    let talks: Vec<_> = (0..8).map(|number| session(&format!("alpha-{number:04}"))).collect();
    for talk in &talks {
        house.says(talk, "slowly").await;
    }
    let begun = Instant::now();
    house.hears(bea, &hers, "quickly").await;
    house.until(&hers, has_answered).await;
    let (mut most, mut held) = (0, 0);
    loop {
        most = most.max(house.model.thinking());
        let mut waits = 0;
        for talk in &talks {
            let session = house.runtime.queries.session(talk).await.expect("a session");
            if !has_answered(&session) {
                waits += 1;
                let view = house.runtime.queries.status(talk).await.expect("a view");
                held += usize::from(view.limit.is_some_and(|of| of.limit == Limit::Turns));
            }
        }
        if waits == 0 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{waits} never begin");
        tokio::time::sleep(LOOK).await;
    }
    assert!(most <= 2, "{most} turns were under way");
    assert!(most == 2 && held > 0, "nothing had to wait: {most}, {held}");
}

/// Who has stored what they may is refused more, in words, and goes on after a deletion.
pub async fn who_has_stored_what_they_may_is_told_so_until_something_is_deleted(
    build: impl AsyncFn(Conduct) -> House,
) {
    let quota = Quota { bytes: Some(2_000), ..Quota::default() };
    let mut house = build(answers()).await.with_settings(limited(quota)).await;
    let (talk, other) = (session("talk-0001"), session("talk-0002"));
    house.does(&talk, &crate::prose::prose(8_000, 7)).await;
    // What was counted of an owner is used again for a while.
    house.dies_and_starts_again().await;
    let refused = house.says(&other, "hello").await;
    let Reply::Refused(Refusal::LimitReached(reached)) = refused else { panic!("{refused:?}") };
    assert_eq!((reached.limit, reached.until), (Limit::Bytes, None));
    assert!(reached.in_words().ends_with("until something is deleted"), "{}", reached.in_words());
    house.says(&talk, "/delete yes").await;
    house.until(&talk, |session| session.version.0 == 0).await;
    house.dies_and_starts_again().await;
    house.does(&other, "hello").await;
}

/// What nobody used for so long is deleted and erased; what waits for a person, what is new and what has a schedule stays.
pub async fn what_is_older_than_sessions_are_kept_is_erased_unless_it_waits(
    build: impl AsyncFn(Conduct) -> House,
) {
    let retention = Retention { archived_days: Some(7), idle_days: Some(30) };
    let settings = Settings { retention, ..Settings::default() };
    let house = build(answers()).await.with_settings(settings).await;
    let [old, archived, scheduled, new] =
        ["old-00001", "archived-1", "scheduled-1", "new-00001"].map(session);
    for talk in [&old, &archived, &scheduled, &new] {
        house.does(talk, "hello").await;
    }
    house.does(&archived, "/archive").await;
    house.does(&scheduled, "/schedule add every 2h look around").await;
    let aged = |key: &SessionKey, days: i64| {
        let age = days * 86_400_000_000;
        house.sql(&format!(
            "UPDATE streams SET updated_at = updated_at - {age} WHERE identity = '{}'",
            key.identity
        ));
    };
    for (key, days) in [(&old, 31), (&archived, 8), (&scheduled, 31), (&new, 8)] {
        aged(key, days);
    }
    assert_eq!(house.runtime.housekeeping.delete_old().await.expect("it looks"), 2);
    for gone in [&old, &archived] {
        house.until(gone, |session| session.version.0 == 0 && session.life == Life::Deleted).await;
    }
    for stays in [&scheduled, &new] {
        let session = house.runtime.queries.session(stays).await.expect("a session");
        assert_eq!(session.life, Life::Open);
    }
}
