//! The same through the doors that people use: HTTP, WebSockets and the engines, on both deployments.
//!
//! The model is the witness: every request that it gets holds all that a turn was given, and every text says
//! where it was said.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context as _;
use fastrand::Rng;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use planwright_domain::{
    actor::{PersonId, Standing},
    id::{OwnerId, Seq},
    identity::SessionKey,
};
use planwright_surfaces::http::{HttpSettings, streams::envelope::Envelope};
use planwright_testkit::{
    house::House,
    scripted_model::{Conduct, ScriptedReply, SeenRequest},
    served::{Served, response_to},
    streams::{Wire, listen_at},
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// How many commands one history has.
const OPS: usize = 16;
/// How many histories are played at once.
const AT_ONCE: usize = 6;

/// What was seen that should not be.
type Seen = Arc<Mutex<Vec<String>>>;

/// A door that stands open: whoever asks there is taken for ada. Played by giving bea ada's token, it shows that the oracle
/// sees what comes through such a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenDoor {
    /// Where a session is made by its key.
    Create,
    /// Where a stream is opened, before the session is there.
    Listen,
    /// Where an agent takes a place.
    Agent,
}

impl OpenDoor {
    pub(super) const ALL: [Self; 3] = [Self::Create, Self::Listen, Self::Agent];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "a session is created for whoever names its key",
            Self::Listen => "a key that has no session yet is everyone's to hear",
            Self::Agent => "an agent takes any place that it names",
        }
    }
}

/// Where an agent reads its plan.
const PLAN: &str = "planwright://plan";
/// How many histories each open door has to be found in.
const DOOR_MAX: u64 = 40;

/// After how many histories an open door is found; none if it is not.
pub(super) async fn finds(door: OpenDoor, seed: u64) -> Option<u64> {
    let served = served(House::local(witness(Seen::default())).await).await;
    for at in 0..DOOR_MAX {
        if history(&served, seed + at, Some(door)).await.is_err_and(|words| is_label(&words)) {
            return Some(at + 1);
        }
    }
    None
}

fn is_label(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.to_string().starts_with("label: "))
}

async fn served(house: House) -> Served {
    let quick = |settings| HttpSettings {
        requests_per_second: 1_000_000,
        logins_per_minute: 1_000,
        // A place that was left is free at once.
        agent_grace: Some(std::time::Duration::ZERO),
        ..settings
    };
    Served::of(house, quick).await
}

/// Plays so many histories on both deployments; how many commands, and what broke.
pub(super) async fn histories(count: u64, seed: u64) -> anyhow::Result<(u64, Vec<String>)> {
    let (mut commands, mut broken) = (0, Vec::new());
    for deployment in ["local", "cluster"] {
        let seen = Seen::default();
        let conduct = witness(seen.clone());
        let house = match deployment {
            "local" => House::local(conduct).await,
            _ => House::cluster(conduct).await,
        };
        let served = served(house).await;
        let each = |at| history(&served, seed + at, None);
        let played: Vec<_> =
            stream::iter(0..count).map(each).buffer_unordered(AT_ONCE).collect().await;
        for outcome in played {
            match outcome {
                Ok(many) => commands += many,
                Err(words) => broken.push(format!("{deployment}: {words:#}")),
            }
        }
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        broken.extend(seen.iter().map(|words| format!("{deployment}: {words}")));
    }
    Ok((commands, broken))
}

/// The origins of everything that a text holds.
fn origins(text: &str) -> BTreeSet<&str> {
    text.split("note [").skip(1).filter_map(|rest| Some(rest.split_once(']')?.0)).collect()
}

/// A model that looks at what it is given, and says where it said it.
fn witness(seen: Seen) -> Conduct {
    Arc::new(move |told: &SeenRequest| {
        let body = told.body.to_string();
        let here = origins(&body);
        if here.len() > 1 {
            let words = format!("label: a turn was given what {here:?} said");
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(words);
        }
        let here = here.into_iter().next().unwrap_or("nowhere");
        let runs = told.tools.iter().any(|tool| tool == "task_report");
        match (runs, told.rounds) {
            (true, 0) => {
                let text = format!("note [{here}] a detail");
                ScriptedReply::call("memory_save", &json!({"text": text, "scope": "task"}))
            }
            (true, 1) => {
                let summary = format!("note [{here}] came out");
                ScriptedReply::call("task_report", &json!({"status": "done", "summary": summary}))
            }
            (false, 0) => {
                let text = format!("note [{here}] a fact");
                ScriptedReply::call("memory_save", &json!({"text": text}))
            }
            (false, 1) if told.tools.iter().any(|tool| tool == "plan_set_content") => {
                let text = format!("# A plan\n\nnote [{here}] a goal\n\n1. Do it.\n");
                ScriptedReply::call("plan_set_content", &json!({"plan_markdown": text}))
            }
            (_, _) => ScriptedReply::text(&format!("note [{here}] so be it")),
        }
    })
}

