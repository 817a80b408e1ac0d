//! A person at the terminal: lines in, events out, until all is at rest.

use std::{
    io::{IsTerminal as _, Write as _},
    path::Path,
};

use planwright_domain::{
    chat::{Act, ChatCommand, Line, Look, parse},
    id::Seq,
    session::SessionEvent,
    turn::event::{TurnEnd, TurnEvent},
};
use planwright_outbound::ids_random::fresh_id;
use planwright_outbound::{model_http::is_unreachable, passphrase};
use planwright_runtime::{
    commands::reply::Reply,
    ports::signal::{Signal, Subscription},
};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::{
    backend::{Backend, ListedSession, Reach},
    exit::Exit,
    line_editor::{LineEditor, Printer, Typed},
    terminal::Terminal,
};

/// How long nothing is heard before the session is looked at again.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(2);
/// How often the model's server may not be reached before a single message is left to be answered later.
const UNREACHABLE_MAX: u32 = 3;
/// How many sessions can be completed.
const COMPLETED_MAX: usize = 100;
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
    let reply = send_line(backend, terminal, line, None).await?;
    Ok(match &reply {
        Reply::Accepted { .. } if is_done_at_once(line) => Exit::Fine,
        Reply::Accepted { .. } => {
            backend.work(Reach::ThisSession);
            let end = watch.until_rest(backend, terminal).await?;
            backend.rest().await;
            let waits = backend.status().await?.waiting.is_some();
            match end {
                End::NoModel => Exit::Failed,
                End::AtRest | End::Failed if waits => Exit::WaitsForYou,
                End::AtRest => Exit::Fine,
                End::Failed => Exit::Failed,
            }
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
        | Reply::Help => Exit::Fine,
        Reply::Nothing(_) if asks_what_deleting_ends(line) || asks_for_limits(line) => Exit::Fine,
        Reply::Nothing(_) => Exit::Failed,
    })
}

/// Whether a line that was accepted has done all that it does: nothing that goes on in the session belongs to it.
fn is_done_at_once(line: &str) -> bool {
    let Ok(Line::Command(ChatCommand::Act(act))) = parse(line) else { return false };
    matches!(
        act,
        Act::Rename(_)
            | Act::Archive
            | Act::Notebook(_)
            | Act::MemorySave(_)
            | Act::MemoryEdit(..)
            | Act::MemoryForget(_)
            | Act::MemoryPromote(_)
    )
}

/// Whether a line asks what is used: its answer is words, and not that there is nothing.
fn asks_for_limits(line: &str) -> bool {
    matches!(parse(line), Ok(Line::Command(ChatCommand::Look(Look::Limits))))
}

/// The one question whose answer in words is all there is to give.
fn asks_what_deleting_ends(line: &str) -> bool {
    matches!(parse(line), Ok(Line::Command(ChatCommand::Look(Look::Deletion))))
}

/// Talks until the person leaves.
pub async fn converse(
    backend: &mut dyn Backend,
    terminal: &mut Terminal,
    history: &Path,
) -> anyhow::Result<Exit> {
    let mut lines = Lines::default();
    if !terminal.is_json() {
        let (identity, described) = (backend.identity(), backend.described());
        terminal.line(&format!("{identity} · {described} · /help lists commands, ^D leaves"));
        if !backend.has_passphrase() && lines.is_terminal() {
            choose_passphrase(backend, &mut lines, "; Enter alone: later").await?;
        }
    }
    if !terminal.is_json() {
        terminal.print_through(lines.edit(history));
    }
    let talked = converse_with(backend, terminal, &mut lines).await;
    // The editor gives the terminal back before anything else is said.
    drop(lines);
    terminal.print_through(None);
    terminal.goodbye();
    backend.rest().await;
    talked
}

