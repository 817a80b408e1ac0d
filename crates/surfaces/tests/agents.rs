//! Foreign agents at the door: a place for each, what its token opens, and what it never does.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::time::Duration;

use planwright_testkit::{
    scripted_model::worker::worker,
    served::{PASSPHRASE, Served, response_to},
};
use reqwest::Method;
use serde_json::{Value, json};

async fn served() -> Served {
    Served::with(worker(300, 1), |settings| planwright_surfaces::http::HttpSettings {
        agent_grace: Some(Duration::from_millis(300)),
        ..settings
    })
    .await
}

/// Takes a place; its token and its session.
async fn place(served: &Served, wish: Value) -> (String, String) {
    let (status, place) =
        response_to(served.request(Method::POST, "/api/agents").json(&wish)).await;
    assert_eq!(status, 201, "{place}");
    let text = |name: &str| place[name].as_str().unwrap().to_owned();
    (text("token"), text("sessionId"))
}

async fn rpc(served: &Served, token: &str, method: &str, params: Value) -> (u16, Value) {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = served
        .bare(Method::POST, "/mcp")
        .bearer_auth(token)
        .header("accept", "application/json, text/event-stream")
        .json(&request);
    response_to(request).await
}

/// Calls a tool: what it is told, and whether that is a no.
async fn call(served: &Served, token: &str, tool: &str, arguments: Value) -> (String, bool) {
    let params = json!({"name": tool, "arguments": arguments});
    let (status, told) = rpc(served, token, "tools/call", params).await;
    assert_eq!(status, 200, "{told}");
    let result = &told["result"];
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    (text, result["isError"] == json!(true))
}

async fn tools(served: &Served, token: &str) -> Vec<String> {
    let (_, listed) = rpc(served, token, "tools/list", json!({})).await;
    let listed = listed["result"]["tools"].as_array().unwrap().clone();
    listed.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

const PLAN: &str = "# Tidy up\n\n1. One\n2. Two\n";

fn project(plan: Option<&str>) -> Value {
    json!({"root": "/home/me/project", "plan": plan})
}

/// A person reads and approves what waits.
async fn approve(served: &Served, session: &str) -> u16 {
    let path = format!("/api/sessions/{session}");
    let (_, state) = response_to(served.decide(Method::GET, &path)).await;
    let digest = format!("\"{}\"", state["plan"]["digest"].as_str().unwrap());
    let shown = served.decide(Method::POST, &format!("{path}/plan/shown"));
    response_to(shown.header("if-match", &digest)).await;
    let approve = served.decide(Method::POST, &format!("{path}/plan/approve"));
    response_to(approve.header("if-match", &digest).json(&json!({}))).await.0
}

#[tokio::test]
async fn tools_follow_the_state_and_a_call_that_is_asked_again_is_done_once() {
    let served = served().await;
    let (token, session) = place(&served, project(Some("document"))).await;
    let memory = ["memory_save", "memory_search", "memory_forget"];
    let with = |plan: &[&'static str]| [plan, &memory[..]].concat();
    assert_eq!(tools(&served, &token).await, with(&["plan_get", "plan_set_content"]));
    let params = json!({"name": "plan_set_content", "arguments": {"plan_markdown": PLAN},
        "_meta": {"planwright/call": "the first", "planwright/agent": "a tester"}});
    let (_, first) = rpc(&served, &token, "tools/call", params.clone()).await;
    let (_, again) = rpc(&served, &token, "tools/call", params).await;
    assert_eq!(first, again, "the same answer");
    let text = first["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Saved as revision 1 of plan "), "{text}");
    let review = format!("{}/s/{session}/plan", served.pages());
    assert!(text.ends_with(&format!("A person reviews it at {review}")), "{text}");
    assert_eq!(first["result"]["_meta"]["planwright/review"]["url"], json!(review));
    assert_eq!(tools(&served, &token).await, with(&["plan_get", "plan_set_content", "plan_ask"]));
    assert_eq!(approve(&served, &session).await, 200);
    assert_eq!(
        tools(&served, &token).await,
        with(&["plan_get", "plan_set_content", "plan_report"])
    );
    let (text, _) = call(&served, &token, "plan_get", json!({})).await;
    assert!(text.contains("Do step 1 of 2 now, and no other: One"), "{text}");
    assert!(text.ends_with(PLAN), "{text}");
    for _ in 0..2 {
        call(&served, &token, "plan_report", json!({"status": "done", "summary": "did it"})).await;
    }
    assert_eq!(tools(&served, &token).await, memory, "no plan tools while inactive");
    let (text, refused) = call(&served, &token, "plan_get", json!({})).await;
    assert!(refused && text.contains("the plan is Done and plan work has ended"), "{text}");
}

#[tokio::test]
async fn asking_waits_for_the_decision_and_no_longer_than_it_was_told() {
    let served = served().await;
    let (token, session) = place(&served, project(Some("document"))).await;
    call(&served, &token, "plan_set_content", json!({"plan_markdown": PLAN})).await;
    let (text, _) = call(&served, &token, "plan_ask", json!({"wait_seconds": 1})).await;
    assert!(text.starts_with("Revision 1 waits for a person's decision."), "{text}");
    let asking = call(&served, &token, "plan_ask", json!({"wait_seconds": 30}));
    let approving = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        approve(&served, &session).await
    };
    let begun = std::time::Instant::now();
    let ((text, _), status) = tokio::join!(asking, approving);
    assert_eq!(
        (status, text.as_str()),
        (200, "Revision 1 is approved. Call plan_get for the first step.")
    );
    assert!(begun.elapsed() < Duration::from_secs(10), "it is told when it is decided");
}

