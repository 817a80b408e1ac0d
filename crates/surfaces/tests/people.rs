//! Who uses an installation: invited by link, known by a passphrase of their own, and gone when they are removed.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::time::Duration;

use futures_util::StreamExt as _;
use planwright_domain::{
    actor::{OWNER, PersonId, Standing},
    installation::Role,
    policy::Policy,
};
use planwright_surfaces::http::HttpSettings;
use planwright_testkit::{
    house::House,
    people::owners_key,
    scripted_model::worker::worker,
    served::{Browser, PASSPHRASE, Served, response_to},
    streams::{Wire, listen_at},
};
use reqwest::Method;
use serde_json::{Value, json};

const HERS: &str = "bea's own passphrase";

async fn served() -> Served {
    let often = |settings| HttpSettings { logins_per_minute: 1_000, ..settings };
    Served::with(worker(300, 1), often).await
}

/// Asks as the owner, who gave the passphrase.
async fn ask(served: &Served, method: Method, path: &str, body: Value) -> (u16, Value) {
    response_to(served.decide(method, path).json(&body)).await
}

/// Adds somebody; the secret of their link.
async fn invite(served: &Served, name: &str, roles: &[&str]) -> String {
    let new = json!({"name": name, "roles": roles});
    let (status, given) = ask(served, Method::POST, "/api/people", new).await;
    assert_eq!(status, 201, "{given}");
    secret_of(&given)
}

fn secret_of(given: &Value) -> String {
    given["link"].as_str().unwrap().split_once("/login#invitation=").unwrap().1.to_owned()
}

async fn accept(served: &Served, secret: &str, passphrase: &str) -> (u16, Value) {
    let choice = json!({"passphrase": passphrase, "invitation": secret});
    response_to(served.bare(Method::POST, "/api/passphrase").json(&choice)).await
}

async fn log_in(served: &Served, person: &str, passphrase: &str) -> u16 {
    let login = json!({"passphrase": passphrase, "person": person});
    response_to(served.bare(Method::POST, "/api/login").json(&login)).await.0
}

async fn me(served: &Served, browser: &Browser) -> (u16, Value) {
    response_to(served.page(browser, Method::GET, "/api/me")).await
}

#[tokio::test]
async fn a_person_is_who_knows_the_passphrase_of_the_account_and_nobody_else() {
    let served = served().await;
    assert_eq!(log_in(&served, "bea", PASSPHRASE).await, 401, "nobody of that name is there");
    let secret = invite(&served, "bea", &["decide"]).await;
    assert_eq!(log_in(&served, "bea", PASSPHRASE).await, 401, "she chose none yet");
    let (status, chosen) = accept(&served, &secret, HERS).await;
    assert_eq!((status, &chosen["person"]), (200, &json!("bea")));
    assert_eq!(log_in(&served, "bea", PASSPHRASE).await, 401, "the owner's is not hers");
    assert_eq!(log_in(&served, OWNER, HERS).await, 401, "hers is not the owner's");
    let bea = served.log_in(json!({"passphrase": HERS, "person": "bea"})).await;
    let (_, known) = me(&served, &bea).await;
    assert_eq!(
        (&known["person"], &known["decides"], &known["roles"]),
        (&json!("bea"), &json!(true), &json!(["speak", "decide"]))
    );
    let wish = json!({"name": "x", "passphrase": HERS, "person": OWNER});
    let (status, _) = response_to(served.bare(Method::POST, "/api/tokens").json(&wish)).await;
    assert_eq!(status, 401, "she is not the owner");
    // What she decides carries her name.
    let hers = deciding_token(&served, "bea").await;
    let id = "api:hers-0001";
    plan_waits(&served, &hers, id).await;
    let (status, told) = approve(&served, &hers, id).await;
    assert_eq!(status, 200, "{told}");
    let (_, decided) = response_to(served.decide(Method::GET, "/api/decisions")).await;
    assert_eq!(decided[0]["who"], "bea", "{decided}");
}

