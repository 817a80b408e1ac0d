//! What someone gets who runs beside the server, on another port of the same host, or with half of what a person has.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{collections::BTreeSet, time::Duration};

use futures_util::StreamExt as _;
use planwright_domain::{actor::Standing, policy::Policy};
use planwright_surfaces::http::{HttpSettings, openapi};
use planwright_testkit::{
    house::House,
    people::owners_key,
    scripted_model::worker::worker,
    served::{Browser, PASSPHRASE, Served, response_to},
    streams::{Wire, listen_at},
};
use reqwest::Method;
use serde_json::json;

async fn served() -> Served {
    Served::start(worker(300, 1)).await
}

/// Every operation of the description, with parameters that fit.
fn operations() -> Vec<(Method, String)> {
    let described = openapi();
    let mut all = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        let path = path.replace("{id}", "web:talk-0001").replace("{number}", "1");
        let path = path.replace("{name}", "owner");
        let path = if path == "/api/ws" { "/api/ws?sessionId=web:talk-0001".into() } else { path };
        for method in methods.as_object().unwrap().keys() {
            if let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) {
                all.push((method, path.clone()));
            }
        }
    }
    all
}

/// What needs no caller: whether the server is there, and how one becomes known.
const OPEN: [&str; 6] =
    ["/health", "/ready", "/api/proof", "/api/login", "/api/passphrase", "/api/tokens"];

fn is_open(method: &Method, path: &str) -> bool {
    let has_more = ["/api/tokens", "/api/passphrase"].contains(&path);
    OPEN.contains(&path) && (!has_more || method == Method::POST)
}

#[tokio::test]
async fn the_cookie_that_every_port_of_the_host_is_sent_opens_nothing() {
    let served = served().await;
    let browser = served.log_in(json!({"passphrase": PASSPHRASE})).await;
    let other = served.log_in(json!({"passphrase": PASSPHRASE})).await;
    let stolen = browser.pair.split_once('=').unwrap().1;
    let mut kinds = BTreeSet::new();
    let mut tried = 0;
    for (method, path) in operations().into_iter().filter(|(method, path)| !is_open(method, path)) {
        let with_cookie = || served.bare(method.clone(), &path).header("cookie", &browser.pair);
        for request in [
            with_cookie(),
            with_cookie().header("planwright-page-key", &other.page_key),
            with_cookie().header("planwright-page-key", stolen),
            with_cookie().header("planwright-page-key", ""),
            served.bare(method.clone(), &path).bearer_auth(stolen),
            served.bare(method.clone(), &path).bearer_auth(&browser.page_key),
        ] {
            let (status, problem) = response_to(request.json(&json!({}))).await;
            assert_eq!(status, 401, "{method} {path}: {problem}");
            kinds.insert(problem["type"].as_str().unwrap().to_owned());
            tried += 1;
        }
    }
    assert!(tried > 300, "{tried}");
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["urn:planwright:no_page_key", "urn:planwright:unknown_caller"]
    );
    // Nor does it log in: it is no token.
    let login = served.bare(Method::POST, "/api/login").json(&json!({"token": stolen}));
    assert_eq!(response_to(login).await.0, 401);
    let chosen = json!({"token": stolen, "passphrase": "another passphrase"});
    let choose = served.bare(Method::POST, "/api/passphrase").json(&chosen);
    assert_eq!(response_to(choose).await.0, 401);
    // A cookie that another port set beside it keeps nobody out.
    let tossed = format!("planwright=x; {}", browser.pair);
    let request = served.bare(Method::GET, "/api/me").header("cookie", tossed);
    let request = request.header("planwright-page-key", &browser.page_key);
    assert_eq!(response_to(request).await.0, 200);
    // With both of them it is the person.
    assert_eq!(response_to(served.page(&browser, Method::GET, "/api/me")).await.1["decides"], true);
    assert_eq!(
        response_to(served.bare(Method::GET, "/").header("cookie", &browser.pair)).await.0,
        200
    );
}

#[tokio::test]
async fn a_login_that_was_made_with_a_token_ends_with_it() {
    let served = served().await;
    let token = served.token_of("bob", Standing::Speaks).await;
    let browser = served.log_in(json!({"token": token})).await;
    let me = async || response_to(served.page(&browser, Method::GET, "/api/me")).await.0;
    assert_eq!(me().await, 200);
    served.take_back(&token).await;
    assert_eq!(me().await, 401);
}

#[tokio::test]
async fn a_token_is_no_cookie() {
    let served = served().await;
    for token in [&served.token, &served.decider] {
        let request =
            served.bare(Method::GET, "/api/me").header("cookie", format!("planwright={token}"));
        assert_eq!(response_to(request.header("planwright-page-key", token)).await.0, 401);
    }
}