#[tokio::test]
async fn a_place_is_taken_up_only_if_it_is_the_only_one_that_was_left() {
    let served = served().await;
    let (first, one) = place(&served, project(Some("document"))).await;
    let (second, two) = place(&served, project(Some("document"))).await;
    assert_ne!(one, two, "two windows");
    call(&served, &first, "plan_set_content", json!({"plan_markdown": "# First"})).await;
    // While the first may still be there, nobody takes its place.
    let (_, three) = place(&served, project(Some("document"))).await;
    assert!(three != one && three != two);
    tokio::time::sleep(Duration::from_millis(400)).await;
    let live = served.bare(Method::GET, "/mcp/live").bearer_auth(&first).send().await.unwrap();
    let (_, four) = place(&served, project(Some("document"))).await;
    assert_ne!(four, one, "it is there");
    drop(live);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (_, elsewhere) =
        place(&served, json!({"root": "/home/me/other", "plan": "document"})).await;
    assert_ne!(elsewhere, one, "another project");
    let (taken, five) = place(&served, project(Some("document"))).await;
    assert_eq!(five, one, "the only one with work left, and nobody there");
    let (text, _) = call(&served, &taken, "plan_get", json!({})).await;
    assert!(text.ends_with("# First"), "{text}");
    let (status, _) = rpc(&served, &first, "tools/list", json!({})).await;
    assert_eq!(status, 401, "the token of the place before ends");
    call(&served, &second, "plan_set_content", json!({"plan_markdown": "# Second"})).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    let (_, six) = place(&served, project(Some("document"))).await;
    assert!(six != one && six != two, "two were left: nobody knows which was meant");
}

#[tokio::test]
async fn a_key_names_a_place_and_two_windows_never_have_it_at_once() {
    let served = served().await;
    let wish = json!({"root": "/p", "key": "my-window-1", "plan": "build"});
    let (token, session) = place(&served, wish.clone()).await;
    assert_eq!(session, "mcp:my-window-1");
    assert!(tools(&served, &token).await.contains(&"plan_create".to_owned()));
    let (status, told) = response_to(served.request(Method::POST, "/api/agents").json(&wish)).await;
    assert_eq!((status, told["type"].as_str().unwrap()), (409, "urn:planwright:place_taken"));
    tokio::time::sleep(Duration::from_millis(400)).await;
    let (_, again) = place(&served, wish).await;
    assert_eq!(again, session);
}

#[tokio::test]
async fn the_token_of_a_place_opens_mcp_and_nothing_else_and_no_other_token_opens_mcp() {
    let served = served().await;
    let (token, session) = place(&served, project(Some("document"))).await;
    call(&served, &token, "plan_set_content", json!({"plan_markdown": PLAN})).await;
    for (method, path) in [
        (Method::GET, "/api/sessions".to_owned()),
        (Method::POST, format!("/api/sessions/{session}/plan/approve")),
        (Method::POST, format!("/api/sessions/{session}/lines")),
        (Method::POST, "/api/agents".to_owned()),
        (Method::GET, "/api/tokens".to_owned()),
        (Method::POST, "/v1/chat/completions".to_owned()),
    ] {
        let (status, told) =
            response_to(served.bare(method, &path).bearer_auth(&token).json(&json!({}))).await;
        assert_eq!(
            (status, told["type"].as_str().unwrap()),
            (403, "urn:planwright:agents_use_mcp"),
            "{path}"
        );
    }
    let (status, told_) =
        response_to(served.bare(Method::POST, "/api/login").json(&json!({"token": token}))).await;
    assert!(status == 401 || status == 403, "no login comes of it: {status} {told_}");
    for other in [&served.token, &served.decider] {
        let (status, told) = rpc(&served, other, "tools/list", json!({})).await;
        assert_eq!((status, told["type"].as_str().unwrap()), (403, "urn:planwright:no_place"));
    }
    let (status, _) = rpc(&served, "nobody-knows-this-one", "tools/list", json!({})).await;
    assert_eq!(status, 401);
}

