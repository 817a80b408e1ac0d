//! 1 to 22: who asks, for what is whose.

use anyhow::{Context as _, ensure};
use futures_util::StreamExt as _;
use planwright_surfaces::http::openapi;
use planwright_testkit::streams::{Wire, listen_at};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    Report,
    target::{CANARY, Target, answer_to},
};

/// What needs no caller.
const OPEN: [&str; 6] =
    ["/health", "/ready", "/api/proof", "/api/login", "/api/passphrase", "/api/tokens"];

/// Every operation that needs a caller, with parameters that fit a session.
pub(super) fn operations(session: &str) -> Vec<(Method, String)> {
    let described = openapi();
    let mut all = Vec::new();
    for (path, methods) in described["paths"].as_object().into_iter().flatten() {
        for method in methods.as_object().into_iter().flat_map(|methods| methods.keys()) {
            let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) else { continue };
            let has_more = ["/api/tokens", "/api/passphrase"].contains(&path.as_str());
            if OPEN.contains(&path.as_str()) && (!has_more || method == Method::POST) {
                continue;
            }
            let filled = path
                .replace("{id}", session)
                .replace("{number}", "1")
                .replace("{item}", "00000000-0000-0000-0000-000000000001")
                .replace("{digest}", &"ab".repeat(32))
                .replace("{chat}", "chat-1")
                .replace("{name}", "owner");
            let filled = match path.as_str() {
                "/api/ws" | "/api/plans" => format!("{filled}?sessionId={session}"),
                _ => filled,
            };
            all.push((method, filled));
        }
    }
    let more = ["/v1/chat/completions", "/v1/responses", "/mcp"];
    all.extend(more.map(|path| (Method::POST, path.to_owned())));
    all.extend(["/v1/models", "/mcp/live"].map(|path| (Method::GET, path.to_owned())));
    all
}

/// Ada's session, with words and a plan that waits.
pub(super) async fn planned(target: &Target, ada: &str, session: &str) -> anyhow::Result<()> {
    target.says(ada, session, &format!("just {CANARY}")).await?;
    target.says(ada, session, "/plan on").await?;
    target.says(ada, session, &format!("PLAN # A secret plan\n\n1. {CANARY}\n")).await?;
    Ok(())
}

pub(super) async fn attack(report: &mut Report) -> anyhow::Result<()> {
    let target = Target::start("", &[]).await?;
    let (ada, bea) = (target.token_of("ada", true).await?, target.token_of("bea", false).await?);
    planned(&target, &ada, "api:secret-0001").await?;
    unknown(report, &target).await;
    deciding(report, &target, &ada, &bea).await;
    owners(report, &target, &ada, &bea).await;
    streams(report, &target, &ada, &bea).await;
    agents(report, &target, &ada, &bea).await;
    report
        .control("11c", "ada reads and approves what waits", async {
            let status = target.approves(&ada, "api:secret-0001", json!({})).await?;
            ensure!(status == 200, "{status}");
            Ok(())
        })
        .await;
    Ok(())
}

async fn unknown(report: &mut Report, target: &Target) {
    report
        .attack("1", "no token, on every operation", async {
            let all = operations("api:secret-0001");
            ensure!(all.len() > 65, "{} operations", all.len());
            for (method, path) in all {
                let request = target.bare(method.clone(), &path).json(&json!({}));
                let (status, body) = answer_to(request).await?;
                ensure!(status == 401, "{method} {path}: {status} {body}");
            }
            Ok(())
        })
        .await;
    let zeros = "0".repeat(64);
    for (number, token) in [("2a", "undefined"), ("2b", ""), ("2c", "null"), ("2d", zeros.as_str())]
    {
        report
            .attack(number, &format!("the token {token:?}"), async {
                let (status, body) = answer_to(target.by(token, Method::GET, "/api/me")).await?;
                ensure!(status == 401, "{status} {body}");
                Ok(())
            })
            .await;
    }
    report
        .attack("2e", "a token in the address", async {
            let path = format!("/api/me?token={}", target.token);
            let (status, body) = answer_to(target.bare(Method::GET, &path)).await?;
            ensure!(status == 401, "{status} {body}");
            Ok(())
        })
        .await;
    report
        .control("2f", "the token of the data directory", async {
            let (status, me) = answer_to(target.by(&target.token, Method::GET, "/api/me")).await?;
            ensure!(status == 200 && me["decides"] == false, "{status} {me}");
            Ok(())
        })
        .await;
}

/// A number, what it is, by whose token, the `If-Match`, the body, and how it is refused.
type Approval<'a> = (&'a str, &'a str, &'a str, Option<String>, Value, u16);

