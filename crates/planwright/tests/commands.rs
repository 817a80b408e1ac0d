//! Commands stay in their sandbox, and end with their call.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use planwright_domain::identity::Root;
use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, UdpSocket},
    os::unix::{fs::PermissionsExt as _, net::UnixListener, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use planwright_domain::{
    autonomy::AutoExecutionContext,
    effect::Touched,
    turn::{CallResult, CallStatus},
};
use planwright_outbound::toolbox_command::{
    Addresses, CommandLimits, CommandToolbox, KEEPER, RUN_COMMAND,
};
use planwright_runtime::ports::toolbox::{Ran, ToolRun, Toolbox as _};
use planwright_sandbox::is_supported;
use planwright_testkit::people::ada_key;
use planwright_testkit::tool_run::tool_run;
use serde_json::json;

const KEEPER_PROGRAM: &str = env!("CARGO_BIN_EXE_planwright");

struct Place {
    home: tempfile::TempDir,
    toolbox: CommandToolbox,
}

fn roots(workspace: &Path) -> Vec<Root> {
    vec![Root(workspace.display().to_string())]
}

impl Place {
    fn new() -> Option<Self> {
        Self::with(CommandLimits { seconds: 20, memory_mib: 512, file_mib: 2, read: Vec::new() })
    }

    /// Nothing on a kernel that cannot hold commands: there the tool is not offered, and says why.
    fn with(limits: CommandLimits) -> Option<Self> {
        if let Err(words) = is_supported() {
            assert!(words.starts_with("commands need Linux 6.12 or newer"), "{words}");
            return None;
        }
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("workspace")).unwrap();
        fs::write(home.path().join("secret"), "the secret").unwrap();
        let workspace = home.path().join("workspace");
        let toolbox =
            CommandToolbox::open(Path::new(KEEPER_PROGRAM), roots(&workspace), limits).unwrap();
        Some(Self { home, toolbox })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    async fn run(&self, command: &str) -> Ran {
        self.run_as(command, None, &[]).await
    }

    async fn run_as(
        &self,
        command: &str,
        context: Option<AutoExecutionContext>,
        hosts: &[&str],
    ) -> Ran {
        let run = ToolRun {
            context,
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            ..tool_run(RUN_COMMAND, json!({"command": command}))
        };
        self.toolbox.run(run).await
    }

    async fn ended(&self, command: &str) -> (CallStatus, String) {
        match self.run(command).await {
            Ran::Ended(CallResult { status, output, .. }) => (status, output),
            Ran::Unknown { why } => panic!("{command}: {why}"),
        }
    }

    async fn done(&self, command: &str) -> String {
        let (status, output) = self.ended(command).await;
        assert_eq!(status, CallStatus::Done, "{command}: {output}");
        output
    }

    async fn refused(&self, command: &str) -> String {
        let (status, output) = self.ended(command).await;
        assert_eq!(status, CallStatus::Failed, "{command}: {output}");
        output
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_of_a_run_finds_whose_work_it_is_under_the_canonical_names() {
    let Some(place) = Place::new() else { return };
    let identity = ada_key("cli:talk-0001").unwrap();
    let id = uuid::Uuid::from_u128;
    let context = AutoExecutionContext::new(identity.identity, id(5).into(), None, id(6).into());
    let Ran::Ended(ended) = place.run_as("env | grep AUTO_ | sort", Some(context), &[]).await
    else {
        panic!("it ended")
    };
    let (run, task) = (id(5), id(6));
    let told = format!("AUTO_RUN_ID={run}\nAUTO_RUN_KIND=TASK_RUN\nAUTO_TASK_ID={task}");
    assert!(ended.output.contains(&told), "{}", ended.output);
}

#[tokio::test]
async fn a_command_works_in_the_workspace_and_says_how_it_ended() {
    let Some(place) = Place::new() else { return };
    assert_eq!(
        place.done("echo one > a.txt; cat a.txt; pwd | grep -o '[^/]*$'").await,
        "one\nworkspace\n"
    );
    assert_eq!(fs::read_to_string(place.path("workspace/a.txt")).unwrap(), "one\n");
    assert_eq!(place.refused("echo out; echo err >&2; exit 7").await, "exit code 7\nout\nerr\n");
    assert_eq!(place.refused("kill -TERM $$").await, "killed by signal 15\n");
    assert_eq!(
        place.done("echo t > $TMPDIR/t; cat $HOME/t; echo $USER$SHELL_SECRET").await,
        "t\n\n"
    );
    let told = place.run("").await;
    assert!(matches!(&told, Ran::Ended(end) if end.output.contains("is empty")), "{told:?}");
}

#[tokio::test]
async fn a_command_reads_and_writes_nothing_else() {
    let Some(place) = Place::new() else { return };
    let (secret, new) = (place.path("secret"), place.path("new"));
    let (secret, new) = (secret.display(), new.display());
    let me = std::process::id();
    for command in [
        format!("cat {secret}"),
        "cat ../secret".into(),
        format!("ln -s {secret} link; cat link"),
        format!("ln {secret} hard"),
        format!("mv {secret} here"),
        format!("echo x > {new}"),
        format!("echo x >> {secret}"),
        format!("truncate -s 0 {secret}"),
        format!("rm {secret}"),
        format!("ls {}", place.home.path().display()),
        "cat /etc/shadow".into(),
        format!("cat /proc/{me}/environ"),
        "cat /proc/self/environ".into(),
        "ls /root".into(),
        "mknod disk b 8 0".into(),
        format!("chown 12345 {secret}"),
        "mount -t tmpfs none .".into(),
        "unshare -r true".into(),
        "chroot . true".into(),
        format!("kill -0 {me}"),
        format!("kill -9 {me}"),
    ] {
        let words = place.refused(&command).await;
        assert!(!words.contains("the secret"), "{command}: {words}");
    }
    assert_eq!(fs::read_to_string(place.path("secret")).unwrap(), "the secret");
    assert!(!place.path("new").exists());
}

#[tokio::test]
async fn what_the_operator_names_may_be_read_and_not_written() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("tool"), "#!/bin/sh\necho from the tool\n").unwrap();
    let read = vec![home.path().to_owned(), "/nowhere/at/all".into()];
    let Some(place) =
        Place::with(CommandLimits { seconds: 20, memory_mib: 512, file_mib: 2, read })
    else {
        return;
    };
    let tool = home.path().join("tool");
    assert_eq!(place.done(&format!("sh {}", tool.display())).await, "from the tool\n");
    place.refused(&format!("echo x >> {}", tool.display())).await;
}

#[tokio::test]
async fn a_command_reaches_nobody() {
    let Some(place) = Place::new() else { return };
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    tcp.set_nonblocking(true).unwrap();
    let unix = UnixListener::bind(place.path("workspace/socket")).unwrap();
    unix.set_nonblocking(true).unwrap();
    let (to_tcp, to_udp) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    for command in [
        format!("exec 3<>/dev/tcp/127.0.0.1/{to_tcp}"),
        format!("echo x > /dev/udp/127.0.0.1/{to_udp}"),
    ] {
        place.refused(&format!("bash -c '{command}'")).await;
    }
    for (family, kind, to) in [
        ("AF_INET", "SOCK_STREAM", format!("('127.0.0.1', {to_tcp})")),
        ("AF_INET", "SOCK_DGRAM", format!("('127.0.0.1', {to_udp})")),
        ("AF_UNIX", "SOCK_STREAM", "'socket'".into()),
    ] {
        let program = format!(
            "import socket as s; c = s.socket(s.{family}, s.{kind}); c.connect({to}); c.send(b\"x\")"
        );
        let words =
            place.refused(&format!("python3 -c \"{}\"", program.replace('"', "\\\""))).await;
        assert!(words.contains("PermissionError"), "{words}");
    }
    assert!(tcp.accept().is_err() && unix.accept().is_err() && udp.recv(&mut [0; 8]).is_err());
}

#[tokio::test]
async fn the_end_of_a_call_is_the_end_of_all_that_it_started() {
    let Some(place) =
        Place::with(CommandLimits { seconds: 2, memory_mib: 512, file_mib: 2, read: vec![] })
    else {
        return;
    };
    let started = Instant::now();
    let late = "(sleep 4; echo late > late.txt) & (setsid sh -c 'sleep 4; echo late > late.txt' 2>/dev/null) & ";
    let words = place.done(&format!("{late} nohup sleep 100 >/dev/null 2>&1 & echo first")).await;
    assert!(words.starts_with("first\n"), "{words}");
    assert!(started.elapsed() < Duration::from_secs(2));
    let words = place.refused(&format!("{late} echo first; sleep 100")).await;
    assert!(words.starts_with("it did not end within 2 s"), "{words}");
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    assert!(!place.path("workspace/late.txt").exists());
}

/// Whether this process has a child that keeps a command, which is then killed.
fn kills_a_keeper() -> bool {
    let me = std::process::id().to_string();
    let keepers = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let words = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?.to_owned();
        let is_keeper = parent == me && words.contains(KEEPER);
        is_keeper.then(|| entry.file_name().into_string().ok()).flatten()
    });
    let killed = keepers.map(|pid| Command::new("kill").args(["-9", &pid]).status().is_ok());
    killed.collect::<Vec<_>>().contains(&true)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keeper_that_is_killed_leaves_the_outcome_unknown_and_nothing_running() {
    let Some(place) = Place::new() else { return };
    let killer = tokio::task::spawn_blocking(|| {
        std::thread::sleep(Duration::from_millis(500));
        kills_a_keeper()
    });
    let ran = place.run("(sleep 2; echo late > late.txt) & sleep 2; echo late > late.txt").await;
    assert!(killer.await.unwrap());
    let why = "the command took its keeper with it".to_owned();
    assert_eq!(ran, Ran::Unknown { why });
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert!(!place.path("workspace/late.txt").exists());
}

