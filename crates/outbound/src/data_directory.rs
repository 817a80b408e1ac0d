//! The data directory: private, owned by one process at a time, and either a local installation's or a node's.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// A data directory that this process owns until it ends, however it ends.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

/// The local journal.
pub const JOURNAL: &str = "journal.sqlite";
/// Marks the data directory of a cluster node. It stays when the node ends, however it ends.
const NODE: &str = "node";
const NODE_TEXT: &str =
    "This is the data directory of a cluster node. Conversations are in the cluster's database.\n";

/// Why a data directory cannot be had. The person at the terminal reads this.
#[derive(Debug, thiserror::Error)]
pub enum DataDirectoryError {
    /// Another process has it.
    #[error(
        "{path} is in use by {owner}; stop that process, or choose another directory with --data"
    )]
    InUse {
        /// The directory.
        path: String,
        /// Who has it.
        owner: String,
    },
    /// Others can read it.
    #[error("{path} can be read by other users (mode {mode:o}); run: chmod 700 {path}")]
    NotPrivate {
        /// The directory.
        path: String,
        /// Its mode.
        mode: u32,
    },
    /// A local journal there would be one that the cluster never learns of.
    #[error(
        "{path} belongs to a cluster node that is not running, and conversations are not kept there; start the node with: planwright node --data {path}, or talk to another node with --server URL"
    )]
    BelongsToNode {
        /// The directory.
        path: String,
    },
    /// A node would leave the local journal behind, unseen.
    #[error(
        "{path} holds the journal of a local installation; choose an empty directory for the node with --data (planwright export and planwright import --database URL bring the journal into the cluster)"
    )]
    BelongsToInstallation {
        /// The directory.
        path: String,
    },
    /// The system said no.
    #[error("{path} cannot be used: {source}")]
    Unusable {
        /// The directory.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// Whether this is the data directory of a cluster node.
#[must_use]
pub fn belongs_to_node(path: &Path) -> bool {
    path.join(NODE).exists()
}

impl DataDirectory {
    /// Owns the directory for a local installation; refuses one that belongs to a cluster node.
    pub fn own_for_installation(path: &Path, what: &str) -> Result<Self, DataDirectoryError> {
        let directory = Self::own(path, what)?;
        if belongs_to_node(path) {
            return Err(DataDirectoryError::BelongsToNode { path: path.display().to_string() });
        }
        Ok(directory)
    }

    /// Owns the directory for a cluster node, and marks it as a node's; refuses one with a local journal.
    pub fn own_for_node(path: &Path, what: &str) -> Result<Self, DataDirectoryError> {
        let directory = Self::own(path, what)?;
        let shown = path.display().to_string();
        if path.join(JOURNAL).exists() {
            return Err(DataDirectoryError::BelongsToInstallation { path: shown });
        }
        let mut file = OpenOptions::new();
        file.write(true).create(true).truncate(true).mode(0o600);
        file.open(path.join(NODE))
            .and_then(|mut file| {
                file.write_all(NODE_TEXT.as_bytes())?;
                file.sync_all()?;
                File::open(path)?.sync_all()
            })
            .map_err(|source| DataDirectoryError::Unusable { path: shown, source })?;
        Ok(directory)
    }

    /// Opens the directory, or makes it, and takes its lock, whoever it belongs to. The lock ends with the process.
    pub fn own(path: &Path, what: &str) -> Result<Self, DataDirectoryError> {
        let shown = path.display().to_string();
        let unusable = |source| DataDirectoryError::Unusable { path: shown.clone(), source };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable)?;
        let mode = fs::metadata(path).map_err(unusable)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(DataDirectoryError::NotPrivate { path: shown.clone(), mode });
        }
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join("owner.lock"))
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = lock.read_to_string(&mut owner);
                let owner = if owner.is_empty() { "another process".into() } else { owner };
                return Err(DataDirectoryError::InUse { path: shown.clone(), owner });
            }
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        let told = format!("process {} ({what})", std::process::id());
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(told.as_bytes()))
            .map_err(unusable)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