#[tokio::test]
async fn a_ticket_opens_one_stream_of_its_own_login_once() {
    let served = served().await;
    let browser = served.log_in(json!({"passphrase": PASSPHRASE})).await;
    let other = served.log_in(json!({"passphrase": PASSPHRASE})).await;
    let ticket = async || {
        let (status, told) = response_to(served.page(&browser, Method::POST, "/api/tickets")).await;
        assert_eq!(status, 201);
        told["ticket"].as_str().unwrap().to_owned()
    };
    let hints = async |pair: &str, path: &str, ticket: &str| {
        let request = served.bare(Method::GET, &format!("{path}?ticket={ticket}"));
        request.header("cookie", pair).send().await.unwrap().status().as_u16()
    };
    let first = ticket().await;
    assert_eq!(hints(&browser.pair, "/api/hints", &first).await, 200);
    assert_eq!(hints(&browser.pair, "/api/hints", &first).await, 401, "it was used");
    assert_eq!(hints(&other.pair, "/api/hints", &ticket().await).await, 401, "of another login");
    assert_eq!(
        hints(&browser.pair, "/api/me", &ticket().await).await,
        401,
        "it opens streams alone"
    );
    assert_eq!(hints("planwright=x", "/api/hints", &ticket().await).await, 401, "no cookie");
}

#[tokio::test]
async fn a_stream_ends_within_a_second_when_its_grant_does() {
    let served = served().await;
    for wire in [Wire::WebSocket, Wire::ServerSent] {
        let (_, given) = response_to(
            served
                .bare(Method::POST, "/api/tokens")
                .json(&json!({"name": "laptop", "passphrase": PASSPHRASE})),
        )
        .await;
        let (id, token) = (given["id"].as_str().unwrap(), given["token"].as_str().unwrap());
        let mut stream = listen_at(&served.url, token, wire, "talk-0001", 0).await.unwrap();
        let open = tokio::time::timeout(Duration::from_millis(1_200), stream.next()).await;
        assert!(open.is_err(), "{wire:?} stays open while it may");
        let path = format!("/api/tokens/{id}");
        assert_eq!(response_to(served.decide(Method::DELETE, &path)).await.0, 204);
        let end = tokio::time::timeout(Duration::from_secs(1), stream.next()).await;
        assert_eq!(end.map(|frame| frame.is_none()), Ok(true), "{wire:?}");
    }
}

#[tokio::test]
async fn a_caller_cannot_say_from_which_kind_of_surface_they_decide() {
    let policy = Policy { surfaces: ["web".to_owned()].into(), ..Policy::default() };
    let served =
        Served::of(House::local(worker(300, 1)).await.under(policy), |settings| settings).await;
    let talk = "/api/sessions/cli:talk-0001";
    response_to(served.request(Method::POST, &format!("{talk}/plan")).json(&json!({}))).await;
    let say = served.request(Method::POST, &format!("{talk}/messages"));
    response_to(say.json(&json!({"text": "plan it"}))).await;
    served.house.rests(&owners_key("cli:talk-0001").unwrap()).await;
    let plan = response_to(served.request(Method::GET, &format!("{talk}/plan"))).await.1;
    let digest = format!("\"{}\"", plan["digest"].as_str().unwrap());
    for label in ["web forged", "web", "  web x", "api\tweb"] {
        let request = served.decide(Method::POST, &format!("{talk}/plan/approve"));
        let request = request.header("if-match", &digest).header("planwright-surface", label);
        let (status, problem) = response_to(request.json(&json!({}))).await;
        assert_eq!(
            (status, problem["type"].as_str().unwrap()),
            (403, "urn:planwright:not_an_approver"),
            "{label}: {problem}"
        );
    }
    let me = served.decide(Method::GET, "/api/me").header("planwright-surface", "web forged");
    assert_eq!(response_to(me).await.1["surface"], "api web forged");
}

#[tokio::test]
async fn a_link_of_another_site_leads_to_the_page_and_to_nothing_else() {
    let served = served().await;
    let follow = |method, path: &str, site: &str, mode: &str, destination: &str| {
        let request = served.bare(method, path).header("sec-fetch-site", site);
        let request = request.header("sec-fetch-mode", mode).header("sec-fetch-dest", destination);
        async { request.send().await.unwrap().status().as_u16() }
    };
    for site in ["cross-site", "same-site"] {
        for path in ["/", "/s/web:talk-0001/plan", "/approvals"] {
            assert_eq!(
                follow(Method::GET, path, site, "navigate", "document").await,
                200,
                "{path}"
            );
        }
        for (method, path, mode, destination) in [
            (Method::GET, "/s/web:talk-0001/plan", "navigate", "iframe"),
            (Method::GET, "/s/web:talk-0001/plan", "no-cors", "image"),
            (Method::POST, "/s/web:talk-0001/plan", "navigate", "document"),
            (Method::GET, "/api/me", "navigate", "document"),
            (Method::GET, "/api", "navigate", "document"),
            (Method::GET, "/metrics", "navigate", "document"),
            (Method::GET, "/v1/models", "navigate", "document"),
            (Method::GET, "/mcp/live", "navigate", "document"),
        ] {
            assert_eq!(follow(method, path, site, mode, destination).await, 403, "{path} {mode}");
        }
    }
}

