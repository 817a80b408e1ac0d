//! Power cuts: a disk that forgets what was not synced, put under the real process.
//!
//! The shim is C and is loaded before the process's own calls to the system; see
//! `shim/power.c` for what it does. It needs a C compiler and Linux.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
};

use anyhow::Context as _;
use tokio::process::Command;

/// Whether a sync keeps its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Honesty {
    /// What was synced is there after the cut.
    Honest,
    /// A sync only says that it synced: what a program that skips it would see.
    Lying,
}

/// A disk under one data directory.
#[derive(Debug)]
pub struct Power {
    root: PathBuf,
    disk: PathBuf,
    library: PathBuf,
    honesty: Honesty,
}

impl Power {
    /// Puts a disk under this directory; what is on it lies in `disk`.
    pub fn new(root: &Path, disk: &Path, honesty: Honesty) -> anyhow::Result<Self> {
        fs::create_dir_all(disk)?;
        let source = disk.with_file_name("power.c");
        fs::write(&source, include_str!("../shim/power.c"))?;
        let library = disk.with_file_name("libpower.so");
        let compiled = process::Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .arg(&source)
            .args(["-ldl", "-lpthread"])
            .output()
            .context("a C compiler is needed for the power cuts")?;
        anyhow::ensure!(
            compiled.status.success(),
            "the shim does not compile: {}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        Ok(Self { root: root.to_owned(), disk: disk.to_owned(), library, honesty })
    }

    /// Puts it under a process that is about to start.
    pub fn put_under(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("POWER_ROOT", &self.root)
            .env("POWER_DISK", &self.disk);
        if self.honesty == Honesty::Lying {
            command.env("POWER_LIES", "1");
        }
    }

    /// Cuts the power: the directory now holds what the disk holds.
    pub fn cut(&self) -> anyhow::Result<()> {
        if self.root.exists() {
            fs::remove_dir_all(&self.root)?;
        }
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.root)?;
        for entry in fs::read_dir(&self.disk)? {
            let entry = entry?;
            fs::copy(entry.path(), self.root.join(entry.file_name()))?;
        }
        Ok(())
    }
}
