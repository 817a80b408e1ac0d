//! 30 to 42: requests from other places, and requests that are not as they should be.

use anyhow::{Context as _, ensure};
use planwright_testkit::streams::{Wire, listen_at};
use reqwest::Method;
use serde_json::json;

use super::{
    Report,
    callers::operations,
    target::{PASSPHRASE, Target, answer_to},
};

pub(super) async fn attack(report: &mut Report) -> anyhow::Result<()> {
    let target = Target::start("", &[]).await?;
    hosts(report, &target).await;
    raw_requests(report, &target).await;
    let page = Page::of(&target).await?;
    other_pages(report, &page).await;
    cookies(report, &page).await;
    assets(report, &target).await;
    bodies(report, &target).await;
    report
        .control("39e", "the server is there", async {
            ensure!(answer_to(target.bare(Method::GET, "/health")).await?.0 == 200);
            Ok(())
        })
        .await;
    Ok(())
}

async fn hosts(report: &mut Report, target: &Target) {
    let port = target.port;
    let foreign = [
        ("30a", format!("evil.example:{port}")),
        ("30b", format!("127.0.0.1:{}", port + 1)),
        ("30c", "127.0.0.1".to_owned()),
        ("30d", format!("0.0.0.0:{port}")),
        ("30e", format!("127.0.0.1:{port}.evil.com")),
        ("30f", format!("localhost.evil:{port}")),
        ("30g", format!("2130706433:{port}")),
        ("30h", format!("127.0.0.1:{port}@evil")),
    ];
    for (number, host) in foreign {
        report
            .attack(number, &format!("Host {host} on every operation"), async {
                for (method, path) in operations("api:talk-0001") {
                    let request = target.by(&target.token, method.clone(), &path).json(&json!({}));
                    let (status, body) = answer_to(request.header("host", &host)).await?;
                    ensure!(status == 403, "{method} {path}: {status} {body}");
                }
                Ok(())
            })
            .await;
    }
}

async fn raw_requests(report: &mut Report, target: &Target) {
    let (port, token) = (target.port, &target.token);
    let raw = [
        (
            "31a",
            "no Host",
            format!("GET /api/me HTTP/1.1\r\nauthorization: Bearer {token}\r\n\r\n"),
        ),
        (
            "31b",
            "no Host in HTTP/1.0",
            format!("GET /api/me HTTP/1.0\r\nauthorization: Bearer {token}\r\n\r\n"),
        ),
        (
            "31c",
            "two Hosts",
            format!(
                "GET /api/me HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nhost: evil\r\nauthorization: Bearer {token}\r\n\r\n"
            ),
        ),
        ("31f", "HTTP/2 by prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
    ];
    for (number, what, bytes) in raw {
        report
            .attack(number, what, async {
                let came = target.raw(bytes.as_bytes()).await?;
                ensure!(!came.contains(" 200 "), "{came}");
                Ok(())
            })
            .await;
    }
    report
        .attack("31e", "one request hidden in another", async {
            let hidden = format!("GET /api/me HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\r\n");
            let bytes = format!("POST /api/login HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{hidden}", hidden.len());
            let came = target.raw(bytes.as_bytes()).await?;
            ensure!(!came.contains("passphraseChosen"), "{came}");
            Ok(())
        })
        .await;
    report
        .control("31g", "the right Host", async {
            let bytes = format!("GET /api/me HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n");
            let came = target.raw(bytes.as_bytes()).await?;
            ensure!(came.contains(" 200 "), "{came}");
            Ok(())
        })
        .await;
}

/// A page that logged in: its cookie as it was set, and its key.
struct Page<'a> {
    target: &'a Target,
    cookie: String,
    key: String,
}

impl<'a> Page<'a> {
    async fn of(target: &'a Target) -> anyhow::Result<Self> {
        let login =
            target.bare(Method::POST, "/api/login").json(&json!({"passphrase": PASSPHRASE}));
        let response = login.send().await?;
        let cookie = response.headers()["set-cookie"].to_str()?.to_owned();
        let told: serde_json::Value = response.json().await?;
        let key = told["pageKey"].as_str().context("a key")?.to_owned();
        Ok(Self { target, cookie, key })
    }

