//! `planwright demo`: a story that a person plays, offline, in a directory that goes away.

use std::{fs, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use planwright_domain::{
    actor::{OWNER, PersonId, Standing},
    identity::ChannelType,
};
use planwright_outbound::{model_demo::DemoModel, model_switch::SwitchModel};
use planwright_runtime::commands::grants::{Given, Wanted};
use planwright_runtime::ports::model::{Model, default_profiles};
use serde_json::json;

use crate::{
    backend::{Backend as _, Reach},
    config::{Config, ServerConfig},
    connection::{self, LiveConnection},
    exit::Exit,
    installation::Installation,
    talk::{Lines, Watch, send_line},
    terminal::Terminal,
    up::{Api, Deployment, Stops},
};

/// How long the demo's link works.
const DEMO_MICROS: i64 = 12 * 3_600 * 1_000_000;

/// One scene: what the person is told, and the line that leads on.
struct Scene {
    narration: &'static str,
    line: &'static str,
}

const SCENES: [Scene; 10] = [
    Scene {
        narration: "This is a scripted model: no key, no network. Plan work is switched on by you, never by the model.",
        line: "/plan on",
    },
    Scene {
        narration: "Ask for something. The model looks around (reading is free) and writes a plan.",
        line: "Please make a weekly review from my notes.",
    },
    Scene {
        narration: "Read the whole plan. What you were shown here is what you can approve.",
        line: "/plan show",
    },
    Scene {
        narration: "Not quite: nothing is backed up. Ask for a change; the model writes revision 2.",
        line: "/plan changes Keep a copy of Monday's note before you shorten it.",
    },
    Scene {
        narration: "Now try to approve. You read revision 1, and revision 2 has replaced it:",
        line: "/plan approve",
    },
    Scene {
        narration: "Refused, as it should be. What became of your comment?",
        line: "/plan comments",
    },
    Scene { narration: "And what changed since you looked last?", line: "/plan diff" },
    Scene {
        narration: "One step is new; the renumbered ones are not repainted. Read it in full.",
        line: "/plan show",
    },
    Scene {
        narration: "Approve exactly that. The run starts at once; the model stumbles once on purpose and is tried again.",
        line: "/plan approve",
    },
    Scene {
        narration: "Everything was recorded: what was said, shown, decided and done.",
        line: "/plan list",
    },
];

/// Plays the story; by itself if asked to.
pub async fn run(terminal: &mut Terminal, play: bool) -> anyhow::Result<Exit> {
    let home = tempfile::Builder::new().prefix("planwright-demo-").tempdir()?;
    let workspace = home.path().join("workspace");
    let pace = Duration::from_millis(if play { 2 } else { 25 });
    let mut installation = staged(home.path(), pace).await?;
    // In an installation of your own, deciding needs the passphrase that you chose at the first run.
    installation.person.standing = Standing::Decides;
    installation.person.authenticated = Some(installation.runtime.queries.now());
    installation.work(Reach::Everything);
    let mut lines = Lines::default();
    let mut watch = Watch::new(&installation).await?;
    for (at, scene) in SCENES.iter().enumerate() {
        terminal.line(&format!("\n{}/{}  {}", at + 1, SCENES.len(), scene.narration));
        let Some(line) = next_line(terminal, &mut lines, scene.line, play).await else { break };
        send_line(&installation, terminal, &line, None).await?;
        watch.until_rest(&installation, terminal).await?;
    }
    installation.rest().await;
    for path in ["review.md", "backup/monday.md", "notes/monday.md"] {
        let text =
            fs::read_to_string(workspace.join(path)).unwrap_or_else(|_| "(not written)\n".into());
        terminal.line(&format!("\n{path}\n{}", text.trim_end()));
    }
    let played = fs::read_to_string(workspace.join("review.md")).is_ok();
    terminal.line("\nThat was the demo; its files are gone now. Connect a model of your own:\n  planwright doctor\n  planwright chat --model-url http://127.0.0.1:11434/v1 --model qwen3");
    Ok(if played || !play { Exit::Fine } else { Exit::Failed })
}

/// Plays the story in a browser, until it is told to stop.
pub async fn serve(terminal: &mut Terminal, port: u16) -> anyhow::Result<Exit> {
    let home = tempfile::Builder::new().prefix("planwright-demo-").tempdir()?;
    let mut installation = staged(home.path(), Duration::from_millis(25)).await?;
    let now = installation.runtime.queries.now();
    // The demo has no passphrase: whoever reads this terminal may decide in it.
    let version = installation.accounts.installation().await?.version;
    let wanted = Wanted {
        expires: Some(now.plus_micros(DEMO_MICROS)),
        authenticated: Some((now, version)),
        ..Wanted::new("demo", PersonId(OWNER.into()), Standing::Decides, ChannelType::Cli)
    };
    let Given { secret, .. } = installation.accounts.give(wanted).await?;
    let bind = SocketAddr::from(([127, 0, 0, 1], port));
    let config = ServerConfig { bind, ..ServerConfig::default() };
    let api = Api::bind(&config).await?;
    installation.work(Reach::Everything);
    let url = format!("{}/login#token={secret}", api.url());
    terminal.row(
        &format!(
            "Open this in a browser (a scripted model, no network; Ctrl-C ends it):\n\n  {url}\n"
        ),
        || json!({"type": "demo", "url": url}),
    );
    let (runtime, access) = (installation.runtime.clone(), installation.access.clone());
    let connection = installation.connection.clone();
    let stops = Stops::after(Duration::ZERO);
    let served = api.serve(runtime, access, connection, &config, Deployment::Local, stops).await;
    installation.rest().await;
    terminal.line(
        "That was the demo; its files are gone now. Connect a model of your own: planwright up",
    );
    served?;
    Ok(Exit::Fine)
}

/// An installation that goes away with its directory, with the demo's model and files.
async fn staged(home: &Path, pace: Duration) -> anyhow::Result<Installation> {
    let (data, workspace) = (home.join("data"), home.join("workspace"));
    connection::stage(&workspace)?;
    let demo: Arc<dyn Model> = Arc::new(DemoModel::new(pace));
    let connected = connection::demo(&*demo);
    let switch = Arc::new(SwitchModel::new(demo));
    let model: Arc<dyn Model> = switch.clone();
    let agents = (model.clone(), default_profiles(&model));
    let mut config = Config::default();
    // There is no passphrase that could be given again.
    config.approval.passphrase_minutes = 24 * 60;
    config.approval.passphrase_hours = 24;
    let mut installation = Installation::wire(&data, &workspace, agents, &config, None).await?;
    let window = model.window_tokens();
    let connection = LiveConnection::new(switch, &data, &workspace, window, connected);
    installation.connection = Some(Arc::new(connection));
    Ok(installation)
}

/// What the person types; Enter takes the suggestion.
async fn next_line(
    terminal: &mut Terminal,
    lines: &mut Lines,
    suggested: &str,
    play: bool,
) -> Option<String> {
    if play {
        terminal.line(&format!("you › {suggested}"));
        return Some(suggested.to_owned());
    }
    terminal.line(&format!("     (Enter for: {suggested})"));
    terminal.prompt();
    let typed = lines.next().await?;
    Some(if typed.trim().is_empty() { suggested.to_owned() } else { typed })
}
