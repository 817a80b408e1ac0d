//! Temporary directories of tests and proofs.
//!
//! A test's directory goes with its owner. While a [`Run`] of a proof lasts, every directory is made inside the run's
//! own and stays: when the run succeeds all of them are removed, otherwise they are kept, and it is said where.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use tempfile::TempDir;

/// The name of the run that lasts.
static LASTS: Mutex<Option<String>> = Mutex::new(None);

/// One run of a proof.
#[derive(Debug)]
pub struct Run {
    name: String,
}

impl Run {
    /// From now on every directory is made for this run of this proof.
    #[must_use]
    pub fn begin(proof: &str) -> Self {
        let name = format!("planwright-{proof}-{}", uuid::Uuid::now_v7().simple());
        *LASTS.lock().unwrap_or_else(PoisonError::into_inner) = Some(name.clone());
        Self { name }
    }

    /// It succeeded: nothing is kept.
    pub fn succeed(self) {
        for place in self.places() {
            let _ = fs::remove_dir_all(place);
        }
    }

    /// Where something of this run lies.
    #[must_use]
    pub fn places(&self) -> Vec<PathBuf> {
        let places = [std::env::temp_dir(), memory()].map(|place| place.join(&self.name));
        let mut there: Vec<_> = places.into_iter().filter(|place| place.is_dir()).collect();
        there.dedup();
        there
    }
}

impl Drop for Run {
    /// A run that did not succeed, or was broken off, keeps what it has.
    fn drop(&mut self) {
        *LASTS.lock().unwrap_or_else(PoisonError::into_inner) = None;
        for place in self.places() {
            say(&format!("its data is kept in {}", place.display()));
        }
    }
}

#[expect(clippy::print_stdout, reason = "a proof says where its data is")]
fn say(words: &str) {
    println!("{words}");
}

/// A new directory.
pub fn directory(name: &str) -> io::Result<TempDir> {
    directory_in(&std::env::temp_dir(), name)
}

/// A new directory that lives in memory, where the system has such a place.
pub fn directory_in_memory(name: &str) -> io::Result<TempDir> {
    directory_in(&memory(), name)
}

fn memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

fn directory_in(place: &Path, name: &str) -> io::Result<TempDir> {
    let run = LASTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(run) = run else {
        return tempfile::Builder::new().prefix(&format!("planwright-{name}-")).tempdir_in(place);
    };
    let place = place.join(run);
    fs::create_dir_all(&place)?;
    // A server that runs as another user may live in it.
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(&format!("{name}-")).disable_cleanup(true).tempdir_in(place)
}
