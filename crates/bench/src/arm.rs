//! Servers that are measured from outside, each in a process of its own: ours and the bare one.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context as _;
use axum::{
    Json, Router,
    extract::{
        State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    http::StatusCode,
    response::Response,
    routing::{get, post},
    serve::ListenerExt as _,
};
use planwright_domain::{
    actor::{PersonId, Standing},
    identity::ChannelType,
    installation::{Requester, Role},
};
use planwright_outbound::access_file::FileAccess;
use planwright_runtime::{commands::grants::Wanted, runtime::Runtime};
use planwright_surfaces::http::{App, HttpSettings, serve};
use rusqlite::Connection;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::broadcast};

use crate::ours::{Driven, Ours};

/// The token that every arm takes.
pub(crate) const TOKEN: &str = "bench-0123456789abcdef0123456789abcdef";

/// Where the database and the bus of the cluster's arm are.
pub(crate) const DATABASE: &str = "BENCH_DATABASE";
pub(crate) const BUS: &str = "BENCH_BUS";

/// A server in a process of its own.
pub(crate) struct Arm {
    child: Child,
    pub(crate) port: u16,
}

impl Arm {
    /// Starts this program again, as one of the servers below.
    pub(crate) fn start(name: &str) -> anyhow::Result<Self> {
        Self::start_with(name, &[])
    }

    /// The same, with this in its environment.
    pub(crate) fn start_with(name: &str, environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["arm", name]).envs(environment.iter().copied());
        Self::launch(&mut command)
    }

    fn launch(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let output = child.stdout.take().context("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().parse().with_context(|| format!("the arm said {line:?}"))?;
        Ok(Self { child, port })
    }

    /// Starts the peer that is Node and `ws`; none if it was not installed.
    pub(crate) fn node_ws() -> Option<Self> {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/ws");
        if !place.join("node_modules/ws").exists() {
            return None;
        }
        let mut command = Command::new("node");
        command.arg(place.join("fanout.js")).stdin(Stdio::piped());
        Self::launch(&mut command).ok()
    }

    /// CPU seconds that it has used.
    pub(crate) fn cpu(&self) -> anyhow::Result<f64> {
        crate::measure::cpu_of(self.child.id())
    }
}

impl Drop for Arm {
    fn drop(&mut self) {
        if self.child.stdin.take().is_some() {
            // A peer cleans up behind itself when nobody speaks to it any more.
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves as one arm until it is killed.
pub(crate) async fn run(name: &str) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    println!("{port}");
    match name {
        "ours" => ours_at(listener, port, Ours::driven(Driven::ByNobody)?).await,
        "cluster" => {
            let place = |name| std::env::var(name).with_context(|| format!("{name} is not set"));
            let ours = Ours::on_cluster(&place(DATABASE)?, &place(BUS)?).await?;
            ours_at(listener, port, ours).await
        }
        _ => bare(listener).await,
    }
}

/// Who has an installation.
const OWNER: &str = "owner";

/// Our API over the real journal. Nobody acts on what is due: the command alone is measured.
async fn ours_at(listener: TcpListener, port: u16, ours: Ours) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    let tokens = [(TOKEN, OWNER, Standing::Decides)];
    let app = app_over(&ours.runtime, home.path(), port, &tokens).await?;
    serve(listener, app, std::future::pending()).await;
    Ok(())
}

/// Our API at this port, with a token for each of these people. Nobody has too many streams.
pub(crate) async fn app_over(
    runtime: &Runtime,
    home: &Path,
    port: u16,
    tokens: &[(&str, &str, Standing)],
) -> anyhow::Result<Arc<App>> {
    let access = Arc::new(FileAccess::open(home)?);
    let accounts = runtime.commands.accounts(access.clone());
    for (token, person, standing) in tokens {
        let person = PersonId((*person).into());
        if person.0 != OWNER {
            let owner = PersonId(OWNER.into());
            let by = Requester { person: owner, age_micros: Some(0), age_micros_max: 1 };
            accounts.add(by, person.clone(), [Role::Speak].into()).await?;
        }
        let wanted = Wanted::new("bench", person, *standing, ChannelType::Api);
        accounts.give_for(wanted, token).await?;
    }
    let settings = HttpSettings {
        requests_per_second: u32::MAX,
        streams_per_person_max: usize::MAX,
        ..HttpSettings::loopback(port)
    };
    let (commands, queries) = (runtime.commands.clone(), runtime.queries.clone());
    Ok(Arc::new(App::new(commands, queries, access, settings)))
}

#[derive(Clone)]
struct Bare {
    connection: Arc<Mutex<Connection>>,
    sender: broadcast::Sender<String>,
}

#[derive(Deserialize)]
struct BareBody {
    text: String,
}

/// axum and SQLite, nothing else: the same body, one durable row, an answer; and a broadcast.
async fn bare(listener: TcpListener) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    let connection = Connection::open(home.path().join("bare.sqlite"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch("CREATE TABLE events (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")?;
    let bare =
        Bare { connection: Arc::new(Mutex::new(connection)), sender: broadcast::channel(256).0 };
    let router = Router::new()
        .route("/messages", post(bare_message))
        .route("/ws", get(bare_socket))
        .with_state(bare);
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}

async fn bare_message(
    State(bare): State<Bare>,
    Json(body): Json<BareBody>,
) -> (StatusCode, Json<Value>) {
    let text = body.text.clone();
    let stored = tokio::task::spawn_blocking(move || {
        let connection = bare.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = connection
            .prepare_cached("INSERT INTO events (body) VALUES (?1)")
            .and_then(|mut statement| statement.execute([&text]));
        let id = connection.last_insert_rowid();
        drop(connection);
        let _ = bare.sender.send(json!({"seq": id, "data": text}).to_string());
        stored.map(|_| id)
    });
    match stored.await {
        Ok(Ok(id)) => (StatusCode::ACCEPTED, Json(json!({"version": id}))),
        Ok(Err(_)) | Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, Json(Value::Null)),
    }
}

async fn bare_socket(State(bare): State<Bare>, upgrade: WebSocketUpgrade) -> Response {
    let mut receiver = bare.sender.subscribe();
    upgrade.on_upgrade(async move |mut socket: WebSocket| {
        while let Ok(text) = receiver.recv().await {
            if socket.send(Message::text(text)).await.is_err() {
                break;
            }
        }
    })
}
