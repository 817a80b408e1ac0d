//! Where signed heads of the audit log are kept: in a file that only grows, or in the system's log.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::{fs::OpenOptionsExt as _, net::UnixDatagram},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use planwright_runtime::ports::audit::HeadKeeper;

/// Where programs of this machine hand over what is to be logged.
const SYSLOG: &str = "/dev/log";
/// How long handing over may take.
const HANDOVER_MAX: Duration = Duration::from_secs(5);
/// Facility `authpriv` (10), severity `notice` (5).
const PRIORITY: u8 = 10 * 8 + 5;

/// Keeps heads in a file of one line each.
#[derive(Debug, Clone)]
pub struct FileHeads {
    path: PathBuf,
    writing: Arc<Mutex<()>>,
}

impl FileHeads {
    /// Keeps them in this file, which is made when the first one comes.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), writing: Arc::default() }
    }

    fn append(&self, line: &str, is_given_up: &AtomicBool) -> io::Result<()> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if is_given_up.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let is_new = !self.path.exists();
        // By its name each time: whoever rotates it may take it away.
        let mut file =
            fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        let before = file.metadata()?.len();
        // Half a line would spoil the next one as well.
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            file.set_len(before)?;
            return Err(error);
        }
        file.sync_data()?;
        if is_new && let Some(directory) = self.path.parent() {
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    }
}

#[async_trait]
impl HeadKeeper for FileHeads {
    async fn hand_over(&self, line: &str) -> Result<(), String> {
        let (heads, line) = (self.clone(), line.to_owned());
        let is_given_up = Arc::new(AtomicBool::new(false));
        // What waits behind a write that hangs is not written when nobody waits for it any more.
        let _given_up = GiveUp(is_given_up.clone());
        let written = tokio::task::spawn_blocking(move || heads.append(&line, &is_given_up));
        let named = |error: String| format!("{} cannot be written: {error}", self.path.display());
        match tokio::time::timeout(HANDOVER_MAX, written).await {
            Ok(Ok(written)) => written.map_err(|error| named(error.to_string())),
            Ok(Err(broke)) => Err(named(broke.to_string())),
            Err(_) => Err(named(format!("not within {} s", HANDOVER_MAX.as_secs()))),
        }
    }
}

/// Says that nobody waits any more, when it is dropped.
struct GiveUp(Arc<AtomicBool>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Hands heads over to the system's log.
#[derive(Debug, Clone)]
pub struct SyslogHeads {
    socket: PathBuf,
}

impl Default for SyslogHeads {
    fn default() -> Self {
        Self::at(Path::new(SYSLOG))
    }
}

impl SyslogHeads {
    /// Hands them over at this socket.
    #[must_use]
    pub fn at(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }
}

#[async_trait]
impl HeadKeeper for SyslogHeads {
    async fn hand_over(&self, line: &str) -> Result<(), String> {
        let (message, path) =
            (format!("<{PRIORITY}>planwright-audit: {line}"), self.socket.clone());
        let sending = tokio::task::spawn_blocking(move || {
            let socket = UnixDatagram::unbound()?;
            socket.set_write_timeout(Some(HANDOVER_MAX))?;
            Ok(socket.send_to(message.as_bytes(), &path)? == message.len())
        });
        let sent = sending.await.unwrap_or_else(|broke| Err(io::Error::other(broke)));
        match sent {
            Ok(true) => Ok(()),
            Ok(false) => Err("the system's log took a part of it".into()),
            Err(error) => Err(format!("{}: {error}", self.socket.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn a_file_of_heads_only_grows_and_is_private() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("heads");
        for line in ["one", "two"] {
            FileHeads::new(&path).hand_over(line).await.expect("kept");
        }
        assert_eq!(fs::read_to_string(&path).expect("a file"), "one\ntwo\n");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let nowhere = FileHeads::new(&home.path().join("missing/heads"));
        let why = nowhere.hand_over("three").await.expect_err("no such directory");
        assert!(why.contains("missing/heads cannot be written"), "{why}");
    }

    #[tokio::test]
    async fn the_systems_log_is_told_in_one_message() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("log");
        let why = SyslogHeads::at(&path).hand_over("one").await.expect_err("nobody listens");
        assert!(why.contains("log: "), "{why}");
        let log = UnixDatagram::bind(&path).expect("a socket");
        SyslogHeads::at(&path).hand_over("one").await.expect("kept");
        let mut bytes = [0; 64];
        let read = log.recv(&mut bytes).expect("a message");
        assert_eq!(&bytes[..read], b"<85>planwright-audit: one");
    }
}
