//! Every operation of the description, every MCP method and every `/v1` call, by callers who may not see the session that
//! it names. Nothing of it is told, and nothing in it changes.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::time::Duration;

use futures_util::StreamExt as _;
use planwright_domain::{actor::Standing, identity::SessionKey};
use planwright_surfaces::http::{HttpSettings, openapi};
use planwright_testkit::{
    house::House,
    scripted_model::worker::worker,
    served::{Served, response_to},
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// What only ada has said.
const CANARY: &str = "canary-4711-of-ada";

/// Ada's session, and what can be named of it.
struct Named {
    /// Its name for everyone, with its owner.
    key: SessionKey,
    item: String,
    digest: String,
    grant: String,
}

/// Somebody who is not ada.
struct Stranger {
    what: &'static str,
    token: Option<String>,
    /// Whether they are somebody: then they get their own where ada would get hers.
    is_known: bool,
}

struct Table {
    served: Served,
    ada: String,
    named: Named,
    strangers: Vec<Stranger>,
}

impl Table {
    async fn new() -> Self {
        let quick = |settings| HttpSettings { logins_per_minute: 100_000, ..settings };
        let served = Served::of(House::local(worker(300, 1)).await, quick).await;
        let ada = served.token_of("ada", Standing::Decides).await;
        let named = named(&served, &ada).await;
        let revoked = served.token_of("ada", Standing::Decides).await;
        served.take_back(&revoked).await;
        let bea = served.token_of("bea", Standing::Speaks).await;
        let wish = json!({"root": "/bea", "plan": "document"});
        let place = served.bare(Method::POST, "/api/agents").bearer_auth(&bea).json(&wish);
        let place = response_to(place).await.1["token"].as_str().unwrap().to_owned();
        let stranger = |what, token, is_known| Stranger { what, token, is_known };
        let strangers = vec![
            stranger("nobody", None, false),
            stranger("a token that was taken back", Some(revoked), false),
            stranger("another owner", Some(bea), true),
            stranger("another owner's agent", Some(place), false),
        ];
        Self { served, ada, named, strangers }
    }

    fn by(&self, token: Option<&str>, method: Method, path: &str) -> RequestBuilder {
        let bare = self.served.bare(method, path);
        match token {
            Some(token) => bare.bearer_auth(token),
            None => bare,
        }
    }

    /// Everything that is recorded of ada's session.
    async fn recorded(&self) -> Value {
        let path = format!("/api/sessions/{}/events?limit=500", self.named.key);
        response_to(self.by(Some(&self.ada), Method::GET, &path)).await.1
    }

    /// Calls a tool of MCP.
    async fn calls(&self, token: &str, tool: &str, arguments: Value) -> (u16, String) {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = self.by(Some(token), Method::POST, "/mcp").json(&message);
        beginning_of(request.header("accept", "application/json, text/event-stream")).await
    }

    /// A path with everything of ada's that can be named in it.
    fn fill(&self, path: &str, session: &str) -> String {
        let id = if path.starts_with("/api/tokens/") { &self.named.grant } else { session };
        let path = path
            .replace("{id}", id)
            .replace("{number}", "1")
            .replace("{item}", &self.named.item)
            .replace("{digest}", &self.named.digest)
            .replace("{chat}", "ada-1")
            .replace("{name}", "ada");
        match path.as_str() {
            "/api/ws" | "/api/plans" => format!("{path}?sessionId={session}"),
            _ => path,
        }
    }
}

/// A session of ada's with words, a plan and something remembered.
async fn named(served: &Served, ada: &str) -> Named {
    let by = |method, path: &str| served.bare(method, path).bearer_auth(ada);
    let id = "api:report-0001";
    for line in [
        format!("just talk {CANARY}"),
        format!("/memory save {CANARY}"),
        "/plan on".into(),
        format!("plan it {CANARY}"),
    ] {
        let path = format!("/api/sessions/{id}/lines");
        let (status, reply) =
            response_to(by(Method::POST, &path).json(&json!({"line": line}))).await;
        assert_eq!(status, 200, "{line}: {reply}");
    }
    let (status, pointer) =
        response_to(by(Method::PUT, "/api/pointers/ada-1").json(&json!({"key": "report-0001"})))
            .await;
    assert_eq!(status, 204, "{pointer}");
    let owner = planwright_domain::actor::PersonId("ada".into());
    let nil = planwright_domain::id::OwnerId(uuid::Uuid::nil());
    let owner = served.house.ports.journal.owner_of(&owner, nil).await.unwrap();
    let key = SessionKey::named(id, owner).unwrap();
    served.house.rests(&key).await;
    let memory = response_to(by(Method::GET, &format!("/api/sessions/{id}/memory"))).await.1;
    let item = memory["items"][0]["item"]["id"].as_str().unwrap().to_owned();
    let state = response_to(by(Method::GET, &format!("/api/sessions/{id}"))).await.1;
    let digest = state["plan"]["digest"].as_str().unwrap().to_owned();
    let tokens = response_to(by(Method::GET, "/api/tokens")).await.1;
    let own = tokens.as_array().unwrap().iter().find(|token| token["person"] == "ada").unwrap();
    Named { key, item, digest, grant: own["id"].as_str().unwrap().into() }
}

/// A body that fits, for those that need one.
fn body(path: &str, session: &str) -> Value {
    match path {
        "/api/agents" => json!({"root": "/elsewhere", "key": "report-0001"}),
        "/api/sessions" => json!({"key": "report-0001"}),
        "/api/pointers/{chat}" => json!({"key": "report-0001"}),
        "/api/chats/{chat}/lines"
        | "/api/sessions/{id}/lines"
        | "/api/sessions/{id}/lines/text" => {
            json!({"line": "/plan show"})
        }
        "/api/sessions/{id}" => json!({"title": "taken"}),
        "/api/sessions/{id}/messages" => json!({"text": "just talk"}),
        "/api/sessions/{id}/memory/{item}/promote" => json!({"text": "taken"}),
        "/api/sessions/{id}/permission" => json!({"permit": "once"}),
        "/api/sessions/{id}/goals" | "/api/sessions/{id}/tasks" => json!({"title": "taken"}),
        "/api/sessions/{id}/goals/{number}" => json!({"reached": true}),
        "/api/sessions/{id}/tasks/{number}" => json!({"done": true}),
        "/api/sessions/{id}/schedules" => {
            json!({"title": "taken", "when": {"kind": "every", "minutes": 60}})
        }
        "/api/sessions/{id}/notebook" => json!({"on": true}),
        "/api/sessions/{id}/memory/{item}" => json!({"text": "taken"}),
        "/api/sessions/{id}/plan/changes" => json!({"comments": [{"text": "other"}]}),
        "/api/sessions/{id}/plan/comments"
        | "/api/sessions/{id}/plan/comments/{number}"
        | "/api/sessions/{id}/plan/comments/{number}/replies" => json!({"text": "other"}),
        "/api/sessions/{id}/plan/content" => json!({"markdown": "# Taken\n"}),
        "/api/sessions/{id}/plan/seen" => json!({"blocks": []}),
        "/api/sessions/{id}/plan/settle" => {
            json!({"call": uuid::Uuid::nil(), "happened": true})
        }
        "/api/sessions/{id}/plan/skip" => json!({"step": 1}),
        "/api/plans/enable" | "/api/plans/disable" => json!({"sessionId": session}),
        _ => json!({}),
    }
}

/// The status and the beginning of what is told: a stream has no end.
async fn beginning_of(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let (mut text, mut pieces) = (String::new(), response.bytes_stream());
    let wait = Duration::from_millis(150);
    while let Ok(Some(Ok(piece))) = tokio::time::timeout(wait, pieces.next()).await {
        text.push_str(&String::from_utf8_lossy(&piece));
    }
    (status, text)
}

/// What needs no caller: whether the server is there, and how one becomes known.
fn is_open(method: &str, path: &str) -> bool {
    let open = ["/health", "/ready", "/api/proof", "/api/login"].contains(&path);
    open || (["/api/tokens", "/api/passphrase"].contains(&path) && method == "post")
}

#[tokio::test]
async fn no_operation_tells_or_changes_what_is_another_owners() {
    let table = Table::new().await;
    let before = table.recorded().await;
    assert!(before.to_string().contains(CANARY));
    let whole = table.named.key.to_string();
    let (mut operations, mut tried, mut own) = (0, 0, 0);
    for (path, methods) in openapi()["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let Ok(verb) = Method::from_bytes(method.to_uppercase().as_bytes()) else { continue };
            operations += 1;
            for Stranger { what, token, is_known } in &table.strangers {
                // By its name for its owner, which is a name of the stranger's own, and by its name for everyone.
                for session in ["api:report-0001", &whole] {
                    let filled = table.fill(path, session);
                    let request = table.by(token.as_deref(), verb.clone(), &filled);
                    let request = request.header("if-match", format!("\"{}\"", table.named.digest));
                    let (status, text) = beginning_of(request.json(&body(path, session))).await;
                    let case = format!("{what}: {method} {filled}: {status} {text}");
                    tried += 1;
                    assert!(!text.contains(CANARY), "{case}");
                    if is_open(method, path) {
                        continue;
                    }
                    match is_known {
                        false => assert!(matches!(status, 401 | 403), "{case}"),
                        // Another's session is not there, and a right that they do not have is refused.
                        true if path.contains("{id}") && session == whole => {
                            assert!(matches!(status, 403 | 404), "{case}");
                        }
                        true => own += usize::from(status < 300),
                    }
                }
            }
        }
    }
    assert_eq!(table.recorded().await, before, "nothing of it changed");
    assert!(own > 20, "{own}: another owner has the same for themselves");
    println!(
        "{operations} operations × {} callers × 2 names: {tried} tried, {own} of them on the caller's own, 0 told or changed anything",
        table.strangers.len()
    );
    assert!(operations > 70 && tried == operations * table.strangers.len() * 2);
}