    /// The cookie as it is sent.
    fn pair(&self) -> &str {
        self.cookie.split(';').next().unwrap_or_default()
    }

    fn asks(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.target.bare(method, path).header("cookie", self.pair());
        request.header("planwright-page-key", &self.key)
    }
}

async fn other_pages(report: &mut Report, page: &Page<'_>) {
    let port = page.target.port;
    let origins = [
        ("32a", "https://evil.example".to_owned()),
        ("32b", "null".to_owned()),
        ("32c", format!("http://127.0.0.1:{}", port + 1)),
        ("32d", format!("http://127.0.0.1:{port}.evil.com")),
        ("32e", format!("https://127.0.0.1:{port}")),
    ];
    for (number, origin) in origins {
        report
            .attack(number, &format!("a page of {origin}"), async {
                for (method, path) in
                    [(Method::POST, "/api/sessions"), (Method::GET, "/api/ws?sessionId=web:x-0001")]
                {
                    let request =
                        page.asks(method, path).header("origin", &origin).json(&json!({}));
                    let (status, body) = answer_to(request).await?;
                    ensure!(status == 403, "{path}: {status} {body}");
                }
                Ok(())
            })
            .await;
    }
    for (number, site) in [("33a", "cross-site"), ("33b", "same-site")] {
        report
            .attack(number, &format!("a request that a browser calls {site}"), async {
                let request = page.asks(Method::GET, "/api/me").header("sec-fetch-site", site);
                let (status, body) = answer_to(request).await?;
                ensure!(status == 403, "{status} {body}");
                Ok(())
            })
            .await;
    }
}

async fn cookies(report: &mut Report, page: &Page<'_>) {
    let (target, cookie, pair) = (page.target, &page.cookie, page.pair());
    report
        .attack("34", "what a form can send, on every change", async {
            let forms = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"];
            for (method, path) in operations("web:talk-0001") {
                if method == Method::GET || path == "/mcp" {
                    continue;
                }
                for form in forms {
                    let request = page.asks(method.clone(), &path).header("content-type", form);
                    let (status, body) = answer_to(request.body("{}")).await?;
                    ensure!(status == 415, "{method} {path} {form}: {status} {body}");
                }
            }
            Ok(())
        })
        .await;
    report
        .attack("35", "the cookie is the browser's own", async {
            for flag in ["HttpOnly", "SameSite=Strict", "Path=/"] {
                ensure!(cookie.contains(flag), "{cookie}");
            }
            Ok(())
        })
        .await;
    report
        .attack("98", "the cookie that every port of the host is sent, by itself", async {
            for (method, path) in operations("web:talk-0001") {
                let request = target.bare(method.clone(), &path).header("cookie", pair);
                let (status, body) = answer_to(request.json(&json!({}))).await?;
                ensure!(status == 401, "{method} {path}: {status} {body}");
            }
            Ok(())
        })
        .await;
    report
        .control("98c", "the page itself, with cookie and key", async {
            let (status, me) = answer_to(page.asks(Method::GET, "/api/me")).await?;
            ensure!(status == 200 && me["decides"] == true, "{status} {me}");
            Ok(())
        })
        .await;
}

async fn assets(report: &mut Report, target: &Target) {
    let port = target.port;
    report
        .attack("36", "the page allows no other script, frame or type", async {
            let response =
                target.bare(Method::GET, "/").header("host", format!("localhost:{port}"));
            let response = response.send().await?;
            let policy = response.headers()["content-security-policy"].to_str()?.to_owned();
            for part in ["default-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"] {
                ensure!(policy.contains(part), "{policy}");
            }
            Ok(())
        })
        .await;
    report
        .attack("36b", "answers are not kept by a browser", async {
            let response = target.by(&target.token, Method::GET, "/api/me").send().await?;
            ensure!(response.headers()["cache-control"] == "no-store");
            Ok(())
        })
        .await;
    for (number, path) in [
        ("37a", "/../../etc/passwd"),
        ("37b", "/assets/..%2f..%2f..%2fetc/passwd"),
        ("37c", "/%2e%2e/%2e%2e/etc/passwd"),
        ("37d", "/assets/../index.html"),
    ] {
        report
            .attack(number, &format!("the file {path}"), async {
                let bytes = format!(
                    "GET {path} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n\r\n"
                );
                ensure!(!target.raw(bytes.as_bytes()).await?.contains("root:"));
                Ok(())
            })
            .await;
    }
}

