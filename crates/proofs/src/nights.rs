//! A process that lives through simulated time over a real journal, is really killed, and goes on.
//!
//! The child moves a clock of its own whenever nothing is due, and keeps it in a file; whoever kills the child may
//! move the clock too, as downtime does. Everything else is the product.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use async_trait::async_trait;
use futures_util::future::join_all;
use planwright_domain::{
    id::Seq,
    identity::SessionKey,
    next::Due,
    session::SessionEvent,
    time::Time,
    turn::{ModelFailure, Usage},
};
use planwright_outbound::ids_random::RandomIds;
use planwright_outbound::ids_random::fresh_id;
use planwright_outbound::{
    broadcast_in_process::InProcessBroadcast, journal_sqlite::SqliteJournal,
    toolbox_files::FileToolbox,
};
use planwright_runtime::{
    commands::reply::{Reply, Spoken},
    ports::Ports,
    ports::{
        Clock,
        journal::Recorded,
        model::{
            Message, Model, ModelAnswer, ModelRequest, OnPreview, Price, WireCall, default_profiles,
        },
    },
    runtime::Runtime,
    settings::Settings,
};
use planwright_testkit::{clock::ManualClock, house::ada, scratch};
use serde_json::json;

use crate::staged::ByHand;

/// The file that says of a life that it has begun to work.
pub(crate) const WORKS: &str = "works";
/// How many sessions are worked on at once.
const AT_ONCE: usize = 16;
/// How far the clock moves at most while nothing is due.
const STEP_MICROS: i64 = 30 * 60_000_000;

/// What a night is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Night {
    /// Schedules.
    Slots,
    /// A goal with five tasks.
    Overnight,
}

