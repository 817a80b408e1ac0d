//! One life of the process: start it, drive it by what it says of itself, end it.

use std::{
    fs::OpenOptions,
    os::unix::process::ExitStatusExt as _,
    process::{ExitStatus, Stdio},
    time::Duration,
};

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

const SIGKILL: i32 = 9;
/// How long an answer may take.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(8);
/// How many commands one life gives at most.
const COMMANDS_MAX: usize = 120;
/// How long the write or the sync at which the power is cut is waited for.
const WRITES_WITHIN: Duration = Duration::from_secs(4);
/// How long a process takes to be gone once its output has ended.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

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
        Death::CutAtWrite(_) | Death::CutAtSync(_) => Some(Instant::now() + WRITES_WITHIN),
        Death::At(..) | Death::Peaceful => None,
    };
    for _ in 0..COMMANDS_MAX {
        let far = Instant::now() + Duration::from_secs(3_600);
        let step =
            timeout_at(dies_at.unwrap_or(far), step(campaign, &mut *process, session, death)).await;
        match step {
            Err(_) => break,
            Ok(Step::On) => {}
            Ok(Step::Rests) => break,
            Ok(Step::Dead) => {
                // Its output ends before the process has.
                let _ = timeout_at(Instant::now() + ENDS_WITHIN, process.child().wait()).await;
                break;
            }
        }
    }
    let ended = process.child().try_wait()?;
    let was_alive = ended.is_none();
    if let Some(ended) = ended.filter(|ended| ended.signal() != Some(SIGKILL)) {
        ended_by_itself(campaign, session, death, ended);
    }
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
        Death::After(_) | Death::PowerCut(_) | Death::CutAtWrite(_) | Death::CutAtSync(_) => {
            process.child().start_kill()?;
            process.child().wait().await?;
            campaign.killed += 1;
        }
    }
    process.drain(campaign, session).await;
    Ok(())
}

/// With a disk that fails a process may end, in words. Nothing else may end it.
fn ended_by_itself(campaign: &mut Campaign, session: &str, death: &Death, ended: ExitStatus) {
    const PANICKED: i32 = 101;
    let in_words = ended.code().is_some_and(|code| code != 0 && code != PANICKED);
    if campaign.failing.is_some() && in_words {
        campaign.gave_up += 1;
    } else {
        campaign.complaints.push(format!("{session}: a life with {death:?} ended with {ended}"));
    }
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
            if reply["type"] == "refused" && campaign.failing.is_some() {
                campaign.refused += 1;
            } else if reply["type"] == "refused" {
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
    sent: Vec<(Uuid, String)>,
}

impl Process {
    async fn start(campaign: &Campaign, session: &str, death: &Death) -> anyhow::Result<Self> {
        let words = ["chat", "--json", "--passphrase-stdin", "--session", session];
        let mut command = subject(campaign, &words, death);
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| anyhow::anyhow!("no output"))?;
        let mut process =
            Self { child, input, output: BufReader::new(output).lines(), sent: Vec::new() };
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
        let sent = value["id"]
            .as_str()
            .and_then(|id| self.sent.iter().find(|(sent, _)| sent.to_string() == id));
        if let (Some((id, line)), Some("accepted"), Some(version)) =
            (sent, value["type"].as_str(), value["version"].as_u64())
        {
            let (session, line) = (session.to_owned(), line.clone());
            campaign.acknowledged.push(Acknowledged { session, id: *id, line, version });
        }
        let has_words = value["words"].as_str().is_some_and(|words| !words.is_empty());
        if value["type"] == "error" && campaign.failing.is_some() && has_words {
            campaign.refused += 1;
        } else if value["type"] == "error" {
            campaign.complaints.push(format!("{session}: {}", value["words"]));
        }
        value
    }
}

#[async_trait]
impl Driven for Process {
    async fn ask(&mut self, campaign: &mut Campaign, session: &str, line: &str) -> Option<Value> {
        let id = Uuid::now_v7();
        self.sent.push((id, line.to_owned()));
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
        .stderr(log(campaign))
        .kill_on_drop(true);
    if let Death::At(name, count) = death {
        command.env("PLANWRIGHT_FAILPOINT", format!("{name}:{count}"));
    }
    if let Some(mutant) = campaign.mutant {
        command.env("PLANWRIGHT_MUTANT", mutant.name());
    }
    if let (Some(power), Some(conditions)) = (&campaign.power, &campaign.conditions) {
        command.envs(power.environment(conditions));
    }
    command
}

/// What it says to its operator is kept beside its data.
fn log(campaign: &Campaign) -> Stdio {
    let log = OpenOptions::new().create(true).append(true).open(campaign.log());
    log.map_or_else(|_| Stdio::null(), Stdio::from)
}
