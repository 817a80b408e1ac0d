//! The peer's arm: a Python process that is told what to do, one line at a time.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::Context as _;
use serde_json::Value;
use tempfile::TempDir;

use crate::payload;

/// A running peer.
pub(crate) struct Peer {
    place: TempDir,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts it; none, and a line that says so, where it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let place = tempfile::Builder::new().prefix("planwright-peer-").tempdir().ok()?;
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("../../target/peers/bin/python");
        let started = Command::new(python)
            .arg(root.join("peers/peer.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            println!("the peer is not installed; its arm is left out");
            return None;
        };
        let (input, output) = (child.stdin.take()?, child.stdout.take()?);
        Some(Self { place, child, input, output: BufReader::new(output) })
    }

    /// The same, given these texts to say.
    pub(crate) fn start_with(texts: &[String]) -> anyhow::Result<Option<Self>> {
        let Some(mut peer) = Self::start() else { return Ok(None) };
        let path = peer.place.path().join("texts.json");
        payload::write(texts, &path)?;
        peer.ask(&format!("texts {}", path.display()))?;
        Ok(Some(peer))
    }

    /// Tells it what to do, and waits.
    pub(crate) fn ask(&mut self, line: &str) -> anyhow::Result<Value> {
        writeln!(self.input, "{line}")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        let answer: Value =
            serde_json::from_str(&answer).with_context(|| format!("the peer said {answer:?}"))?;
        anyhow::ensure!(answer.get("error").is_none(), "the peer failed: {answer}");
        Ok(answer)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