/// A place where a night happens.
pub(crate) struct Place {
    home: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(name: &str, begins: Time) -> anyhow::Result<Self> {
        let home = scratch::directory(name)?;
        fs::create_dir(home.path().join("data"))?;
        let place = Self { home };
        place.set_clock(begins)?;
        Ok(place)
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn clock(&self) -> anyhow::Result<Time> {
        read_clock(self.path())
    }

    pub(crate) fn set_clock(&self, time: Time) -> anyhow::Result<()> {
        write_clock(self.path(), time)
    }

    /// A new life.
    pub(crate) fn start(&self, night: Night, until: Time) -> anyhow::Result<Child> {
        let program = std::env::current_exe()?;
        let night = match night {
            Night::Slots => "slots",
            Night::Overnight => "overnight",
        };
        let mut child = Command::new(program);
        child.arg("live").arg(night).arg(self.path()).arg(until.0.to_string());
        Ok(child.stdout(Stdio::null()).spawn()?)
    }

    /// The runtime, for who looks at it while nobody lives in it.
    pub(crate) fn runtime(&self) -> anyhow::Result<(Runtime, Arc<ManualClock>)> {
        runtime(self.path())
    }
}

fn read_clock(home: &Path) -> anyhow::Result<Time> {
    let text = fs::read_to_string(home.join("clock"))?;
    Ok(Time(text.trim().parse().context("a time")?))
}

fn write_clock(home: &Path, time: Time) -> anyhow::Result<()> {
    let next = home.join("clock.next");
    fs::write(&next, time.0.to_string())?;
    Ok(fs::rename(next, home.join("clock"))?)
}

fn runtime(home: &Path) -> anyhow::Result<(Runtime, Arc<ManualClock>)> {
    let data = home.join("data");
    let journal = Arc::new(SqliteJournal::open(&data.join("journal.sqlite"))?);
    let clock = Arc::new(ManualClock::at(read_clock(home)?));
    let model: Arc<dyn Model> = Arc::new(Worker {
        clock: clock.clone(),
        home: home.to_owned(),
        answered: AtomicUsize::new(0),
    });
    let ports = Ports {
        journal: journal.clone(),
        memory: journal,
        lane: Arc::new(ByHand),
        broadcast: Arc::new(InProcessBroadcast::default()),
        profiles: default_profiles(&model),
        model,
        toolbox: Arc::new(FileToolbox::open(&home.join("workspace"), &data)?),
        clock: clock.clone(),
        ids: Arc::new(RandomIds),
        policy: Arc::default(),
        handover: None,
        session_label: false,
        notebook: Arc::new(
            planwright_outbound::notebook_object_store::ObjectStoreNotebooks::in_directory(&data)?,
        ),
        roles: planwright_runtime::ports::model::Roles::default(),
    };
    Ok((Runtime::new(&ports, &Settings::default()), clock))
}

/// Says a line in a session, as its owner.
pub(crate) async fn says(
    runtime: &Runtime,
    identity: &SessionKey,
    line: &str,
) -> anyhow::Result<()> {
    let (identity, line) = (identity.clone(), line.to_owned());
    let spoken = Spoken { identity, transport: None, person: ada(), id: fresh_id(), line };
    let reply = runtime.commands.handle_line(spoken.clone()).await?;
    anyhow::ensure!(matches!(reply, Reply::Accepted { .. }), "{}: {reply:?}", spoken.line);
    Ok(())
}

/// Everything that happened in a session.
pub(crate) async fn events(
    runtime: &Runtime,
    identity: &SessionKey,
) -> anyhow::Result<Vec<Recorded>> {
    Ok(runtime.queries.events(identity, Seq(0), usize::MAX).await?)
}

/// One life: does what is due, moves the clock, until it is killed or the time is over.
pub(crate) async fn live(night: Night, home: PathBuf, until: Time) -> anyhow::Result<()> {
    let (runtime, clock) = runtime(&home)?;
    fs::write(home.join(WORKS), "")?;
    // As the lane does when a process starts: whatever an earlier life left open is nobody's.
    let keeps = (night == Night::Overnight).then_some((&*clock, home.as_path()));
    let left = runtime.engine.due(None, usize::MAX).await?;
    for row in &left {
        work(&runtime, &row.session, clock.now(), keeps).await?;
    }
    loop {
        let now = clock.now();
        let due = runtime.engine.due(Some(now), AT_ONCE).await?;
        if !due.is_empty() {
            let lives = due.iter().map(|row| work(&runtime, &row.session, now, keeps));
            for outcome in join_all(lives).await {
                outcome?;
            }
            continue;
        }
        if now >= until {
            fs::write(home.join("over"), "")?;
            return Ok(());
        }
        let first = runtime.engine.due(None, 1).await?.first().and_then(|row| row.at);
        // What was recorded before the clock went back is due when it has come there again.
        let later = first.filter(|at| *at > now);
        let step = later.map_or(STEP_MICROS, |at| (at.0 - now.0).min(STEP_MICROS));
        clock.pass_micros(step.min(until.0 - now.0));
        write_clock(&home, clock.now())?;
    }
}

/// Does what is due in one session; where thinking takes time, the clock is kept after every step.
async fn work(
    runtime: &Runtime,
    identity: &SessionKey,
    now: Time,
    keeps: Option<(&ManualClock, &Path)>,
) -> anyhow::Result<()> {
    loop {
        let due = runtime.engine.advance(identity).await?.due;
        if let Some((clock, home)) = keeps {
            write_clock(home, clock.now())?;
        }
        match due {
            Due::Now => {}
            Due::At(at) if at <= now => {}
            Due::At(_) | Due::Never => return Ok(()),
        }
    }
}

/// A model that works: one thing after the other, then it reports. Thinking takes its time, by the clock.
struct Worker {
    clock: Arc<ManualClock>,
    home: PathBuf,
    /// In this life.
    answered: AtomicUsize,
}

/// How long one answer takes at night.
const THINKS_MICROS: i64 = 11 * 60_000_000;
/// The file that says of a life that it will be killed: it gets one answer, and thinks about the next until it is.
pub(crate) const MORTAL: &str = "mortal";
/// How long it thinks at most.
const THINKS_ITS_LAST: Duration = Duration::from_secs(60);

#[async_trait]
impl Model for Worker {
    async fn answer(
        &self,
        request: &ModelRequest,
        _: OnPreview<'_>,
    ) -> Result<ModelAnswer, ModelFailure> {
        let opening = request.messages.iter().rev().find_map(|message| match message {
            Message::User(text) => Some(text.as_str()),
            Message::Assistant { .. } | Message::Tool { .. } => None,
        });
        let opening = opening.unwrap_or_default();
        let rounds = request
            .messages
            .iter()
            .rev()
            .take_while(|message| !matches!(message, Message::User(_)));
        let rounds = rounds.filter(|message| matches!(message, Message::Assistant { .. })).count();
        let after = |words| opening.lines().find_map(|line| line.strip_prefix(words));
        let task = after("Your task: ").or_else(|| after("Go on with your task: "));
        let task = task.unwrap_or("nothing").trim();
        let nightly = self.home.join("night").exists();
        if nightly {
            self.clock.pass_micros(THINKS_MICROS);
            let first = self.answered.fetch_add(1, Ordering::Relaxed) == 0;
            let last = !first && self.home.join(MORTAL).exists();
            let thinks = if last { THINKS_ITS_LAST } else { Duration::from_millis(25) };
            tokio::time::sleep(thinks).await;
        }
        let call = |tool: &str, arguments: serde_json::Value| ModelAnswer {
            text: String::new(),
            calls: vec![WireCall {
                wire_id: format!("call-{rounds}"),
                tool: tool.into(),
                arguments: arguments.to_string(),
            }],
            usage: Some(Usage::tokens(900, 60)),
            kept: Vec::new(),
        };
        let last = usize::from(nightly) * 3;
        Ok(match rounds {
            0 if nightly => call("list_files", json!({"path": "."})),
            1 if nightly => {
                let text = format!("{task}: looked, and noted what matters");
                call("memory_save", json!({"text": text, "kind": "decision"}))
            }
            2 if nightly => call("memory_search", json!({"query": "noted matters"})),
            rounds if rounds == last => {
                let status = if task.contains("fails") { "failed" } else { "done" };
                call(
                    "task_report",
                    json!({"status": status, "summary": format!("{task}, as asked")}),
                )
            }
            _ => ModelAnswer {
                text: format!("That was {task}."),
                calls: Vec::new(),
                usage: Some(Usage::tokens(950, 20)),
                kept: Vec::new(),
            },
        })
    }

    fn window_tokens(&self) -> usize {
        100_000
    }

    fn price(&self) -> Option<Price> {
        Some(Price {
            input_micros: 1_000_000,
            output_micros: 2_000_000,
            cached_micros: 1_000_000,
            cache_write_micros: 1_000_000,
        })
    }

    fn name(&self) -> String {
        "worker".into()
    }
}

/// How many events of a kind there are.
pub(crate) fn many(events: &[Recorded], kind: &str) -> usize {
    events
        .iter()
        .map(|recorded| SessionEvent::kind(&recorded.event))
        .filter(|found| *found == kind)
        .count()
}
