//! 52 to 90: what runs beside the server with the same permissions, what is brought in, and what keys are for.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Stdio, time::Duration};

use anyhow::{Context as _, ensure};
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::{
    Report,
    target::{PASSPHRASE, Target, answer_to},
};

pub(super) async fn attack(report: &mut Report) -> anyhow::Result<()> {
    passphrase(report).await?;
    keys(report).await?;
    imports(report).await?;
    squatting(report).await
}

async fn passphrase(report: &mut Report) -> anyhow::Result<()> {
    let target = Target::start("", &[]).await?;
    report
        .attack("52", "another passphrase is chosen while the file is moved away", async {
            let (file, aside) = (target.data().join("passphrases"), target.data().join("aside"));
            fs::rename(&file, &aside)?;
            let choice = json!({"passphrase": "chosen by a thief", "token": target.token});
            let (chosen, body) =
                answer_to(target.bare(Method::POST, "/api/passphrase").json(&choice)).await?;
            let wish = json!({"name": "thief", "passphrase": "chosen by a thief"});
            let (given, _) =
                answer_to(target.bare(Method::POST, "/api/tokens").json(&wish)).await?;
            let _ = fs::remove_file(&file);
            fs::rename(&aside, &file)?;
            ensure!(chosen >= 400 && given == 401, "{chosen} {body}, {given}");
            Ok(())
        })
        .await;
    report
        .control("52c", "the owner's own passphrase", async {
            target.token_of("owner", true).await?;
            Ok(())
        })
        .await;
    report
        .attack("53", "the files of the data directory", async {
            for entry in fs::read_dir(target.data())? {
                let entry = entry?;
                let mode = entry.metadata()?.permissions().mode() & 0o077;
                ensure!(mode == 0, "{} is {mode:o} to others", entry.path().display());
            }
            Ok(())
        })
        .await;
    // Root reads everything, and proves nothing here.
    if !rustix::process::geteuid().is_root() {
        report
            .attack("52d", "the environment of the server", async {
                let read = fs::read(format!("/proc/{}/environ", target.pid()?));
                ensure!(read.is_err(), "the environment can be read");
                Ok(())
            })
            .await;
    }
    report
        .attack("54", "a token that may speak takes every place", async {
            let speaks = target.token_of("bob", false).await?;
            let mut taken = 0;
            for at in 0..300 {
                let wish = json!({"root": format!("/p{at}")});
                let (status, _) =
                    answer_to(target.by(&speaks, Method::POST, "/api/agents").json(&wish)).await?;
                taken += u32::from(status == 201);
            }
            ensure!((1..300).contains(&taken), "{taken} places were given");
            let login = json!({"passphrase": PASSPHRASE});
            let (status, body) =
                answer_to(target.bare(Method::POST, "/api/login").json(&login)).await?;
            ensure!(status == 200, "the owner: {status} {body}");
            Ok(())
        })
        .await;
    Ok(())
}