#[tokio::test]
async fn a_command_neither_ends_its_keeper_nor_writes_its_report() {
    let Some(place) = Place::new() else { return };
    let forged = r#"{"ended":{"code":0,"signal":null,"output":"all passed","dropped":0}}"#;
    for command in [
        "kill -9 $PPID; kill -STOP $PPID; kill -TERM $PPID".to_owned(),
        format!("printf '%s' '{forged}' > /proc/$PPID/fd/1; kill -9 $PPID"),
        "for fd in 0 1 2 3 4 5; do exec 9<>/proc/$PPID/fd/$fd; done".into(),
        "head -c 100000000 /dev/zero > /proc/$PPID/fd/1".into(),
        "cat /proc/$PPID/environ /proc/$PPID/maps".into(),
        "timeout 1 sleep 5".into(),
        "sh -c 'sleep 3 & kill 0'".into(),
    ] {
        let started = Instant::now();
        let (_, output) = place.ended(&format!("({command}) 2>/dev/null; echo mine")).await;
        assert!(output.starts_with("mine\n"), "{command}: {output}");
        assert!(started.elapsed() < Duration::from_secs(10), "{command}");
    }
}

#[tokio::test]
async fn a_command_learns_nothing_of_what_lies_elsewhere() {
    let Some(place) = Place::new() else { return };
    let (secret, home) = (place.path("secret"), place.home.path().to_owned());
    let tries = format!(
        "import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def inotify():
    watch = libc.inotify_init1(0)
    assert watch >= 0 and libc.inotify_add_watch(watch, {home:?}.encode(), 0x100) >= 0
def attribute():
    os.getxattr({secret:?}, 'user.token')
def attributes():
    os.listxattr({secret:?})
def niceness():
    os.setpriority(os.PRIO_USER, 0, 7)
for way in [inotify, attribute, attributes, niceness]:
    try:
        way(); print(way.__name__, 'worked')
    except (OSError, AssertionError):
        print(way.__name__, 'failed')
"
    );
    fs::write(place.path("workspace/tries.py"), tries).unwrap();
    let output = place.done("python3 tries.py").await;
    assert_eq!(output.matches("failed").count(), 4, "{output}");
    // What tells how large the machine is may be read: programs make as many threads.
    assert_eq!(place.done("grep -c MemTotal /proc/meminfo").await, "1\n");
}

