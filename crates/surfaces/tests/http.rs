//! The API as a client meets it: what is granted, what is refused, and in which words.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{fs, path::PathBuf};

use planwright_domain::actor::Standing;
use planwright_surfaces::http::openapi;
use planwright_testkit::people::{owner_id, owners_key};
use planwright_testkit::{
    scripted_model::worker::worker,
    served::{PASSPHRASE, Served, body, response_to},
};
use reqwest::Method;
use serde_json::{Value, json};

async fn served() -> Served {
    Served::start(worker(300, 1)).await
}

const TALK: &str = "/api/sessions/cli:talk-0001";

/// Brings the session to a plan that waits; its digest.
async fn ready(served: &Served) -> String {
    response_to(served.request(Method::POST, &format!("{TALK}/plan")).json(&json!({}))).await;
    response_to(
        served.request(Method::POST, &format!("{TALK}/messages")).json(&json!({"text": "plan it"})),
    )
    .await;
    served.house.rests(&owners_key("cli:talk-0001").unwrap()).await;
    let (status, plan) = response_to(served.request(Method::GET, &format!("{TALK}/plan"))).await;
    assert_eq!((status, &plan["status"]), (200, &json!("Ready")));
    plan["digest"].as_str().unwrap().to_owned()
}

async fn decide(served: &Served, what: &str, digest: &str, sent: Value) -> (u16, Value) {
    response_to(
        served
            .decide(Method::POST, &format!("{TALK}/plan/{what}"))
            .header("if-match", format!("\"{digest}\""))
            .json(&sent),
    )
    .await
}

#[test]
fn the_committed_description_is_the_one_that_the_handlers_give() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let described = format!("{:#}\n", openapi());
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &described).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == described,
        "docs/openapi.json has drifted; run: BLESS=1 cargo nextest run -p planwright-surfaces description"
    );
}

#[tokio::test]
async fn a_plan_goes_from_request_to_done_over_http() {
    let served = served().await;
    let digest = ready(&served).await;
    let revision =
        served.decide(Method::GET, &format!("{TALK}/plan/revisions/current")).send().await.unwrap();
    assert_eq!(revision.headers()["etag"].to_str().unwrap(), format!("\"{digest}\""));
    let (_, revision) = body(revision).await;
    assert_eq!(
        (&revision["digest"], &revision["sessionId"]),
        (&json!(digest), &json!("cli:talk-0001"))
    );
    assert_eq!(
        decide(&served, "approve", &digest, json!({})).await.1["type"],
        "urn:planwright:not_shown"
    );
    assert_eq!(decide(&served, "shown", &digest, json!({})).await.0, 200);
    let again = served.decide(Method::GET, &format!("{TALK}/plan/revisions/current"));
    let again = response_to(again.header("if-none-match", format!("\"{digest}\""))).await;
    assert_eq!((again.0, &again.1["shown"]), (200, &json!(true)), "the tag names the text alone");
    assert_eq!(
        decide(&served, "approve", &digest, json!({"notes": ["mind the cat"]})).await.0,
        200
    );
    served.house.rests(&owners_key("cli:talk-0001").unwrap()).await;
    let (_, session) = response_to(served.request(Method::GET, TALK)).await;
    assert_eq!(
        (&session["active"], &session["plan"]["status"], &session["resting"]),
        (&json!(false), &json!("Done"), &json!(true))
    );
    let (_, plans) = response_to(served.request(Method::GET, &format!("{TALK}/plans"))).await;
    assert_eq!(plans[0]["status"], "Done");
}

#[tokio::test]
async fn a_stale_decision_is_412_and_a_second_one_409() {
    let served = served().await;
    let first = ready(&served).await;
    decide(&served, "shown", &first, json!({})).await;
    let (status, _) =
        decide(&served, "changes", &first, json!({"comments": [{"line": 1, "text": "shorter"}]}))
            .await;
    assert_eq!(status, 200);
    served.house.rests(&owners_key("cli:talk-0001").unwrap()).await;
    let (status, problem) = decide(&served, "approve", &first, json!({})).await;
    let current = problem["currentDigest"].as_str().unwrap().to_owned();
    assert_eq!((status, &problem["type"]), (412, &json!("urn:planwright:stale_decision")));
    assert_ne!(current, first);
    let (_, diff) =
        response_to(served.request(Method::GET, &format!("{TALK}/plan/diff?from=1&to=2"))).await;
    assert_eq!((&diff["from"], &diff["to"]), (&json!(1), &json!(2)));
    for one in ["from=1", "to=2"] {
        let path = format!("{TALK}/plan/diff?{one}");
        assert_eq!(
            response_to(served.request(Method::GET, &path)).await.0,
            400,
            "{one} alone is not ignored"
        );
    }
    decide(&served, "shown", &current, json!({})).await;
    assert_eq!(decide(&served, "approve", &current, json!({"hold": true})).await.0, 200);
    let (status, problem) = decide(&served, "approve", &current, json!({})).await;
    assert_eq!((status, &problem["type"]), (409, &json!("urn:planwright:already_decided")));
    assert_eq!(decide(&served, "reject", &current, json!({})).await.0, 409);
}

