//! `planwright session`: conversations, listed, started, switched.

use anyhow::Context as _;
use planwright_domain::{
    digest::Digest,
    id::Seq,
    identity::{ChannelType, ConversationKey, SessionIdentity},
    turn::Usage,
};
use planwright_outbound::ids_random::fresh_id;
use planwright_runtime::{
    commands::routing::key_of,
    queries::model_request_log::{RequestRow, RequestView},
    queries::waiting::waits_for,
};
use serde_json::json;

use crate::{
    args::SessionCommand,
    backend::Backend,
    exit::Exit,
    talk,
    terminal::{Terminal, visible::visible},
};

/// How many conversations are listed.
const LISTED_MAX: usize = 50;

/// A session as a person names it.
pub enum NamedSession {
    /// One of the terminal's own, by its key or as `cli:key`.
    OfThisTerminal(ConversationKey),
    /// One that began on another surface, as `channel:key`.
    Elsewhere(SessionIdentity),
}

impl NamedSession {
    /// Reads a name as `session list` prints it, or a key.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        Ok(match SessionIdentity::parse(text) {
            Ok(identity) if identity.channel == ChannelType::Cli => {
                Self::OfThisTerminal(identity.key)
            }
            Ok(identity) => Self::Elsewhere(identity),
            Err(_) => Self::OfThisTerminal(ConversationKey::legacy(text)?),
        })
    }
}

/// Does what the words say.
pub async fn run(
    backend: &mut dyn Backend,
    terminal: &mut Terminal,
    command: Option<&SessionCommand>,
) -> anyhow::Result<Exit> {
    match command {
        None | Some(SessionCommand::List) => list(backend, terminal).await,
        Some(SessionCommand::New { key }) => {
            let key = key.as_deref().map_or_else(|| key_of(fresh_id()), ConversationKey::new)?;
            backend.activate(key).await?;
            terminal.line(&format!("{} is now the active session", backend.identity()));
            Ok(Exit::Fine)
        }
        Some(SessionCommand::Switch { key }) => switch(backend, terminal, key).await,
        Some(SessionCommand::Rename { title }) => {
            talk::say(backend, terminal, &format!("/rename {}", title.join(" "))).await
        }
        Some(SessionCommand::Archive) => talk::say(backend, terminal, "/archive").await,
        Some(SessionCommand::Delete { yes }) => {
            talk::say(backend, terminal, if *yes { "/delete yes" } else { "/delete" }).await
        }
        Some(SessionCommand::Output { digest }) => {
            let named = Digest::parse(digest).context("a digest is 64 hexadecimal digits")?;
            let Some(text) = backend.output(named).await? else {
                terminal.refusal(&format!(
                    "{} keeps no output {digest}; name its session with --session",
                    backend.identity()
                ));
                return Ok(Exit::Failed);
            };
            terminal.row(&text, || json!({"type": "output", "digest": digest, "text": text}));
            Ok(Exit::Fine)
        }
        Some(SessionCommand::Requests { number: None }) => {
            for row in backend.requests().await? {
                terminal.row(&request_line(&row), || json!({"type": "request", "request": row}));
            }
            Ok(Exit::Fine)
        }
        Some(SessionCommand::Requests { number: Some(number) }) => {
            let Some(view) = backend.request_at(Seq(*number)).await? else {
                terminal.refusal(&format!(
                    "no request {number} was sent here; planwright session requests lists them"
                ));
                return Ok(Exit::Failed);
            };
            terminal.row(&request(&view), || json!({"type": "request", "request": view}));
            Ok(Exit::Fine)
        }
        Some(SessionCommand::Retry) => {
            backend.retry().await?;
            terminal.line(&format!("{} is taken up again", backend.identity()));
            Ok(Exit::Fine)
        }
    }
}