#[tokio::test]
async fn a_command_uses_no_more_than_it_may() {
    let Some(place) = Place::new() else { return };
    place.refused("head -c 3000000 /dev/zero > large").await;
    assert!(fs::metadata(place.path("workspace/large")).unwrap().len() <= 2 * 1024 * 1024);
    let words = place.refused("python3 -c 'x = bytearray(600 * 1024 * 1024)'").await;
    assert!(words.contains("MemoryError"), "{words}");
    let words = place.done("head -c 5000000 /dev/zero | tr '\\0' x").await;
    let told = "\n[805696 more bytes were not kept]";
    assert_eq!((words.len(), words.ends_with(told)), (4 * 1024 * 1024 + told.len(), true));
}

#[tokio::test]
async fn a_keeper_that_is_not_there_ran_nothing() {
    let Some(mut place) = Place::new() else { return };
    let limits = CommandLimits { seconds: 20, memory_mib: 512, file_mib: 2, read: vec![] };
    let workspace = place.path("workspace");
    place.toolbox = CommandToolbox::open(Path::new("/nowhere"), roots(&workspace), limits).unwrap();
    let words = place.refused("true").await;
    assert!(words.starts_with("nothing was run: /nowhere cannot be started"), "{words}");
}

#[test]
fn the_tool_is_there_only_if_it_is_turned_on_and_can_be_ended_in_time() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    let tools = |config: &str| {
        let file = data.join("config.toml");
        fs::write(&file, config).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = Command::new(KEEPER_PROGRAM);
        command.args(["tools", "--data"]).arg(&data).arg("--workspace").arg(home.path().join("w"));
        let output = command.env("HOME", home.path()).output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        format!("{out}{err}")
    };
    assert!(!tools("").contains("run_command"));
    let told = tools("[command]\nenabled = true\n");
    assert!(
        told.contains(if is_supported().is_ok() { "run_command" } else { "Linux 6.12" }),
        "{told}"
    );
    let words = tools("[command]\nenabled = true\nseconds = 60\n");
    assert!(words.contains("must be less than effects.tool_seconds = 60"), "{words}");
}