#[tokio::test]
async fn a_foreign_host_a_page_and_a_cookie_are_refused_at_mcp() {
    let served = served().await;
    let (token, _) = place(&served, project(None)).await;
    let ask = || {
        served
            .bare(Method::POST, "/mcp")
            .bearer_auth(&token)
            .header("accept", "application/json, text/event-stream")
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
    };
    for (request, kind) in [
        (ask().header("host", "evil.example"), "foreign_host"),
        (ask().header("origin", "https://evil.example"), "foreign_origin"),
        (ask().header("origin", "null"), "foreign_origin"),
        (ask().header("sec-fetch-site", "cross-site"), "cross_site"),
    ] {
        let (status, told) = response_to(request).await;
        assert_eq!(
            (status, told["type"].as_str().unwrap()),
            (403, format!("urn:planwright:{kind}").as_str())
        );
    }
    let browser = served.log_in(json!({"passphrase": PASSPHRASE})).await;
    let page = served.page(&browser, Method::POST, "/mcp");
    let (status, told) =
        response_to(page.json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))).await;
    assert_eq!((status, told["type"].as_str().unwrap()), (403, "urn:planwright:no_place"));
}

#[tokio::test]
async fn who_may_only_look_changes_nothing() {
    let served = served().await;
    let wish = json!({"root": "/p", "key": "only-looks-1", "plan": "document", "readOnly": true});
    let (token, _) = place(&served, wish).await;
    assert_eq!(tools(&served, &token).await, ["plan_get", "memory_search"]);
    let (text, refused) =
        call(&served, &token, "plan_set_content", json!({"plan_markdown": PLAN})).await;
    assert!(refused, "{text}");
    assert_eq!(
        text,
        "policy_denied: this connection may only look; plan_set_content changes something"
    );
}

#[tokio::test]
async fn collecting_is_refused_to_a_foreign_agent_in_words() {
    let served = served().await;
    let (status, told) =
        response_to(served.request(Method::POST, "/api/agents").json(&project(Some("collect"))))
            .await;
    assert_eq!(status, 422);
    assert!(told["detail"].as_str().unwrap().contains("use document or build"), "{told}");
}

#[tokio::test]
async fn a_client_that_shows_links_is_given_the_link_and_the_digest_and_what_it_answers_decides_nothing()
 {
    let served = served().await;
    let (token, session) = place(&served, project(Some("document"))).await;
    call(&served, &token, "plan_set_content", json!({"plan_markdown": PLAN})).await;
    let ask = async |more: Value| {
        let mut params = json!({"name": "plan_ask", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "newest", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}}}});
        if !more.is_null() {
            params["inputResponses"] = more;
        }
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = served
            .bare(Method::POST, "/mcp")
            .bearer_auth(&token)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "plan_ask")
            .json(&request);
        response_to(request).await
    };
    let (status, first) = ask(Value::Null).await;
    assert_eq!(
        (status, &first["result"]["resultType"]),
        (200, &json!("input_required")),
        "{first}"
    );
    let look = &first["result"]["inputRequests"]["look"]["params"];
    let (_, state) =
        response_to(served.decide(Method::GET, &format!("/api/sessions/{session}"))).await;
    assert_eq!(look["mode"], "url");
    assert_eq!(look["url"], json!(format!("{}/s/{session}/plan", served.pages())));
    let words = look["message"].as_str().unwrap();
    assert!(words.contains(state["plan"]["digest"].as_str().unwrap()), "{words}");
    assert!(words.ends_with("answering here decides nothing."), "{words}");
    let accepted = json!({"look": {"action": "accept", "content": {"approve": true}}});
    let (_, second) = ask(accepted).await;
    let text = second["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Revision 1 waits for a person's decision."), "{text}");
}