async fn deciding(report: &mut Report, target: &Target, ada: &str, bea: &str) {
    let session = "api:secret-0001";
    let whole = target.whole_name(session).await.unwrap_or_default();
    let digest = target.digest(ada, session).await.unwrap_or_default();
    let foreign = "ab".repeat(32);
    let speaks = target.token_of("ada", false).await.unwrap_or_default();
    let quoted = |digest: &str| format!("\"{digest}\"");
    let cases: [Approval<'_>; 9] = [
        (
            "3",
            "approve with a token that may speak",
            &speaks,
            Some(quoted(&digest)),
            json!({}),
            403,
        ),
        ("4", "approve with another owner's token", bea, Some(quoted(&digest)), json!({}), 404),
        (
            "4b",
            "approve with the first token",
            &target.token,
            Some(quoted(&digest)),
            json!({}),
            404,
        ),
        ("5", "approve without saying what was read", ada, None, json!({}), 428),
        ("6", "approve another digest", ada, Some(quoted(&foreign)), json!({}), 412),
        ("7", "approve what was not shown", ada, Some(quoted(&digest)), json!({}), 409),
        (
            "8",
            "a field that is not ours",
            ada,
            Some(quoted(&digest)),
            json!({"approved": true}),
            422,
        ),
        ("9", "If-Match: *", ada, Some("*".into()), json!({}), 400),
        ("9b", "a weak If-Match", ada, Some(format!("W/{}", quoted(&digest))), json!({}), 400),
    ];
    for (number, what, token, if_match, body, expected) in cases {
        report
            .attack(number, what, async {
                // Who is not ada names it with its owner.
                let name = if expected == 404 { &whole } else { session };
                let path = format!("/api/sessions/{name}/plan/approve");
                let mut request = target.by(token, Method::POST, &path).json(&body);
                if let Some(if_match) = &if_match {
                    request = request.header("if-match", if_match);
                }
                let (status, told) = answer_to(request).await?;
                // Who may not see it is not told whether it is there.
                let is_refused = status == expected || (expected == 404 && status == 403);
                ensure!(is_refused, "{status} {told}");
                Ok(())
            })
            .await;
    }
    report
        .attack("11", "approve by the words of /v1", async {
            let talk = json!({"model": "planwright", "messages": [
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": format!("[x]({}/s/{session}/plan)", target.url)},
                {"role": "user", "content": "/plan approve"},
            ]});
            let (_, body) =
                answer_to(target.by(ada, Method::POST, "/v1/chat/completions").json(&talk)).await?;
            let events = target.events(ada, session).await?;
            ensure!(!events.contains("plan_approved"), "{body}");
            Ok(())
        })
        .await;
}

async fn owners(report: &mut Report, target: &Target, ada: &str, bea: &str) {
    let own = "api:secret-0001";
    report
        .attack("12", "another owner, on every operation", async {
            let before = target.events(ada, own).await?;
            let whole = target.whole_name(own).await?;
            for (method, path) in operations(&whole) {
                // Not a stream of hers: a stream of one's own goes on.
                if path == "/api/hints" {
                    continue;
                }
                let request = target.by(bea, method.clone(), &path).json(&json!({}));
                let (status, body) = answer_to(request).await?;
                ensure!(!body.to_string().contains(CANARY), "{method} {path}: {status} {body}");
                // A body that does not fit is refused before anything is looked up.
                let is_refused = matches!(status, 400 | 403 | 404 | 422 | 428);
                ensure!(is_refused || !path.contains(&whole), "{method} {path}: {status} {body}");
            }
            ensure!(target.events(ada, own).await? == before, "ada's session changed");
            Ok(())
        })
        .await;
    report
        .attack("13", "another owner makes a session by ada's key", async {
            let request = target.by(bea, Method::POST, "/api/sessions");
            let (status, body) = answer_to(request.json(&json!({"key": "secret-0001"}))).await?;
            ensure!(!body.to_string().contains("secret plan"), "{status} {body}");
            Ok(())
        })
        .await;
    report
        .attack("17", "another owner lists tokens", async {
            let (_, rows) = answer_to(target.by(bea, Method::GET, "/api/tokens")).await?;
            let rows = rows.as_array().context("a list")?;
            ensure!(!rows.is_empty() && rows.iter().all(|row| row["person"] == "bea"), "{rows:?}");
            Ok(())
        })
        .await;
    report
        .attack("18", "another owner takes ada's token back", async {
            let (_, me) = answer_to(target.by(ada, Method::GET, "/api/me")).await?;
            let path = format!("/api/tokens/{}", me["grant"].as_str().context("a grant")?);
            let (status, body) = answer_to(target.by(bea, Method::DELETE, &path)).await?;
            ensure!(status == 403, "{status} {body}");
            Ok(())
        })
        .await;
}

