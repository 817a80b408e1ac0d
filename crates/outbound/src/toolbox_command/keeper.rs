//! The keeper of a command: confines itself, starts a shell, reports how it ended and what was refused.
//!
//! It reads its order from standard input and dies with whoever holds the other end.

use std::{
    collections::BTreeMap,
    io::{self, BufRead as _, Read as _, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use planwright_sandbox::{Listener, Network, Resources, Sandbox};
use rustix::process::{Signal, getpgrp, kill_process_group};

use super::{Ended, Order, Report};

/// How much of what a command prints is kept.
const OUTPUT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long what is still in the pipe may take once the command has ended.
const LAST_WORDS: Duration = Duration::from_millis(250);
const MIB: u64 = 1024 * 1024;

/// The life of a keeper. Call it before anything else has started a thread.
#[must_use]
pub fn keep() -> ExitCode {
    let entered = ordered().and_then(|order| Ok((confine(&order)?, order)));
    let report = match entered {
        Ok((listener, order)) => {
            run(&order, listener).map_or_else(|why| Report::Refused(why.to_string()), Report::Ended)
        }
        Err(why) => Report::Refused(why),
    };
    let told = serde_json::to_vec(&report)
        .map_err(io::Error::other)
        .and_then(|line| io::stdout().write_all(&line));
    if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn ordered() -> Result<Order, String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|error| error.to_string())?;
    serde_json::from_str(&line).map_err(|error| format!("that is no order: {error}"))
}

fn confine(order: &Order) -> Result<Listener, String> {
    let Order { workspace, scratch, limits, .. } = order;
    let resources = Resources {
        cpu_seconds: Some(limits.seconds.into()),
        memory_bytes: Some(u64::from(limits.memory_mib) * MIB),
        file_bytes: Some(u64::from(limits.file_mib) * MIB),
    };
    let sandbox = Sandbox {
        read: limits.read.clone(),
        write: vec![workspace.clone(), scratch.clone()],
        network: order.proxy.map_or(Network::None, Network::Proxy),
        resources,
    };
    sandbox.enter_heard()
}

fn run(order: &Order, listener: Listener) -> io::Result<Ended> {
    let refused: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
    let counts = refused.clone();
    std::thread::spawn(move || count(&listener, &counts));
    let (reader, writer) = io::pipe()?;
    let scratch: &Path = &order.scratch;
    let mut child = Command::new("/bin/sh")
        .args(["-c", &order.command])
        .current_dir(&order.workspace)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", scratch)
        .env("TMPDIR", scratch)
        .env("LANG", "C.UTF-8")
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    std::thread::spawn(die_with_the_holder);
    let heard: Arc<Mutex<Heard>> = Arc::default();
    let (over, is_over) = mpsc::channel();
    let hears = heard.clone();
    std::thread::spawn(move || {
        listen(reader, &hears);
        let _ = over.send(());
    });
    let status = child.wait()?;
    // What it left running may hold the pipe open for ever.
    let _ = is_over.recv_timeout(LAST_WORDS);
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    let output = String::from_utf8_lossy(&heard.output).into_owned();
    let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (code, signal, dropped) = (status.code(), status.signal(), heard.dropped);
    Ok(Ended { code, signal, output, dropped, refused })
}

/// Counts the calls that the sandbox refuses, by their names.
fn count(listener: &Listener, refused: &Mutex<BTreeMap<String, u64>>) {
    while let Ok(heard) = listener.next() {
        let Some(name) = heard else { continue };
        *refused.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
    }
}

/// What a command has printed so far.
#[derive(Default)]
struct Heard {
    output: Vec<u8>,
    dropped: u64,
}

fn listen(mut reader: io::PipeReader, heard: &Mutex<Heard>) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = reader.read(&mut piece) {
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = length.min(OUTPUT_BYTES_MAX.saturating_sub(heard.output.len()));
        heard.output.extend_from_slice(&piece[..kept]);
        heard.dropped += (length - kept) as u64;
    }
}

/// Nothing more comes on standard input. When its other end is gone, so are we, and all that we started.
fn die_with_the_holder() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let _ = kill_process_group(getpgrp(), Signal::KILL);
}
