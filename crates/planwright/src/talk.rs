//! A person at the terminal: lines in, events out, until all is at rest.

use std::io::IsTerminal as _;

use planwright_domain::{
    chat::{Act, ChatCommand, Line, parse},
    id::Seq,
    next::{Next, next, waiting},
};
use planwright_outbound::lane_in_process::Scope;
use planwright_runtime::{
    inbound::{Reply, Spoken},
    ports::{Signal, Subscription},
    runtime::fresh_id,
};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::{exit::Exit, installation::Installation, terminal::Terminal};

/// How many events are read at once.
const PAGE: usize = 256;
/// How many typed lines may wait.
const LINES_MAX: usize = 64;

/// Says one line, and stays until what it brings about is at rest.
pub async fn say(
    installation: &mut Installation,
    terminal: &mut Terminal,
    line: &str,
) -> anyhow::Result<Exit> {
    let mut lines = Lines::default();
    if let Err(error) = unlock_for(installation, &mut lines, line).await {
        terminal.refusal(&error.to_string());
        return Ok(Exit::Denied);
    }
    let mut watch = Watch::new(installation).await?;
    let reply = hear(installation, terminal, line, None).await?;
    let exit = match &reply {
        Reply::Accepted { .. } => {
            installation.work(Scope::Only(installation.identity.clone()));
            watch.until_rest(installation, terminal).await?;
            installation.rest().await;
            let session = installation.runtime.session(&installation.identity).await?;
            if waiting(&session).is_some() { Exit::WaitsForYou } else { Exit::Fine }
        }
        Reply::Refused(refusal) => Exit::of(refusal),
        Reply::Unreadable(_) => Exit::Failed,
        Reply::Status(view) if view.waiting.is_some() => Exit::WaitsForYou,
        Reply::Status(_)
        | Reply::Revision(_)
        | Reply::Diff(_)
        | Reply::Plans(_)
        | Reply::Nothing(_)
        | Reply::Help => Exit::Fine,
    };
    Ok(exit)
}

/// Talks until the person leaves.
pub async fn converse(
    installation: &mut Installation,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let mut lines = Lines::default();
    if !terminal.is_json() {
        let model = installation.runtime.ports.model.name();
        terminal.line(&format!(
            "{} · {model} · /help lists commands, ^D leaves",
            installation.identity
        ));
        if !installation.access.has_passphrase() && lines.is_terminal() {
            choose_passphrase(installation, &mut lines).await?;
        }
    }
    let mut watch = Watch::new(installation).await?;
    installation.work(Scope::Everything);
    let mut is_prompted = false;
    let mut is_open = true;
    loop {
        watch.catch_up(installation, terminal).await?;
        let is_resting = watch.is_resting(installation).await?;
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
                    converse_line(installation, terminal, &mut lines, &line).await?;
                }
            },
            () = watch.changed(installation, terminal) => {}
            _ = tokio::signal::ctrl_c() => {
                if is_resting {
                    break;
                }
                hear(installation, terminal, "/stop", None).await?;
            }
        }
    }
    terminal.goodbye();
    installation.rest().await;
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
    installation: &mut Installation,
    terminal: &mut Terminal,
    lines: &mut Lines,
    line: &str,
) -> anyhow::Result<()> {
    let sent = terminal.is_json().then(|| serde_json::from_str::<SentLine>(line).ok()).flatten();
    let (line, id) =
        sent.map_or_else(|| (line.to_owned(), None), |sent| (sent.text, Some(sent.id)));
    if let Err(error) = unlock_for(installation, lines, &line).await {
        terminal.refusal(&error.to_string());
        return Ok(());
    }
    hear(installation, terminal, &line, id).await.map(drop)
}

/// Passes a line on, prints the reply, and records what was shown in full.
pub async fn hear(
    installation: &Installation,
    terminal: &mut Terminal,
    line: &str,
    id: Option<uuid::Uuid>,
) -> anyhow::Result<Reply> {
    let Installation { runtime, identity, person, .. } = installation;
    let command = id.map_or_else(fresh_id, Into::into);
    let spoken = Spoken {
        identity: identity.clone(),
        person: person.clone(),
        id: command,
        line: line.to_owned(),
    };
    let reply = runtime.hear(spoken).await?;
    terminal.reply(&reply, id);
    if let Reply::Revision(view) = &reply
        && view.current
    {
        runtime.shown(identity, person, view.digest).await?;
    }
    Ok(reply)
}