async fn converse_with(
    backend: &mut dyn Backend,
    terminal: &mut Terminal,
    lines: &mut Lines,
) -> anyhow::Result<Exit> {
    let mut watch = Watch::new(backend).await?;
    lines.offer(backend).await;
    backend.work(Reach::Everything);
    let mut is_prompted = false;
    let mut is_open = true;
    let mut was_interrupted = false;
    loop {
        let is_resting = watch.catch_up(backend, terminal).await?;
        if is_resting && !is_open {
            break;
        }
        if !is_open && watch.has_no_model() {
            terminal.quiet();
            return Ok(Exit::Failed);
        }
        if is_resting && !is_prompted {
            terminal.quiet();
            terminal.prompt();
            is_prompted = true;
        } else if !is_resting {
            terminal.busy("working");
        }
        tokio::select! {
            typed = lines.typed(), if is_open => match typed {
                Typed::End => is_open = false,
                Typed::Interrupted if !is_resting => {
                    send_line(backend, terminal, "/stop", None).await?;
                }
                Typed::Interrupted if was_interrupted => break,
                Typed::Interrupted => {
                    was_interrupted = true;
                    terminal.line("^C again or ^D leaves");
                }
                Typed::Line(line) if line.trim().is_empty() => is_prompted = false,
                Typed::Line(line) => {
                    (is_prompted, was_interrupted) = (false, false);
                    let reply = converse_line(backend, terminal, lines, &line).await?;
                    if reply.is_some_and(|reply| moves(&reply)) {
                        // Another conversation is the active one: it is watched from here on.
                        backend.choose().await?;
                        watch = Watch::new(backend).await?;
                        lines.offer(backend).await;
                        terminal.line(&format!("{} · from here on", backend.identity()));
                    }
                }
            },
            signal = watch.subscription.next() => watch.handle_signal(backend, terminal, signal),
            () = tokio::time::sleep(LOOK_AGAIN), if !is_resting => {}
            _ = tokio::signal::ctrl_c() => {
                if is_resting {
                    break;
                }
                send_line(backend, terminal, "/stop", None).await?;
            }
        }
    }
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
    send_line(backend, terminal, &line, id).await.map(Some)
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
pub async fn send_line(
    backend: &dyn Backend,
    terminal: &mut Terminal,
    line: &str,
    id: Option<uuid::Uuid>,
) -> anyhow::Result<Reply> {
    let reply = backend.handle_line(id.map_or_else(fresh_id, Into::into), line).await?;
    let is_written = terminal.reply(&reply, id);
    if let Reply::Revision(view) = &reply
        && view.current
    {
        anyhow::ensure!(
            is_written,
            "revision {} could not be written out whole, so it does not count as shown",
            view.revision.number
        );
        backend.shown(view.digest).await?;
    }
    Ok(reply)
}

/// Asks for the passphrase if the line needs one and this terminal is not remembered.
async fn unlock_for(
    backend: &mut dyn Backend,
    lines: &mut Lines,
    line: &str,
) -> anyhow::Result<()> {
    let needs_one = match parse(line) {
        Ok(Line::Command(ChatCommand::Act(act))) => match act {
            Act::Approve { .. }
            | Act::Changes(_)
            | Act::Edit(_)
            | Act::Reject(_)
            | Act::Resume
            | Act::Skip(_)
            | Act::Permit { .. }
            | Act::Settle { .. }
            | Act::RaiseLimit
            | Act::MemoryPromote(_) => true,
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
            | Act::MemoryForget(_) => false,
        },
        Ok(
            Line::Message(_)
            | Line::Command(ChatCommand::Help | ChatCommand::Look(_) | ChatCommand::Route(_)),
        )
        | Err(_) => false,
    };
    if !needs_one || backend.is_unlocked() || !lines.is_terminal() {
        return Ok(());
    }
    unlock(backend, lines).await
}

/// Asks for the passphrase, or lets the person choose it where there is none.
pub async fn unlock(backend: &mut dyn Backend, lines: &mut Lines) -> anyhow::Result<()> {
    if !backend.has_passphrase() {
        return match choose_passphrase(backend, lines, "").await? {
            Choice::Made => Ok(()),
            Choice::Later => anyhow::bail!("no passphrase was chosen, and deciding needs one"),
        };
    }
    let mut prompt = "passphrase: ".to_owned();
    for tries_left in (0..TRIES).rev() {
        let given = lines.hidden(&prompt).await?;
        match backend.unlock(&given).await {
            // What is typed next is not to become a message.
            Err(error) if tries_left > 0 && !given.is_empty() => {
                prompt = format!("{error}\npassphrase, once more (or only Enter): ");
            }
            unlocked => return unlocked,
        }
    }
    Ok(())
}

/// How often a person is asked for their passphrase before the line that needs it is given up.
const TRIES: u32 = 3;

/// Whether a passphrase was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// It was.
    Made,
    /// The person only pressed Enter.
    Later,
}