async fn complete(served: &Served, messages: Value) -> String {
    let request = served.request(Method::POST, "/v1/chat/completions");
    let (status, told) =
        response_to(request.json(&json!({"model": "planwright", "messages": messages}))).await;
    assert_eq!(status, 200, "{told}");
    told["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_chat_completion_goes_on_in_its_session_and_a_plan_is_text_with_a_link() {
    let served = served().await;
    let on = complete(&served, json!([{"role": "user", "content": "/plan on"}])).await;
    let link = on.rsplit_once("](").unwrap().1.trim_end_matches(')').to_owned();
    assert!(link.starts_with(&format!("{}/s/api:", served.pages())), "{on}");
    let talk = json!([{"role": "user", "content": "/plan on"}, {"role": "assistant", "content": on},
        {"role": "user", "content": [{"type": "text", "text": "plan it"}]}]);
    let planned = complete(&served, talk).await;
    assert!(planned.contains("Plan, revision 1:\n\n"), "{planned}");
    assert!(
        planned.ends_with(&format!("[It waits for your decision: review it]({link}/plan)")),
        "{planned}"
    );
    let decide = json!([{"role": "assistant", "content": planned}, {"role": "user", "content": "/plan approve"}]);
    let request = served.decide(Method::POST, "/v1/chat/completions");
    let (_, refused) = response_to(request.json(&json!({"messages": decide}))).await;
    let refused = refused["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(!refused.contains("approved"), "nobody decides here, whatever their token: {refused}");
    let session = link.rsplit_once("/s/").unwrap().1;
    let (_, state) =
        response_to(served.request(Method::GET, &format!("/api/sessions/{session}"))).await;
    assert_eq!(state["plan"]["status"], "Ready");
}

#[tokio::test]
async fn responses_stream_and_go_on_from_the_one_before() {
    let served = served().await;
    let ask = |body: Value| served.request(Method::POST, "/v1/responses").json(&body);
    let (status, first) =
        response_to(ask(json!({"model": "planwright", "input": "/plan on"}))).await;
    assert_eq!((status, &first["status"]), (200, &json!("completed")));
    let id = first["id"].as_str().unwrap();
    let next = json!({"input": [{"role": "user", "content": "plan it"}], "previous_response_id": id, "stream": true});
    let text = ask(next).send().await.unwrap().text().await.unwrap();
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"response.created"));
    assert_eq!(kinds.last(), Some(&"response.completed"));
    let deltas: String = events
        .iter()
        .filter(|event| event["type"] == "response.output_text.delta")
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    let whole = &events.last().unwrap()["response"]["output"][0]["content"][0]["text"];
    assert_eq!(json!(deltas), *whole, "what was streamed is what is said in the end");
    assert!(deltas.contains("Plan, revision 1:"), "{deltas}");
    let (status, told) =
        response_to(ask(json!({"input": "x", "previous_response_id": "resp_nonsense"}))).await;
    assert_eq!((status, told["type"].as_str().unwrap()), (404, "urn:planwright:no_such_response"));
}

/// A notebook call is recorded as started before it acts, and its id has one effect however much happens in between.
#[tokio::test]
async fn a_notebook_call_that_is_repeated_long_after_does_nothing_again() {
    let served = served().await;
    let (token, session) = place(&served, project(None)).await;
    let on = served.decide(Method::POST, &format!("/api/sessions/{session}/lines"));
    let (status, reply) = response_to(on.json(&json!({"line": "/notebook on"}))).await;
    assert_eq!(status, 200, "{reply}");
    let write = async |id: &str, content: &str| {
        let arguments = json!({"which": "findings", "content": content});
        let params = json!({"name": "write_plan", "arguments": arguments,
            "_meta": {"planwright/call": id, "planwright/agent": "a tester"}});
        rpc(&served, &token, "tools/call", params).await.1
    };
    let first = write("the first", "one").await;
    assert_ne!(first["result"]["isError"], json!(true), "{first}");
    write("the second", "two").await;
    for _ in 0..80 {
        call(&served, &token, "memory_search", json!({"query": "x"})).await;
    }
    assert_eq!(write("the first", "one").await, first, "the same answer");
    let (text, _) = call(&served, &token, "read_plan", json!({"which": "findings"})).await;
    assert_eq!(text, "two", "and no second effect");
    let (_, events) = response_to(
        served.decide(Method::GET, &format!("/api/sessions/{session}/events?after=0&limit=20")),
    )
    .await;
    let text = events.to_string();
    let (started, called) = (text.find("agent_call_started"), text.find("agent_called"));
    assert!(started.unwrap() < called.unwrap(), "{text}");
}
