//! A person at the terminal: lines in, events out, until all is at rest.

use std::io::IsTerminal as _;

use planwright_domain::{
    chat::{Act, ChatCommand, Line, parse},
    id::Seq,
};
use planwright_runtime::{
    inbound::Reply,
    ports::signal::{Signal, Subscription},
    runtime::fresh_id,
};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::{
    backend::{Backend, Reach},
    exit::Exit,
    terminal::Terminal,
};

/// How long nothing is heard before the session is looked at again.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(2);
/// How many typed lines may wait.
const LINES_MAX: usize = 64;

/// Says one line, and stays until what it brings about is at rest.
pub async fn say(
    backend: &mut dyn Backend,
    terminal: &mut Terminal,
    line: &str,
) -> anyhow::Result<Exit> {
    let mut lines = Lines::default();
    if let Err(error) = unlock_for(backend, &mut lines, line).await {
        terminal.refusal(&error.to_string());
        return Ok(Exit::Denied);
    }
    let mut watch = Watch::new(backend).await?;
    let reply = hear(backend, terminal, line, None).await?;
    Ok(match &reply {
        Reply::Accepted { .. } => {
            backend.work(Reach::ThisSession);
            watch.until_rest(backend, terminal).await?;
            backend.rest().await;
            if backend.status().await?.waiting.is_some() { Exit::WaitsForYou } else { Exit::Fine }
        }
        Reply::Refused(refusal) => Exit::of(refusal),
        Reply::Unreadable(_) => Exit::Failed,
        Reply::Status(view) if view.waiting.is_some() => Exit::WaitsForYou,
        Reply::Status(_)
        | Reply::Revision(_)
        | Reply::Diff(_)
        | Reply::Plans(_)
        | Reply::Comments(_)
        | Reply::Moved { .. }
        | Reply::Sessions(_)
        | Reply::Work(_)
        | Reply::Memory(_)
        | Reply::Notebook(_)
        | Reply::Nothing(_)
        | Reply::Help => Exit::Fine,
    })
}

/// Talks until the person leaves.
pub async fn converse(backend: &mut dyn Backend, terminal: &mut Terminal) -> anyhow::Result<Exit> {
    let mut lines = Lines::default();
    if !terminal.is_json() {
        let (identity, described) = (backend.identity(), backend.described());
        terminal.line(&format!("{identity} · {described} · /help lists commands, ^D leaves"));
        if !backend.has_passphrase() && lines.is_terminal() {
            choose_passphrase(backend, &mut lines).await?;
        }
    }
    let mut watch = Watch::new(backend).await?;
    backend.work(Reach::Everything);
    let mut is_prompted = false;
    let mut is_open = true;
    loop {
        let is_resting = watch.catch_up(backend, terminal).await?;
        if is_resting && !is_open {
            break;
        }
        if is_resting && !is_prompted {
            terminal.quiet();
            terminal.prompt();
            is_prompted = true;
        } else if !is_resting {
            terminal.busy("working");
        }
        tokio::select! {
            line = lines.next(), if is_open => match line {
                None => is_open = false,
                Some(line) if line.trim().is_empty() => is_prompted = false,
                Some(line) => {
                    is_prompted = false;
                    let reply = converse_line(backend, terminal, &mut lines, &line).await?;
                    if reply.is_some_and(|reply| moves(&reply)) {
                        // Another conversation is the active one: it is watched from here on.
                        backend.choose().await?;
                        watch = Watch::new(backend).await?;
                        terminal.line(&format!("{} · from here on", backend.identity()));
                    }
                }
            },
            signal = watch.ear.next() => watch.hear(backend, terminal, signal),
            () = tokio::time::sleep(LOOK_AGAIN), if !is_resting => {}
            _ = tokio::signal::ctrl_c() => {
                if is_resting {
                    break;
                }
                hear(backend, terminal, "/stop", None).await?;
            }
        }
    }
    terminal.goodbye();
    backend.rest().await;
    Ok(Exit::Fine)
}

/// A line as a program may send it, with an id of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SentLine {
    id: uuid::Uuid,
    text: String,
}

async fn converse_line(
    backend: &mut dyn Backend,
    terminal: &mut Terminal,
    lines: &mut Lines,
    line: &str,
) -> anyhow::Result<Option<Reply>> {
    let sent = terminal.is_json().then(|| serde_json::from_str::<SentLine>(line).ok()).flatten();
    let (line, id) =
        sent.map_or_else(|| (line.to_owned(), None), |sent| (sent.text, Some(sent.id)));
    if let Err(error) = unlock_for(backend, lines, &line).await {
        terminal.refusal(&error.to_string());
        return Ok(None);
    }
    hear(backend, terminal, &line, id).await.map(Some)
}

/// Whether the terminal talks to another conversation after this.
fn moves(reply: &Reply) -> bool {
    match reply {
        Reply::Moved { .. } => true,
        Reply::Accepted { words, .. } => words.starts_with("deleted"),
        Reply::Refused(_)
        | Reply::Unreadable(_)
        | Reply::Status(_)
        | Reply::Revision(_)
        | Reply::Diff(_)
        | Reply::Plans(_)
        | Reply::Comments(_)
        | Reply::Sessions(_)
        | Reply::Work(_)
        | Reply::Memory(_)
        | Reply::Notebook(_)
        | Reply::Nothing(_)
        | Reply::Help => false,
    }
}

