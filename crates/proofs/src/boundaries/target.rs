//! What is attacked: the program as people run it, with a model that does what it is told.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use planwright_domain::actor::OWNER;
use planwright_testkit::{
    scratch,
    scripted_model::{Conduct, ScriptedModel, ScriptedReply, SeenRequest},
    servers::free_port,
};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    process::{Child, Command},
    sync::Mutex,
    time::{Instant, sleep, timeout},
};

/// The passphrase of every installation here.
pub(super) const PASSPHRASE: &str = "correct horse battery";
/// What only ada has said.
pub(super) const CANARY: &str = "canary-of-ada-4711";

/// A model that does what it is told: `DO tool {arguments}` is a call, `PLAN text` a plan, `SAY text` an answer. A plan that
/// is to be done `SLOWLY` is thought about first.
fn obedient() -> Conduct {
    Arc::new(|seen: &SeenRequest| {
        let executes = seen.turn_note.contains("[The plan is Running.]");
        if seen.rounds > 0 {
            return match (executes, seen.rounds) {
                (true, 1) => {
                    let done = json!({"status": "done", "summary": "as it was told"});
                    ScriptedReply::call("plan_report", &done)
                }
                (_, _) => ScriptedReply::text("That is all."),
            };
        }
        if let Some((_, text)) = seen.last_message.split_once("SAY ") {
            return ScriptedReply::text(text);
        }
        if let Some((_, plan)) = seen.last_message.split_once("PLAN ") {
            return ScriptedReply::call("plan_set_content", &json!({"plan_markdown": plan}));
        }
        let told =
            if executes { seen.body["messages"].to_string() } else { seen.last_message.clone() };
        let told = if executes { told.replace("\\n", "\n").replace("\\\"", "\"") } else { told };
        let mut reply = ScriptedReply::default();
        for line in told.lines() {
            let Some((_, call)) = line.split_once("DO ") else { continue };
            let Some((tool, arguments)) = call.split_once(' ') else { continue };
            let parsed = serde_json::Deserializer::from_str(arguments).into_iter::<Value>().next();
            if let Some(Ok(arguments)) = parsed {
                reply = reply.and(tool, &arguments);
            }
        }
        if executes && told.contains("SLOWLY") {
            reply.thinks = Duration::from_secs(2);
        }
        if reply.calls.is_empty() { ScriptedReply::text("Well.") } else { reply }
    })
}

/// An installation whose server runs.
pub(super) struct Target {
    pub(super) home: tempfile::TempDir,
    pub(super) url: String,
    pub(super) port: u16,
    pub(super) client: Client,
    /// The token that lies in the data directory.
    pub(super) token: String,
    program: PathBuf,
    model: ScriptedModel,
    server: Child,
    /// Who was invited and accepted, besides the owner, and a token of each.
    people: Mutex<BTreeMap<String, String>>,
}