#[tokio::test]
async fn pages_have_one_address_and_programs_may_use_any() {
    let served = served().await;
    let client =
        reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let port = served.url.rsplit(':').next().unwrap();
    let answer =
        client.get(format!("{}/s/web:talk-0001/plan?a=b", served.url)).send().await.unwrap();
    assert_eq!(answer.status(), 307);
    let there = format!("http://localhost:{port}/s/web:talk-0001/plan?a=b");
    assert_eq!(answer.headers()["location"], there.as_str());
    let host = format!("localhost:{port}");
    let page = client.get(&served.url).header("host", host).send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert_eq!(response_to(served.request(Method::GET, "/api/me")).await.0, 200);
}

#[tokio::test]
async fn a_speaker_sees_their_own_tokens_and_a_decider_everyones() {
    let served = served().await;
    let bob = served.token_of("bob", Standing::Speaks).await;
    let people = async |token: &str| -> BTreeSet<String> {
        let (status, rows) =
            response_to(served.bare(Method::GET, "/api/tokens").bearer_auth(token)).await;
        assert_eq!(status, 200);
        rows.as_array().unwrap().iter().map(|row| row["person"].as_str().unwrap().into()).collect()
    };
    assert_eq!(people(&bob).await, ["bob".to_owned()].into());
    assert_eq!(people(&served.decider).await, ["bob".to_owned(), "owner".to_owned()].into());
}

#[tokio::test]
async fn whoever_takes_every_place_keeps_nobody_from_logging_in() {
    let served = served().await;
    let mut answers = BTreeSet::new();
    for number in 0..130 {
        let root = format!("/project-{number}");
        let request = served.request(Method::POST, "/api/agents").json(&json!({"root": root}));
        answers.insert(response_to(request).await.0);
    }
    assert_eq!(answers, [201, 409].into());
    let browser = served.log_in(json!({"passphrase": PASSPHRASE})).await;
    assert_eq!(response_to(served.page(&browser, Method::GET, "/api/me")).await.1["decides"], true);
}

#[tokio::test]
async fn a_hundred_logins_end_the_oldest_and_not_the_newest() {
    let served = Served::with(worker(300, 1), |settings| HttpSettings {
        logins_per_minute: 1_000,
        ..settings
    })
    .await;
    // A login with a token is quick: no passphrase is hashed.
    let first = served.log_in(json!({"token": served.token})).await;
    let me =
        async |browser: &Browser| response_to(served.page(browser, Method::GET, "/api/me")).await.0;
    assert_eq!(me(&first).await, 200);
    let mut last = served.log_in(json!({"token": served.token})).await;
    for _ in 0..99 {
        last = served.log_in(json!({"token": served.token})).await;
    }
    assert_eq!((me(&first).await, me(&last).await), (401, 200));
}

#[tokio::test]
async fn the_name_of_a_person_has_no_marks_that_nobody_sees() {
    let served = served().await;
    for person in ["ada\u{202E}", "a\u{200B}da", "ada\n", "\u{1b}[2J", ""] {
        let login = json!({"passphrase": PASSPHRASE, "person": person});
        let (status, problem) =
            response_to(served.bare(Method::POST, "/api/login").json(&login)).await;
        assert_eq!((status, problem["type"].as_str().unwrap()), (422, "urn:planwright:bad_person"));
    }
}

#[tokio::test]
async fn mcp_takes_no_deeper_body_than_the_api() {
    let served = served().await;
    let taken = served.request(Method::POST, "/api/agents").json(&json!({"root": "/project"}));
    let token = response_to(taken).await.1["token"].as_str().unwrap().to_owned();
    let ask = async |depth: usize| {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"x":{deep}}}}}"#);
        let request = served.bare(Method::POST, "/mcp").bearer_auth(&token);
        let request = request.header("accept", "application/json, text/event-stream");
        response_to(request.header("content-type", "application/json").body(body)).await
    };
    assert_eq!(ask(30).await.0, 200);
    let (status, problem) = ask(31).await;
    assert_eq!((status, problem["type"].as_str().unwrap()), (422, "urn:planwright:too_deep"));
}
