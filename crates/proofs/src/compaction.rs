//! A conversation of five hundred turns on a small window, with an approved plan, compacted again and again, in a process
//! that is killed at random: every request carries the plan's paragraph, and the plan comes back byte for byte.
//!
//! The model is a server that looks at everything it is sent. Now and then it fails to sum up: nothing may be dropped then.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use fastrand::Rng;
use planwright_domain::{
    identity::SessionKey,
    next::next,
    session::{Session, SessionEvent},
    turn::event::TurnEvent,
};
use planwright_outbound::ids_random::RandomIds;
use planwright_outbound::{
    broadcast_in_process::InProcessBroadcast,
    clock_system::SystemClock,
    journal_sqlite::SqliteJournal,
    lane_in_process::{Scope, in_process},
    model_http::{HttpModel, HttpSettings, Wire},
    notebook_object_store::ObjectStoreNotebooks,
    toolbox_files::FileToolbox,
};
use planwright_runtime::{
    commands::reply::{Reply, Spoken},
    ports::Ports,
    ports::journal::Journal as _,
    ports::model::{Model, Roles, default_profiles},
    runtime::Runtime,
    settings::Settings,
};
use planwright_testkit::people::ada_key;
use planwright_testkit::{
    house::ada,
    scratch,
    scripted_model::{Conduct, ScriptedModel, ScriptedReply, SeenRequest, Shape},
};
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use crate::on_threads;

/// The window of the model, in tokens.
const WINDOW: usize = 6_000;
/// How many requests are rebuilt from the facts, about.
const REBUILT: usize = 24;
/// The plan that is approved.
const PLAN: &str = "# Move the photos 📷\n\n1. Stop the service.\n2. Copy `~/Ünïcödé` to the new disk.\n3. Check:\n\n```sh\n# not a heading\nsha256sum -c list\r\n```\n\nTrailing spaces stay.  \n";
/// What every request says of plan work.
const PARAGRAPH: &str = "Plan work is active; plan_get loads the plan.";
/// What every turn is opened with after the approval.
const STANDS: &str = "[The plan is Approved.]";
/// What every request says of the notebook.
const HINT: &str = "You keep a notebook.";
/// The words by which a person asks for the plan.
const ASKS_PLAN: &str = "what is the plan";

/// What the model's server saw.
#[derive(Default)]
struct Seen {
    requests: usize,
    summaries: usize,
    failed_summaries: usize,
    plans: usize,
    largest: usize,
    wrong: Vec<String>,
}