/// Passes a line on, prints the reply, and records what was shown in full.
pub async fn hear(
    backend: &dyn Backend,
    terminal: &mut Terminal,
    line: &str,
    id: Option<uuid::Uuid>,
) -> anyhow::Result<Reply> {
    let reply = backend.hear(id.map_or_else(fresh_id, Into::into), line).await?;
    terminal.reply(&reply, id);
    if let Reply::Revision(view) = &reply
        && view.current
    {
        backend.shown(view.digest).await?;
    }
    Ok(reply)
}

/// Asks for the passphrase if the line decides something and this terminal is not remembered.
async fn unlock_for(
    backend: &mut dyn Backend,
    lines: &mut Lines,
    line: &str,
) -> anyhow::Result<()> {
    let decides = match parse(line) {
        Ok(Line::Command(ChatCommand::Act(act))) => match act {
            Act::Approve { .. }
            | Act::Changes(_)
            | Act::Edit(_)
            | Act::Reject(_)
            | Act::Resume
            | Act::Skip(_)
            | Act::Permit { .. }
            | Act::Settle { .. } => true,
            Act::PlanOn(_)
            | Act::PlanEnd(_)
            | Act::PlanStop
            | Act::Stop
            | Act::Reset
            | Act::Work(_)
            | Act::Rename(_)
            | Act::Archive
            | Act::Delete
            | Act::MemorySave(_)
            | Act::Notebook(_)
            | Act::Compact
            | Act::MemoryEdit(..)
            | Act::MemoryForget(_)
            | Act::MemoryPromote(_) => false,
        },
        Ok(
            Line::Message(_)
            | Line::Command(ChatCommand::Help | ChatCommand::Look(_) | ChatCommand::Route(_)),
        )
        | Err(_) => false,
    };
    if !decides || backend.is_unlocked() || !lines.is_terminal() {
        return Ok(());
    }
    if !backend.has_passphrase() {
        return choose_passphrase(backend, lines).await;
    }
    let given = lines.hidden("passphrase: ").await?;
    backend.unlock(&given).await
}

/// Lets the person choose the passphrase, at the first run.
pub async fn choose_passphrase(backend: &mut dyn Backend, lines: &mut Lines) -> anyhow::Result<()> {
    let first = lines
        .hidden("choose a passphrase (8 characters or more; deciding on a plan needs it): ")
        .await?;
    let second = lines.hidden("once more: ").await?;
    if first != second {
        anyhow::bail!("the two differ; nothing was chosen, try again");
    }
    backend.unlock(&first).await
}

/// Follows one session: everything recorded since it began to look.
pub struct Watch {
    seen: Seq,
    ear: Box<dyn Subscription>,
}

impl Watch {
    /// Looks from now on.
    pub async fn new(backend: &dyn Backend) -> anyhow::Result<Self> {
        let ear = backend.listen().await?;
        Ok(Self { seen: backend.status().await?.version, ear })
    }

    /// Prints until nothing is under way.
    pub async fn until_rest(
        &mut self,
        backend: &dyn Backend,
        terminal: &mut Terminal,
    ) -> anyhow::Result<()> {
        while !self.catch_up(backend, terminal).await? {
            terminal.busy("working");
            // What tells of news may itself be gone.
            if let Ok(signal) = tokio::time::timeout(LOOK_AGAIN, self.ear.next()).await {
                self.hear(backend, terminal, signal);
            }
        }
        terminal.quiet();
        Ok(())
    }

    /// Prints what was recorded and not printed yet; whether nothing is under way then.
    pub async fn catch_up(
        &mut self,
        backend: &dyn Backend,
        terminal: &mut Terminal,
    ) -> anyhow::Result<bool> {
        loop {
            let view = backend.status().await?;
            terminal.degraded(&view.degraded);
            if view.version == self.seen {
                return Ok(view.resting);
            }
            for recorded in backend.events(self.seen).await? {
                self.seen = recorded.seq;
                terminal.event(&view, &recorded);
            }
        }
    }

    /// Pieces of answers are printed as they come; everything else is read from the journal.
    fn hear(&mut self, backend: &dyn Backend, terminal: &mut Terminal, signal: Option<Signal>) {
        if let Some(Signal::Preview(preview)) = signal {
            terminal.preview(backend.identity(), &preview);
        }
    }
}

/// Lines that are typed, read in a thread of their own so that nothing waits for them.
#[derive(Default)]
pub struct Lines {
    receiver: Option<mpsc::Receiver<String>>,
}

impl Lines {
    /// Whether a person can type.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        std::io::stdin().is_terminal()
    }

    /// The next line; none when there will be no more.
    pub async fn next(&mut self) -> Option<String> {
        let receiver = self.receiver.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::channel(LINES_MAX);
            std::thread::spawn(move || {
                for line in std::io::stdin().lines().map_while(Result::ok) {
                    if sender.blocking_send(line).is_err() {
                        break;
                    }
                }
            });
            receiver
        });
        receiver.recv().await
    }

    /// A line that is not shown while it is typed.
    pub async fn hidden(&mut self, prompt: &str) -> anyhow::Result<String> {
        use std::io::Write as _;
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &quiet)?;
        let _ = write!(std::io::stderr(), "{prompt}");
        let _ = std::io::stderr().flush();
        let line = self.next().await;
        tcsetattr(&stdin, OptionalActions::Now, &before)?;
        let _ = writeln!(std::io::stderr());
        line.ok_or_else(|| anyhow::anyhow!("no passphrase was given"))
    }
}