#[tokio::test]
async fn ada_reaches_every_operation_that_strangers_did_not() {
    let table = Table::new().await;
    let mut reached = 0;
    let paths = openapi()["paths"].as_object().unwrap().clone();
    // What ends something comes last.
    let mut all: Vec<_> = paths
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| (method.clone(), path.clone()))
        })
        // A ticket is for a page, and people are an admin's, which ada is not (`people.rs`).
        .filter(|(method, path)| {
            let is_others = path == "/api/tickets" || path.starts_with("/api/people");
            !is_open(method, path) && method != "parameters" && !is_others
        })
        .collect();
    all.sort_by_key(|(method, path)| {
        (method == "delete", path == "/api/logout" || path.starts_with("/api/tokens/"))
    });
    for (method, path) in all {
        let verb = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let filled = table.fill(&path, "api:report-0001");
        let request = table.by(Some(&table.ada), verb, &filled);
        let request = request.header("if-match", format!("\"{}\"", table.named.digest));
        let (status, text) = beginning_of(request.json(&body(&path, "api:report-0001"))).await;
        let case = format!("{method} {filled}: {status} {text}");
        // Some of it is not there at this moment, or was done before; none is refused for who asks.
        assert!(!matches!(status, 401 | 403 | 500..), "{case}");
        reached += usize::from(status < 300 || matches!(status, 409 | 412 | 422 | 426));
    }
    assert!(reached > 50, "{reached}");
}