/// As when the runtime is killed: nobody is left to end the command.
#[test]
fn a_keeper_dies_with_its_holder() {
    let Some(place) = Place::new() else { return };
    let workspace = place.path("workspace");
    let order = json!({
        "command": "touch begun; sleep 2; touch late",
        "workspace": workspace, "scratch": place.path("workspace"),
        "limits": {"seconds": 20, "memory_mib": 512, "file_mib": 2, "read": []},
    });
    let mut keeper = Command::new(KEEPER_PROGRAM)
        .arg(KEEPER)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = keeper.stdin.take().unwrap();
    writeln!(orders, "{order}").unwrap();
    while !workspace.join("begun").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(orders);
    let mut reports = String::new();
    keeper.stdout.take().unwrap().read_to_string(&mut reports).unwrap();
    keeper.wait().unwrap();
    std::thread::sleep(Duration::from_millis(2_300));
    assert_eq!((reports.as_str(), workspace.join("late").exists()), ("", false));
}

#[tokio::test]
async fn what_the_sandbox_refuses_is_named_in_the_output() {
    let Some(place) = Place::new() else { return };
    let output = place
        .done(
            "unshare -r true; setsid true; ipcmk -M 10; prlimit --pid 1 --nofile=10; \
            python3 -c 'import socket; socket.socket()'; exec 2>/dev/null; ipcmk -M 10; true",
        )
        .await;
    let named = output.lines().last().unwrap_or_default();
    assert_eq!(
        named,
        "[the sandbox refused: prlimit64, setsid, shmget (2 times), the network, unshare]"
    );
    // What is allowed is named nowhere.
    assert_eq!(place.done("echo fine").await, "fine\n");
}

/// A server on this machine that answers every request with a greeting.
fn greeter() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut head = [0; 4_096];
                let length = stream.read(&mut head).unwrap_or(0);
                let host = String::from_utf8_lossy(&head[..length]).to_lowercase();
                let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or("");
                let words = format!("greetings to {}", host.split(':').next().unwrap_or_default());
                let length = words.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{words}"
                );
            });
        }
    });
    address
}

/// A place whose commands reach two servers of this machine by names: one that is leased, and one that is not.
fn leasing() -> Option<(Place, SocketAddr, SocketAddr)> {
    let Place { home, toolbox } = Place::new()?;
    let (leased, other) = (greeter(), greeter());
    let lookup = move |name: &str| match name {
        "inside.test" => vec!["10.0.0.1:0".parse().unwrap()],
        name if name.starts_with("leased") => vec![leased],
        _ => vec![other],
    };
    let also = [leased, other].into();
    let toolbox = toolbox.reaching(Addresses { also, lookup: Some(std::sync::Arc::new(lookup)) });
    Some((Place { home, toolbox }, leased, other))
}