impl Target {
    /// Starts the program with these settings besides, and this environment.
    pub(super) async fn start(
        settings: &str,
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let home = scratch::directory("boundaries")?;
        let program = std::env::current_exe()?.with_file_name("planwright");
        ensure!(program.exists(), "build the package planwright first");
        let data = home.path().join("data");
        fs::create_dir(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        fs::create_dir(home.path().join("workspace"))?;
        let port = free_port();
        write_private(
            &data.join("config.toml"),
            &format!("[server]\nbind = \"127.0.0.1:{port}\"\n{settings}"),
        )?;
        let model = ScriptedModel::start(obedient()).await?;
        let server = launch(&program, home.path(), &model, environment).await?;
        let client = Client::builder()
            .timeout(Duration::from_secs(20))
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let url = format!("http://127.0.0.1:{port}");
        let mut target = Self {
            home,
            url,
            port,
            client,
            token: String::new(),
            program,
            model,
            server,
            people: Mutex::default(),
        };
        target.answers().await?;
        target.token = fs::read_to_string(data.join("token"))?.trim().to_owned();
        Ok(target)
    }

    async fn answers(&mut self) -> anyhow::Result<()> {
        let until = Instant::now() + Duration::from_secs(20);
        while self.bare(Method::GET, "/ready").send().await.is_err() {
            ensure!(Instant::now() < until, "the server does not come up");
            ensure!(self.server.try_wait()?.is_none(), "the server ended");
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    pub(super) fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// The keys that its model was sent.
    pub(super) fn keys_sent(&self) -> BTreeSet<String> {
        self.model.keys()
    }

    /// Where its model is.
    pub(super) fn model_url(&self) -> String {
        self.model.base_url()
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.home.path().join("workspace")
    }

    pub(super) fn pid(&self) -> anyhow::Result<u32> {
        self.server.id().context("the server ended")
    }

    /// Kills the server, as `kill -9` does.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        self.server.kill().await?;
        Ok(())
    }

    /// Tells the server to stop; whether it did.
    pub(super) async fn stops(&mut self) -> anyhow::Result<bool> {
        let pid = self.pid()?.to_string();
        Command::new("kill").args(["-TERM", &pid]).status().await?;
        Ok(timeout(Duration::from_secs(10), self.server.wait()).await.is_ok())
    }

    /// Starts the server again.
    pub(super) async fn up(&mut self) -> anyhow::Result<()> {
        self.server = launch(&self.program, self.home.path(), &self.model, &[]).await?;
        self.answers().await
    }

    /// The program, with these words.
    pub(super) fn program(&self, words: &[&str]) -> Command {
        command(&self.program, self.home.path(), &self.model, words)
    }

    pub(super) fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(super) fn by(&self, token: &str, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).bearer_auth(token)
    }

    /// A token of this person, by the passphrase. Whoever is not there yet is invited and accepts.
    pub(super) async fn token_of(&self, person: &str, decides: bool) -> anyhow::Result<String> {
        if person != OWNER && !self.people.lock().await.contains_key(person) {
            self.invite(person).await?;
        }
        self.give_token(person, decides).await
    }

    /// Adds somebody who may decide, and lets them choose a passphrase with the link.
    async fn invite(&self, person: &str) -> anyhow::Result<()> {
        let admin = self.give_token(OWNER, true).await?;
        let new = json!({"name": person, "roles": ["decide"]});
        let request = self.by(&admin, Method::POST, "/api/people").json(&new);
        let (status, given) = answer_to(request).await?;
        ensure!(status == 201, "{status} {given}");
        let link = given["link"].as_str().context("a link")?;
        let secret = link.split_once("#invitation=").context("a secret")?.1;
        let choice = json!({"passphrase": PASSPHRASE, "invitation": secret});
        let request = self.by(&self.token, Method::POST, "/api/passphrase").json(&choice);
        let (status, told) = answer_to(request).await?;
        ensure!(status == 200, "{status} {told}");
        let own = self.give_token(person, false).await?;
        self.people.lock().await.insert(person.to_owned(), own);
        Ok(())
    }

    async fn give_token(&self, person: &str, decides: bool) -> anyhow::Result<String> {
        let wish = json!({"name": "proof", "passphrase": PASSPHRASE, "person": person, "speaks_only": !decides});
        // Whoever has a token of theirs is not held up by tries of others.
        let own = self.people.lock().await.get(person).cloned();
        let own = own.unwrap_or_else(|| self.token.clone());
        let request = self.by(&own, Method::POST, "/api/tokens").json(&wish);
        let (status, given) = answer_to(request).await?;
        ensure!(status == 201, "{status} {given}");
        Ok(given["token"].as_str().context("a token")?.to_owned())
    }

    /// Says a line in a session, and waits until it rests.
    pub(super) async fn says(
        &self,
        token: &str,
        session: &str,
        line: &str,
    ) -> anyhow::Result<Value> {
        let path = format!("/api/sessions/{session}/lines");
        let request = self.by(token, Method::POST, &path).json(&json!({"line": line}));
        let (status, reply) = answer_to(request).await?;
        ensure!(status == 200, "{line}: {status} {reply}");
        self.rests(token, session).await
    }

    /// The status of a session, once it rests.
    pub(super) async fn rests(&self, token: &str, session: &str) -> anyhow::Result<Value> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let path = format!("/api/sessions/{session}/status");
            let (_, status) = answer_to(self.by(token, Method::GET, &path)).await?;
            if status["resting"] == true {
                return Ok(status);
            }
            ensure!(Instant::now() < until, "{session} does not rest: {status}");
            sleep(Duration::from_millis(15)).await;
        }
    }

    /// All events of a session, as text.
    pub(super) async fn events(&self, token: &str, session: &str) -> anyhow::Result<String> {
        let path = format!("/api/sessions/{session}/events?limit=500");
        let (status, events) = answer_to(self.by(token, Method::GET, &path)).await?;
        ensure!(status == 200, "{status} {events}");
        Ok(events.to_string())
    }

    /// The name of ada's session for everyone, with its owner.
    pub(super) async fn whole_name(&self, session: &str) -> anyhow::Result<String> {
        let owner = self.token_of("owner", true).await?;
        let (_, waiting) = answer_to(self.by(&owner, Method::GET, "/api/approvals")).await?;
        let names =
            waiting.as_array().into_iter().flatten().filter_map(|row| row["sessionId"].as_str());
        let end = format!(".{session}");
        let name = names.into_iter().find(|name| name.ends_with(&end));
        Ok(name.with_context(|| format!("{session} does not wait: {waiting}"))?.to_owned())
    }

    /// The digest of the plan that waits in a session.
    pub(super) async fn digest(&self, token: &str, session: &str) -> anyhow::Result<String> {
        let path = format!("/api/sessions/{session}");
        let (_, state) = answer_to(self.by(token, Method::GET, &path)).await?;
        let digest = state["plan"]["digest"].as_str();
        Ok(digest.with_context(|| format!("nothing waits: {state}"))?.to_owned())
    }

    /// Reads and approves what waits in a session; the status of the answer.
    pub(super) async fn approves(
        &self,
        token: &str,
        session: &str,
        terms: Value,
    ) -> anyhow::Result<u16> {
        let digest = self.digest(token, session).await?;
        let mut status = 0;
        for (what, body) in [("shown", json!({})), ("approve", terms)] {
            let path = format!("/api/sessions/{session}/plan/{what}");
            let request = self.by(token, Method::POST, &path).json(&body);
            status = answer_to(request.header("if-match", format!("\"{digest}\""))).await?.0;
        }
        Ok(status)
    }

    /// What comes back when these bytes are sent.
    pub(super) async fn raw(&self, bytes: &[u8]) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.write_all(bytes).await?;
        let (mut came, mut piece) = (Vec::new(), vec![0; 4_096]);
        // A second answer may come after the first.
        while let Ok(Ok(read)) = timeout(Duration::from_millis(400), stream.read(&mut piece)).await
        {
            if read == 0 {
                break;
            }
            came.extend_from_slice(&piece[..read]);
        }
        Ok(String::from_utf8_lossy(&came).into_owned())
    }
}

fn command(program: &Path, home: &Path, model: &ScriptedModel, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HOME", home)
        .env("USER", "ada")
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .arg("--data")
        .arg(home.join("data"))
        .arg("--workspace")
        .arg(home.join("workspace"))
        .args(["--model-url", &model.base_url(), "--model", "scripted"])
        .args(words)
        .current_dir(home)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

async fn launch(
    program: &Path,
    home: &Path,
    model: &ScriptedModel,
    environment: &[(&str, &str)],
) -> anyhow::Result<Child> {
    let log = fs::OpenOptions::new().create(true).append(true).open(home.join("up.log"))?;
    let mut command = command(program, home, model, &["up", "--json", "--passphrase-stdin"]);
    command.envs(environment.iter().copied());
    command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
    let mut server = command.spawn()?;
    let mut input = server.stdin.take().context("a way in")?;
    input.write_all(format!("{PASSPHRASE}\n").as_bytes()).await?;
    Ok(server)
}

/// Writes a file that its owner alone reads.
pub(super) fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(())
}

/// The status and the body of an answer.
pub(super) async fn answer_to(request: RequestBuilder) -> anyhow::Result<(u16, Value)> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let text = response.text().await?;
    Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}