/// How the people of a history show who they are.
struct People {
    ada: String,
    bea: String,
}

impl People {
    async fn of(served: &Served, seed: u64) -> Self {
        let ada = served.token_of(&format!("ada-{seed}"), Standing::Decides).await;
        let bea = served.token_of(&format!("bea-{seed}"), Standing::Speaks).await;
        Self { ada, bea }
    }

    fn request(&self, served: &Served, chat: usize, method: Method, path: &str) -> RequestBuilder {
        let bare = served.bare(method, path);
        match chat {
            0..=2 => bare.bearer_auth(&self.ada),
            _ => bare.bearer_auth(&self.bea),
        }
    }
}

fn person(chat: usize) -> &'static str {
    if chat == 3 { "bea" } else { "ada" }
}

fn channel(chat: usize) -> &'static str {
    if chat == 2 { "cli" } else { "api" }
}

/// What was meant in one history: what each chat talks to, whose each session is, what is gone, what was touched.
#[derive(Default)]
struct Meant {
    pointers: BTreeMap<usize, Session>,
    deleted: BTreeSet<Session>,
    made: BTreeSet<Session>,
}

/// A session: whose, and its name for them. Both people use the same keys.
type Session = (&'static str, String);

/// What a session is called in what is said there.
fn label((owner, name): &Session) -> String {
    format!("{owner} {name}")
}

async fn history(served: &Served, seed: u64, door: Option<OpenDoor>) -> anyhow::Result<u64> {
    let people = People::of(served, seed).await;
    let mut play = Play {
        served,
        people: &people,
        seed,
        door,
        rng: Rng::with_seed(seed),
        meant: Meant::default(),
        listening: Vec::new(),
    };
    let played = play.all().await;
    served.take_back(&people.ada).await;
    served.take_back(&people.bea).await;
    played
}

/// One history, as it is played.
struct Play<'a> {
    served: &'a Served,
    people: &'a People,
    seed: u64,
    door: Option<OpenDoor>,
    rng: Rng,
    meant: Meant,
    listening: Vec<(Session, BoxStream<'static, Envelope>)>,
}

impl Play<'_> {
    async fn all(&mut self) -> anyhow::Result<u64> {
        self.bea_listens_first().await?;
        for at in 0..OPS {
            let chat = if at < 4 { at } else { self.rng.usize(0..4) };
            let one = if at < 4 || self.rng.u8(0..5) == 0 {
                self.switches(chat).await
            } else if self.rng.u8(0..12) == 0 {
                self.forgets(chat).await
            } else if self.rng.u8(0..6) == 0 {
                self.bea_creates().await
            } else {
                self.says(chat).await
            };
            one.with_context(|| format!("history {}, command {at}", self.seed))?;
        }
        self.judge().await?;
        self.bea_sends_an_agent().await?;
        Ok(OPS as u64)
    }

    /// The keys that both people use.
    fn keys(&self) -> [String; 2] {
        [0, 1].map(|at| format!("h{:06}-key-{at}", self.seed))
    }

    /// How bea shows who she is at this door; whose she is taken for, if it stands open.
    fn bea_at(&self, door: OpenDoor) -> &str {
        if self.door == Some(door) { &self.people.ada } else { &self.people.bea }
    }

    /// Bea listens to keys that nobody has used: what ada says under the same ones is not for her.
    async fn bea_listens_first(&mut self) -> anyhow::Result<()> {
        for (key, wire) in self.keys().into_iter().zip([Wire::WebSocket, Wire::ServerSent]) {
            let (session, token) = (("bea", format!("api:{key}")), self.bea_at(OpenDoor::Listen));
            let events = listen_at(&self.served.url, token, wire, &session.1, 0).await?;
            self.listening.push((session, events));
        }
        Ok(())
    }

    /// Bea makes a session by a key that ada may have used: it is one of her own.
    async fn bea_creates(&mut self) -> anyhow::Result<()> {
        for key in self.keys() {
            let session = ("bea", format!("api:{key}"));
            let request = self.served.bare(Method::POST, "/api/sessions");
            let request = request.bearer_auth(self.bea_at(OpenDoor::Create));
            let (_, reply) = response_to(request.json(&json!({"key": key}))).await;
            told_only(&session, &reply)?;
            if self.door.is_none() {
                self.meant.made.insert(session);
            }
        }
        Ok(())
    }

    /// Ada plans under these keys in the channel of agents. Bea's agents take the places of the same keys, and read the plans
    /// there: bea's.
    async fn bea_sends_an_agent(&mut self) -> anyhow::Result<()> {
        for key in self.keys() {
            let name = format!("mcp:{key}");
            let (hers, own) = (("ada", name.clone()), ("bea", name.clone()));
            let agent = self.takes_place(&self.people.ada, &key).await?;
            let on = self.request(0, Method::POST, &format!("/api/sessions/{name}/lines"));
            let (status, reply) = response_to(on.json(&json!({"line": "/plan on"}))).await;
            anyhow::ensure!(status == 200, "{status} {reply}");
            let text = format!("# A plan\n\nnote [{}] for agents\n\n1. Do it.\n", label(&hers));
            let plan = json!({"name": "plan_set_content", "arguments": {"plan_markdown": text}});
            self.asks(&agent, "tools/call", plan).await;
            let read = self.asks(&agent, "resources/read", json!({"uri": PLAN})).await;
            anyhow::ensure!(read.to_string().contains("for agents"), "ada has no plan: {read}");
            self.served.take_back(&agent).await;
            let token = self.takes_place(self.bea_at(OpenDoor::Agent), &key).await?;
            for (method, params) in [
                ("resources/read", json!({"uri": PLAN})),
                ("tools/call", json!({"name": "plan_get", "arguments": {}})),
            ] {
                told_only(&own, &self.asks(&token, method, params).await)?;
            }
            self.served.take_back(&token).await;
        }
        Ok(())
    }

    /// Takes the place of this key for an agent; its token.
    async fn takes_place(&self, token: &str, key: &str) -> anyhow::Result<String> {
        let request = self.served.bare(Method::POST, "/api/agents").bearer_auth(token);
        let wish = json!({"root": "/isolation", "key": key});
        let (status, place) = response_to(request.json(&wish)).await;
        let token = place["token"].as_str();
        Ok(token.with_context(|| format!("no place: {status} {place}"))?.to_owned())
    }

    /// Asks the MCP server something.
    async fn asks(&self, token: &str, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = self.served.bare(Method::POST, "/mcp").bearer_auth(token);
        let request = request.header("accept", "application/json, text/event-stream");
        response_to(request.json(&message)).await.1
    }

    /// The third chat is the terminal: another channel, with the same keys.
    fn chat_name(&self, chat: usize) -> String {
        if chat == 2 { "terminal".into() } else { format!("h{}-c{chat}", self.seed) }
    }

    fn request(&self, chat: usize, method: Method, path: &str) -> RequestBuilder {
        self.people.request(self.served, chat, method, path)
    }

    async fn switches(&mut self, chat: usize) -> anyhow::Result<()> {
        let key = format!("h{:06}-key-{}", self.seed, self.rng.u8(0..2));
        let session = (person(chat), format!("{}:{key}", channel(chat)));
        let path = format!("/api/pointers/{}", self.chat_name(chat));
        let request = self.request(chat, Method::PUT, &path);
        let (status, words) = response_to(request.json(&json!({"key": key}))).await;
        match (status, !self.meant.deleted.contains(&session)) {
            (204, true) => {
                self.meant.pointers.insert(chat, session);
                Ok(())
            }
            (410, false) => Ok(()),
            (status, _) => anyhow::bail!("route: a switch gave {status}: {words}"),
        }
    }

    async fn forgets(&mut self, chat: usize) -> anyhow::Result<()> {
        let path = format!("/api/pointers/{}", self.chat_name(chat));
        response_to(self.request(chat, Method::DELETE, &path)).await;
        self.meant.pointers.remove(&chat);
        Ok(())
    }

    /// Where a chat's next line goes. It is looked up first, so that what is said can say where it was said.
    async fn target(&mut self, chat: usize) -> anyhow::Result<Session> {
        let path = format!("/api/pointers/{}", self.chat_name(chat));
        let (status, pointed) = response_to(self.request(chat, Method::GET, &path)).await;
        anyhow::ensure!(status == 200, "{pointed}");
        let key = pointed["key"].as_str().context("a key")?;
        let target = (person(chat), format!("{}:{key}", channel(chat)));
        let Meant { pointers, deleted, .. } = &mut self.meant;
        match pointers.get(&chat).filter(|session| !deleted.contains(*session)) {
            Some(session) => {
                anyhow::ensure!(
                    *session == target,
                    "route: {session:?} was meant and {target:?} resolved"
                );
            }
            None => {
                anyhow::ensure!(
                    !deleted.contains(&target),
                    "route: a pointer was repaired to {target:?}"
                );
                pointers.insert(chat, target.clone());
            }
        }
        Ok(target)
    }

    async fn says(&mut self, chat: usize) -> anyhow::Result<()> {
        let target = self.target(chat).await?;
        if self.rng.u8(0..4) == 0 {
            let token = if chat == 3 { &self.people.bea } else { &self.people.ada };
            let events = listen_at(&self.served.url, token, Wire::WebSocket, &target.1, 0).await?;
            self.listening.push((target.clone(), events));
        }
        let (line, deletes) = line(&mut self.rng, &label(&target));
        let path = format!("/api/chats/{}/lines", self.chat_name(chat));
        let request = self.request(chat, Method::POST, &path);
        let (status, reply) = response_to(request.json(&json!({"line": line}))).await;
        anyhow::ensure!(status == 200, "{line}: {reply}");
        anyhow::ensure!(
            reply["sessionId"] == target.1.as_str(),
            "route: {line} was meant for {target:?}: {reply}"
        );
        if reply["reply"].get("accepted").is_some() {
            self.meant.made.insert(target.clone());
            if deletes {
                self.meant.deleted.insert(target);
            }
        }
        Ok(())
    }

    /// Everything that was recorded and everything that was heard, once all of it rests.
    async fn judge(&mut self) -> anyhow::Result<()> {
        for session in &self.meant.made {
            let (owner, name) = session;
            let person = PersonId(format!("{owner}-{}", self.seed));
            let ports = &self.served.house.ports;
            let owner_id = ports.journal.owner_of(&person, OwnerId(uuid::Uuid::nil())).await?;
            let key = SessionKey::named(name, owner_id)?;
            self.served.house.rests(&key).await;
            let events = ports.journal.events(&key, Seq(0), usize::MAX).await?;
            let envelopes: Vec<_> =
                events.iter().map(|recorded| Envelope::of(name, recorded)).collect();
            check(session, &envelopes)?;
            if *owner == "ada" {
                // By its whole key it has a name for everyone, and bea may not decide.
                let path = format!("/api/sessions/{key}/events");
                let (status, _) = response_to(self.request(3, Method::GET, &path)).await;
                anyhow::ensure!(status == 404, "label: bea read {key}: {status}");
            }
        }
        for (session, mut events) in self.listening.drain(..) {
            let mut heard = Vec::new();
            let pause = std::time::Duration::from_millis(50);
            while let Ok(Some(envelope)) = tokio::time::timeout(pause, events.next()).await {
                heard.push(envelope);
            }
            check(&session, &heard)?;
        }
        Ok(())
    }
}