/// Lets the person choose the passphrase, at the first run. `besides` is said after the rule.
pub async fn choose_passphrase(
    backend: &mut dyn Backend,
    lines: &mut Lines,
    besides: &str,
) -> anyhow::Result<Choice> {
    let prompt = format!(
        "choose a passphrase (8 characters or more; deciding on a plan needs it{besides}): "
    );
    match new_passphrase(lines, &prompt).await? {
        Some(chosen) => backend.unlock(&chosen).await.map(|()| Choice::Made),
        None => Ok(Choice::Later),
    }
}

/// A passphrase that may be chosen, typed twice; none if the person only presses Enter. One that breaks the rule is
/// refused at once, and asked for again.
pub async fn new_passphrase(lines: &mut Lines, prompt: &str) -> anyhow::Result<Option<String>> {
    loop {
        let first = lines.hidden(prompt).await?;
        if first.is_empty() {
            return Ok(None);
        }
        let wrong = match passphrase::check(&first) {
            Err(rule) => rule,
            Ok(()) if lines.hidden("once more: ").await? == first => return Ok(Some(first)),
            Ok(()) => "the two differ".into(),
        };
        let _ = writeln!(std::io::stderr(), "✗ {wrong}; try again");
    }
}

/// How it ended that a session was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing is under way.
    AtRest,
    /// The last turn failed, and nothing is under way.
    Failed,
    /// The turn waits for a model that cannot be reached.
    NoModel,
}

/// Follows one session: everything recorded since it began to look.
pub struct Watch {
    seen: Seq,
    subscription: Box<dyn Subscription>,
    /// How often in a row the model's server was not reached.
    unreachable: u32,
    /// Whether the model is asked again only after minutes.
    is_suspended: bool,
    /// Whether the last turn failed.
    has_failed: bool,
    /// Whether it was said for which limit a turn waits that has not begun.
    has_said_limit: bool,
}

impl Watch {
    /// Looks from now on.
    pub async fn new(backend: &dyn Backend) -> anyhow::Result<Self> {
        let subscription = backend.listen().await?;
        let seen = backend.status().await?.version;
        Ok(Self {
            seen,
            subscription,
            unreachable: 0,
            is_suspended: false,
            has_failed: false,
            has_said_limit: false,
        })
    }

    /// Prints until nothing is under way, or nothing but waiting for a model that cannot be reached.
    pub async fn until_rest(
        &mut self,
        backend: &dyn Backend,
        terminal: &mut Terminal,
    ) -> anyhow::Result<End> {
        while !self.catch_up(backend, terminal).await? {
            if self.has_no_model() {
                terminal.quiet();
                return Ok(End::NoModel);
            }
            terminal.busy("working");
            // What tells of news may itself be gone.
            if let Ok(signal) = tokio::time::timeout(LOOK_AGAIN, self.subscription.next()).await {
                self.handle_signal(backend, terminal, signal);
            }
        }
        terminal.quiet();
        Ok(if self.has_failed { End::Failed } else { End::AtRest })
    }

