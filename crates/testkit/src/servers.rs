//! Real servers of our own: PostgreSQL, NATS and Restate, each private to whoever started it.
//!
//! They live in a temporary directory, listen on loopback alone, and die with the thread that
//! started them, however that ends: start them from the thread that outlives the test.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::PermissionsExt as _,
            net::{SocketAddr as UnixAddr, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

pub mod certificates;
pub mod faults;
pub mod llama;
pub mod nats;
pub mod postgres;
pub mod restate;
pub mod s3;

pub use certificates::Certificates;
pub use llama::Llama;
pub use nats::Nats;
pub use postgres::Postgres;
pub use restate::Restate;
pub use s3::S3;

/// How long a server may take to be ready.
const READY_MAX: Duration = Duration::from_secs(30);

/// A process of our own, which is killed when this is dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts a program that dies with this thread, as another user where that is named.
    pub(crate) fn start(
        program: &Path,
        arguments: &[&str],
        log: &Path,
        user: Option<(u32, u32)>,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some((user, group)) = user {
            command.args([format!("--reuid={user}"), format!("--regid={group}")]);
            command.arg("--clear-groups");
        }
        let output = fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        let errors = output.try_clone().expect("a log");
        let child = command
            .arg("--")
            .arg(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
        Self { child, log: log.to_owned() }
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, signal);
    }

    /// Kills it as `kill -9` does, and waits until it is gone.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_some())
    }

    /// Waits until this holds; what it printed is told if it never does.
    pub(crate) fn wait_until(&mut self, what: &str, mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            let printed = || fs::read_to_string(&self.log).unwrap_or_default();
            assert!(begun.elapsed() < READY_MAX, "{what} is not ready:\n{}", printed());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port on loopback that is free, that no outgoing connection is given meanwhile (it is below the range from which the system
/// takes those), and that no other test is given as long as this process lives.
#[must_use]
pub fn free_port() -> u16 {
    static RESERVED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let reserve = |port: u16| {
        let name = UnixAddr::from_abstract_name(format!("planwright-test-port-{port}")).ok()?;
        let reserved = UnixListener::bind_addr(&name).ok()?;
        TcpListener::bind(loopback(port)).ok()?;
        RESERVED.lock().unwrap_or_else(PoisonError::into_inner).push(reserved);
        Some(port)
    };
    std::iter::repeat_with(|| fastrand::u16(10_000..32_000)).find_map(reserve).expect("a port")
}

/// The address of a port on loopback.
#[must_use]
pub fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Whether something listens there.
#[must_use]
pub fn answers(port: u16) -> bool {
    std::net::TcpStream::connect_timeout(&loopback(port), Duration::from_millis(200)).is_ok()
}

/// A program by its name or in one of these places.
fn program(name: &str, places: &[&str]) -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default();
    let searched = places.iter().copied().chain(path.split(':'));
    searched
        .map(|place| Path::new(place).join(name))
        .find(|file| file.exists())
        .unwrap_or_else(|| panic!("{name} is not installed; CONTRIBUTING.md says how to have it"))
}

/// The project's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's root")
}

fn temporary(what: &str) -> tempfile::TempDir {
    let made = crate::scratch::directory(what).expect("a directory");
    // Another user may run what lives here.
    fs::set_permissions(made.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    made
}
