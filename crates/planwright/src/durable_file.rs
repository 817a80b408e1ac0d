//! Files that are there, whole, after a power cut.
//!
//! A file's bytes and its name are kept apart on disk: a rename is durable only when the directory is synced, too.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::Path,
};

use tempfile::NamedTempFile;

/// Writes a file that nobody else can read, whole or not at all.
pub fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut beside = NamedTempFile::new_in(directory_of(path))?;
    beside.write_all(text.as_bytes())?;
    put_in_place(beside, path)
}

/// The same, locked by this process until what is returned is dropped, however the process ends.
pub fn write_held(path: &Path, text: &str) -> anyhow::Result<File> {
    let mut beside = NamedTempFile::new_in(directory_of(path))?;
    beside.write_all(text.as_bytes())?;
    let held = beside.as_file().try_clone()?;
    held.try_lock()?;
    put_in_place(beside, path)?;
    Ok(held)
}

/// The text of a file that another process holds; nothing if nobody does, or it is not there.
#[must_use]
pub fn read_held(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(fs::TryLockError::WouldBlock) => {}
        Ok(()) | Err(fs::TryLockError::Error(_)) => return None,
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Some(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_any_more_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("held");
        assert_eq!(read_held(&path), None);
        let held = write_held(&path, "here").unwrap();
        assert_eq!(read_held(&path).as_deref(), Some("here"));
        // Another one takes its place while the first is still held.
        let other = write_held(&path, "there").unwrap();
        drop(held);
        assert_eq!(read_held(&path).as_deref(), Some("there"));
        drop(other);
        assert_eq!((read_held(&path), path.exists()), (None, true));
    }
}
