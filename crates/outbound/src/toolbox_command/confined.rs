//! The keeper of a command: confines itself, starts a shell, reports how it ended. The keeper of a server of tools confines itself
//! alike, and becomes the server.
//!
//! Landlock leaves it the workspace, a directory of its own and the system's programs; the system calls that it
//! does not cover (sockets, other processes, other sessions) are refused by a filter; capabilities are given up;
//! resources are limited. It reads its order from standard input and dies with whoever holds the other end.

use std::{
    collections::BTreeMap,
    io::{self, BufRead as _, Read as _, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, Scope, path_beneath_rules,
};
use rustix::{
    process::{
        Resource, Rlimit, Signal, getpgrp, kill_process_group, set_parent_process_death_signal,
        setrlimit,
    },
    thread::{CapabilitySet, CapabilitySets, set_capabilities},
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use serde::{Deserialize, Serialize};

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
const SYSTEM: [&str; 17] = [
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
    "/etc/ssl/openssl.cnf",
    "/dev/urandom",
];
/// What names on the network are looked up in.
const NAMES: [&str; 5] =
    ["/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf", "/etc/services", "/run/systemd/resolve"];
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
    restrict_files(&limits.read, &[workspace, scratch])?;
    bound_command(limits).map_err(|error| format!("the limits cannot be set: {error}"))?;
    restrict_calls(Network::None)
}

/// What a server of tools that runs beside us may reach.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerOrder {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it works.
    pub directory: PathBuf,
    /// A directory of its own, which is its home.
    pub scratch: PathBuf,
    /// What it may read and execute besides the system's programs.
    pub read: Vec<PathBuf>,
    /// What it may write.
    pub write: Vec<PathBuf>,
    /// Whether it may speak over the network.
    pub network: bool,
}

/// The life of a keeper of a server: confines itself, then becomes the server. Its order is its second argument: standard
/// input and output are the server's. Call it before anything else has started a thread.
#[must_use]
pub fn become_server() -> ExitCode {
    let order = std::env::args().nth(2).ok_or_else(|| "no order was given".to_owned());
    let order = order.and_then(|order| {
        serde_json::from_str::<ServerOrder>(&order).map_err(|error| error.to_string())
    });
    let why = match order.and_then(|order| confine_server(&order).map(|()| order)) {
        Err(why) => why,
        Ok(ServerOrder { command, directory, scratch, .. }) => match command.split_first() {
            None => "no command is named".into(),
            Some((program, arguments)) => {
                let mut server = Command::new(program);
                server.args(arguments).current_dir(directory);
                server.env("HOME", &scratch).env("TMPDIR", &scratch);
                format!("{program}: {}", server.exec())
            }
        },
    };
    let _ = writeln!(io::stderr(), "{why}");
    ExitCode::FAILURE
}

fn confine_server(order: &ServerOrder) -> Result<(), String> {
    let mut write: Vec<&PathBuf> = order.write.iter().collect();
    write.push(&order.scratch);
    // What it could write it could have replaced by a link since.
    for path in order.read.iter().chain(&order.write) {
        if path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))? != *path {
            return Err(format!("{} is not where it was", path.display()));
        }
    }
    // It ends with whoever started it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    bound(&BOUNDS).map_err(|error| error.to_string())?;
    let mut read = order.read.clone();
    if order.network {
        read.extend(NAMES.map(PathBuf::from));
    }
    restrict_files(&read, &write)?;
    restrict_calls(if order.network { Network::Internet } else { Network::None })
}

/// Which sockets may be made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Network {
    None,
    Internet,
}

/// Leaves the system's programs, what may be read, and what may be written.
fn restrict_files(read: &[PathBuf], write: &[&PathBuf]) -> Result<(), String> {
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    let own = AccessFs::from_all(NEEDED) & !(devices | AccessFs::MakeSock);
    let sink = AccessFs::ReadFile | AccessFs::WriteFile;
    let rules = ruleset()?
        .add_rules(path_beneath_rules(SYSTEM, AccessFs::from_read(NEEDED)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(read, AccessFs::from_read(NEEDED))))
        .and_then(|rules| rules.add_rules(path_beneath_rules(SINKS, sink)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(write, own)));
    rules
        .and_then(landlock::RulesetCreated::restrict_self)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Gives up capabilities, and sets the filters.
fn restrict_calls(network: Network) -> Result<(), String> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(|error| format!("the capabilities cannot be given up: {error}"))?;
    // Its flags lie in memory, where no filter looks: programs then take the older call.
    let newer = rules_for([libc::SYS_clone3]);
    let unknown = built(newer, libc::ENOSYS)?;
    let refused = built(refusals(network)?, libc::EPERM)?;
    apply_filter(&unknown)
        .and_then(|()| apply_filter(&refused))
        .map_err(|error| format!("the filter cannot be set: {error}"))
}

