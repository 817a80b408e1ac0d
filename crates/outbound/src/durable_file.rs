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

/// Makes the names in a directory durable.
fn sync_directory(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}
