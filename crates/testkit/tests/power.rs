//! The disk under the process: what a power cut leaves, and calls that fail.

#![expect(clippy::expect_used, reason = "a broken expectation in a suite is a failed test")]

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use planwright_testkit::{
    power::{Conditions, Failing, Fault, Power},
    scratch,
};

/// The variable that says of this program that it is the one with the disk under it.
const ROOT: &str = "POWER_TEST_ROOT";
/// The variable that says what it is to do.
const STORY: &str = "POWER_TEST_STORY";

fn put(path: &Path, text: &str) {
    let mut file = File::create(path).expect("a file");
    file.write_all(text.as_bytes()).expect("a write");
    file.sync_all().expect("a sync");
}

fn sync(directory: &Path) {
    File::open(directory).and_then(|directory| directory.sync_all()).expect("a sync");
}

/// What the process does that has the disk under it.
#[test]
fn the_process_with_the_disk_under_it() {
    let (Ok(root), Ok(story)) = (std::env::var(ROOT), std::env::var(STORY)) else { return };
    let root = PathBuf::from(root);
    match story.as_str() {
        "made" => {
            put(&root.join("kept"), "kept");
            sync(&root);
            put(&root.join("made"), "made");
            File::create(root.join("later")).expect("a file");
        }
        "renamed" => {
            put(&root.join("name"), "old");
            sync(&root);
            put(&root.join("name.part"), "new");
            fs::rename(root.join("name.part"), root.join("name")).expect("a rename");
            if std::env::var("POWER_TEST_SYNCS").is_ok() {
                sync(&root);
            }
        }
        "removed" => {
            put(&root.join("first"), "first");
            sync(&root);
            fs::remove_file(root.join("first")).expect("a removal");
            // On many file systems the next file would get the number of the one that is gone.
            put(&root.join("second"), "second");
        }
        "inside" => {
            fs::create_dir_all(root.join("a/b")).expect("directories");
            put(&root.join("a/b/file"), "deep");
            sync(&root.join("a/b"));
            if std::env::var("POWER_TEST_SYNCS").is_ok() {
                sync(&root.join("a"));
                sync(&root);
            }
        }
        "written" => {
            let mut file = File::create(root.join("file")).expect("a file");
            let failed: Vec<_> = (0..6)
                .map(|_| file.write(b"x").err().and_then(|error| error.raw_os_error()))
                .collect();
            fs::write(root.with_file_name("seen"), format!("{failed:?}")).expect("a file");
        }
        "synced" => {
            let mut file = File::create(root.join("file")).expect("a file");
            sync(&root);
            file.write_all(b"once").expect("a write");
            let first = file.sync_all().err().and_then(|error| error.raw_os_error());
            // What the failed sync should have written is clean to the system, and never written.
            let second = file.sync_all().err().and_then(|error| error.raw_os_error());
            fs::write(root.with_file_name("seen"), format!("{first:?} {second:?}"))
                .expect("a file");
        }
        other => panic!("{other}"),
    }
}

struct Played {
    home: tempfile::TempDir,
    hits: u64,
    lost: u32,
}

impl Played {
    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.home.path().join("root").join(name)).ok()
    }

    fn seen(&self) -> String {
        fs::read_to_string(self.home.path().join("seen")).expect("what was seen")
    }
}

/// Plays a story and cuts the power.
fn play(story: &str, syncs: bool, failing: Option<Failing>) -> Played {
    let home = scratch::directory("power").expect("a directory");
    let root = home.path().join("root");
    let power = Power::new(&root, &home.path().join("disk")).expect("a disk");
    power.settle().expect("an empty disk");
    let conditions = Conditions { failing, ..Conditions::default() };
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "the_process_with_the_disk_under_it"])
        .env(ROOT, root.canonicalize().expect("a path"))
        .env(STORY, story)
        .envs(power.environment(&conditions));
    if syncs {
        command.env("POWER_TEST_SYNCS", "1");
    }
    let ended = command.output().expect("a process");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    let lost = power.cut().expect("a cut");
    Played { hits: power.hits(), lost: lost.files + lost.entries, home }
}

#[test]
fn a_new_file_survives_when_its_directory_was_synced() {
    let played = play("made", false, None);
    assert_eq!((played.text("kept").as_deref(), played.text("made")), (Some("kept"), None));
    assert_eq!(played.lost, 2);
}

#[test]
fn a_rename_survives_when_its_directory_was_synced() {
    assert_eq!(play("renamed", false, None).text("name").as_deref(), Some("old"));
    assert_eq!(play("renamed", true, None).text("name").as_deref(), Some("new"));
}

#[test]
fn a_removal_survives_when_its_directory_was_synced_and_the_bytes_are_the_right_ones() {
    let played = play("removed", false, None);
    assert_eq!((played.text("first").as_deref(), played.text("second")), (Some("first"), None));
}

#[test]
fn a_directory_survives_when_the_one_that_holds_it_was_synced() {
    assert_eq!(play("inside", false, None).text("a/b/file"), None);
    assert_eq!(play("inside", true, None).text("a/b/file").as_deref(), Some("deep"));
}

#[test]
fn the_named_writes_fail_and_are_counted() {
    let (enospc, eio) = (28, 5);
    for (fault, code) in [(Fault::NoSpace, enospc), (Fault::IoError, eio)] {
        let played = play("written", false, Some(Failing { fault, first: 3, count: 2 }));
        let wanted = [None, None, Some(code), Some(code), None, None];
        assert_eq!((played.seen(), played.hits), (format!("{wanted:?}"), 2));
    }
}

#[test]
fn what_a_failed_sync_should_have_written_is_lost() {
    // The first sync is the directory's.
    let failing = Failing { fault: Fault::FailedSync, first: 2, count: 1 };
    let played = play("synced", false, Some(failing));
    assert_eq!((played.seen(), played.hits), ("Some(5) None".into(), 1));
    assert_ne!(played.text("file").as_deref(), Some("once"));
}