/// What every confined program is bound by.
const BOUNDS: [(Resource, u64); 3] =
    [(Resource::Core, 0), (Resource::Nofile, FILES_MAX), (Resource::Nproc, PROCESSES_MAX)];

fn bound_command(limits: &CommandLimits) -> io::Result<()> {
    bound(&BOUNDS)?;
    bound(&[
        (Resource::Cpu, u64::from(limits.seconds)),
        (Resource::Data, u64::from(limits.memory_mib) * MIB),
        (Resource::Fsize, u64::from(limits.file_mib) * MIB),
    ])
}

fn bound(bounds: &[(Resource, u64)]) -> io::Result<()> {
    for (resource, most) in bounds.iter().copied() {
        let hard = rustix::process::getrlimit(resource).maximum;
        let most = hard.map_or(most, |hard| hard.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refuses these calls whatever their arguments; the same calls by the numbers of the x32 interface, too.
fn rules_for(calls: impl IntoIterator<Item = i64>) -> Rules {
    calls.into_iter().flat_map(numbers).map(|call| (call, vec![])).collect()
}

fn numbers(call: i64) -> [i64; 2] {
    let x32 = if cfg!(target_arch = "x86_64") { 0x4000_0000 } else { 0 };
    [call, call | x32]
}

fn built(rules: Rules, answer: i32) -> Result<BpfProgram, String> {
    let refuse = SeccompAction::Errno(answer.cast_unsigned());
    let here = std::env::consts::ARCH.try_into().map_err(|_| "no filter for this processor")?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, here)
        .and_then(TryInto::try_into)
        .map_err(|error| error.to_string())
}

/// A rule about one argument of a call.
fn rule(argument: u8, compared: SeccompCmpOp, value: u64) -> Result<SeccompRule, String> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compared, value)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(|error| error.to_string())
}

/// What nothing that is confined may call: ways into other processes, out of the process group, and into the kernel.
const REFUSED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_ioprio_set,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    // setxattrat and removexattrat, which have no names here yet.
    463,
    466,
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

/// Refuses what landlock does not cover: ways out over sockets, into other processes, out of the process group,
/// and into the kernel.
fn refusals(network: Network) -> Result<Rules, String> {
    let mut rules = rules_for(REFUSED.iter().copied());
    let mut refuse = |call: i64, conditions: Vec<SeccompRule>| {
        for number in numbers(call) {
            rules.entry(number).or_insert_with(|| conditions.clone());
        }
    };
    // Of itself a process may ask and change what it likes; of no other.
    let of_another = || rule(0, SeccompCmpOp::Ne, 0);
    for call in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ] {
        refuse(call, vec![of_another()?]);
    }
    refuse(libc::SYS_setpriority, vec![rule(1, SeccompCmpOp::Ne, 0)?]);
    let spaces = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let spaces = spaces.map(|flag| u64::from(flag.cast_unsigned()));
    let spaces = spaces.into_iter().map(|flag| rule(0, SeccompCmpOp::MaskedEq(flag), flag));
    refuse(libc::SYS_clone, spaces.collect::<Result<_, _>>()?);
    // A datagram is sent to any socket of this machine by its path. The kind lies in the lowest bits.
    let datagrams = u64::from(libc::SOCK_DGRAM.cast_unsigned());
    refuse(libc::SYS_socketpair, vec![rule(1, SeccompCmpOp::MaskedEq(0xf), datagrams)?]);
    let family = |family: i32| u64::from(family.cast_unsigned());
    match network {
        Network::None => refuse(libc::SYS_socket, vec![]),
        // Neither sockets of this machine's other programs, nor packets of its own making.
        Network::Internet => {
            let local = rule(0, SeccompCmpOp::Eq, family(libc::AF_UNIX))?;
            let packets = rule(0, SeccompCmpOp::Eq, family(libc::AF_PACKET))?;
            let machines = rule(0, SeccompCmpOp::Eq, family(libc::AF_VSOCK))?;
            refuse(libc::SYS_socket, vec![local, packets, machines]);
        }
    }
    Ok(rules)
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
