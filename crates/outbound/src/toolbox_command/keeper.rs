//! The keeper of a command: starts a shell that is confined, reports how it ended and what was refused.
//!
//! The keeper filters the calls of all that it starts, and lies outside of the rest of the sandbox: what is confined can neither
//! signal it nor look into it, so it ends what it started, and nobody writes its report for it. It reads its order from standard
//! input and dies with whoever holds the other end.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Read as _, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Command, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use planwright_sandbox::{Listener, Network, Resources, Sandbox, drop_capabilities, filter_calls};
use rustix::process::{
    DumpableBehavior, Signal, getpgrp, kill_process_group, set_dumpable_behavior,
};
use uuid::Uuid;

use super::{Ended, Order, Report, SHELL};

/// How much of what a command prints is kept.
const OUTPUT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long what is still in the pipe may take once the command has ended.
const LAST_WORDS: Duration = Duration::from_millis(250);
const MIB: u64 = 1024 * 1024;

/// The life of a keeper. Call it before anything else has started a thread.
#[must_use]
pub fn keep() -> ExitCode {
    // Standard input is free again: its end is the end of whoever holds it.
    let order = ordered(&mut io::stdin().lock());
    let ended = order.and_then(|order| run(&order));
    let report = ended.map_or_else(Report::Refused, Report::Ended);
    let told = serde_json::to_vec(&report)
        .map_err(io::Error::other)
        .and_then(|line| io::stdout().write_all(&line));
    if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn ordered(from: &mut dyn BufRead) -> Result<Order, String> {
    serde_json::from_str(&line(from)?).map_err(|error| format!("that is no order: {error}"))
}

fn line(from: &mut dyn BufRead) -> Result<String, String> {
    let mut line = String::new();
    from.read_line(&mut line).map_err(|error| error.to_string())?;
    Ok(line)
}

fn network(order: &Order) -> Network {
    order.proxy.map_or(Network::None, Network::Proxy)
}

fn run(order: &Order) -> Result<Ended, String> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| error.to_string())?;
    drop_capabilities()?;
    let refused: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
    let (hand_over, handed_over) = mpsc::channel::<Listener>();
    let (counts, proxy) = (refused.clone(), order.proxy);
    // Both are begun before there is a filter, so that they lie outside of it.
    std::thread::spawn(die_with_the_holder);
    std::thread::spawn(move || {
        if let Ok(listener) = handed_over.recv() {
            while listener.next(proxy, &counts).is_ok() {}
        }
    });
    let listener = filter_calls(network(order))?;
    hand_over.send(listener).map_err(|error| error.to_string())?;
    // Nobody who is confined knows it: only the program before the shell can say that there is none.
    let secret = Uuid::new_v4().to_string();
    let ended = shell(order, &secret).map_err(|error| error.to_string())?;
    if let Some(why) = ended.output.strip_prefix(&secret) {
        return Err(why.into());
    }
    let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Ended { refused, ..ended })
}

/// The life of what a keeper starts: confines itself, and becomes the shell.
#[must_use]
pub fn become_shell() -> ExitCode {
    let mut input = io::stdin().lock();
    let Ok(secret) = line(&mut input) else { return ExitCode::FAILURE };
    let why = match ordered(&mut input).and_then(|order| confine(&order).map(|()| order)) {
        Err(why) => why,
        Ok(order) => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &order.command]).current_dir(&order.workspace).env_clear();
            shell
                .env("PATH", "/usr/local/bin:/usr/bin:/bin")
                .env("HOME", &order.scratch)
                .env("TMPDIR", &order.scratch)
                .env("LANG", "C.UTF-8")
                .envs(order.environment.iter().map(|(name, value)| (name, value)));
            shell.stdin(Stdio::null()).exec().to_string()
        }
    };
    let _ = write!(io::stdout(), "{}{why}", secret.trim_end());
    ExitCode::FAILURE
}

fn confine(order: &Order) -> Result<(), String> {
    let Order { workspace, scratch, limits, .. } = order;
    let resources = Resources {
        cpu_seconds: Some(limits.seconds.into()),
        memory_bytes: Some(u64::from(limits.memory_mib) * MIB),
        file_bytes: Some(u64::from(limits.file_mib) * MIB),
    };
    let sandbox = Sandbox {
        read: limits.read.clone(),
        write: vec![workspace.clone(), scratch.clone()],
        network: network(order),
        resources,
    };
    sandbox.restrict()
}

fn shell(order: &Order, secret: &str) -> io::Result<Ended> {
    let (reader, writer) = io::pipe()?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg(SHELL)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    if let Some(mut orders) = child.stdin.take() {
        writeln!(orders, "{secret}\n{}", serde_json::to_string(order)?)?;
    }
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
    let (code, signal, dropped) = (status.code(), status.signal(), heard.dropped);
    Ok(Ended { code, signal, output, dropped, refused: BTreeMap::new() })
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