/// What someone types, and whether it deletes.
fn line(rng: &mut Rng, session: &str) -> (String, bool) {
    let note = format!("note [{session}] {:x}", rng.u32(..));
    match rng.u8(0..20) {
        0..=6 => (note, false),
        7 => ("/plan on".into(), false),
        8 => ("/plan off".into(), false),
        9..=11 => (format!("/task add {note}"), false),
        12..=14 => ("/auto on".into(), false),
        15 => ("/auto off".into(), false),
        16..=17 => (format!("/memory save {note}"), false),
        18 => ("/reset".into(), false),
        _ => ("/delete yes".into(), true),
    }
}

/// An answer holds nothing that was said in another session than this one.
fn told_only(session: &Session, answer: &Value) -> anyhow::Result<()> {
    let (text, own) = (answer.to_string(), label(session));
    let foreign = origins(&text).into_iter().find(|origin| *origin != own);
    anyhow::ensure!(foreign.is_none(), "label: something of {foreign:?} was told in {own}");
    Ok(())
}

/// Events of one session: each says so, none holds what another said, nothing of a run comes when none goes on, and
/// nothing comes after the end.
fn check(session: &Session, events: &[Envelope]) -> anyhow::Result<()> {
    let (name, session) = (&session.1, label(session));
    let (mut runs, mut deleted) = (BTreeSet::new(), false);
    for envelope in events.iter().filter(|envelope| envelope.seq.is_some()) {
        anyhow::ensure!(
            envelope.session_id == *name,
            "label: {} in {session}",
            envelope.session_id
        );
        let data: &Value = &envelope.data;
        let text = data.to_string();
        let foreign = origins(&text).into_iter().find(|origin| *origin != session);
        anyhow::ensure!(foreign.is_none(), "label: something of {foreign:?} in {session}");
        let run = || data["context"]["run"].as_str().map(str::to_owned);
        match envelope.kind.as_str() {
            "run_started" => runs.extend(run()),
            "run_ended" => {
                run().into_iter().for_each(|run| {
                    runs.remove(&run);
                });
            }
            "turn_started" => {
                let of = data["context"]["run"].as_str();
                let zombie = of.is_some_and(|run| !runs.contains(run));
                anyhow::ensure!(!zombie, "lifecycle: a turn of a run that is over in {session}");
            }
            "session_deleted" => deleted = true,
            "call_finished" | "call_orphaned" | "call_in_doubt" | "model_answered" | "logged"
            | "removal_started" | "removal_failed" | "removal_orphaned" | "pages_removed" => {}
            kind => anyhow::ensure!(!deleted, "lifecycle: {kind} after {session} was deleted"),
        }
    }
    Ok(())
}
