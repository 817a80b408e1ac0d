//! Files that are there, whole, after a power cut.
//!
//! A file's bytes and its name are kept apart on disk: a rename is durable only when the directory is synced, too.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use tempfile::NamedTempFile;

/// Writes a file that nobody else can read, whole or not at all.
pub fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut beside = NamedTempFile::new_in(directory_of(path))?;
    beside.write_all(text.as_bytes())?;
    put_in_place(beside, path)
}

/// Gives a file that was written beside its place its name.
pub fn put_in_place(beside: NamedTempFile, path: &Path) -> anyhow::Result<()> {
    beside.as_file().sync_all()?;
    beside.persist(path)?;
    Ok(sync_name(path)?)
}

/// Moves a file or a directory that is whole to its place.
pub fn move_into_place(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_name(to)
}

/// Makes the name of a new file durable.
pub fn sync_name(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

fn directory_of(path: &Path) -> &Path {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new("."))
}