/// The methods of MCP that a place answers, and one that it does not.
fn mcp_methods() -> Vec<(&'static str, Value)> {
    let tools = [
        ("plan_get", json!({})),
        ("plan_ask", json!({"wait_seconds": 0})),
        ("plan_set_content", json!({"plan_markdown": "# Taken\n\n1. One.\n"})),
        ("memory_search", json!({"query": "canary"})),
        ("read_plan", json!({"which": "plan"})),
        ("plan_report", json!({"status": "done", "summary": "x", "step": 1})),
    ];
    let mut methods = vec![
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "planwright://plan"})),
        ("resources/read", json!({"uri": "planwright://status"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "plan"})),
        ("logging/setLevel", json!({"level": "debug"})),
        ("no/such/method", json!({})),
    ];
    let calls = tools
        .map(|(name, arguments)| ("tools/call", json!({"name": name, "arguments": arguments})));
    methods.extend(calls);
    methods
}

#[tokio::test]
async fn no_mcp_method_tells_or_changes_what_is_another_owners() {
    let table = Table::new().await;
    // Ada's agent plans under the same key; bea's agents name her sessions, by every name that they have.
    let wish = json!({"root": "/elsewhere", "key": "report-0001"});
    let hers = table.by(Some(&table.ada), Method::POST, "/api/agents").json(&wish);
    let hers = response_to(hers).await.1["token"].as_str().unwrap().to_owned();
    let on = table.by(Some(&table.ada), Method::POST, "/api/sessions/mcp:report-0001/lines");
    assert_eq!(response_to(on.json(&json!({"line": "/plan on"}))).await.0, 200);
    let plan = json!({"plan_markdown": format!("# Ada's\n\n1. {CANARY}\n")});
    let (_, set) = table.calls(&hers, "plan_set_content", plan).await;
    assert!(set.contains("Saved as revision 1"), "{set}");
    let (_, own) = table.calls(&hers, "plan_get", json!({})).await;
    assert!(own.contains(CANARY), "her own agent reads it: {own}");
    let bea = table.strangers[2].token.clone().unwrap();
    let mut callers: Vec<(String, Option<String>)> = vec![
        ("nobody".into(), None),
        ("a token that was taken back".into(), table.strangers[1].token.clone()),
        ("a person's token".into(), Some(bea.clone())),
    ];
    for key in ["report-0001", "api:report-0001", &table.named.key.to_string()] {
        let wish = json!({"root": "/elsewhere", "key": key});
        let (status, place) =
            response_to(table.by(Some(&bea), Method::POST, "/api/agents").json(&wish)).await;
        match status {
            201 => callers.push((
                format!("an agent that took {key}"),
                Some(place["token"].as_str().unwrap().into()),
            )),
            _ => assert!(matches!(status, 403 | 404 | 422), "{key}: {status} {place}"),
        }
    }
    assert!(callers.len() > 3, "an agent of another owner has a place of its own");
    let before = table.recorded().await;
    let (mut tried, mut answered) = (0, 0);
    for (what, token) in &callers {
        for (number, (method, params)) in mcp_methods().into_iter().enumerate() {
            let message =
                json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params});
            let request = table.by(token.as_deref(), Method::POST, "/mcp");
            let request = request.header("accept", "application/json, text/event-stream");
            let (status, text) = beginning_of(request.json(&message)).await;
            let case = format!("{what}: {method} {params}: {status} {text}");
            assert!(!text.contains(CANARY), "{case}");
            match what.starts_with("an agent") {
                true => answered += usize::from(status == 200 && text.contains("\"result\"")),
                false => assert!(matches!(status, 401 | 403), "{case}"),
            }
            tried += 1;
        }
    }
    assert!(answered > 6, "{answered}: an agent gets its own");
    assert_eq!(table.recorded().await, before, "nothing of it changed");
    println!("{tried} calls of MCP by {} callers: 0 told or changed anything", callers.len());
}

#[tokio::test]
async fn no_completion_tells_or_changes_what_is_another_owners() {
    let table = Table::new().await;
    let before = table.recorded().await;
    // A link to a session of one's own goes on with it. This one leads to ada's, by the name that it has for her.
    let link = format!("[x]({}/s/api:report-0001/plan)", table.served.pages());
    let talk = json!([
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": link},
        {"role": "user", "content": "what did I say before?"},
    ]);
    for Stranger { what, token, is_known } in &table.strangers {
        for (method, path, body) in [
            (Method::GET, "/v1/models", json!({})),
            (
                Method::POST,
                "/v1/chat/completions",
                json!({"model": "planwright", "messages": talk}),
            ),
            (Method::POST, "/v1/responses", json!({"model": "planwright", "input": talk})),
        ] {
            let request = table.by(token.as_deref(), method, path).json(&body);
            let (status, text) = {
                let response = request.send().await.unwrap();
                (response.status().as_u16(), response.text().await.unwrap())
            };
            assert!(!text.contains(CANARY), "{what} {path}: {status} {text}");
            assert_eq!(matches!(status, 401 | 403), !is_known, "{what} {path}: {status} {text}");
        }
    }
    assert_eq!(table.recorded().await, before, "nothing of it changed");
}
