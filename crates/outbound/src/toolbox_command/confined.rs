//! The keeper of a command: confines itself, starts a shell, reports how it ended.
//!
//! Landlock leaves it the workspace, a directory of its own and the system's programs; the system calls that it
//! does not cover (sockets, other processes, other sessions) are refused by a filter; capabilities are given up;
//! resources are limited. It reads its order from standard input and dies with whoever holds the other end.

use std::{
    collections::BTreeMap,
    io::{self, BufRead as _, Read as _, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, Scope, path_beneath_rules,
};
use rustix::{
    process::{Resource, Rlimit, Signal, getpgrp, kill_process_group, setrlimit},
    thread::{CapabilitySet, CapabilitySets, set_capabilities},
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use super::{CommandLimits, Ended, Order, Report};

/// The version of the kernel's interface that everything here needs: Linux 6.12.
const NEEDED: ABI = ABI::V6;
/// How much of what a command prints is kept.
const OUTPUT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long what is still in the pipe may take once the command has ended.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// How many processes its user may have. The kernel counts all of them, not only these.
const PROCESSES_MAX: u64 = 4_096;
/// How many files each process may have open.
const FILES_MAX: u64 = 1_024;
const MIB: u64 = 1024 * 1024;
/// What every command may read and execute: the system's programs, and what they need to start.
const SYSTEM: [&str; 16] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/ssl/certs",
    "/dev/urandom",
];
/// What every command may write.
const SINKS: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

/// Whether this kernel can hold commands; in words if not.
pub fn can_hold() -> Result<(), String> {
    ruleset().map(drop)
}

fn ruleset() -> Result<landlock::RulesetCreated, String> {
    let built = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .and_then(|rules| rules.scope(Scope::from_all(NEEDED)))
        .and_then(Ruleset::create);
    built.map_err(|error| {
        format!("commands need Linux 6.12 or newer with landlock turned on, and here: {error}")
    })
}

/// The life of a keeper. Call it before anything else has started a thread.
#[must_use]
pub fn keep() -> ExitCode {
    let report = ordered().and_then(|order| confine(&order).map(|()| order));
    let report = match report {
        Ok(order) => run(&order).map_or_else(|why| Report::Refused(why.to_string()), Report::Ended),
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

fn confine(order: &Order) -> Result<(), String> {
    let Order { workspace, scratch, limits, .. } = order;
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    let own = AccessFs::from_all(NEEDED) & !(devices | AccessFs::MakeSock);
    let sink = AccessFs::ReadFile | AccessFs::WriteFile;
    let rules = ruleset()?
        .add_rules(path_beneath_rules(SYSTEM, AccessFs::from_read(NEEDED)))
        .and_then(|rules| {
            rules.add_rules(path_beneath_rules(&limits.read, AccessFs::from_read(NEEDED)))
        })
        .and_then(|rules| rules.add_rules(path_beneath_rules(SINKS, sink)))
        .and_then(|rules| rules.add_rules(path_beneath_rules([workspace, scratch], own)));
    rules.and_then(landlock::RulesetCreated::restrict_self).map_err(|error| error.to_string())?;
    bound(limits).map_err(|error| format!("the limits cannot be set: {error}"))?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(|error| format!("the capabilities cannot be given up: {error}"))?;
    apply_filter(&filter()?).map_err(|error| format!("the filter cannot be set: {error}"))
}

fn bound(limits: &CommandLimits) -> io::Result<()> {
    let bounds = [
        (Resource::Cpu, u64::from(limits.seconds)),
        (Resource::Data, u64::from(limits.memory_mib) * MIB),
        (Resource::Fsize, u64::from(limits.file_mib) * MIB),
        (Resource::Core, 0),
        (Resource::Nofile, FILES_MAX),
        (Resource::Nproc, PROCESSES_MAX),
    ];
    for (resource, most) in bounds {
        let hard = rustix::process::getrlimit(resource).maximum;
        let most = hard.map_or(most, |hard| hard.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// Refuses what landlock does not cover: ways out over sockets, into other processes, out of the process group,
/// and into the kernel.
fn filter() -> Result<BpfProgram, String> {
    let refused = [
        libc::SYS_socket,
        libc::SYS_io_uring_setup,
        libc::SYS_setsid,
        libc::SYS_setpgid,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_kcmp,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fchownat,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown,
    ];
    // The same calls by the numbers of the x32 interface.
    let x32 = if cfg!(target_arch = "x86_64") { 0x4000_0000 } else { 0 };
    let rules: BTreeMap<_, _> =
        refused.into_iter().flat_map(|call| [(call, vec![]), (call | x32, vec![])]).collect();
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let here = std::env::consts::ARCH.try_into().map_err(|_| "no filter for this processor")?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, here)
        .and_then(TryInto::try_into)
        .map_err(|error| error.to_string())
}

fn run(order: &Order) -> io::Result<Ended> {
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
    Ok(Ended { code: status.code(), signal: status.signal(), output, dropped: heard.dropped })
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