async fn streams(report: &mut Report, target: &Target, ada: &str, bea: &str) {
    let own = "api:secret-0001";
    for (number, wire) in [("15", Wire::WebSocket), ("15b", Wire::ServerSent)] {
        report
            .attack(number, "another owner listens to a key before ada uses it", async {
                let key = format!("api:weekly-{number}-report");
                let mut heard = listen_at(&target.url, bea, wire, &key, 0).await?;
                target.says(ada, &key, &format!("just {CANARY}")).await?;
                let wait = std::time::Duration::from_millis(300);
                while let Ok(Some(envelope)) = tokio::time::timeout(wait, heard.next()).await {
                    let text = envelope.data.to_string();
                    ensure!(!text.contains(CANARY), "{text}");
                }
                Ok(())
            })
            .await;
    }
    for (number, wire) in [("16", Wire::WebSocket), ("16b", Wire::ServerSent)] {
        report
            .attack(number, "the stream of a token that was taken back", async {
                let token = target.token_of("ada", false).await?;
                let mut heard = listen_at(&target.url, &token, wire, own, 0).await?;
                let (_, me) = answer_to(target.by(&token, Method::GET, "/api/me")).await?;
                let path = format!("/api/tokens/{}", me["grant"].as_str().context("a grant")?);
                let (status, body) = answer_to(target.by(ada, Method::DELETE, &path)).await?;
                ensure!(status == 204, "{status} {body}");
                let ends = async { while heard.next().await.is_some() {} };
                let second = std::time::Duration::from_secs(1);
                tokio::time::timeout(second, ends).await.context("it goes on")?;
                Ok(())
            })
            .await;
    }
}

/// Takes a place for an agent; its token.
async fn place(target: &Target, token: &str, key: &str) -> anyhow::Result<String> {
    let wish = json!({"root": "/project", "key": key});
    let (status, place) =
        answer_to(target.by(token, Method::POST, "/api/agents").json(&wish)).await?;
    Ok(place["token"].as_str().with_context(|| format!("{status} {place}"))?.to_owned())
}

/// Asks the MCP server something.
async fn asks(
    target: &Target,
    token: &str,
    method: &str,
    params: Value,
) -> anyhow::Result<(u16, Value)> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = target.by(token, Method::POST, "/mcp").json(&message);
    answer_to(request.header("accept", "application/json, text/event-stream")).await
}

async fn agents(report: &mut Report, target: &Target, ada: &str, bea: &str) {
    report
        .attack("20", "another owner's agent takes ada's place, and reads her plan", async {
            let hers = place(target, ada, "agent-0001").await?;
            let text = format!("# Ada's\n\n1. {CANARY}\n");
            let params = json!({"name": "plan_set_content", "arguments": {"plan_markdown": text}});
            target.says(ada, "mcp:agent-0001", "/plan on").await?;
            let (status, body) = asks(target, &hers, "tools/call", params).await?;
            ensure!(status == 200, "{body}");
            let (_, own) =
                asks(target, &hers, "resources/read", json!({"uri": "planwright://plan"})).await?;
            ensure!(own.to_string().contains(CANARY), "ada's own agent reads it: {own}");
            let theirs = place(target, bea, "agent-0001").await?;
            for (method, params) in [
                ("resources/read", json!({"uri": "planwright://plan"})),
                ("tools/list", json!({})),
                ("tools/call", json!({"name": "plan_get", "arguments": {}})),
                ("tools/call", json!({"name": "memory_search", "arguments": {"query": "canary"}})),
            ] {
                let (_, body) = asks(target, &theirs, method, params).await?;
                ensure!(!body.to_string().contains(CANARY), "{method}: {body}");
            }
            Ok(())
        })
        .await;
    report
        .attack("21", "an agent's token, on every other operation", async {
            let token = place(target, bea, "agent-0002").await?;
            for (method, path) in operations("api:secret-0001") {
                if path.starts_with("/mcp") {
                    continue;
                }
                let request = target.by(&token, method.clone(), &path).json(&json!({}));
                let (status, body) = answer_to(request).await?;
                ensure!(status == 403, "{method} {path}: {status} {body}");
            }
            let login = target.bare(Method::POST, "/api/login").json(&json!({"token": token}));
            let (status, body) = answer_to(login).await?;
            ensure!(matches!(status, 401 | 429), "21b: an agent logs in: {status} {body}");
            Ok(())
        })
        .await;
    report
        .attack("21c", "a person's token at /mcp", async {
            let (status, body) = asks(target, bea, "tools/list", json!({})).await?;
            ensure!(status == 403, "{status} {body}");
            Ok(())
        })
        .await;
    report
        .attack("22", "an agent calls plan_approve, approve, decide", async {
            let token = place(target, ada, "agent-0003").await?;
            target.says(ada, "mcp:agent-0003", "/plan on").await?;
            let text = json!({"plan_markdown": "# Mine\n\n1. One.\n"});
            let params = json!({"name": "plan_set_content", "arguments": text});
            asks(target, &token, "tools/call", params).await?;
            target.digest(ada, "mcp:agent-0003").await?;
            for name in ["plan_approve", "approve", "decide"] {
                let params = json!({"name": name, "arguments": {"approved": true}});
                let (_, body) = asks(target, &token, "tools/call", params).await?;
                ensure!(body["result"]["isError"] == true || body["error"].is_object(), "{body}");
            }
            let events = target.events(ada, "mcp:agent-0003").await?;
            ensure!(!events.contains("plan_approved"), "it was approved");
            Ok(())
        })
        .await;
}
