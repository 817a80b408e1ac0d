//! How proofs are run: seeds, and what is kept of a run that failed.

#![expect(clippy::expect_used, reason = "a broken expectation in a suite is a failed test")]

use std::{fs, process::Command};

use planwright_testkit::{scratch, seeds};

/// The proofs that have seeds.
const SEEDED: [&str; 16] = [
    "api",
    "binding",
    "cluster-kill",
    "compaction",
    "escapes",
    "isolation",
    "kill",
    "machine",
    "mutants",
    "overnight",
    "replay",
    "rpc",
    "sections",
    "slots",
    "upgrade",
    "windows",
];

/// What a proof prints.
fn printed(words: &[&str]) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_prove")).args(words).output().expect("a proof");
    String::from_utf8(run.stdout).expect("text")
}

fn seed_of(printed: &str) -> u64 {
    let line = printed.lines().find_map(|line| line.strip_prefix("seed ")).expect("a seed");
    let (seed, again) = line.split_once("; play it again with: ").expect("a command");
    assert_eq!(again, format!("./prove machine --count 3 --seed {seed}"));
    seed.parse().expect("a number")
}

#[test]
fn each_run_has_a_new_seed_and_prints_the_command_that_plays_it_again() {
    let words = ["machine", "--count", "3"];
    let (first, second) = (printed(&words), printed(&words));
    assert_ne!(seed_of(&first), seed_of(&second));
    let again = printed(&["machine", "--count", "3", "--seed", &seed_of(&first).to_string()]);
    let commands = |printed: &str| {
        let line = printed.lines().find(|line| line.contains(" commands, ")).expect("figures");
        line.split(", ").take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(commands(&first), commands(&again));
}

#[test]
fn every_proof_with_a_seed_has_a_corpus_that_can_be_read() {
    for proof in SEEDED {
        seeds::corpus(proof).expect("a corpus");
    }
}

#[test]
fn what_a_failing_run_worked_on_is_kept_and_what_a_successful_one_worked_on_is_not() {
    let run = scratch::Run::begin("kept");
    let inside = scratch::directory("place").expect("a directory").path().to_owned();
    fs::write(inside.join("file"), "evidence").expect("a file");
    let places = run.places();
    drop(run);
    assert_eq!(fs::read_to_string(inside.join("file")).expect("a file"), "evidence");
    places.iter().for_each(|place| fs::remove_dir_all(place).expect("a directory"));

    let run = scratch::Run::begin("gone");
    let inside = scratch::directory_in_memory("place").expect("a directory").path().to_owned();
    assert!(inside.is_dir());
    run.succeed();
    assert!(!inside.exists());

    let alone = scratch::directory("alone").expect("a directory");
    let path = alone.path().to_owned();
    drop(alone);
    assert!(!path.exists());
}