async fn names(report: &mut Report, target: &Target) {
    report
        .attack("42", "a person whose name hides something", async {
            for name in ["ada\u{202e}", "a\u{0}da", "ada\u{200b}", "ada\n"] {
                let login = json!({"passphrase": PASSPHRASE, "person": name});
                let (status, told) =
                    answer_to(target.bare(Method::POST, "/api/login").json(&login)).await?;
                ensure!(status == 422, "{name:?}: {status} {told}");
            }
            Ok(())
        })
        .await;
    report
        .attack("70b", "a name of one's own choice, with a passphrase that is somebody's", async {
            for name in ["somebody", "Owner", "admin"] {
                let login = json!({"passphrase": PASSPHRASE, "person": name});
                let (status, told) =
                    answer_to(target.bare(Method::POST, "/api/login").json(&login)).await?;
                ensure!(matches!(status, 401 | 422 | 429), "{name:?}: {status} {told}");
            }
            Ok(())
        })
        .await;
}

async fn bodies(report: &mut Report, target: &Target) {
    report
        .attack("38a", "a body of 2 MiB from nobody", async {
            // Whoever still sends when the connection ends may not get to read the answer: then it is asked once more.
            for _ in 0..3 {
                let request = target.bare(Method::POST, "/api/login");
                let request = request.header("content-type", "application/json");
                if let Ok(response) = request.body("x".repeat(2 << 20)).send().await {
                    ensure!(response.status() == 413, "{}", response.status());
                    return Ok(());
                }
            }
            anyhow::bail!("no answer could be read")
        })
        .await;
    for (number, path) in [("39a", "/api/sessions"), ("39b", "/v1/chat/completions")] {
        for depth in [33, 100_000] {
            report
                .attack(number, &format!("{path} nested {depth} deep"), async {
                    let body = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
                    let request = target.by(&target.token, Method::POST, path);
                    let request = request.header("content-type", "application/json").body(body);
                    let (status, told) = answer_to(request).await?;
                    ensure!(status == 422, "{status} {told}");
                    Ok(())
                })
                .await;
        }
    }
    report
        .attack("39d", "/mcp nested 120 deep", async {
            let wish = json!({"root": "/deep"});
            let request = target.by(&target.token, Method::POST, "/api/agents").json(&wish);
            let place = answer_to(request).await?.1;
            let token = place["token"].as_str().context("a place")?;
            let body = format!("{{\"a\":{}{}}}", "[".repeat(120), "]".repeat(120));
            let request = target.by(token, Method::POST, "/mcp").body(body);
            let (status, told) =
                answer_to(request.header("content-type", "application/json")).await?;
            ensure!(status == 422, "{status} {told}");
            Ok(())
        })
        .await;
    report
        .attack("41", "a field that is there twice", async {
            let request = target.bare(Method::POST, "/api/tokens");
            let request = request.header("content-type", "application/json");
            let body = format!("{{\"name\":\"x\",\"name\":\"y\",\"passphrase\":\"{PASSPHRASE}\"}}");
            let (status, told) = answer_to(request.body(body)).await?;
            ensure!(status == 422, "{status} {told}");
            Ok(())
        })
        .await;
    names(report, target).await;
    report
        .control("42c", "a stream of one's own", async {
            let own = listen_at(&target.url, &target.token, Wire::WebSocket, "api:own-0001", 0);
            own.await.map(drop)
        })
        .await;
}