const LEASE: [&str; 3] = ["leased.test", "*.leased.test", "inside.test"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_lease_names_hosts_reaches_those_and_nobody_else() {
    let Some((place, leased, other)) = leasing() else { return };
    let (leased, other) = (leased.port(), other.port());
    let get = |url: &str| {
        format!(
            "python3 -c 'import urllib.request as u; print(u.urlopen(\"{url}\").read().decode())'"
        )
    };
    let tunnel = format!(
        "python3 - <<'END'
import http.client, os
proxy = os.environ['https_proxy'].removeprefix('http://')
for host in ['leased.test:{leased}', 'LEASED.test:{leased}', 'other.test:{other}', 'inside.test:{leased}']:
    connection = http.client.HTTPConnection(proxy)
    connection.set_tunnel(host)
    try:
        connection.request('GET', '/')
        print(connection.getresponse().read().decode())
    except OSError as error:
        print(error)
END"
    );
    for (command, expected) in [
        (get(&format!("http://leased.test:{leased}/a")), "greetings to leased.test"),
        (
            tunnel,
            "greetings to leased.test\ngreetings to leased.test\nTunnel connection failed: 403 Forbidden\nTunnel connection failed: 403 Forbidden",
        ),
    ] {
        let Ran::Ended(ended) = place.run_as(&command, None, &LEASE).await else { panic!() };
        assert_eq!(ended.status, CallStatus::Done, "{}", ended.output);
        assert!(ended.output.starts_with(expected), "{}", ended.output);
        let reached = Touched::Reached { host: "leased.test".into() };
        assert_eq!(ended.touched, [reached]);
    }
    let Ran::Ended(ended) =
        place.run_as(&get(&format!("http://other.test:{other}/")), None, &LEASE).await
    else {
        panic!()
    };
    assert_eq!((ended.status, ended.touched), (CallStatus::Failed, vec![]));
    let words = "[the proxy refused: other.test is not one of the hosts that may be reached (the plan's lease)]\n";
    assert!(ended.output.ends_with(words), "{}", ended.output);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_with_a_proxy_gets_out_no_other_way() {
    let Some((place, leased, _)) = leasing() else { return };
    // What works where nothing confines it, and must not here.
    let tries = format!(
        "import socket, os
PORT = {}
def tcp():
    socket.create_connection(('127.0.0.1', PORT), 2)
def same_port():
    s = socket.socket(); s.connect(('127.0.0.2', int(os.environ.get('https_proxy', ':1').rsplit(':', 1)[1])))
def tcp_six():
    socket.socket(socket.AF_INET6).bind(('::1', 0))
def fast():
    s = socket.socket(); s.sendto(b'x', 0x20000000, ('127.0.0.1', PORT))
def udp():
    socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))
def serve():
    s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()
def listen():
    socket.socket().listen()
def local():
    socket.socket(socket.AF_UNIX)
def mptcp():
    socket.socket(proto=262).connect(('127.0.0.1', PORT))
def pair():
    socket.socketpair(type=socket.SOCK_DGRAM)
for way in [tcp, same_port, tcp_six, fast, udp, serve, listen, local, mptcp, pair]:
    try:
        way(); print(way.__name__, 'worked')
    except OSError as error:
        print(way.__name__, 'failed')
",
        leased.port()
    );
    fs::write(place.path("workspace/tries.py"), &tries).unwrap();
    let Ran::Ended(ended) = place.run_as("python3 tries.py", None, &LEASE).await else { panic!() };
    assert_eq!(ended.output.matches("failed").count(), 10, "{}", ended.output);
    assert_eq!(ended.output.matches("worked").count(), 0, "{}", ended.output);
    let free = Command::new("python3").args(["-c", &tries]).output().unwrap();
    let free = String::from_utf8(free.stdout).unwrap();
    assert!(free.matches("worked").count() >= 7, "{free}");
    // Without hosts in its lease it has no proxy.
    let output = place.done("echo ${https_proxy:-none}; python3 tries.py").await;
    assert!(output.starts_with("none\n"), "{output}");
    assert_eq!(output.matches("worked").count(), 0, "{output}");
}
