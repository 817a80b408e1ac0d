//! One life of the process: start it, drive it by what it says of itself, end it.

use std::{process::Stdio, time::Duration};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, timeout_at},
};
use uuid::Uuid;

use super::{
    Acknowledged, Campaign, Death, PASSPHRASE, Wire,
    http::HttpProcess,
    person::{self, Whim},
};

/// How long an answer may take.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(8);
/// How many commands one life gives at most.
const COMMANDS_MAX: usize = 120;

/// A process as a life drives it, whatever the wire.
#[async_trait]
pub(super) trait Driven: Send {
    /// Sends a line and waits for its answer; none if the process is gone.
    async fn ask(&mut self, campaign: &mut Campaign, session: &str, line: &str) -> Option<Value>;

    /// Waits until something happens.
    async fn wait(&mut self, campaign: &mut Campaign, session: &str) -> Step;

    /// Asks it to end in peace.
    fn leave(&mut self);

    /// The process itself.
    fn child(&mut self) -> &mut Child;

    /// Logs what it acknowledged and nobody had read yet.
    async fn drain(&mut self, campaign: &mut Campaign, session: &str);
}

/// Lives until the death comes or everything rests.
pub(super) async fn live(
    campaign: &mut Campaign,
    session: &str,
    death: &Death,
) -> anyhow::Result<()> {
    let mut process: Box<dyn Driven> = match campaign.wire {
        Wire::Terminal => Box::new(Process::start(campaign, session, death).await?),
        Wire::Http => match HttpProcess::start(campaign, death).await? {
            Some(process) => Box::new(process),
            None => return Ok(()),
        },
    };
    let dies_at = match death {
        Death::After(milliseconds) | Death::PowerCut(milliseconds) => {
            Some(Instant::now() + Duration::from_millis(*milliseconds))
        }
        Death::At(..) | Death::Peaceful => None,
    };
    for _ in 0..COMMANDS_MAX {
        let far = Instant::now() + Duration::from_secs(3_600);
        let step =
            timeout_at(dies_at.unwrap_or(far), step(campaign, &mut *process, session, death)).await;
        match step {
            Err(_) => break,
            Ok(Step::On) => {}
            Ok(Step::Rests | Step::Dead) => break,
        }
    }
    let was_alive = process.child().try_wait()?.is_none();
    match death {
        Death::Peaceful => {
            process.leave();
            process.child().wait().await?;
        }
        Death::At(..) if was_alive => {
            campaign.outlived += 1;
            process.leave();
            process.child().wait().await?;
        }
        Death::At(..) => campaign.killed_at_points += 1,
        Death::After(_) | Death::PowerCut(_) => {
            process.child().start_kill()?;
            process.child().wait().await?;
            campaign.killed += 1;
        }
    }
    process.drain(campaign, session).await;
    Ok(())
}

pub(super) enum Step {
    On,
    Rests,
    Dead,
}

/// Looks where the session stands, and does what a person would do next.
async fn step(
    campaign: &mut Campaign,
    process: &mut dyn Driven,
    session: &str,
    death: &Death,
) -> Step {
    let Some(status) = process.ask(campaign, session, "/plan status").await else {
        return Step::Dead;
    };
    let is_peaceful = *death == Death::Peaceful;
    let line = match person::next(&status["status"], &mut campaign.rng, is_peaceful) {
        Whim::Wait => return process.wait(campaign, session).await,
        Whim::Rest => return Step::Rests,
        Whim::Say(line) => line,
        Whim::ReadThen(line) => {
            if process.ask(campaign, session, "/plan show").await.is_none() {
                return Step::Dead;
            }
            line
        }
    };
    match process.ask(campaign, session, &line).await {
        None => Step::Dead,
        Some(reply) => {
            if reply["type"] == "refused" {
                campaign
                    .complaints
                    .push(format!("{session}: {line:?} was refused: {}", reply["words"]));
            }
            Step::On
        }
    }
}

struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    asked: Vec<(Uuid, String)>,
}

impl Process {
    async fn start(campaign: &Campaign, session: &str, death: &Death) -> anyhow::Result<Self> {
        let words = ["chat", "--json", "--passphrase-stdin", "--session", session];
        let mut command = subject(campaign, &words, death);
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| anyhow::anyhow!("no output"))?;
        let mut process =
            Self { child, input, output: BufReader::new(output).lines(), asked: Vec::new() };
        process.send(PASSPHRASE).await;
        Ok(process)
    }

    async fn send(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(format!("{line}\n").as_bytes()).await;
        }
    }

    /// Logs what a line acknowledges.
    fn hear(&mut self, campaign: &mut Campaign, session: &str, line: &str) -> Value {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        let asked = value["id"]
            .as_str()
            .and_then(|id| self.asked.iter().find(|(asked, _)| asked.to_string() == id));
        if let (Some((id, line)), Some("accepted"), Some(version)) =
            (asked, value["type"].as_str(), value["version"].as_u64())
        {
            let (session, line) = (session.to_owned(), line.clone());
            campaign.acknowledged.push(Acknowledged { session, id: *id, line, version });
        }
        if value["type"] == "error" {
            campaign.complaints.push(format!("{session}: {}", value["words"]));
        }
        value
    }
}

#[async_trait]
impl Driven for Process {
    async fn ask(&mut self, campaign: &mut Campaign, session: &str, line: &str) -> Option<Value> {
        let id = Uuid::now_v7();
        self.asked.push((id, line.to_owned()));
        self.send(&json!({"id": id, "text": line}).to_string()).await;
        let until = Instant::now() + ANSWER_MAX;
        loop {
            match timeout_at(until, self.output.next_line()).await {
                Ok(Ok(Some(heard))) => {
                    let value = self.hear(campaign, session, &heard);
                    if value["id"] == id.to_string() {
                        return Some(value);
                    }
                }
                Ok(Ok(None) | Err(_)) => return None,
                Err(_) => {
                    campaign.complaints.push(format!(
                        "{session}: {line:?} was not answered within {ANSWER_MAX:?}"
                    ));
                    return None;
                }
            }
        }
    }

    async fn wait(&mut self, campaign: &mut Campaign, session: &str) -> Step {
        match timeout_at(Instant::now() + Duration::from_millis(300), self.output.next_line()).await
        {
            Ok(Ok(Some(heard))) => {
                self.hear(campaign, session, &heard);
                Step::On
            }
            Ok(Ok(None) | Err(_)) => Step::Dead,
            Err(_) => Step::On,
        }
    }

    fn leave(&mut self) {
        drop(self.input.take());
    }

    fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    async fn drain(&mut self, campaign: &mut Campaign, session: &str) {
        while let Ok(Some(line)) = self.output.next_line().await {
            self.hear(campaign, session, &line);
        }
    }
}

/// The program under proof, about to be started with these words and to die so.
pub(super) fn subject(campaign: &Campaign, words: &[&str], death: &Death) -> Command {
    let mut command = Command::new(&campaign.subject);
    command
        .args(words)
        .args(["--model", "scripted", "--model-url", &campaign.model.base_url()])
        .arg("--data")
        .arg(campaign.data())
        .arg("--workspace")
        .arg(campaign.workspace())
        .env(crate::ledger::LEDGER, campaign.ledger())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    if let Death::At(name, count) = death {
        command.env("PLANWRIGHT_FAILPOINT", format!("{name}:{count}"));
    }
    if let (Some(power), Death::PowerCut(_)) = (&campaign.power, death) {
        power.put_under(&mut command);
    }
    command
}