/// Somebody who writes down what they are sent.
async fn thief() -> anyhow::Result<(u16, tokio::task::JoinHandle<String>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let heard = tokio::spawn(async move {
        let mut all = String::new();
        let until = tokio::time::Instant::now() + Duration::from_secs(3);
        while let Ok(Ok((mut stream, _))) = tokio::time::timeout_at(until, listener.accept()).await
        {
            let mut bytes = vec![0; 8_192];
            let read = tokio::time::timeout(Duration::from_millis(300), stream.read(&mut bytes));
            let read = read.await.ok().and_then(Result::ok).unwrap_or(0);
            all.push_str(&String::from_utf8_lossy(&bytes[..read]));
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
        all
    });
    Ok((port, heard))
}

/// 66: the server is asked to try models where only its machine can.
async fn asks_itself(report: &mut Report, target: &Target, ada: &str) {
    report
        .attack("66", "the server is made to ask its own machine and network", async {
            let (port, heard) = thief().await?;
            let own = target.url.clone();
            for url in [
                own,
                format!("http://127.0.0.1:{port}"),
                format!("http://localhost:{port}"),
                format!("http://[::1]:{port}"),
                format!("http://2130706433:{port}"),
                "http://169.254.169.254/latest".into(),
                "http://10.0.0.1/v1".into(),
            ] {
                let wish = json!({"url": url, "name": "x"});
                for (method, path) in
                    [(Method::POST, "/api/model/try"), (Method::PUT, "/api/model")]
                {
                    let (status, body) =
                        answer_to(target.by(ada, method, path).json(&wish)).await?;
                    let words = body["detail"].as_str().unwrap_or_default();
                    let held = status == 422 && words.contains("leads to this machine");
                    ensure!(held, "{url}: {status} {body}");
                }
            }
            let heard = heard.await?;
            ensure!(heard.is_empty(), "{heard}");
            Ok(())
        })
        .await;
    report
        .control("66", "the configured model is tried", async {
            let wish = json!({"url": target.model_url(), "name": "scripted"});
            let (status, body) =
                answer_to(target.by(ada, Method::POST, "/api/model/try").json(&wish)).await?;
            ensure!(status == 200, "{status} {body}");
            Ok(())
        })
        .await;
}

async fn keys(report: &mut Report) -> anyhow::Result<()> {
    let environment = [
        ("ANTHROPIC_API_KEY", "sk-ant-canary-env"),
        ("PLANWRIGHT_API_KEY", "sk-canary-planwright"),
        ("OPENAI_API_KEY", "sk-canary-openai"),
    ];
    let mut target = Target::start("", &environment).await?;
    let ada = target.token_of("ada", true).await?;
    for (number, variable) in [("65", "ANTHROPIC_API_KEY"), ("65b", "PLANWRIGHT_API_KEY")] {
        report
            .attack(number, &format!("{variable} sent to an address of choice"), async {
                // The operator configured this address, so it is asked; the key is another maker's all the same.
                let wish =
                    json!({"url": target.model_url(), "name": "scripted", "keyFrom": variable});
                let (status, body) =
                    answer_to(target.by(&ada, Method::POST, "/api/model/try").json(&wish)).await?;
                let words = body["detail"].as_str().unwrap_or_default();
                // No variable but those of known makers is read for anybody: the model is asked without a key.
                let held = match variable {
                    "ANTHROPIC_API_KEY" => status == 422 && words.contains("and nowhere else"),
                    _ => status == 200,
                };
                ensure!(held, "{status} {body}");
                let keys = target.keys_sent();
                ensure!(keys.iter().all(|key| !key.contains("canary")), "sent: {keys:?}");
                Ok(())
            })
            .await;
    }
    asks_itself(report, &target, &ada).await;
    report
        .attack("65c", "a token that may speak tries a model", async {
            let wish = json!({"url": target.url, "name": "x"});
            let (status, body) =
                answer_to(target.by(&target.token, Method::POST, "/api/model/try").json(&wish))
                    .await?;
            ensure!(status == 403, "{status} {body}");
            Ok(())
        })
        .await;
    report
        .attack("67", "keys in the journal, the log or an export", async {
            target.says(&ada, "api:day-0001", "just a day's work").await?;
            target.kill().await?;
            let archive = target.home.path().join("archive.jsonl").display().to_string();
            let exported = target.program(&["export", &archive]).output().await?;
            ensure!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
            for entry in fs::read_dir(target.data())?.chain(fs::read_dir(target.home.path())?) {
                let path = entry?.path();
                if !path.is_file() {
                    continue;
                }
                let bytes = fs::read(&path)?;
                let found = bytes.windows(9).any(|bytes| bytes == b"sk-canary");
                let found = found || bytes.windows(13).any(|bytes| bytes == b"sk-ant-canary");
                ensure!(!found, "{}", path.display());
            }
            Ok(())
        })
        .await;
    Ok(())
}

/// An installation with a plan that was approved and is being done, killed; where its archive is, and the archive's digest.
async fn archive_of_approved() -> anyhow::Result<(Target, String, String)> {
    let mut from = Target::start("", &[]).await?;
    let owner = from.token_of("owner", true).await?;
    let session = "cli:moved-0001";
    from.says(&owner, session, "/plan on").await?;
    let write = json!({"path": "imported.txt", "content": "x"});
    let plan = format!("PLAN # Move SLOWLY\n\n1. DO write_file {write}\n");
    from.says(&owner, session, &plan).await?;
    let status = from.approves(&owner, session, json!({})).await?;
    ensure!(status == 200, "{status}");
    from.kill().await?;
    ensure!(!from.workspace().join("imported.txt").exists(), "it was done before it was killed");
    let archive = from.home.path().join("archive.jsonl").display().to_string();
    let exported = from.program(&["export", &archive]).output().await?;
    let printed = String::from_utf8_lossy(&exported.stdout).into_owned();
    ensure!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let is_digest =
        |word: &&str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digest = printed.split(|letter: char| !letter.is_ascii_alphanumeric()).find(is_digest);
    let digest = digest.with_context(|| format!("no digest: {printed}"))?.to_owned();
    Ok((from, archive, digest))
}

/// Takes all sessions away from an installation whose server does not run.
fn empty(target: &Target) {
    for name in ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm"] {
        let _ = fs::remove_file(target.data().join(name));
    }
}

