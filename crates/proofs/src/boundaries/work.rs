//! 60 to 95: what a model does, and what is decided on it.

use std::{fs, os::unix::fs::symlink, process::Command, time::Duration};

use anyhow::{Context as _, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    Report,
    callers::planned,
    target::{Target, answer_to},
};

pub(super) async fn attack(report: &mut Report) -> anyhow::Result<()> {
    let target = Target::start("", &[]).await?;
    let ada = target.token_of("ada", true).await?;
    files(report, &target, &ada).await;
    decisions(report, &target, &ada).await;
    leases(report, &target, &ada).await;
    asks(report, &target, &ada).await;
    drop(target);
    surfaces(report).await?;
    pipes(report).await
}

fn call(tool: &str, arguments: &Value) -> String {
    format!("DO {tool} {arguments}")
}

async fn files(report: &mut Report, target: &Target, ada: &str) {
    report
        .attack("60", "13 ways out of the workspace", async {
            let _ = symlink("/etc/passwd", target.workspace().join("lnk_pw"));
            let _ = symlink("/etc", target.workspace().join("lnk_etc"));
            let _ = symlink("../data", target.workspace().join("lnk_rel"));
            let ways = [
                "../data/token",
                "../../../../etc/passwd",
                "/etc/passwd",
                "lnk_pw",
                "lnk_etc/passwd",
                "lnk_rel/token",
                "./../data/token",
                "a/../../data/token",
                "/proc/self/environ",
                "lnk_rel/passphrases",
                "lnk_rel/../data/token",
                "..",
                "~/data/token",
            ];
            let told: Vec<_> =
                ways.iter().map(|way| call("read_file", &json!({"path": way}))).collect();
            target.says(ada, "api:escapes-0001", &told.join("\n")).await?;
            let events = target.events(ada, "api:escapes-0001").await?;
            ensure!(
                events.matches("call_finished").count() + events.matches("call_answered").count()
                    >= ways.len()
            );
            ensure!(!events.contains("root:x:") && !events.contains(&target.token), "{events}");
            Ok(())
        })
        .await;
    report
        .control("60c", "a file of the workspace", async {
            fs::write(target.workspace().join("own.txt"), "what is there")?;
            let read = call("read_file", &json!({"path": "own.txt"}));
            target.says(ada, "api:escapes-0002", &read).await?;
            ensure!(target.events(ada, "api:escapes-0002").await?.contains("what is there"));
            Ok(())
        })
        .await;
}

async fn decisions(report: &mut Report, target: &Target, ada: &str) {
    report
        .attack("72", "approve what was replaced after it was shown", async {
            let session = "api:replaced-0001";
            planned(target, ada, session).await?;
            let old = target.digest(ada, session).await?;
            let header = format!("\"{old}\"");
            let path = |what: &str| format!("/api/sessions/{session}/plan/{what}");
            let shown = target.by(ada, Method::POST, &path("shown")).header("if-match", &header);
            ensure!(answer_to(shown.json(&json!({}))).await?.0 == 200);
            target.says(ada, session, "PLAN # Another plan\n\n1. Other.\n").await?;
            let approve = target.by(ada, Method::POST, &path("approve")).header("if-match", header);
            let (status, body) = answer_to(approve.json(&json!({}))).await?;
            ensure!(status == 412, "{status} {body}");
            Ok(())
        })
        .await;
    report
        .attack("73", "20 approvals of one revision at once", async {
            let session = "api:often-0001";
            planned(target, ada, session).await?;
            let digest = format!("\"{}\"", target.digest(ada, session).await?);
            let path = |what: &str| format!("/api/sessions/{session}/plan/{what}");
            let shown = target.by(ada, Method::POST, &path("shown")).header("if-match", &digest);
            ensure!(answer_to(shown.json(&json!({}))).await?.0 == 200);
            let approving = (0..20).map(|_| {
                let request = target.by(ada, Method::POST, &path("approve"));
                answer_to(request.header("if-match", &digest).json(&json!({"hold": true})))
            });
            let came = futures_util::future::join_all(approving).await;
            let taken = came.iter().filter(|came| matches!(came, Ok((200, _)))).count();
            ensure!(taken == 1, "{taken} were taken: {came:?}");
            Ok(())
        })
        .await;
    report
        .attack("74", "the same Idempotency-Key with another body", async {
            let send = async |text: &str| {
                let request = target.by(ada, Method::POST, "/api/sessions/api:again-0001/messages");
                answer_to(request.header("idempotency-key", "once").json(&json!({"text": text})))
                    .await
            };
            ensure!(send("the first").await?.0 == 202);
            ensure!(send("the first").await?.0 == 202, "the same is answered again");
            let (status, body) = send("the second").await?;
            ensure!(status == 422, "{status} {body}");
            Ok(())
        })
        .await;
}