/// Makes another session of this terminal the active one.
async fn switch(
    backend: &mut dyn Backend,
    terminal: &mut Terminal,
    key: &str,
) -> anyhow::Result<Exit> {
    let rows = backend.sessions(usize::MAX).await?;
    let named = match NamedSession::parse(key)? {
        NamedSession::OfThisTerminal(key) => SessionIdentity::new(ChannelType::Cli, key),
        NamedSession::Elsewhere(identity) => {
            terminal.refusal(&format!(
                "{identity} is of another surface; work in it with: planwright --session {identity} …"
            ));
            return Ok(Exit::Failed);
        }
    };
    let Some(known) = rows.into_iter().find(|listed| listed.identity == named) else {
        terminal.refusal(&format!("there is no session {key:?}; planwright session lists them"));
        return Ok(Exit::Failed);
    };
    backend.activate(known.identity.key).await?;
    terminal.line(&format!("{} is now the active session", backend.identity()));
    Ok(Exit::Fine)
}

/// A request in one line.
fn request_line(row: &RequestRow) -> String {
    let sent = row.sent.as_ref().map_or_else(String::new, |sent| {
        let spared = match sent.spared_bytes {
            0 => String::new(),
            spared => format!(", {spared} bytes of older results shortened"),
        };
        format!(
            "{} · {} messages, about {} tokens expected{spared} · ",
            sent.model, sent.messages, sent.estimate
        )
    });
    let Usage { input, output, cached, cache_written, cost_micros } = row.usage;
    let cached = match (cached, cache_written) {
        (0, 0) => String::new(),
        (cached, 0) => format!(" ({cached} from the cache)"),
        (cached, written) => format!(" ({cached} from the cache, {written} into it)"),
    };
    let cost =
        if cost_micros > 0 { format!(", ${:.4}", cost_micros as f64 / 1e6) } else { String::new() };
    format!(
        "{:>5} {} · {sent}{input} in{cached}, {output} out{cost} · {}",
        row.seq,
        row.at,
        visible(&row.came)
    )
}

/// A request as it was sent.
fn request(view: &RequestView) -> String {
    let same = if view.same {
        "this is what was sent, byte for byte"
    } else {
        "read again from the facts; settings have changed since it was sent"
    };
    let said = view.messages.iter().map(|(who, what)| format!("\n── {who}\n{}\n", visible(what)));
    format!(
        "{}\n{same}\n\n── system\n{}\n{}",
        request_line(&view.row),
        visible(&view.system),
        said.collect::<String>()
    )
}

async fn list(backend: &dyn Backend, terminal: &mut Terminal) -> anyhow::Result<Exit> {
    let mut rows = backend.sessions(LISTED_MAX + 1).await?;
    let has_more = rows.len() > LISTED_MAX;
    rows.truncate(LISTED_MAX);
    if rows.is_empty() && !terminal.is_json() {
        terminal.line("no conversations yet; start one with: planwright chat");
    }
    for row in rows {
        let is_active = row.identity == *backend.identity();
        let waits = match (&row.parked, row.waiting) {
            (Some(why), _) => format!("parked: {why}"),
            (None, Some(waiting)) => waits_for(waiting).into(),
            (None, None) if row.running => "in progress".into(),
            (None, None) if row.archived => "put away".into(),
            (None, None) => "at rest".into(),
        };
        let mark = if is_active { "●" } else { "○" };
        let title = visible(&row.title);
        let text = format!("{mark} {}  {title}  {} events  {waits}", row.identity, row.version);
        terminal.row(&text, || {
            json!({"type": "session", "session": row.identity, "version": row.version, "active": is_active, "running": row.running,
                   "waiting": row.waiting, "parked": row.parked, "title": row.title, "archived": row.archived})
        });
    }
    if has_more {
        let text =
            format!("… the newest {LISTED_MAX} of more; the dashboard lists and searches all");
        terminal.row(&text, || json!({"type": "more", "listed": LISTED_MAX}));
    }
    Ok(Exit::Fine)
}