/// Asks for the passphrase if the line decides something and this terminal is not remembered.
async fn unlock_for(
    installation: &mut Installation,
    lines: &mut Lines,
    line: &str,
) -> anyhow::Result<()> {
    let decides = match parse(line) {
        Ok(Line::Command(ChatCommand::Act(act))) => match act {
            Act::Approve { .. }
            | Act::Changes(_)
            | Act::Reject(_)
            | Act::Resume
            | Act::Settle { .. } => true,
            Act::PlanOn(_) | Act::PlanEnd(_) | Act::PlanStop | Act::Stop | Act::Reset => false,
        },
        Ok(Line::Message(_) | Line::Command(ChatCommand::Help | ChatCommand::Look(_))) | Err(_) => {
            false
        }
    };
    if !decides || installation.is_unlocked() || !lines.is_terminal() {
        return Ok(());
    }
    if !installation.access.has_passphrase() {
        return choose_passphrase(installation, lines).await;
    }
    let given = lines.hidden("passphrase: ").await?;
    installation.unlock_with(&given)
}

async fn choose_passphrase(
    installation: &mut Installation,
    lines: &mut Lines,
) -> anyhow::Result<()> {
    let first = lines
        .hidden("choose a passphrase (8 characters or more; deciding on a plan needs it): ")
        .await?;
    let second = lines.hidden("once more: ").await?;
    if first != second {
        anyhow::bail!("the two differ; nothing was chosen, try again");
    }
    installation.unlock_with(&first)
}

/// Follows one session: everything recorded since it began to look.
pub struct Watch {
    seen: Seq,
    ear: Box<dyn Subscription>,
}

impl Watch {
    /// Looks from now on.
    pub async fn new(installation: &Installation) -> anyhow::Result<Self> {
        let ear = installation.runtime.ports.broadcast.subscribe(&installation.identity);
        let session = installation.runtime.session(&installation.identity).await?;
        Ok(Self { seen: session.version, ear })
    }

    /// Prints until nothing is under way.
    pub async fn until_rest(
        &mut self,
        installation: &Installation,
        terminal: &mut Terminal,
    ) -> anyhow::Result<()> {
        loop {
            self.catch_up(installation, terminal).await?;
            if self.is_resting(installation).await? {
                terminal.quiet();
                return Ok(());
            }
            terminal.busy("working");
            self.changed(installation, terminal).await;
        }
    }

    /// Prints what was recorded and not printed yet.
    pub async fn catch_up(
        &mut self,
        installation: &Installation,
        terminal: &mut Terminal,
    ) -> anyhow::Result<()> {
        let Installation { runtime, identity, .. } = installation;
        loop {
            let session = runtime.session(identity).await?;
            let page = runtime.ports.journal.events(identity, self.seen, PAGE).await?;
            if page.is_empty() {
                return Ok(());
            }
            let card = runtime.card(&session);
            for recorded in page {
                self.seen = recorded.seq;
                terminal.event(&session, &recorded, card.as_ref());
            }
        }
    }

    /// Whether nothing is under way, and all of it was printed.
    pub async fn is_resting(&self, installation: &Installation) -> anyhow::Result<bool> {
        let session = installation.runtime.session(&installation.identity).await?;
        let rests = matches!(next(&session), Next::Nothing | Next::WaitForPerson(_));
        Ok(rests && session.version == self.seen)
    }

    /// Waits for something to happen; pieces of answers are printed as they come.
    pub async fn changed(&mut self, installation: &Installation, terminal: &mut Terminal) {
        match self.ear.next().await {
            Some(Signal::Preview(preview)) => {
                if let Ok(session) = installation.runtime.session(&installation.identity).await {
                    terminal.preview(&session, &preview);
                }
            }
            Some(Signal::Moved(_) | Signal::Missed) => {}
            None => std::future::pending().await,
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
    async fn hidden(&mut self, prompt: &str) -> anyhow::Result<String> {
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