    /// Whether nothing goes on before the model's server is back.
    fn has_no_model(&self) -> bool {
        self.is_suspended || self.unreachable >= UNREACHABLE_MAX
    }

    /// What the event says of the model.
    fn note(&mut self, event: &SessionEvent) {
        let SessionEvent::Turn(event) = event else { return };
        if let TurnEvent::ModelCallFailed { failure, retry_at: Some(_), asking, .. } = event {
            self.is_suspended = asking.is_suspended();
            self.unreachable = if is_unreachable(failure) { self.unreachable + 1 } else { 0 };
        } else if let TurnEvent::ModelAnswered { .. } = event {
            (self.is_suspended, self.unreachable) = (false, 0);
        } else if let TurnEvent::TurnFinished { end, .. } = event {
            self.has_failed = matches!(end, TurnEnd::Failed { .. });
        }
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
            if view.version < self.seen {
                // It was deleted, and is erased: there is nothing more to read.
                self.seen = view.version;
            }
            if view.version == self.seen {
                if let Some(limit) = view.limit.as_ref().filter(|_| !view.resting)
                    && !std::mem::replace(&mut self.has_said_limit, true)
                {
                    terminal.line(&format!("⏸ {}; {}", limit.in_words(), limit.what_to_do()));
                }
                return Ok(view.resting);
            }
            for recorded in backend.events(self.seen).await? {
                self.seen = recorded.seq;
                self.note(&recorded.event);
                terminal.event(&view, &recorded);
            }
        }
    }

    /// Pieces of answers are printed as they come; everything else is read from the journal.
    fn handle_signal(
        &mut self,
        backend: &dyn Backend,
        terminal: &mut Terminal,
        signal: Option<Signal>,
    ) {
        if let Some(Signal::Preview(preview)) = signal {
            terminal.preview(backend.identity(), &preview);
        }
    }
}

/// Lines that are typed, read in a thread of their own so that nothing waits for them.
#[derive(Default)]
pub struct Lines {
    receiver: Option<mpsc::Receiver<String>>,
    editor: Option<LineEditor>,
}

impl Lines {
    /// Whether a person can type.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        std::io::stdin().is_terminal()
    }

    /// From here on lines can be edited, where there is a terminal that can do it: what prints above them.
    pub fn edit(&mut self, history: &Path) -> Option<Printer> {
        let (editor, printer) = LineEditor::open(history)?;
        self.editor = Some(editor);
        Some(printer)
    }

    /// Lets the editor complete the person's sessions.
    async fn offer(&self, backend: &dyn Backend) {
        let Some(editor) = &self.editor else { return };
        // Without a list there is nothing to complete; a conversation is possible all the same.
        let sessions = backend.sessions(COMPLETED_MAX).await.unwrap_or_default();
        let of_this_channel =
            |listed: &ListedSession| listed.identity.channel == backend.identity().channel;
        let known = sessions.into_iter().filter(of_this_channel);
        editor.offer(known.map(|listed| listed.identity.key.as_str().to_owned()).collect());
    }

    /// What is typed next.
    async fn typed(&mut self) -> Typed {
        match &mut self.editor {
            Some(editor) => editor.next().await,
            None => self.next().await.map_or(Typed::End, Typed::Line),
        }
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
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &quiet)?;
        let _ = write!(std::io::stderr(), "{prompt}");
        let _ = std::io::stderr().flush();
        let line = match self.receiver {
            Some(_) => self.next().await,
            // No thread may go on reading what the editor reads later.
            None => {
                tokio::task::spawn_blocking(|| {
                    let mut line = String::new();
                    let length = std::io::stdin().read_line(&mut line).unwrap_or(0);
                    (length > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned())
                })
                .await?
            }
        };
        tcsetattr(&stdin, OptionalActions::Now, &before)?;
        let _ = writeln!(std::io::stderr());
        line.ok_or_else(|| anyhow::anyhow!("no passphrase was given"))
    }
}
