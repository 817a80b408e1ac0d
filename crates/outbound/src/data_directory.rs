//! The data directory: private, and owned by one process at a time.

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
    /// The system said no.
    #[error("{path} cannot be used: {source}")]
    Unusable {
        /// The directory.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

impl DataDirectory {
    /// Opens the directory, or makes it, and takes its lock. The lock ends with the process.
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
