//! What a lint cannot see: crate arrows, purity, siblings, and invariants without a test.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file below a directory that ends so, as path and text.
fn files(directory: &str, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![root().join(directory)];
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

/// The names of our crates that a manifest's section depends on.
fn arrows(manifest: &str, section: &str) -> BTreeSet<String> {
    let text = read(manifest);
    let section = text.split(&format!("\n[{section}]\n")).nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| line.split([' ', '=', '.']).next());
    names.filter(|name| name.starts_with("planwright")).map(str::to_owned).collect()
}

#[test]
fn crate_arrows_point_one_way() {
    let expected: [(&str, &[&str]); 5] = [
        ("domain", &[]),
        ("runtime", &["planwright-domain"]),
        ("outbound", &["planwright-domain", "planwright-runtime"]),
        ("surfaces", &["planwright-domain", "planwright-runtime"]),
        (
            "planwright",
            &[
                "planwright-domain",
                "planwright-outbound",
                "planwright-runtime",
                "planwright-surfaces",
            ],
        ),
    ];
    for (name, allowed) in expected {
        let arrows = arrows(&format!("crates/{name}/Cargo.toml"), "dependencies");
        assert_eq!(arrows, allowed.iter().map(|name| (*name).to_owned()).collect(), "{name}");
    }
}

#[test]
fn the_domain_cannot_reach_io() {
    let forbidden = [
        "async ",
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "tokio",
        "println!",
        "Instant::now",
        "SystemTime::now",
    ];
    for (path, text) in files("crates/domain/src", ".rs") {
        let code: Vec<_> =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for word in forbidden {
            assert!(!code.iter().any(|line| line.contains(word)), "{path} holds {word:?}");
        }
    }
}

#[test]
fn the_runtime_names_no_technology() {
    for (path, text) in files("crates/runtime/src", ".rs") {
        let lower = text.to_lowercase();
        for word in ["sqlite", "postgres", "restate", "nats", "reqwest", "openai", "axum"] {
            assert!(!lower.contains(word), "{path} names {word}");
        }
    }
}

#[test]
fn adapters_do_not_import_their_siblings() {
    let adapters: Vec<_> = read("crates/outbound/src/lib.rs")
        .lines()
        .filter_map(|line| {
            line.strip_prefix("pub mod ").map(|name| name.trim_end_matches(';').to_owned())
        })
        .collect();
    for (path, text) in files("crates/outbound/src", ".rs") {
        for adapter in &adapters {
            let own =
                path.contains(&format!("/{adapter}.rs")) || path.contains(&format!("/{adapter}/"));
            assert!(
                own || !text.contains(&format!("crate::{adapter}")),
                "{path} imports {adapter}"
            );
        }
    }
}

#[test]
fn every_invariant_names_tests_that_carry_it() {
    let sources: Vec<_> = [
        "crates/domain/tests",
        "crates/testkit/src",
        "crates/testkit/tests",
        "crates/planwright/tests",
    ]
    .into_iter()
    .flat_map(|directory| files(directory, ".rs"))
    .collect();
    let page = read("docs/INVARIANTS.md");
    let rows: Vec<Vec<String>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    assert!(rows.len() >= 23, "{} invariants are listed", rows.len());
    for row in rows {
        let name = row[0].trim_matches('`');
        if row[2].starts_with("comes with") {
            continue;
        }
        for test in row[2].split(',').map(|test| test.trim().trim_matches('`')) {
            let carries = sources.iter().any(|(_, text)| {
                let Some(at) = text.find(&format!("fn {test}(")) else { return false };
                let before: Vec<_> = text[..at].lines().rev().take(6).collect();
                before.iter().any(|line| line.contains(&format!("Invariant: `{name}`")))
            });
            assert!(carries, "{test} does not carry {name}");
        }
    }
}

#[test]
fn every_invariant_that_a_test_or_a_module_names_is_listed() {
    let page = read("docs/INVARIANTS.md");
    for directory in ["crates/domain/tests", "crates/testkit/src", "crates/planwright/tests"] {
        for (path, text) in files(directory, ".rs") {
            for line in
                text.lines().filter(|line| line.trim_start().starts_with("/// Invariant: `"))
            {
                let name = line.split('`').nth(1).unwrap();
                assert!(page.contains(&format!("| `{name}` |")), "{path} names {name}");
            }
        }
    }
}

#[test]
fn every_dependency_is_justified() {
    let page = read("docs/DEPENDENCIES.md");
    let manifest = read("Cargo.toml");
    let section = manifest.split("[workspace.dependencies]\n").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    for name in section
        .lines()
        .filter_map(|line| line.split([' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with("planwright"))
    {
        assert!(
            page.contains(&format!("| `{name}` |")),
            "{name} is not justified in docs/DEPENDENCIES.md"
        );
    }
}

#[test]
fn every_link_inside_the_documentation_leads_somewhere() {
    let pages = files("docs", ".md").into_iter().chain(
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|path| (path.to_owned(), read(path))),
    );
    for (path, text) in pages {
        let base = root().join(&path).parent().unwrap().to_owned();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.starts_with("http") || target.starts_with('#') {
                continue;
            }
            let target = target.split('#').next().unwrap();
            assert!(Path::new(&base.join(target)).exists(), "{path} links to {target}");
        }
    }
}

#[test]
fn every_source_file_says_what_it_is_about() {
    for directory in [
        "crates/domain",
        "crates/runtime",
        "crates/outbound",
        "crates/planwright",
        "crates/testkit",
        "crates/bench",
    ] {
        for (path, text) in files(directory, ".rs") {
            assert!(text.starts_with("//! "), "{path} does not open with a module comment");
        }
    }
}
