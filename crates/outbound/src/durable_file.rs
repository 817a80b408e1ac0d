//! Files that are there, whole, after a power cut.
//!
//! A file's bytes and its name are kept apart on disk: a rename is durable only when the directory is synced, too.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// Writes a file that only its owner can read, whole or not at all.
pub(crate) fn write_private(path: &Path, contents: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("part");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    sync_directory(path.parent().unwrap_or(Path::new(".")))
}

/// Writes a file that only its owner can read, whole or not at all, if there is none; whether there was none. However many do so
/// at the same time, one of them does.
pub(crate) fn write_private_once(path: &Path, contents: &[u8]) -> io::Result<bool> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut beside = tempfile::NamedTempFile::new_in(directory)?;
    beside.write_all(contents)?;
    beside.as_file().sync_all()?;
    match beside.persist_noclobber(path) {
        Ok(_) => sync_directory(directory).map(|()| true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}