async fn leases(report: &mut Report, target: &Target, ada: &str) {
    report
        .attack("77", "a lease of docs/, left by .. and by a link", async {
            let workspace = target.workspace();
            for directory in ["docs", "other"] {
                fs::create_dir_all(workspace.join(directory))?;
            }
            let _ = symlink("../other", workspace.join("docs/ln"));
            let session = "api:lease-0001";
            target.says(ada, session, "/plan on").await?;
            let write = |path: &str| call("write_file", &json!({"path": path, "content": "x"}));
            let plan = format!(
                "PLAN # Write\n\n1. {}\n2. {}\n3. {}\n",
                write("docs/ok.txt"),
                write("docs/../secret.txt"),
                write("docs/ln/evil.txt")
            );
            target.says(ada, session, &plan).await?;
            let grant = json!({"grant": {"tools": ["write_file"], "paths": ["docs/"]}});
            let status = target.approves(ada, session, grant).await?;
            ensure!(status == 200, "{status}");
            target.rests(ada, session).await?;
            ensure!(workspace.join("docs/ok.txt").exists(), "what is leased is written");
            ensure!(!workspace.join("secret.txt").exists(), "left by ..");
            ensure!(!workspace.join("other/evil.txt").exists(), "left by a link");
            Ok(())
        })
        .await;
}

async fn asks(report: &mut Report, target: &Target, ada: &str) {
    report
        .attack("93", "a model writes outside of any plan", async {
            let write = call("write_file", &json!({"path": "unasked.txt", "content": "x"}));
            let status = target.says(ada, "api:unasked-0001", &write).await?;
            ensure!(!target.workspace().join("unasked.txt").exists(), "{status}");
            Ok(())
        })
        .await;
    report
        .attack("94", "a model approves its own plan", async {
            let session = "api:itself-0001";
            planned(target, ada, session).await?;
            for tool in ["plan_approve", "approve", "run_command"] {
                let done = call(tool, &json!({"approved": true, "command": "true"}));
                target.says(ada, session, &done).await?;
            }
            let events = target.events(ada, session).await?;
            ensure!(!events.contains("plan_approved"), "{events}");
            Ok(())
        })
        .await;
    report
        .attack("95", "what a model remembers in one session, in another", async {
            let save = call("memory_save", &json!({"text": "poison-0815"}));
            target.says(ada, "api:memory-0001", &save).await?;
            let memory = async |session: &str| {
                let path = format!("/api/sessions/{session}/memory");
                anyhow::Ok(answer_to(target.by(ada, Method::GET, &path)).await?.1.to_string())
            };
            target.says(ada, "api:memory-0002", "just talk").await?;
            ensure!(memory("api:memory-0001").await?.contains("poison-0815"), "it is kept");
            ensure!(!memory("api:memory-0002").await?.contains("poison-0815"), "and stays there");
            Ok(())
        })
        .await;
    report
        .attack("91", "escapes for a terminal in an answer", async {
            let evil = "\u{1b}]52;c;cHduZWQ=\u{7}\u{1b}[2J\u{9b}31m";
            let output = target.program(&["chat", &format!("SAY x{evil}y")]).output().await?;
            let shown = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&shown);
            ensure!(text.contains("⟨U+001B⟩]52"), "the answer is not shown: {text}");
            ensure!(!shown.contains(&0x1b) && !shown.contains(&0x07), "raw escapes were shown");
            Ok(())
        })
        .await;
}

/// 70, 71: who decides, and where, is what the server gave out.
async fn surfaces(report: &mut Report) -> anyhow::Result<()> {
    let (carols, pages) = ("people = [\"carol\"]", "surfaces = [\"web\"]");
    for (number, what, rule, person, allowed) in [
        ("70", "the owner decides where carol alone may", carols, "owner", false),
        ("70", "carol decides where she may", carols, "carol", true),
        ("71", "carol decides over the API and calls it a page", pages, "carol", false),
    ] {
        let target = Target::start(&format!("[approval]\n{rule}\n"), &[]).await?;
        let decides = async {
            let token = target.token_of(person, true).await?;
            let session = format!("api:people-{number}-1");
            planned(&target, &token, &session).await?;
            let digest = format!("\"{}\"", target.digest(&token, &session).await?);
            for action in ["shown", "approve"] {
                let path = format!("/api/sessions/{session}/plan/{action}");
                let request = target.by(&token, Method::POST, &path).json(&json!({}));
                let request = request.header("planwright-surface", "web forged");
                let (status, body) = answer_to(request.header("if-match", &digest)).await?;
                let held = if allowed { status == 200 } else { status == 403 };
                ensure!(action == "shown" || held, "{status} {body}");
            }
            Ok(())
        };
        if allowed {
            report.control(number, what, decides).await;
        } else {
            report.attack(number, what, decides).await;
        }
    }
    Ok(())
}

/// 61: a pipe in the workspace.
async fn pipes(report: &mut Report) -> anyhow::Result<()> {
    let mut target = Target::start("", &[]).await?;
    let ada = target.token_of("ada", true).await?;
    report
        .attack("61", "a pipe that nobody writes to, read as a file", async {
            let pipe = target.workspace().join("pipe");
            ensure!(Command::new("mkfifo").arg(&pipe).status()?.success(), "no pipe");
            let read = call("read_file", &json!({"path": "pipe"}));
            let said = target.says(&ada, "api:pipe-0001", &read);
            tokio::time::timeout(Duration::from_secs(10), said).await.context("it hangs")??;
            ensure!(target.stops().await?, "the server does not stop");
            Ok(())
        })
        .await;
    Ok(())
}