#[tokio::test]
async fn a_decision_names_what_was_read() {
    let served = served().await;
    let digest = ready(&served).await;
    let path = format!("{TALK}/plan/approve");
    assert_eq!(response_to(served.decide(Method::POST, &path).json(&json!({}))).await.0, 428);
    for wrong in ["*", "abc", &digest, "W/\"x\"", "\"\""] {
        assert_eq!(
            response_to(
                served.decide(Method::POST, &path).header("if-match", wrong).json(&json!({}))
            )
            .await
            .0,
            400,
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_token_that_may_only_speak_decides_nothing() {
    let served = served().await;
    let digest = ready(&served).await;
    for (what, sent) in [
        ("approve", json!({})),
        ("changes", json!({"comments": [{"text": "x"}]})),
        ("reject", json!({})),
        ("resume", json!({})),
    ] {
        let request = served
            .request(Method::POST, &format!("{TALK}/plan/{what}"))
            .header("if-match", format!("\"{digest}\""));
        let (status, problem) = response_to(request.json(&sent)).await;
        assert_eq!(
            (status, &problem["type"]),
            (403, &json!("urn:planwright:may_not_decide")),
            "{what}"
        );
    }
    let (status, _) = response_to(
        served
            .decide(Method::POST, &format!("{TALK}/plan/approve"))
            .header("if-match", format!("\"{digest}\""))
            .json(&json!({"approved": true})),
    )
    .await;
    assert_eq!(status, 422, "a field that we do not know is refused");
}

#[tokio::test]
async fn the_same_idempotency_key_has_one_effect_and_one_answer() {
    let served = served().await;
    let send = |key: &'static str, text: &'static str| {
        response_to(
            served
                .request(Method::POST, &format!("{TALK}/messages"))
                .header("idempotency-key", key)
                .json(&json!({"text": text})),
        )
    };
    let first = send("one", "hello").await;
    assert_eq!(first.0, 202);
    send("two", "more").await;
    assert_eq!(send("one", "hello").await, first);
    let (status, refused) = send("one", "something else").await;
    assert_eq!((status, refused["type"].as_str()), (422, Some("urn:planwright:key_used")));
    let (_, events) = response_to(served.request(Method::GET, &format!("{TALK}/events"))).await;
    let messages =
        events.as_array().unwrap().iter().filter(|event| event["type"] == "message_queued");
    assert_eq!(messages.count(), 2);
    let (status, refused) = response_to(
        served
            .request(Method::POST, &format!("{TALK}/plan/stop"))
            .header("idempotency-key", "three"),
    )
    .await;
    assert_eq!(status, 409);
    response_to(served.request(Method::POST, &format!("{TALK}/plan")).json(&json!({}))).await;
    assert_eq!(
        response_to(
            served
                .request(Method::POST, &format!("{TALK}/plan/stop"))
                .header("idempotency-key", "three")
        )
        .await,
        (409, refused)
    );
}

#[tokio::test]
async fn plan_mode_is_switched_by_session_as_the_second_seed_has_it() {
    let served = served().await;
    let of =
        |session: &str| served.request(Method::GET, &format!("/api/plans?sessionId={session}"));
    let (status, on) = response_to(
        served
            .request(Method::POST, "/api/plans/enable")
            .json(&json!({"sessionId": "conversation-1"})),
    )
    .await;
    assert_eq!(
        (status, &on["sessionId"], &on["enabled"]),
        (200, &json!("api:conversation-1"), &json!(true))
    );
    assert_eq!(response_to(of("conversation-1")).await.1["activePlanId"], on["activePlanId"]);
    assert_eq!(
        response_to(of("conversation-2")).await.1["enabled"],
        json!(false),
        "another session is untouched"
    );
    assert_eq!(
        response_to(of("web:conversation-1")).await.1["enabled"],
        json!(false),
        "another channel is another session"
    );
    let (_, off) = response_to(
        served
            .request(Method::POST, "/api/plans/disable")
            .json(&json!({"sessionId": "api:conversation-1"})),
    )
    .await;
    assert_eq!((&off["enabled"], &off["activePlanId"]), (&json!(false), &Value::Null));
    assert_eq!(response_to(served.request(Method::GET, "/api/plans")).await.0, 400);
}

#[tokio::test]
async fn nobody_is_served_anything_but_health() {
    let served = served().await;
    let guarded = [
        (Method::GET, "/api/sessions"),
        (Method::GET, "/metrics"),
        (Method::GET, "/api/openapi.json"),
        (Method::GET, "/api/tokens"),
        (Method::GET, "/api/ws?sessionId=talk-0001"),
        (Method::POST, "/api/sessions/cli:talk-0001/messages"),
        (Method::POST, "/api/sessions/cli:talk-0001/plan/approve"),
    ];
    for (method, path) in guarded {
        for token in ["", "undefined", "null", "Bearer", "speaks"] {
            let (status, problem) =
                response_to(served.bare(method.clone(), path).bearer_auth(token)).await;
            assert_eq!(
                (status, &problem["type"]),
                (401, &json!("urn:planwright:unknown_caller")),
                "{path} {token}"
            );
        }
        assert_eq!(response_to(served.bare(method, path)).await.0, 401);
    }
    assert_eq!(response_to(served.bare(Method::GET, "/health")).await.0, 200);
    assert_eq!(response_to(served.bare(Method::GET, "/ready")).await.0, 200);
}

#[tokio::test]
async fn foreign_hosts_origins_and_sites_are_refused_on_every_path() {
    let served = served().await;
    let mut paths: Vec<_> = openapi()["paths"]
        .as_object()
        .unwrap()
        .keys()
        .map(|path| path.replace("{id}", "talk-0001").replace("{number}", "1"))
        .collect();
    paths.push("/nowhere".into());
    for path in paths {
        let path = if path == "/api/ws" { "/api/ws?sessionId=talk-0001".into() } else { path };
        for (name, value) in [
            ("host", "evil.example"),
            ("host", "127.0.0.1"),
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let (status, problem) =
                response_to(served.request(Method::GET, &path).header(name, value)).await;
            assert_eq!(status, 403, "{path} {name}: {value}: {problem}");
        }
    }
    let own = served.url.clone();
    assert_eq!(
        response_to(served.request(Method::GET, "/api/sessions").header("origin", own)).await.0,
        200
    );
}

#[tokio::test]
async fn only_the_scripts_that_draw_diagrams_are_for_pages_that_belong_to_no_site() {
    let served = served().await;
    for (method, path, expected) in [
        // There is none of this name, and that is all there is to say to anybody.
        (Method::GET, "/assets/diagram-none.js", 404),
        (Method::POST, "/assets/diagram-none.js", 403),
        (Method::GET, "/assets/index-none.js", 403),
        (Method::GET, "/diagram.html", 403),
        (Method::GET, "/api/sessions", 403),
    ] {
        let asked = served.request(method.clone(), path);
        let asked = asked.header("origin", "null").header("sec-fetch-site", "cross-site");
        assert_eq!(response_to(asked).await.0, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn a_simple_cross_site_post_is_refused_before_its_body_is_read() {
    let served = served().await;
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
    {
        for path in [format!("{TALK}/messages"), "/api/login".into(), "/api/plans/enable".into()] {
            let (status, _) = response_to(
                served
                    .request(Method::POST, &path)
                    .header("content-type", kind)
                    .body("{\"text\":\"x\"}"),
            )
            .await;
            assert_eq!(status, 415, "{path} {kind}");
        }
    }
}

#[tokio::test]
async fn what_is_not_there_and_what_does_not_fit_is_said_as_a_problem() {
    let served = served().await;
    let messages = format!("{TALK}/messages");
    let post = |sent: &'static str| {
        served
            .request(Method::POST, &messages)
            .header("content-type", "application/json")
            .body(sent)
    };
    for (request, expected, kind) in [
        (served.request(Method::GET, "/api/nowhere"), 404, "no_such_path"),
        (served.request(Method::GET, "/assets/none.js"), 404, "no_such_path"),
        (served.request(Method::PUT, TALK), 405, "no_such_method"),
        (served.request(Method::GET, "/api/sessions/fax:talk-0001"), 404, "no_such_session"),
        (served.request(Method::GET, "/api/sessions/short"), 404, "no_such_session"),
        (served.request(Method::GET, &format!("{TALK}/plan/revisions/9")), 404, "no_such_revision"),
        (served.request(Method::GET, &format!("{TALK}/events?after=-1")), 400, "bad_query"),
        (served.request(Method::GET, &format!("{TALK}/events?before=1")), 400, "bad_query"),
        (post("{"), 400, "bad_body"),
        (post("{\"text\":1}"), 422, "bad_body"),
        (post("{\"text\":\"x\",\"approved\":true}"), 422, "bad_body"),
        (post("{\"text\":\" \"}"), 422, "empty_message"),
    ] {
        let response = request.send().await.unwrap();
        let media = response.headers()["content-type"].to_str().unwrap().to_owned();
        let (status, problem) = body(response).await;
        assert_eq!(
            (status, problem["type"].as_str().unwrap(), media.as_str()),
            (expected, format!("urn:planwright:{kind}").as_str(), "application/problem+json")
        );
        assert!(problem["detail"].as_str().is_some_and(|words| words.len() > 10));
    }
}

#[tokio::test]
async fn every_limit_holds_at_the_limit_one_above_and_far_above() {
    let served = served().await;
    let messages = format!("{TALK}/messages");
    let text = |bytes: usize| json!({"text": "x".repeat(bytes)}).to_string();
    let send = |sent: String| {
        response_to(
            served
                .request(Method::POST, &messages)
                .header("content-type", "application/json")
                .body(sent),
        )
    };
    let limit = 256 * 1024;
    assert_eq!(send(text(limit)).await.0, 202);
    assert_eq!(send(text(limit + 1)).await.0, 422);
    let overhead = text(0).len();
    assert_eq!(send(text(1024 * 1024 - overhead)).await.0, 422, "a body at the limit is read");
    assert_eq!(send(text(1024 * 1024 - overhead + 1)).await.0, 413);
    assert_eq!(send(text(64 * 1024 * 1024)).await.0, 413);
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(send(nested(32)).await.1["type"], "urn:planwright:bad_body");
    for depth in [33, 32_000] {
        assert_eq!(send(nested(depth)).await.1["type"], "urn:planwright:too_deep");
    }
    let key = |length: usize| {
        response_to(
            served
                .request(Method::POST, &messages)
                .header("idempotency-key", "k".repeat(length))
                .json(&json!({"text": "x"})),
        )
    };
    assert_eq!((key(200).await.0, key(201).await.0), (202, 400));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let held = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: u64 = held.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(kilobytes < 512 * 1024, "client and server together hold {kilobytes} kB");
}

#[tokio::test]
async fn a_caller_who_asks_too_often_is_told_to_wait() {
    let served = Served::with(worker(300, 1), |settings| planwright_surfaces::http::HttpSettings {
        requests_per_second: 5,
        ..settings
    })
    .await;
    let mut refused = 0;
    for _ in 0..20 {
        let response = served.request(Method::GET, "/api/sessions").send().await.unwrap();
        if response.status() == 429 {
            assert_eq!(response.headers()["retry-after"], "1");
            refused += 1;
        }
    }
    assert!(refused >= 10, "{refused}");
    assert_eq!(
        response_to(served.decide(Method::GET, "/api/sessions")).await.0,
        200,
        "another caller is not held up"
    );
}

#[tokio::test]
async fn a_login_gets_a_cookie_that_decides_and_can_be_ended() {
    let served = served().await;
    assert_eq!(
        response_to(
            served.bare(Method::POST, "/api/login").json(&json!({"passphrase": "wrong horse"}))
        )
        .await
        .0,
        401
    );
    let browser = served.log_in(json!({"passphrase": PASSPHRASE})).await;
    let (cookie, pair) = (&browser.cookie, &browser.pair);
    assert!(cookie.contains("; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200"), "{cookie}");
    let with = |method, path: &str| served.page(&browser, method, path);
    let (status, tokens) = response_to(with(Method::GET, "/api/tokens")).await;
    assert_eq!(status, 200);
    assert!(
        tokens
            .as_array()
            .unwrap()
            .iter()
            .any(|token| token["name"] == "browser" && token["decides"] == true)
    );
    assert!(
        !tokens.to_string().contains(pair.split('=').nth(1).unwrap()),
        "the secret is never told again"
    );
    assert_eq!(
        response_to(with(Method::GET, "/api/plans?sessionId=talk-0001")).await.1["sessionId"],
        "web:talk-0001"
    );
    assert_eq!(response_to(with(Method::POST, "/api/logout")).await.0, 204);
    assert_eq!(response_to(with(Method::GET, "/api/tokens")).await.0, 401);
}

#[tokio::test]
async fn a_page_can_approve_what_was_seen_block_by_block_and_claims_nothing_whole() {
    let served = served().await;
    let digest = ready(&served).await;
    let browser = served.log_in(json!({"passphrase": PASSPHRASE})).await;
    let page = |what: &str, digest: &str, sent: Value| {
        let request = served.page(&browser, Method::POST, &format!("{TALK}/plan/{what}"));
        response_to(request.header("if-match", format!("\"{digest}\"")).json(&sent))
    };
    let current = || {
        let path = format!("{TALK}/plan/revisions/current");
        response_to(served.page(&browser, Method::GET, &path))
    };
    let (status, problem) = page("shown", &digest, json!({})).await;
    assert_eq!((status, &problem["type"]), (409, &json!("urn:planwright:shown_in_blocks")));
    let (_, revision) = current().await;
    let lines = revision["markdown"].as_str().unwrap().lines().count();
    let blocks = revision["blocks"].as_array().unwrap().clone();
    let ids: Vec<_> = blocks.iter().map(|block| block["id"].as_str().unwrap()).collect();
    assert!(blocks.len() > 1 && blocks.iter().all(|block| block["seen"] == false), "{blocks:?}");
    assert_eq!((&blocks[0]["index"], &blocks[0]["firstLine"]), (&json!(0), &json!(1)));
    assert_eq!(
        (&blocks[blocks.len() - 1]["lastLine"], &revision["shown"]),
        (&json!(lines), &json!(false))
    );
    for (sent, words) in [
        (json!({"blocks": ["abc"]}), "is no id of a block"),
        (json!({"blocks": ["0".repeat(32)]}), "revision 1 has no block"),
        (json!({"blocks": vec![ids[0]; 1_025]}), "the limit is 1024"),
    ] {
        let (status, problem) = page("seen", &digest, sent).await;
        assert_eq!(status, 422, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    assert_eq!(page("seen", &"0".repeat(64), json!({"blocks": []})).await.0, 409);
    assert_eq!(page("seen", &digest, json!({"blocks": ids[1..]})).await.0, 200);
    let (status, problem) = page("approve", &digest, json!({})).await;
    assert_eq!((status, &problem["type"]), (409, &json!("urn:planwright:not_shown")));
    let (_, revision) = current().await;
    let seen: Vec<_> =
        revision["blocks"].as_array().unwrap().iter().map(|block| block["seen"] == true).collect();
    assert!(!seen[0] && seen[1..].iter().all(|seen| *seen), "{seen:?}");
    assert_eq!(page("seen", &digest, json!({"blocks": [ids[0]]})).await.0, 200);
    assert_eq!(current().await.1["shown"], true);
    assert_eq!(page("approve", &digest, json!({"hold": true})).await.0, 200);
}

#[tokio::test]
async fn logins_are_tried_only_so_often() {
    let served = served().await;
    let mut answers = Vec::new();
    for _ in 0..12 {
        answers.push(
            response_to(
                served
                    .bare(Method::POST, "/api/tokens")
                    .json(&json!({"name": "x", "passphrase": "wrong horse"})),
            )
            .await
            .0,
        );
    }
    assert_eq!((answers[0], answers[11]), (401, 429));
}

#[tokio::test]
async fn a_token_can_be_taken_back_by_its_bearer_or_by_who_may_decide() {
    let served = served().await;
    let (_, given) = response_to(
        served
            .bare(Method::POST, "/api/tokens")
            .json(&json!({"name": "laptop", "passphrase": PASSPHRASE})),
    )
    .await;
    let (id, token) = (given["id"].as_str().unwrap(), given["token"].as_str().unwrap());
    assert!(given["expires"].as_str().is_some(), "what may decide ends by itself");
    let path = format!("/api/tokens/{id}");
    assert_eq!(response_to(served.request(Method::DELETE, &path)).await.0, 403);
    assert_eq!(
        response_to(served.bare(Method::GET, "/api/tokens").bearer_auth(token)).await.0,
        200
    );
    assert_eq!(response_to(served.decide(Method::DELETE, &path)).await.0, 204);
    assert_eq!(
        response_to(served.bare(Method::GET, "/api/tokens").bearer_auth(token)).await.0,
        401
    );
    assert_eq!(response_to(served.decide(Method::DELETE, &path)).await.0, 404);
}

#[tokio::test]
async fn a_session_is_seen_and_moved_by_its_owner_alone() {
    let served = served().await;
    let say = |token: &str, session: &str| {
        let path = format!("/api/sessions/{session}/messages");
        served.bare(Method::POST, &path).bearer_auth(token).json(&json!({"text": "mine"}))
    };
    let bea = served.token_of("bea", planwright_domain::actor::Standing::Speaks).await;
    assert_eq!(response_to(say(&served.token, "api:talk-0001")).await.0, 202);
    let theirs = owners_key("api:talk-0001").unwrap();
    for (method, path, sent) in [
        (Method::GET, "", Value::Null),
        (Method::GET, "/events", Value::Null),
        (Method::GET, "/memory", Value::Null),
        (Method::GET, "/work", Value::Null),
        (Method::GET, "/plan", Value::Null),
        (Method::POST, "/messages", json!({"text": "mine too"})),
        (Method::POST, "/lines", json!({"line": "/plan on"})),
        (Method::POST, "/reset", Value::Null),
        (Method::DELETE, "", Value::Null),
        (Method::PATCH, "", json!({"title": "hers"})),
    ] {
        let request =
            served.bare(method.clone(), &format!("/api/sessions/{theirs}{path}")).bearer_auth(&bea);
        let request = if sent.is_null() { request } else { request.json(&sent) };
        let (status, problem) = response_to(request).await;
        assert_eq!(
            (status, &problem["type"]),
            (404, &json!("urn:planwright:no_such_session")),
            "{method} {path}: {problem}"
        );
    }
    let listed = async |token: &str| {
        response_to(served.bare(Method::GET, "/api/sessions").bearer_auth(token)).await.1
    };
    assert_eq!(listed(&bea).await, json!([]));
    assert_eq!(listed(&served.token).await[0]["sessionId"], "api:talk-0001");
    // The same key is another session, and hers.
    assert_eq!(response_to(say(&bea, "api:talk-0001")).await.0, 202);
    let her_events =
        served.bare(Method::GET, "/api/sessions/api:talk-0001/events").bearer_auth(&bea);
    let (_, hers) = response_to(her_events).await;
    assert_eq!(hers[0]["data"]["by"]["name"], "bea", "{hers}");
}

#[tokio::test]
async fn a_chat_is_moved_gone_and_repaired_and_the_reply_names_the_session() {
    let served = served().await;
    let pointer = "/api/pointers/desk";
    let bind = |key: &str| served.request(Method::PUT, pointer).json(&json!({"key": key}));
    let line = |line: &str| {
        served.request(Method::POST, "/api/chats/desk/lines").json(&json!({"line": line}))
    };
    assert_eq!(response_to(bind("talk-0001")).await.0, 204);
    let (status, reply) = response_to(line("just talk")).await;
    assert_eq!((status, &reply["sessionId"]), (200, &json!("api:talk-0001")), "{reply}");
    assert_eq!(response_to(bind("talk-0002")).await.0, 204);
    assert_eq!(response_to(line("just talk too")).await.1["sessionId"], "api:talk-0002");
    let (status, _) =
        response_to(served.request(Method::DELETE, "/api/sessions/api:talk-0002")).await;
    assert_eq!(status, 200);
    let (_, repaired) = response_to(line("still there?")).await;
    assert_eq!(repaired["sessionId"], "api:talk-0001", "the newest that is left");
    let (status, gone) = response_to(bind("talk-0002")).await;
    assert_eq!((status, &gone["type"]), (410, &json!("urn:planwright:session_deleted")));
    let (status, problem) = response_to(bind("?")).await;
    assert_eq!(
        (status, &problem["type"]),
        (404, &json!("urn:planwright:legacy_key_is_not_new")),
        "{problem}"
    );
    assert_eq!(response_to(served.request(Method::DELETE, pointer)).await.0, 204);
    let (_, pointed) = response_to(served.request(Method::GET, pointer)).await;
    assert_eq!(pointed["key"], "talk-0001");
    let (_, moved) = response_to(line("/new")).await;
    assert!(
        moved["reply"]["moved"]["session"].as_str().unwrap().starts_with("api:talk-"),
        "{moved}"
    );
}

#[tokio::test]
async fn every_command_that_looks_answers_in_words_where_it_was_typed() {
    let served = served().await;
    let line = |line: &str| {
        let path = "/api/sessions/api:talk-0001/lines/text";
        served.request(Method::POST, path).json(&json!({"line": line}))
    };
    let (status, said) = response_to(line("just talk")).await;
    assert_eq!((status, said), (200, json!({"text": "", "movedTo": null})));
    for (typed, words) in [
        ("/plan status", "no plan work; /plan on begins it"),
        ("/plan list", "no plans yet; begin with /plan on"),
        ("/plan show", "there is no such revision"),
        ("/plan diff", "there are no two such revisions to compare"),
        ("/plan comments", "no comments on this plan"),
        ("/auto status", "no goals, tasks, runs or schedules"),
        ("/goal", "no goals, tasks, runs or schedules"),
        ("/memory", "blocked: 0 foreign"),
        ("/notebook", "notebook: "),
        ("/sessions", "api:talk-0001  just talk"),
        ("/help", "/plan status"),
        ("/goal add tidy up", "✓ the goal is set"),
        ("/goal", "g1 tidy up"),
    ] {
        let (status, answer) = response_to(line(typed)).await;
        let text = answer["text"].as_str().unwrap_or_default();
        assert!(status == 200 && text.contains(words), "{typed}: {status} {answer}");
        assert_eq!(answer["movedTo"], Value::Null, "{typed}");
    }
    let (status, problem) = response_to(line("/plna status")).await;
    assert_eq!((status, &problem["type"]), (422, &json!("urn:planwright:unreadable")));
    let (status, problem) = response_to(line("/plan stop")).await;
    assert_eq!((status, &problem["type"]), (409, &json!("urn:planwright:work_inactive")));
    let (_, moved) = response_to(line("/new")).await;
    assert!(moved["movedTo"].as_str().is_some_and(|id| id.starts_with("api:talk-")), "{moved}");
    let (_, moved) = response_to(line("/switch api:talk-0001")).await;
    assert_eq!(moved["movedTo"], "api:talk-0001");
}

#[tokio::test]
async fn what_is_remembered_is_looked_at_promoted_by_its_text_and_forgotten() {
    let served = served().await;
    let path = |rest: &str| format!("/api/sessions/api:talk-0001{rest}");
    let line =
        |line: &str| served.request(Method::POST, &path("/lines")).json(&json!({"line": line}));
    assert_eq!(response_to(line("/memory save tea is drunk at four")).await.0, 200);
    assert_eq!(response_to(line("/task add water the plants")).await.0, 200);
    let (_, work) = response_to(served.request(Method::GET, &path("/work"))).await;
    assert_eq!(work["tasks"][0]["title"], "water the plants");
    let (_, memory) = response_to(served.request(Method::GET, &path("/memory?query=tea"))).await;
    let item = &memory["items"][0];
    assert_eq!(item["item"]["text"], "tea is drunk at four");
    assert_eq!((&item["why"]["matched"], &memory["blocked"]), (&json!(["tea"]), &json!(0)));
    let id = item["item"]["id"].as_str().unwrap();
    let promote = |text: &str| {
        let path = path(&format!("/memory/{id}/promote"));
        served.request(Method::POST, &path).json(&json!({"text": text}))
    };
    let (status, problem) = response_to(promote("coffee is drunk at four")).await;
    assert_eq!((status, &problem["type"]), (412, &json!("urn:planwright:other_text")));
    assert_eq!(response_to(promote("tea is drunk at four")).await.0, 200);
    let (_, other) =
        response_to(served.request(Method::GET, "/api/sessions/api:talk-0002/memory?query=tea"))
            .await;
    assert_eq!(other["items"][0]["item"]["text"], "tea is drunk at four", "known everywhere");
    let (status, _) =
        response_to(served.request(Method::DELETE, &path(&format!("/memory/{id}")))).await;
    assert_eq!(status, 200);
    let (_, memory) = response_to(served.request(Method::GET, &path("/memory"))).await;
    assert_eq!(memory["items"].as_array().unwrap().len(), 1, "what is known everywhere stays");
}

#[tokio::test]
async fn a_session_is_named_put_away_and_brought_back() {
    let served = served().await;
    let path = "/api/sessions/api:talk-0001";
    response_to(
        served
            .request(Method::POST, &format!("{path}/messages"))
            .json(&json!({"text": "just talk"})),
    )
    .await;
    let change = |sent: Value| served.request(Method::PATCH, path).json(&sent);
    assert_eq!(response_to(change(json!({"title": "Tea"}))).await.0, 200);
    assert_eq!(response_to(change(json!({"archived": true}))).await.0, 200);
    let (_, rows) = response_to(served.request(Method::GET, "/api/sessions")).await;
    assert_eq!((&rows[0]["title"], &rows[0]["archived"]), (&json!("Tea"), &json!(true)));
    assert_eq!(response_to(change(json!({"archived": false}))).await.0, 200);
    assert_eq!(response_to(change(json!({}))).await.0, 422);
    assert_eq!(response_to(change(json!({"title": " "}))).await.0, 422);
}

#[tokio::test]
async fn a_token_logs_in_for_what_it_may_and_the_passphrase_for_deciding() {
    let served = served().await;
    served.account_of("grace").await;
    let log_in = |sent: Value| served.bare(Method::POST, "/api/login").json(&sent);
    let mut seen = Vec::new();
    for sent in [
        json!({"token": served.token}),
        json!({"passphrase": PASSPHRASE}),
        json!({"passphrase": PASSPHRASE, "person": "grace"}),
    ] {
        let browser = served.log_in(sent).await;
        assert!(browser.cookie.contains("HttpOnly; SameSite=Strict"), "{}", browser.cookie);
        let me = response_to(served.page(&browser, Method::GET, "/api/me")).await.1;
        seen.push((me["person"].clone(), me["decides"].clone()));
    }
    let owner = json!("owner");
    let expected =
        [(owner.clone(), json!(false)), (owner, json!(true)), (json!("grace"), json!(true))];
    assert_eq!(seen, expected);
    for sent in [json!({}), json!({"token": served.token, "passphrase": PASSPHRASE})] {
        assert_eq!(response_to(log_in(sent)).await.0, 422);
    }
    assert_eq!(response_to(log_in(json!({"token": "not-one-that-was-given"}))).await.0, 401);
    let again = json!({"passphrase": "another passphrase", "token": served.token});
    let (status, problem) =
        response_to(served.bare(Method::POST, "/api/passphrase").json(&again)).await;
    assert_eq!(status, 409, "{problem}");
}

#[tokio::test]
async fn what_was_read_before_is_not_sent_again_and_every_answer_carries_the_policy() {
    let served = served().await;
    ready(&served).await;
    let first = served.request(Method::GET, "/api/sessions?limit=1").send().await.unwrap();
    let headers = first.headers().clone();
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'self'") && policy.contains("trusted-types"),
        "{policy}"
    );
    assert_eq!(headers["x-content-type-options"], "nosniff");
    let again = served.request(Method::GET, "/api/sessions?limit=1");
    let again = again.header("if-none-match", &headers["etag"]).send().await.unwrap();
    assert_eq!((again.status().as_u16(), again.text().await.unwrap()), (304, String::new()));
    assert!(headers.get("x-next-page").is_none(), "there is one");
    let (_, none) =
        response_to(served.request(Method::GET, "/api/sessions?limit=1&after=0-0")).await;
    assert_eq!(none, json!([]));
    for bad in ["limit=0", "after=", "after=1", "after=one-two", "offset=1"] {
        let path = format!("/api/sessions?{bad}");
        assert_eq!(response_to(served.request(Method::GET, &path)).await.0, 400, "{bad}");
    }
}

#[tokio::test]
async fn looking_back_shows_what_happened_who_decided_and_only_to_who_may_see_it() {
    let served = served().await;
    let digest = ready(&served).await;
    decide(&served, "shown", &digest, json!({})).await;
    decide(&served, "approve", &digest, json!({})).await;
    served.house.rests(&owners_key("cli:talk-0001").unwrap()).await;
    let (_, bars) = response_to(served.request(Method::GET, &format!("{TALK}/timeline"))).await;
    let bars = bars.as_array().unwrap();
    let of = |kind: &str| bars.iter().filter(|bar| bar["kind"] == kind).count();
    assert!(of("model") >= 4 && of("tool") == 1 && of("wait") == 1, "{bars:?}");
    assert!(bars.iter().all(|bar| bar["state"] != "open"), "{bars:?}");
    let plan = response_to(served.request(Method::GET, &format!("{TALK}/plans"))).await.1;
    let plan = plan[0]["planId"].as_str().unwrap().to_owned();
    let (_, part) =
        response_to(served.request(Method::GET, &format!("{TALK}/timeline?plan={plan}"))).await;
    assert!(part.as_array().unwrap().len() > 2);
    let none =
        response_to(served.request(Method::GET, &format!("{TALK}/timeline?run={plan}"))).await.1;
    assert_eq!(none, json!([]));
    let (_, decided) = response_to(served.request(Method::GET, "/api/decisions")).await;
    let kinds: Vec<_> = decided.as_array().unwrap().iter().map(|row| &row["kind"]).collect();
    assert_eq!(kinds, [&json!("plan_approved")]);
    let (_, later) =
        response_to(served.request(Method::GET, "/api/decisions?since=99999999999999")).await;
    assert_eq!(later, json!([]));
    let cost = response_to(served.request(Method::GET, TALK)).await.1["costMicros"].clone();
    assert_ne!(cost, json!(0));
    let used = response_to(served.request(Method::GET, "/api/usage")).await;
    assert_eq!((used.0, &used.1["money"]["used"]), (200, &cost));
    let stranger = served.token_of("mallory", Standing::Speaks).await;
    let as_stranger = |path: &str| served.bare(Method::GET, path).bearer_auth(&stranger);
    assert_eq!(response_to(as_stranger("/api/decisions")).await, (200, json!([])));
    let theirs = format!("/api/sessions/{}", owners_key("cli:talk-0001").unwrap());
    assert_eq!(response_to(as_stranger(&format!("{theirs}/timeline"))).await.0, 404);
}

/// Rows of sessions as lists find them: so many, of this owner, waiting, newer than everything else, and newer the more they are.
fn waiting_rows(served: &Served, owner: &str, many: usize) {
    served.house.sql(&format!(
        "INSERT INTO streams (owner, identity, version, updated_at, listed_at, waiting)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {many})
         SELECT {}, 'web:' || '{owner}-waits-' || n, 0, 4102444800000000 + {many} * 1000 + n, 4102444800000000 + {many} * 1000 + n, 'decision' FROM numbers",
        served.house.bytes(owner_id(owner).0.as_bytes())
    ));
}

#[tokio::test]
async fn what_waits_for_a_person_is_listed_though_hundreds_of_others_wait() {
    let served = served().await;
    ready(&served).await;
    waiting_rows(&served, "mallory", 600);
    let (_, own) = response_to(served.request(Method::GET, "/api/approvals")).await;
    let own: Vec<_> = own.as_array().unwrap().iter().map(|row| row["sessionId"].clone()).collect();
    assert_eq!(own, [json!("cli:talk-0001")], "those of others are not counted");
    let page = async |query: &str| {
        let path = format!("/api/approvals{query}");
        let answer = served.decide(Method::GET, &path).send().await.unwrap();
        let header =
            |name| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (total, next) = (header("x-total-count"), header("x-next-page"));
        let rows: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        (total.unwrap(), rows.as_array().unwrap().len(), next)
    };
    let (total, rows, next) = page("").await;
    assert_eq!((total.as_str(), rows), ("601", 500), "who decides sees all, and how many");
    let next = next.expect("another page");
    assert_eq!(page(&format!("?after={next}")).await, ("601".into(), 101, None));
    waiting_rows(&served, "mallory-again", 700);
    let (total, rows, _) = page(&format!("?after={next}")).await;
    assert_eq!((total.as_str(), rows), ("1000", 101), "a place stays, and no more are counted");
    assert_eq!(response_to(served.decide(Method::GET, "/api/approvals?limit=501")).await.0, 400);
}

#[tokio::test]
async fn a_day_is_counted_in_every_session_though_hundreds_moved_since() {
    let served = served().await;
    let digest = ready(&served).await;
    decide(&served, "shown", &digest, json!({})).await;
    decide(&served, "approve", &digest, json!({})).await;
    served.house.rests(&owners_key("cli:talk-0001").unwrap()).await;
    let used = async || response_to(served.request(Method::GET, "/api/usage")).await.1;
    let before = used().await;
    assert_ne!(before["money"]["used"], json!(0));
    let owner = planwright_domain::actor::OWNER;
    waiting_rows(&served, owner, 300);
    assert_eq!(used().await, before);
    let (_, decided) = response_to(served.request(Method::GET, "/api/decisions")).await;
    let kinds: Vec<_> = decided.as_array().unwrap().iter().map(|row| &row["kind"]).collect();
    assert_eq!(kinds, [&json!("plan_approved")]);
    let delete = served.decide(Method::POST, &format!("{TALK}/lines"));
    assert_eq!(response_to(delete.json(&json!({"line": "/delete yes"}))).await.0, 200);
    // What was decided in an erased session is gone with it; the audit log keeps its digests. What it cost stays counted.
    let key = owners_key("cli:talk-0001").unwrap();
    served.house.until(&key, |session| session.version.0 == 0).await;
    let (_, decided) = response_to(served.request(Method::GET, "/api/decisions")).await;
    assert_eq!(decided, json!([]));
    let after = used().await;
    assert_eq!((&after["money"], &after["tokens"]), (&before["money"], &before["tokens"]));
}

#[tokio::test]
async fn a_session_that_cannot_be_read_hides_no_other_and_says_why_where_it_is_opened() {
    let served = served().await;
    ready(&served).await;
    let owner = planwright_domain::actor::OWNER;
    waiting_rows(&served, owner, 1);
    // Its events are gone.
    served.house.sql("UPDATE streams SET version = 5 WHERE identity LIKE 'web:%'");
    let (status, rows) = response_to(served.request(Method::GET, "/api/sessions")).await;
    let rows = rows.as_array().cloned().unwrap_or_default();
    assert_eq!((status, rows.len()), (200, 2));
    assert_eq!((&rows[1]["plan"], &rows[1]["parked"]), (&json!("Ready"), &Value::Null));
    let path = format!("/api/sessions/web:{owner}-waits-1");
    let (status, problem) = response_to(served.request(Method::GET, &path)).await;
    let why = problem["detail"].as_str().unwrap_or_default();
    assert!(status >= 500 && why.contains("missing"), "{status} {problem}");
}

#[tokio::test]
async fn hints_bring_the_rows_that_change_to_those_who_may_see_them() {
    let served = served().await;
    let stranger = served.token_of("mallory", Standing::Speaks).await;
    let mut own = served.request(Method::GET, "/api/hints").send().await.unwrap();
    let foreign = served.bare(Method::GET, "/api/hints").bearer_auth(&stranger);
    let mut foreign = foreign.send().await.unwrap();
    let next = async |stream: &mut reqwest::Response| {
        String::from_utf8(stream.chunk().await.unwrap().unwrap().to_vec()).unwrap()
    };
    assert!(next(&mut own).await.contains("event: missed"));
    assert!(next(&mut foreign).await.contains("event: missed"));
    ready(&served).await;
    let hint = next(&mut own).await;
    assert!(hint.contains("event: changed") && hint.contains("cli:talk-0001"), "{hint}");
    assert!(!hint.contains("event: missed"), "{hint}");
    let heard = tokio::time::timeout(std::time::Duration::from_millis(400), next(&mut foreign));
    assert!(heard.await.is_err(), "a stranger heard of it");
}
