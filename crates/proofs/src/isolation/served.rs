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
use futures_util::{StreamExt as _, stream};
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
        let quick = |settings| HttpSettings {
            requests_per_second: 1_000_000,
            logins_per_minute: 1_000,
            ..settings
        };
        let served = Served::of(house, quick).await;
        let each = |at| history(&served, seed + at);
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

async fn history(served: &Served, seed: u64) -> anyhow::Result<u64> {
    let people = People::of(served, seed).await;
    let played = played(served, &people, seed).await;
    served.take_back(&people.ada).await;
    served.take_back(&people.bea).await;
    played
}

async fn played(served: &Served, people: &People, seed: u64) -> anyhow::Result<u64> {
    let mut rng = Rng::with_seed(seed);
    let mut meant = Meant::default();
    let mut listening = Vec::new();
    // The third chat is the terminal: another channel, with the same keys.
    let chat_name =
        |chat: usize| if chat == 2 { "terminal".into() } else { format!("h{seed}-c{chat}") };
    for at in 0..OPS {
        let chat = if at < 4 { at } else { rng.usize(0..4) };
        let broke = |what: String| anyhow::anyhow!("history {seed}, command {at}: {what}");
        if at < 4 || rng.u8(0..5) == 0 {
            let key = format!("h{seed:06}-key-{}", rng.u8(0..2));
            let session = (person(chat), format!("{}:{key}", channel(chat)));
            let path = format!("/api/pointers/{}", chat_name(chat));
            let request = people.request(served, chat, Method::PUT, &path);
            let (status, words) = response_to(request.json(&json!({"key": key}))).await;
            match (status, !meant.deleted.contains(&session)) {
                (204, true) => {
                    meant.pointers.insert(chat, session);
                }
                (410, false) => {}
                (status, _) => {
                    return Err(broke(format!("route: a switch gave {status}: {words}")));
                }
            }
            continue;
        }
        if rng.u8(0..12) == 0 {
            let path = format!("/api/pointers/{}", chat_name(chat));
            response_to(people.request(served, chat, Method::DELETE, &path)).await;
            meant.pointers.remove(&chat);
            continue;
        }
        // Where it goes is looked up first, so that what is said can say where it was said.
        let path = format!("/api/pointers/{}", chat_name(chat));
        let (status, pointed) = response_to(people.request(served, chat, Method::GET, &path)).await;
        anyhow::ensure!(status == 200, "{pointed}");
        let key = pointed["key"].as_str().context("a key")?;
        let target = (person(chat), format!("{}:{key}", channel(chat)));
        let stands = meant.pointers.get(&chat).filter(|session| !meant.deleted.contains(*session));
        match stands {
            Some(session) if *session != target => {
                return Err(broke(format!("route: {session:?} was meant and {target:?} resolved")));
            }
            Some(_) => {}
            None => {
                if meant.deleted.contains(&target) {
                    return Err(broke(format!("route: a pointer was repaired to {target:?}")));
                }
                meant.pointers.insert(chat, target.clone());
            }
        }
        if rng.u8(0..4) == 0 {
            let token = if chat == 3 { &people.bea } else { &people.ada };
            let events = listen_at(&served.url, token, Wire::WebSocket, &target.1, 0).await?;
            listening.push((target.clone(), events));
        }
        let (line, deletes) = line(&mut rng, &label(&target));
        let path = format!("/api/chats/{}/lines", chat_name(chat));
        let request = people.request(served, chat, Method::POST, &path);
        let (status, reply) = response_to(request.json(&json!({"line": line}))).await;
        anyhow::ensure!(status == 200, "{line}: {reply}");
        if reply["sessionId"] != target.1.as_str() {
            return Err(broke(format!("route: {line} was meant for {target:?}: {reply}")));
        }
        if reply["reply"].get("accepted").is_some() {
            meant.made.insert(target.clone());
            if deletes {
                meant.deleted.insert(target);
            }
        }
    }
    for session in &meant.made {
        let (owner, name) = session;
        let person = PersonId(format!("{owner}-{seed}"));
        let ports = &served.house.ports;
        let owner_id = ports.journal.owner_of(&person, OwnerId(uuid::Uuid::nil())).await?;
        let key = SessionKey::named(name, owner_id)?;
        served.house.rests(&key).await;
        let events = ports.journal.events(&key, Seq(0), usize::MAX).await?;
        let envelopes: Vec<_> =
            events.iter().map(|recorded| Envelope::of(name, recorded)).collect();
        check(session, &envelopes)?;
        if *owner == "ada" {
            // By its whole key it has a name for everyone, and bea may not decide.
            let path = format!("/api/sessions/{key}/events");
            let (status, _) = response_to(people.request(served, 3, Method::GET, &path)).await;
            anyhow::ensure!(status == 404, "label: bea read {key}: {status}");
        }
    }
    for (session, mut events) in listening {
        let mut heard = Vec::new();
        let pause = std::time::Duration::from_millis(50);
        while let Ok(Some(envelope)) = tokio::time::timeout(pause, events.next()).await {
            heard.push(envelope);
        }
        check(&session, &heard)?;
    }
    Ok(OPS as u64)
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
