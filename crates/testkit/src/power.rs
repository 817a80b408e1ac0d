//! A disk under the real process that loses its power, fills up and fails.
//!
//! The shim is C and is loaded before the process's own calls to the system; see `shim/power.c` for what it does. It
//! needs a C compiler and Linux.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process,
};

use anyhow::Context as _;

/// What a disk does besides forgetting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Writes fail: the disk is full.
    NoSpace,
    /// Writes fail.
    IoError,
    /// Syncs fail, and what they should have written is never written.
    FailedSync,
    /// Syncs take long.
    SlowSync,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::NoSpace, Self::IoError, Self::FailedSync, Self::SlowSync];

    /// What is wrong with the disk, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NoSpace => "disk full",
            Self::IoError => "I/O error",
            Self::FailedSync => "failed sync",
            Self::SlowSync => "slow sync",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::NoSpace => "space",
            Self::IoError => "io",
            Self::FailedSync => "sync",
            Self::SlowSync => "slow",
        }
    }
}

/// Calls that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failing {
    /// How.
    pub fault: Fault,
    /// From this call on: writes or syncs are counted, as the fault concerns them.
    pub first: u32,
    /// So many.
    pub count: u32,
}

/// How long a slow sync takes, in milliseconds.
const SLOW_MS: u32 = 60;

/// What the disk does to one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Chooses what is written back early.
    pub seed: u64,
    /// The power is cut at this write.
    pub cut_at_write: Option<u32>,
    /// The power is cut at this sync, before it has written anything.
    pub cut_at_sync: Option<u32>,
    /// Which calls fail.
    pub failing: Option<Failing>,
    /// The directory of which, and in which, no directory is synced, whatever the process asks.
    pub unsynced: Option<PathBuf>,
}

/// What a power cut took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    /// Files whose bytes are not what they were.
    pub files: u32,
    /// Entries of directories that are gone or are back.
    pub entries: u32,
}

impl Lost {
    /// Whether it took anything.
    #[must_use]
    pub fn is_something(self) -> bool {
        self.files + self.entries > 0
    }
}

/// A disk under one directory.
#[derive(Debug)]
pub struct Power {
    root: PathBuf,
    disk: PathBuf,
    library: PathBuf,
}

impl Power {
    /// Puts a disk under this directory; what is on it lies in `disk`.
    pub fn new(root: &Path, disk: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(root)?;
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
        Ok(Self { root: root.canonicalize()?, disk: disk.canonicalize()?, library })
    }

    /// Everything that is there now has been synced.
    pub fn settle(&self) -> anyhow::Result<()> {
        fs::create_dir_all(&self.root)?;
        for kind in ["data", "dirs", "held"] {
            let place = self.disk.join(kind);
            if place.exists() {
                fs::remove_dir_all(&place)?;
            }
            fs::create_dir_all(&place)?;
        }
        self.keep(&self.root)
    }

    fn keep(&self, directory: &Path) -> anyhow::Result<()> {
        let mut entries = String::new();
        for entry in fs::read_dir(directory)? {
            let (path, meta, name) = {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                (entry.path(), entry.metadata()?, name)
            };
            let (inode, mode) = (meta.ino(), meta.mode() & 0o7777);
            if meta.is_dir() {
                entries += &format!("d {inode} {mode:o} {name}\n");
                self.keep(&path)?;
            } else if meta.is_file() && !name.ends_with("-shm") {
                entries += &format!("f {inode} {mode:o} {name}\n");
                fs::copy(&path, self.data(inode))?;
            }
        }
        Ok(fs::write(self.entries(fs::metadata(directory)?.ino()), entries)?)
    }

    fn data(&self, inode: u64) -> PathBuf {
        self.disk.join("data").join(inode.to_string())
    }

    fn entries(&self, inode: u64) -> PathBuf {
        self.disk.join("dirs").join(inode.to_string())
    }

    fn hits_file(&self) -> PathBuf {
        self.disk.join("hits")
    }

    /// The environment of a process that has this disk under it.
    #[must_use]
    pub fn environment(&self, conditions: &Conditions) -> Vec<(&'static str, String)> {
        let path = |path: &Path| path.display().to_string();
        let mut environment = vec![
            ("LD_PRELOAD", path(&self.library)),
            ("POWER_ROOT", path(&self.root)),
            ("POWER_DISK", path(&self.disk)),
            ("POWER_HITS", path(&self.hits_file())),
            ("POWER_SEED", conditions.seed.to_string()),
        ];
        if let Some(number) = conditions.cut_at_write {
            environment.push(("POWER_CUT", number.to_string()));
        }
        if let Some(number) = conditions.cut_at_sync {
            environment.push(("POWER_CUT_SYNC", number.to_string()));
        }
        if let Some(directory) = &conditions.unsynced {
            environment.push(("POWER_SKIP", path(directory)));
        }
        if let Some(Failing { fault, first, count }) = conditions.failing {
            let words = format!("{}:{first}:{count}:{SLOW_MS}", fault.name());
            environment.push(("POWER_FAULT", words));
        }
        environment
    }

    /// How many calls have failed, or taken long, since the disk is there.
    #[must_use]
    pub fn hits(&self) -> u64 {
        fs::metadata(self.hits_file()).map_or(0, |meta| meta.len())
    }

    /// Cuts the power: the directory now holds what the disk holds.
    pub fn cut(&self) -> anyhow::Result<Lost> {
        let next = self.root.with_extension("after");
        let inode = fs::metadata(&self.root)?.ino();
        let mode = fs::metadata(&self.root)?.mode() & 0o7777;
        fs::DirBuilder::new().mode(mode).create(&next)?;
        self.restore(inode, &next)?;
        let (was, is) = (files(&self.root)?, files(&next)?);
        let changed = |(path, bytes): &(&PathBuf, &Vec<u8>)| {
            was.get(*path).is_some_and(|before| before != *bytes)
        };
        let names = |files: &BTreeMap<PathBuf, Vec<u8>>| -> BTreeSet<PathBuf> {
            files.keys().cloned().collect()
        };
        let lost = Lost {
            files: is.iter().filter(changed).count() as u32,
            entries: names(&was).symmetric_difference(&names(&is)).count() as u32,
        };
        fs::remove_dir_all(&self.root)?;
        fs::rename(&next, &self.root)?;
        Ok(lost)
    }

    /// Makes a directory again as the disk has it.
    fn restore(&self, inode: u64, into: &Path) -> anyhow::Result<()> {
        let entries = fs::read_to_string(self.entries(inode)).unwrap_or_default();
        for entry in entries.lines() {
            let mut words = entry.splitn(4, ' ');
            let mut word = || words.next().context("an entry of a directory");
            let (kind, inode) = (word()?, word()?.parse()?);
            let (mode, name) = (u32::from_str_radix(word()?, 8)?, word()?);
            let path = into.join(name);
            if kind == "d" {
                fs::DirBuilder::new().mode(mode).create(&path)?;
                self.restore(inode, &path)?;
            } else {
                // A file that was never synced has a name and no bytes.
                let data = self.data(inode);
                if data.exists() {
                    fs::copy(data, &path)?;
                } else {
                    fs::write(&path, "")?;
                }
                fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            }
        }
        Ok(())
    }
}

/// The files under a directory that a disk keeps, with their bytes.
fn files(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let (mut files, mut waiting) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory)? {
            let (entry, path) = entry.map(|entry| (entry.file_type(), entry.path()))?;
            let kind = entry?;
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file() && !path.to_string_lossy().ends_with("-shm") {
                files.insert(path.strip_prefix(root)?.to_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(files)
}
