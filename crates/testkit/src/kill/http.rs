//! The same lives, driven over HTTP: every request has an Idempotency-Key, and what it was answered counts.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use async_trait::async_trait;
use planwright_surfaces::http::auth::command_id;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Child,
};
use uuid::Uuid;

use super::{
    Acknowledged, Campaign, Death, PASSPHRASE,
    life::{ANSWER_MAX, Driven, Step, subject},
};

/// A token that may decide, as long as it lasts.
#[derive(Debug, Clone)]
pub(super) struct Decider {
    grant: Uuid,
    token: String,
}

/// A server under proof.
pub(super) struct HttpProcess {
    child: Child,
    url: String,
    client: reqwest::Client,
    decider: Decider,
}

impl HttpProcess {
    /// Starts the server; none if it died before it said where it listens, or before it gave a token.
    pub(super) async fn start(
        campaign: &mut Campaign,
        death: &Death,
    ) -> anyhow::Result<Option<Self>> {
        prepare(campaign).await?;
        let mut child = subject(campaign, &["up", "--json"], death).spawn()?;
        let output = child.stdout.take().ok_or_else(|| anyhow::anyhow!("no output"))?;
        let mut lines = BufReader::new(output).lines();
        let first = tokio::time::timeout(ANSWER_MAX, lines.next_line()).await;
        let told: Value = match first {
            Ok(Ok(Some(line))) => serde_json::from_str(&line)?,
            Ok(Ok(None) | Err(_)) | Err(_) => {
                match death {
                    Death::At(..) => campaign.killed_at_points += 1,
                    Death::After(_)
                    | Death::PowerCut(_)
                    | Death::CutAtWrite(_)
                    | Death::CutAtSync(_)
                    | Death::Peaceful => {
                        campaign.complaints.push("a server did not say where it listens".into());
                    }
                }
                return Ok(None);
            }
        };
        let url = told["url"].as_str().unwrap_or_default().to_owned();
        let client = reqwest::Client::builder().timeout(ANSWER_MAX).build()?;
        if campaign.decider.is_none() {
            let wish = json!({"name": "proof", "passphrase": PASSPHRASE});
            let given = client
                .post(format!("{url}/api/tokens"))
                .json(&wish)
                .send()
                .await?
                .json::<Value>()
                .await?;
            let (grant, token) = (
                given["id"].as_str().unwrap_or_default(),
                given["token"].as_str().unwrap_or_default(),
            );
            campaign.decider =
                Some(Decider { grant: Uuid::parse_str(grant)?, token: token.into() });
        }
        let Some(decider) = campaign.decider.clone() else { return Ok(None) };
        Ok(Some(Self { child, url, client, decider }))
    }

    fn post(&self, session: &str, path: &str) -> reqwest::RequestBuilder {
        self.client
            .post(format!("{}/api/sessions/cli:{session}{path}", self.url))
            .bearer_auth(&self.decider.token)
    }
}

/// The passphrase and a configuration, once.
async fn prepare(campaign: &Campaign) -> anyhow::Result<()> {
    if campaign.data().join("config.toml").exists() {
        return Ok(());
    }
    let mut first =
        subject(campaign, &["plan", "status", "--passphrase-stdin"], &Death::Peaceful).spawn()?;
    if let Some(mut input) = first.stdin.take() {
        input.write_all(format!("{PASSPHRASE}\n").as_bytes()).await?;
    }
    first.wait().await?;
    let path = campaign.data().join("config.toml");
    fs::write(&path, "[server]\nbind = \"127.0.0.1:0\"\n")?;
    Ok(fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?)
}

#[async_trait]
impl Driven for HttpProcess {
    async fn ask(&mut self, campaign: &mut Campaign, session: &str, line: &str) -> Option<Value> {
        let key = Uuid::now_v7().to_string();
        let request = self
            .post(session, "/lines")
            .header("idempotency-key", &key)
            .json(&json!({"line": line}));
        let answer = request.send().await.ok()?;
        let status = answer.status();
        let reply: Value = answer.json().await.ok()?;
        if !status.is_success() {
            campaign.complaints.push(format!("{session}: {line:?} was answered {status}: {reply}"));
            return None;
        }
        if let Some(version) = reply["accepted"]["version"].as_u64() {
            // The server names the command after the caller and the key; asking again must give this version.
            let asks = format!("POST /api/sessions/cli:{session}/lines");
            let id = command_id(self.decider.grant.into(), &asks, &key);
            campaign.acknowledged.push(Acknowledged {
                session: session.to_owned(),
                id,
                line: line.to_owned(),
                version,
            });
            let again = self
                .post(session, "/lines")
                .header("idempotency-key", &key)
                .json(&json!({"line": line}));
            if let Ok(answer) = again.send().await
                && let Ok(repeated) = answer.json::<Value>().await
                && repeated != reply
            {
                campaign
                    .complaints
                    .push(format!("{session}: {line:?} was answered {reply}, and then {repeated}"));
            }
        }
        if let Some(digest) = reply["revision"]["digest"].as_str() {
            let shown =
                self.post(session, "/plan/shown").header("if-match", format!("\"{digest}\""));
            shown.send().await.ok()?;
        }
        let kind = reply.as_object()?.keys().next()?.clone();
        let words = reply["refused"].to_string();
        Some(json!({"type": kind, "status": reply["status"], "words": words}))
    }

    async fn wait(&mut self, _: &mut Campaign, _: &str) -> Step {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Step::On
    }

    fn leave(&mut self) {
        if let Some(pid) =
            self.child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()))
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }

    fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    async fn drain(&mut self, _: &mut Campaign, _: &str) {}
}