/// Proves it.
pub(crate) fn prove(seed: u64, quick: bool) -> anyhow::Result<bool> {
    on_threads(2, talk_through(seed, if quick { 120 } else { 500 }))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn talk_through(seed: u64, turns: u64) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut rng = Rng::with_seed(seed);
    let seen = Arc::<Mutex<Seen>>::default();
    let server = ScriptedModel::start(conduct(seen.clone())).await?;
    let home = scratch::directory("compaction")?;
    std::fs::create_dir(home.path().join("data"))?;
    std::fs::create_dir(home.path().join("workspace"))?;
    let lived = killed_lives(home.path(), &server.base_url(), turns, &mut rng).await?;
    let Lived { kills, lives, from_kept } = lived;
    let runtime = runtime(home.path(), &server.base_url())?.0;
    let session = runtime.queries.session(&talk()?).await?;
    let shown = runtime.queries.revision(&talk()?, None).await?.context("a revision")?;
    let approved = session.plan().and_then(|plan| plan.status.approval().cloned());
    let same = shown.revision.markdown == PLAN
        && approved.is_some_and(|approved| approved.revision_digest == shown.digest);
    let compactions =
        many(&runtime, |event| matches!(event, TurnEvent::ViewCompacted { .. })).await?;
    let answered = many(&runtime, |event| matches!(event, TurnEvent::TurnFinished { .. })).await?;
    let rebuilt = rebuilt(&runtime).await?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    println!(
        "  {turns} turns in {lives} lives ({kills} kills), {answered} ended; {} requests, the largest of {} bytes for a window of {WINDOW} tokens",
        seen.requests, seen.largest
    );
    println!(
        "  compacted {compactions} times ({} summaries asked for, {} failed on purpose); plan_get {} times; {} requests without paragraph, hint or plan",
        seen.summaries,
        seen.failed_summaries,
        seen.plans,
        seen.wrong.len()
    );
    println!(
        "  {} of {} requests that were sent are rebuilt from the facts, byte for byte; {from_kept} lives began with a conversation that was kept",
        rebuilt.0, rebuilt.1
    );
    seen.wrong.iter().take(3).for_each(|words| println!("    {words}"));
    let well = same
        && seen.wrong.is_empty()
        && compactions >= 12
        && seen.failed_summaries > 0
        && seen.plans > 0
        && kills > 0
        && from_kept > 0
        && rebuilt.1 > 0
        && rebuilt.0 == rebuilt.1;
    println!(
        "compaction: {} wrong in {} requests, {compactions} compactions, {kills} kills, {} of {} requests rebuilt, the plan is {}, {:.0} s (target 0, 12, 1, all of some, the approved one) {}",
        seen.wrong.len(),
        seen.requests,
        rebuilt.0,
        rebuilt.1,
        if same { "the approved one" } else { "ANOTHER" },
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// The lives of a conversation.
#[derive(Default)]
struct Lived {
    kills: u32,
    lives: u32,
    /// How many began with a conversation that was kept.
    from_kept: u32,
}

/// Lives that are killed, until one gets to the end.
async fn killed_lives(
    home: &Path,
    model: &str,
    turns: u64,
    rng: &mut Rng,
) -> anyhow::Result<Lived> {
    let (mut lived, begun) = (Lived::default(), Instant::now());
    loop {
        lived.from_kept += u32::from(is_kept(home).await?);
        let mut child = life(home, model, turns)?;
        lived.lives += 1;
        let until = Instant::now() + Duration::from_millis(rng.u64(80..900));
        while child.try_wait()?.is_none() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        match child.try_wait()? {
            Some(status) => {
                anyhow::ensure!(status.success(), "a life ended with {status}");
                return Ok(lived);
            }
            None => {
                child.kill()?;
                child.wait()?;
                lived.kills += 1;
            }
        }
        anyhow::ensure!(begun.elapsed() < Duration::from_secs(900), "it does not get to its end");
    }
}

/// Whether the next life begins with a conversation that was kept.
async fn is_kept(home: &Path) -> anyhow::Result<bool> {
    let journal = home.join("data").join("journal.sqlite");
    if !journal.exists() {
        return Ok(false);
    }
    // A life that was killed at once has made the file and nothing in it.
    let Ok(journal) = SqliteJournal::open_read_only(&journal) else { return Ok(false) };
    Ok(journal.kept_view(&talk()?).await?.is_some())
}

/// How many requests are what the log says, and how many were looked at: some of the whole conversation, evenly.
async fn rebuilt(runtime: &Runtime) -> anyhow::Result<(usize, usize)> {
    let rows = runtime.queries.requests(&talk()?).await?;
    let sent: Vec<_> = rows.iter().filter(|row| row.sent.is_some()).collect();
    let (mut same, mut looked) = (0, 0);
    for row in sent.iter().rev().step_by((sent.len() / REBUILT).max(1)) {
        let view = runtime.queries.request_at(&talk()?, row.seq).await?.context("a request")?;
        looked += 1;
        same += usize::from(view.same);
    }
    Ok((same, looked))
}

async fn many(runtime: &Runtime, is_one: impl Fn(&TurnEvent) -> bool) -> anyhow::Result<usize> {
    let events =
        runtime.queries.events(&talk()?, planwright_domain::id::Seq(0), usize::MAX).await?;
    let of_turn = events
        .iter()
        .filter(|recorded| matches!(&recorded.event, SessionEvent::Turn(event) if is_one(event)));
    Ok(of_turn.count())
}

fn talk() -> anyhow::Result<SessionKey> {
    Ok(ada_key("cli:compaction-1")?)
}

fn life(home: &Path, url: &str, turns: u64) -> anyhow::Result<Child> {
    let mut child = Command::new(std::env::current_exe()?);
    child.arg("talk").arg(home).arg(url).arg(turns.to_string());
    Ok(child.stdout(Stdio::null()).spawn()?)
}

type Worker = planwright_outbound::lane_in_process::LaneWorker;

fn runtime(home: &Path, url: &str) -> anyhow::Result<(Runtime, Worker)> {
    let data = home.join("data");
    let settings =
        HttpSettings { window_tokens: WINDOW, ..HttpSettings::new(Wire::Chat, url, "scripted") };
    let model = HttpModel::new(settings).map_err(|failure| anyhow::anyhow!(failure.message))?;
    let model: Arc<dyn Model> = Arc::new(model);
    let journal = Arc::new(SqliteJournal::open(&data.join("journal.sqlite"))?);
    let (lane, worker) = in_process();
    let ports = Ports {
        journal: journal.clone(),
        memory: journal,
        notebook: Arc::new(ObjectStoreNotebooks::in_directory(&data)?),
        lane,
        broadcast: Arc::new(InProcessBroadcast::default()),
        profiles: default_profiles(&model),
        roles: Roles::default(),
        model,
        toolbox: Arc::new(FileToolbox::open(&home.join("workspace"), &data)?),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        policy: Arc::default(),
        handover: None,
        session_label: false,
    };
    Ok((Runtime::new(&ports, &Settings::default()), worker))
}

/// One life: it goes on talking where the last one was killed.
pub(crate) async fn live(home: PathBuf, url: String, turns: u64) -> anyhow::Result<()> {
    let (runtime, worker) = runtime(&home, &url)?;
    let stopping = watch::Sender::new(false);
    tokio::spawn(worker.run(runtime.engine.clone(), Scope::Everything, stopping.subscribe()));
    let file = home.join("workspace/notes.txt");
    if !file.exists() {
        std::fs::write(&file, "a line of notes that is long enough to count\n".repeat(60))?;
    }
    says(&runtime, 0, "/notebook on").await?;
    says(&runtime, 1, "/plan on").await?;
    says(&runtime, 2, "write the plan").await?;
    let session = rests(&runtime).await?;
    if session.plan().is_some_and(|plan| plan.status.approval().is_none()) {
        let shown = runtime.queries.revision(&talk()?, None).await?.context("a plan")?;
        runtime.commands.shown(&talk()?, &ada(), shown.digest).await?;
        says(&runtime, 3, "/plan approve hold").await?;
    }
    // What earlier lives said is not said again, but for the last: it may have been cut off.
    let events =
        runtime.queries.events(&talk()?, planwright_domain::id::Seq(0), usize::MAX).await?;
    let is_said = |event: &SessionEvent| matches!(event, SessionEvent::MessageQueued { .. });
    let said = events.iter().filter(|recorded| is_said(&recorded.event)).count() as u64;
    for turn in said.saturating_sub(2)..turns {
        let words = match turn % 10 {
            9 => ASKS_PLAN.to_owned(),
            4 => format!("look at the notes, for the {turn}th time"),
            _ => format!("turn {turn}: {}", "something to talk about ".repeat(8)),
        };
        says(&runtime, 10 + turn, &words).await?;
        rests(&runtime).await?;
    }
    says(&runtime, 9_999, "/compact").await?;
    rests(&runtime).await?;
    stopping.send_replace(true);
    Ok(())
}

/// Says a line once, however often it is said.
async fn says(runtime: &Runtime, number: u64, line: &str) -> anyhow::Result<()> {
    let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, &number.to_be_bytes()).into();
    let (identity, line) = (talk()?, line.to_owned());
    let spoken = Spoken { identity, transport: None, person: ada(), id, line };
    let reply = runtime.commands.handle_line(spoken.clone()).await?;
    anyhow::ensure!(matches!(reply, Reply::Accepted { .. }), "{}: {reply:?}", spoken.line);
    Ok(())
}

async fn rests(runtime: &Runtime) -> anyhow::Result<Arc<Session>> {
    let begun = Instant::now();
    loop {
        let session = runtime.queries.session(&talk()?).await?;
        if next(&session).is_rest() {
            return Ok(session);
        }
        anyhow::ensure!(begun.elapsed() < Duration::from_secs(60), "it does not come to rest");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The model: it answers, sums up, sometimes fails to, and looks at everything it is sent.
fn conduct(seen: Arc<Mutex<Seen>>) -> Conduct {
    Arc::new(move |told: &SeenRequest| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = told.body.to_string().len();
        seen.requests += 1;
        seen.largest = seen.largest.max(bytes);
        if bytes / 4 > WINDOW {
            seen.wrong.push(format!("request {} has about {} tokens", told.earlier, bytes / 4));
        }
        ScriptedReply { read: Some(bytes / 4), ..answer(told, &mut seen) }
    })
}

fn answer(told: &SeenRequest, seen: &mut Seen) -> ScriptedReply {
    let messages = told.body["messages"].as_array().cloned().unwrap_or_default();
    let system = messages.first().and_then(|first| first["content"].as_str()).unwrap_or_default();
    if system.starts_with("You keep the memory") {
        seen.summaries += 1;
        return match seen.summaries % 5 {
            2 => {
                seen.failed_summaries += 1;
                ScriptedReply::text("").shaped(Shape::ServerError)
            }
            4 => {
                seen.failed_summaries += 1;
                ScriptedReply::text("")
            }
            _ => ScriptedReply::text(
                "They talk about moving photos; nothing is open but the next question.",
            ),
        };
    }
    let drafting = told.turn_note.contains("[The plan is Drafting.]");
    if drafting && told.rounds == 0 {
        return ScriptedReply::call("plan_set_content", &json!({"plan_markdown": PLAN}));
    }
    if drafting {
        return ScriptedReply::text("It is written.");
    }
    let must = [
        ("the plan's paragraph", system, PARAGRAPH),
        ("the notebook's hint", system, HINT),
        ("how the plan stands", &told.turn_note, STANDS),
    ];
    let lacking = must.into_iter().filter(|(_, text, sign)| !text.contains(sign));
    seen.wrong.extend(lacking.map(|(what, _, _)| format!("request {} lacks {what}", told.earlier)));
    let last = messages.last().cloned().unwrap_or(Value::Null);
    match (told.last_message.as_str(), told.rounds) {
        (ASKS_PLAN, 0) => ScriptedReply::call("plan_get", &json!({})),
        (ASKS_PLAN, _) => {
            seen.plans += 1;
            let given = last["content"].as_str().unwrap_or_default();
            if !given.ends_with(&format!("\n\n{PLAN}")) {
                seen.wrong.push(format!("request {}: plan_get gave {given:?}", told.earlier));
            }
            ScriptedReply::text("That is the plan.")
        }
        (said, 0) if said.starts_with("look at") => {
            ScriptedReply::call("read_file", &json!({"path": "notes.txt"}))
        }
        (said, _) if !said.starts_with("turn") && !said.starts_with("look at") => {
            seen.wrong
                .push(format!("request {}: the person's words are gone: {said:?}", told.earlier));
            ScriptedReply::text("What was it?")
        }
        (_, _) => ScriptedReply::text(&"Very well, and here is what I think of it. ".repeat(4)),
    }
}