/// A token that decides, for bea's passphrase.
async fn deciding_token(served: &Served, person: &str) -> String {
    let wish = json!({"name": "x", "passphrase": HERS, "person": person});
    let (status, given) = response_to(served.bare(Method::POST, "/api/tokens").json(&wish)).await;
    assert_eq!(status, 201, "{given}");
    given["token"].as_str().unwrap().to_owned()
}

/// A plan of the bearer's waits for a decision.
async fn plan_waits(served: &Served, token: &str, id: &str) {
    for line in ["/plan on", "write two files"] {
        let say = served.bare(Method::POST, &format!("/api/sessions/{id}/lines"));
        let (status, told) = response_to(say.bearer_auth(token).json(&json!({"line": line}))).await;
        assert_eq!(status, 200, "{told}");
    }
    for _ in 0..400 {
        let look = served.bare(Method::GET, &format!("/api/sessions/{id}")).bearer_auth(token);
        if response_to(look).await.1["waiting"] == "decision" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("no plan waits in {id}");
}

/// Approves the first revision, which the bearer is shown before.
async fn approve(served: &Served, token: &str, id: &str) -> (u16, Value) {
    let by = |path: &str| {
        served.bare(Method::POST, &format!("/api/sessions/{id}{path}")).bearer_auth(token)
    };
    let revision = served.bare(Method::GET, &format!("/api/sessions/{id}/plan/revisions/1"));
    let (_, revision) = response_to(revision.bearer_auth(token)).await;
    let digest = format!("\"{}\"", revision["digest"].as_str().unwrap_or_default());
    let (status, told) = response_to(by("/plan/shown").header("if-match", &digest)).await;
    assert!(status < 300, "{status} {told} {revision}");
    response_to(by("/plan/approve").header("if-match", &digest).json(&json!({}))).await
}

#[tokio::test]
async fn a_decision_asks_for_the_passphrase_again_and_is_then_made() {
    let brief = Policy { age_micros_max: Some(2_000_000), ..Policy::default() };
    let house = House::local(worker(300, 1)).await.under(brief);
    let often = |settings| HttpSettings { logins_per_minute: 1_000, ..settings };
    let served = Served::of(house, often).await;
    let secret = invite(&served, "bea", &["decide"]).await;
    accept(&served, &secret, HERS).await;
    let hers = deciding_token(&served, "bea").await;
    let id = "api:hers-0001";
    plan_waits(&served, &hers, id).await;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let (status, told) = approve(&served, &hers, id).await;
    assert_eq!((status, &told["type"]), (403, &json!("urn:planwright:ask_again")), "{told}");
    let again = |token: &str, passphrase: &str| {
        served
            .bare(Method::POST, "/api/authenticate")
            .bearer_auth(token)
            .json(&json!({"passphrase": passphrase}))
    };
    let (status, told) = response_to(again(&hers, PASSPHRASE)).await;
    assert_eq!((status, &told["type"]), (401, &json!("urn:planwright:wrong_passphrase")));
    assert_eq!(approve(&served, &hers, id).await.0, 403, "nothing changed");
    let (status, told) = response_to(again(&hers, HERS)).await;
    assert_eq!(status, 204, "{told}");
    let (status, told) = approve(&served, &hers, id).await;
    assert_eq!(status, 200, "{told}");
    // A token that only speaks does not begin to decide by it.
    let (status, told) = response_to(again(&served.token, PASSPHRASE)).await;
    assert_eq!((status, &told["type"]), (403, &json!("urn:planwright:not_a_login")));
}

#[tokio::test]
async fn a_link_works_once_and_a_short_passphrase_does_not_use_it_up() {
    let served = served().await;
    let secret = invite(&served, "bea", &[]).await;
    let (status, told) = accept(&served, &secret, "short").await;
    assert_eq!(status, 409, "{told}");
    assert_eq!(accept(&served, &secret, HERS).await.0, 200);
    for (secret, passphrase) in [(&*secret, "another passphrase"), ("never given", HERS)] {
        let (status, told) = accept(&served, secret, passphrase).await;
        assert_eq!((status, &told["type"]), (403, &json!("urn:planwright:bad_link")));
    }
    assert_eq!(log_in(&served, "bea", HERS).await, 200);
    let (status, again) = ask(&served, Method::POST, "/api/people/bea/invitation", json!({})).await;
    assert_eq!(status, 201, "{again}");
    assert_eq!(log_in(&served, "bea", HERS).await, 200, "it stands until the link is used");
    assert_eq!(accept(&served, &secret_of(&again), "bea's other one").await.0, 200);
    assert_eq!(log_in(&served, "bea", HERS).await, 401);
    assert_eq!(log_in(&served, "bea", "bea's other one").await, 200);
}

#[tokio::test]
async fn who_may_not_decide_decides_nothing_with_their_passphrase() {
    let served = served().await;
    let secret = invite(&served, "bea", &[]).await;
    accept(&served, &secret, HERS).await;
    let wish = json!({"name": "x", "passphrase": HERS, "person": "bea"});
    let (status, given) = response_to(served.bare(Method::POST, "/api/tokens").json(&wish)).await;
    assert_eq!(status, 201);
    let token = given["token"].as_str().unwrap();
    let by = |method, path: &str| served.bare(method, path).bearer_auth(token);
    let (_, known) = response_to(by(Method::GET, "/api/me")).await;
    assert_eq!((&known["decides"], &known["roles"]), (&json!(false), &json!(["speak"])));
    let (status, told) = response_to(by(Method::GET, "/api/people")).await;
    let names: Vec<_> = told.as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!((status, names), (200, vec![&json!("bea")]), "only herself");
    for (method, path, body) in [
        (Method::POST, "/api/people", json!({"name": "mallory", "roles": ["admin"]})),
        (Method::PATCH, "/api/people/bea", json!({"roles": ["admin", "decide"]})),
        (Method::POST, "/api/people/owner/invitation", json!({})),
        (Method::DELETE, "/api/people/owner", json!({})),
    ] {
        let (status, told) = response_to(by(method, path).json(&body)).await;
        assert_eq!((status, &told["type"]), (403, &json!("urn:planwright:not_an_admin")), "{path}");
    }
    // The role reaches what she is logged in with, at once and in both directions.
    let (status, told) =
        ask(&served, Method::PATCH, "/api/people/bea", json!({"roles": ["decide"]})).await;
    assert_eq!(status, 204, "{told}");
    let decider = served.log_in(json!({"passphrase": HERS, "person": "bea"})).await;
    assert_eq!(me(&served, &decider).await.1["decides"], true);
    ask(&served, Method::PATCH, "/api/people/bea", json!({"roles": []})).await;
    assert_eq!(me(&served, &decider).await.1["decides"], false);
}

#[tokio::test]
async fn who_says_who_uses_it_gave_the_passphrase_lately() {
    let brief = Policy { risky_age_micros_max: Some(2_000_000), ..Policy::default() };
    let house = House::local(worker(300, 1)).await.under(brief);
    let served = Served::of(house, |settings| settings).await;
    let refused = |told: (u16, Value)| {
        assert_eq!(
            (told.0, &told.1["type"]),
            (403, &json!("urn:planwright:ask_again")),
            "{}",
            told.1
        );
    };
    let new = json!({"name": "bea"});
    // The token of the data directory is the owner's, and was given for no passphrase.
    refused(response_to(served.request(Method::POST, "/api/people").json(&new)).await);
    let page = served.log_in(json!({"token": served.token})).await;
    refused(response_to(served.page(&page, Method::POST, "/api/people").json(&new)).await);
    let page = served.log_in(json!({"passphrase": PASSPHRASE})).await;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    refused(response_to(served.page(&page, Method::POST, "/api/people").json(&new)).await);
    let page = served.log_in(json!({"passphrase": PASSPHRASE})).await;
    let (status, told) =
        response_to(served.page(&page, Method::POST, "/api/people").json(&new)).await;
    assert_eq!(status, 201, "{told}");
}

#[tokio::test]
async fn a_removed_person_is_cut_off_within_a_second_and_keeps_no_token() {
    let served = served().await;
    let secret = invite(&served, "bea", &["decide"]).await;
    accept(&served, &secret, HERS).await;
    let page = served.log_in(json!({"passphrase": HERS, "person": "bea"})).await;
    let wish = json!({"name": "x", "passphrase": HERS, "person": "bea", "speaks_only": true});
    let (_, given) = response_to(served.bare(Method::POST, "/api/tokens").json(&wish)).await;
    let token = given["token"].as_str().unwrap().to_owned();
    let mut stream =
        listen_at(&served.url, &token, Wire::WebSocket, "api:hers-0001", 0).await.unwrap();
    let (status, told) = ask(&served, Method::DELETE, "/api/people/bea", json!({})).await;
    assert_eq!(status, 204, "{told}");
    assert_eq!(me(&served, &page).await.0, 401);
    let by_token = served.bare(Method::GET, "/api/me").bearer_auth(&token);
    assert_eq!(response_to(by_token).await.0, 401);
    assert_eq!(log_in(&served, "bea", HERS).await, 401);
    let ended = tokio::time::timeout(Duration::from_secs(1), async {
        while stream.next().await.is_some() {}
    });
    ended.await.expect("the stream ends");
    // Somebody else of that name does not get what hers had.
    invite(&served, "bea", &[]).await;
    let by_token = served.bare(Method::GET, "/api/me").bearer_auth(&token);
    assert_eq!(response_to(by_token).await.0, 401);
}

#[tokio::test]
async fn who_may_not_decide_any_more_hears_no_longer_what_changes_in_everyones_lists() {
    let served = served().await;
    let secret = invite(&served, "bea", &["decide"]).await;
    accept(&served, &secret, HERS).await;
    let token = deciding_token(&served, "bea").await;
    let hints = || served.bare(Method::GET, "/api/hints").bearer_auth(&token);
    let mut heard = hints().send().await.unwrap();
    let named = async |line: &str| {
        let say = served.decide(Method::POST, "/api/sessions/api:owners-0001/lines");
        assert_eq!(response_to(say.json(&json!({"line": line}))).await.0, 200);
    };
    let hears = async |stream: &mut reqwest::Response| {
        let until = tokio::time::Instant::now() + Duration::from_secs(2);
        let mut all = String::new();
        while let Ok(Ok(Some(piece))) = tokio::time::timeout_at(until, stream.chunk()).await {
            all.push_str(&String::from_utf8_lossy(&piece));
            if all.contains("owners-0001") {
                return true;
            }
        }
        false
    };
    named("hello").await;
    assert!(hears(&mut heard).await, "she may decide: she sees what is everyone's");
    let (status, told) = ask(&served, Method::PATCH, "/api/people/bea", json!({"roles": []})).await;
    assert_eq!(status, 204, "{told}");
    let ended = tokio::time::timeout(Duration::from_secs(2), async {
        while let Ok(Some(_)) = heard.chunk().await {}
    });
    ended.await.expect("the stream ends");
    let mut heard = hints().send().await.unwrap();
    named("hello again").await;
    assert!(!hears(&mut heard).await, "what is the owner's is not hers to see");
}

#[tokio::test]
async fn a_changed_passphrase_ends_the_logins_and_leaves_the_tokens() {
    let served = served().await;
    let page = served.log_in(json!({"passphrase": PASSPHRASE})).await;
    let change = |old: &str, new: &str| {
        served.request(Method::PUT, "/api/passphrase").json(&json!({"old": old, "passphrase": new}))
    };
    let (status, told) = response_to(change("not the one", "a new passphrase")).await;
    assert_eq!((status, &told["type"]), (401, &json!("urn:planwright:wrong_passphrase")));
    let (status, told) = response_to(change(PASSPHRASE, "short")).await;
    assert_eq!(status, 409, "{told}");
    assert_eq!(me(&served, &page).await.0, 200, "nothing changed so far");
    assert_eq!(response_to(change(PASSPHRASE, "a new passphrase")).await.0, 204);
    assert_eq!(me(&served, &page).await.0, 401);
    assert_eq!(response_to(served.decide(Method::GET, "/api/me")).await.0, 401, "it was for one");
    assert_eq!(response_to(served.request(Method::GET, "/api/me")).await.0, 200, "a token stays");
    assert_eq!(log_in(&served, OWNER, PASSPHRASE).await, 401);
    let page = served.log_in(json!({"passphrase": "a new passphrase"})).await;
    assert_eq!(me(&served, &page).await.0, 200);
    let page = served.log_in(json!({"token": served.token})).await;
    assert_eq!(me(&served, &page).await.0, 200, "a token still logs in");
}

#[tokio::test]
async fn a_reset_ends_all_logins_withdraws_approvals_and_is_told_to_everyone() {
    let served = served().await;
    let bea = invite(&served, "bea", &["decide"]).await;
    accept(&served, &bea, HERS).await;
    let hers = served.log_in(json!({"passphrase": HERS, "person": "bea"})).await;
    let id = "api:talk-0001";
    let says = |line: &str| {
        served
            .decide(Method::POST, &format!("/api/sessions/{id}/lines"))
            .json(&json!({"line": line}))
    };
    for line in ["/plan on", "write two files"] {
        assert_eq!(response_to(says(line)).await.0, 200);
        served.house.rests(&owners_key(id).unwrap()).await;
    }
    let (_, session) =
        response_to(served.decide(Method::GET, &format!("/api/sessions/{id}"))).await;
    assert_eq!(session["waiting"], "decision", "{session}");
    let key = owners_key(id).unwrap();
    let kept = served.house.ports.journal.session(&key).await.unwrap();
    let digest = kept.plan().unwrap().current.as_ref().unwrap().digest;
    let shown = served.decide(Method::POST, &format!("/api/sessions/{id}/plan/shown"));
    let (status, told) = response_to(shown.header("if-match", format!("\"{digest}\""))).await;
    assert!(status < 300, "{status} {told}: {session}");
    let (status, reply) = response_to(says("/plan approve hold")).await;
    assert!(status == 200 && reply.to_string().contains("approved and held"), "{reply}");
    let owner = PersonId(OWNER.into());
    let reset = served.accounts().reset(&owner, "short", Duration::ZERO).await;
    assert!(reset.is_err(), "{reset:?}");
    let kept = served.house.ports.journal.session(&key).await.unwrap();
    let status = format!("{:?}", kept.plan().unwrap().status);
    assert!(status.starts_with("Approved"), "a reset that fails withdraws nothing: {status}");
    served.accounts().reset(&owner, "after the reset", Duration::ZERO).await.unwrap();
    assert_eq!(me(&served, &hers).await.0, 401, "everyone's login");
    assert_eq!(response_to(served.decide(Method::GET, "/api/me")).await.0, 401);
    let session = served.house.ports.journal.session(&key).await.unwrap();
    let status = format!("{:?}", session.plan().unwrap().status);
    assert!(status.contains("PassphraseReset"), "{status}");
    for page in [
        served.log_in(json!({"passphrase": "after the reset"})).await,
        served.log_in(json!({"passphrase": HERS, "person": "bea"})).await,
    ] {
        let notice = me(&served, &page).await.1["notice"].as_str().unwrap().to_owned();
        assert!(notice.contains("the passphrase of owner was reset"), "{notice}");
    }
}

#[tokio::test]
async fn names_that_hide_something_or_stand_for_a_path_are_handled_as_names() {
    let served = served().await;
    for name in ["ada\u{202E}", "a\u{200B}da", "ada\n", "", " ada", &"x".repeat(81)] {
        let (status, told) = ask(&served, Method::POST, "/api/people", json!({"name": name})).await;
        assert_eq!((status, &told["type"]), (422, &json!("urn:planwright:bad_person")), "{name:?}");
    }
    invite(&served, "a/b ü?", &[]).await;
    let path = "/api/people/a%2Fb%20%C3%BC%3F";
    let (status, told) = ask(&served, Method::PATCH, path, json!({"roles": ["decide"]})).await;
    assert_eq!(status, 204, "{told}");
    let account = PersonId("a/b ü?".into());
    let installation = served.accounts().installation().await.unwrap();
    assert!(installation.account(&account).unwrap().may(Role::Decide));
    assert_eq!(installation.account(&account).unwrap().standing(), Standing::Decides);
}