/// Whether a plan of an archive that is imported with these words is done once the server runs. It is the same directory: a
/// plan that was approved for another one would not be done in any case.
async fn is_done_here(here: &mut Target, words: &[&str]) -> anyhow::Result<bool> {
    empty(here);
    let imported = here.program(words).output().await?;
    ensure!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    here.up().await?;
    let owner = here.token_of("owner", true).await?;
    let events = here.events(&owner, "cli:moved-0001").await?;
    ensure!(events.contains("plan_approved"), "the session did not come: {events}");
    tokio::time::sleep(Duration::from_secs(5)).await;
    here.kill().await?;
    Ok(here.workspace().join("imported.txt").exists())
}

async fn imports(report: &mut Report) -> anyhow::Result<()> {
    let (mut here, archive, digest) = archive_of_approved().await?;
    report
        .attack("85", "an archive with a plan that was approved elsewhere, and is due", async {
            ensure!(!is_done_here(&mut here, &["import", &archive]).await?, "it ran");
            Ok(())
        })
        .await;
    report
        .control("85c", "the same, trusted by its digest", async {
            let words = ["import", &archive, "--trust", &digest];
            ensure!(is_done_here(&mut here, &words).await?, "it did not run");
            Ok(())
        })
        .await;
    report
        .attack("85d", "an archive that is cut short", async {
            empty(&here);
            let text = fs::read_to_string(&archive)?;
            let cut = here.home.path().join("cut.jsonl");
            let lines: Vec<_> = text.lines().collect();
            fs::write(&cut, lines[..lines.len() - 2].join("\n"))?;
            let imported = here.program(&["import", &cut.display().to_string()]).output().await?;
            ensure!(!imported.status.success(), "it was brought in");
            ensure!(!here.data().join("journal.sqlite").exists(), "something is left of it");
            Ok(())
        })
        .await;
    Ok(())
}

/// 90: the port of a server that was killed.
async fn squatting(report: &mut Report) -> anyhow::Result<()> {
    let mut target = Target::start("", &[]).await?;
    let token = target.token.clone();
    report
        .attack("90", "whoever takes the port of a server that was killed is sent no token", async {
            target.kill().await?;
            let listener = TcpListener::bind(("127.0.0.1", target.port)).await?;
            let heard = tokio::spawn(async move {
                let mut all = String::new();
                let until = tokio::time::Instant::now() + Duration::from_secs(6);
                while let Ok(Ok((mut stream, _))) =
                    tokio::time::timeout_at(until, listener.accept()).await
                {
                    let mut bytes = vec![0; 8_192];
                    let read = stream.read(&mut bytes).await.unwrap_or(0);
                    all.push_str(&String::from_utf8_lossy(&bytes[..read]));
                    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\nconnection: close\r\n\r\n{\"proof\":\"00000000\"}";
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
                all
            });
            let mut shim = target.program(&["mcp", "--no-start"]);
            let mut shim = shim.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
            let mut input = shim.stdin.take().context("a way in")?;
            let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "proof", "version": "1"}}});
            input.write_all(format!("{hello}\n").as_bytes()).await?;
            let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
            input.write_all(format!("{list}\n").as_bytes()).await?;
            let heard = heard.await?;
            shim.kill().await?;
            ensure!(!heard.contains(&token), "the token was sent");
            Ok(())
        })
        .await;
    report
        .attack("90b", "nor where it says that it is alive", async {
            target.up().await?;
            // The server's own file, kept alive by the server, led elsewhere by a process of the same user.
            let (port, heard) = thief().await?;
            let file = target.data().join("server.json");
            let text = fs::read_to_string(&file)?;
            let led = text.replace(&format!(":{}", target.port), &format!(":{port}"));
            let same = fs::OpenOptions::new().write(true).truncate(true).open(&file)?;
            std::io::Write::write_all(&mut &same, led.as_bytes())?;
            let said = target.program(&["chat", "hello"]).output().await?;
            ensure!(!said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
            let heard = heard.await?;
            ensure!(heard.contains("/api/proof"), "nobody asked there: {heard}");
            ensure!(!heard.contains(&token), "the token was sent");
            Ok(())
        })
        .await;
    Ok(())
}
