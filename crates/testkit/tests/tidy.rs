//! What a lint cannot see: crate arrows, purity, siblings, and invariants without a test.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use planwright_testkit::modules::{self, Arrows};

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
    let expected: [(&str, &[&str]); 7] = [
        ("domain", &[]),
        ("sandbox", &[]),
        ("format", &["planwright-domain"]),
        ("runtime", &["planwright-domain", "planwright-format"]),
        (
            "outbound",
            &["planwright-domain", "planwright-format", "planwright-runtime", "planwright-sandbox"],
        ),
        ("surfaces", &["planwright-domain", "planwright-format", "planwright-runtime"]),
        (
            "planwright",
            &[
                "planwright-domain",
                "planwright-format",
                "planwright-outbound",
                "planwright-runtime",
                "planwright-sandbox",
                "planwright-surfaces",
            ],
        ),
    ];
    for (name, allowed) in expected {
        let arrows = arrows(&format!("crates/{name}/Cargo.toml"), "dependencies");
        assert_eq!(arrows, allowed.iter().map(|name| (*name).to_owned()).collect(), "{name}");
    }
}

/// A part of a crate, and the parts that it may use.
type Part = (&'static str, &'static [&'static str]);

/// Which parts of the domain each part may use; a part stands above all that it uses.
const DOMAIN: [Part; 19] = [
    ("model", &[]),
    ("rules::backoff", &["model"]),
    ("rules::life", &["model"]),
    ("rules::log", &["model"]),
    ("rules::memory", &["model"]),
    ("rules::notebook", &["model"]),
    ("rules::openings", &["model"]),
    ("rules::plan", &["model"]),
    ("rules::autonomy", &["model", "rules::openings"]),
    ("rules::tools", &["model", "rules::notebook", "rules::plan"]),
    (
        "rules::turn",
        &[
            "model",
            "rules::autonomy",
            "rules::memory",
            "rules::notebook",
            "rules::plan",
            "rules::tools",
        ],
    ),
    ("rules::agent", &["model", "rules::memory", "rules::openings", "rules::plan", "rules::tools"]),
    ("next", &["model", "rules::notebook", "rules::tools"]),
    ("session", &["model", "next", "rules"]),
    ("installation", &["model"]),
    ("owner", &["model"]),
    ("language", &["model", "rules", "session"]),
    ("rules", &[]),
    ("lib", &["installation", "language", "model", "next", "owner", "rules", "session"]),
];

/// The same for the runtime.
const RUNTIME: [Part; 33] = [
    ("ports", &[]),
    ("failpoint", &[]),
    ("owner_turns", &[]),
    ("ids", &[]),
    ("secrets", &[]),
    ("settings", &["secrets"]),
    ("metrics", &[]),
    ("model_health", &["ports"]),
    ("event_pages", &["ports"]),
    ("revisions", &["ports"]),
    ("audit::head", &["ports"]),
    ("audit", &["audit::head", "event_pages", "ports", "transfer"]),
    ("transfer", &["commands::dispatch", "ports"]),
    ("memories", &["ports", "settings"]),
    ("quotas", &["ports", "settings"]),
    ("commands::dispatch", &["audit::head", "failpoint", "metrics", "ports", "quotas", "settings"]),
    ("housekeeping", &["commands::dispatch", "ports", "settings"]),
    ("engine::attempt", &[]),
    ("engine::calendar", &[]),
    ("engine::message_digest", &["ports"]),
    ("engine::output", &["ports"]),
    ("engine::conversation", &["engine::message_digest", "event_pages", "ports"]),
    ("engine::histories", &["engine::conversation", "ports"]),
    ("engine::context_window", &["engine::conversation", "engine::output", "ports"]),
    (
        "engine::tool_call",
        &["engine::context_window", "engine::output", "ports", "secrets", "settings"],
    ),
    ("engine::notebook", &["engine::tool_call", "ports", "revisions"]),
    ("engine::request", &["engine::conversation", "engine::tool_call", "ports", "settings"]),
    (
        "queries",
        &[
            "engine::calendar",
            "engine::context_window",
            "engine::conversation",
            "engine::histories",
            "engine::message_digest",
            "engine::output",
            "engine::request",
            "engine::tool_call",
            "event_pages",
            "memories",
            "model_health",
            "ports",
            "quotas",
            "revisions",
            "settings",
            "transfer",
        ],
    ),
    (
        "engine",
        &[
            "commands::dispatch",
            "engine",
            "event_pages",
            "failpoint",
            "ids",
            "memories",
            "model_health",
            "owner_turns",
            "ports",
            "revisions",
            "settings",
        ],
    ),
    (
        "commands",
        &[
            "commands",
            "engine::attempt",
            "engine::calendar",
            "engine::tool_call",
            "failpoint",
            "ids",
            "memories",
            "metrics",
            "ports",
            "queries",
            "revisions",
            "settings",
        ],
    ),
    ("reply_text", &["commands::reply", "queries"]),
    (
        "runtime",
        &["commands", "engine", "housekeeping", "model_health", "ports", "queries", "settings"],
    ),
    ("lib", &[]),
];

/// What every handler of the API may use.
const HANDLER: &[&str] = &[
    "http::app",
    "http::auth",
    "http::body",
    "http::dto",
    "http::pages",
    "http::params",
    "http::problem",
    "http::sessions::access",
    "http::streams::envelope",
    "http::streams::sse",
    "http::time",
];

/// The same for the surfaces.
const SURFACES: [Part; 39] = [
    ("mcp", &[]),
    ("http::time", &[]),
    ("http::problem", &[]),
    ("http::pages", &["http::problem"]),
    ("http::params", &["http::problem"]),
    ("http::tags", &[]),
    ("http::agents::presence", &[]),
    ("http::connections", &[]),
    ("http::session_event", &["http::time"]),
    ("http::description", &["http::session_event"]),
    ("http::streams::envelope", &["http::session_event", "http::time"]),
    ("http::streams::frames", &["http::streams::envelope"]),
    ("http::auth::limits", &["http::problem"]),
    ("http::auth::idempotency", &["http::problem"]),
    ("http::dashboard", &["http::app", "http::problem"]),
    (
        "http::app",
        &[
            "http::agents::presence",
            "http::auth::idempotency",
            "http::auth::limits",
            "http::connections",
            "http::streams::frames",
        ],
    ),
    ("http::auth", &["http::app", "http::auth::page", "http::connections", "http::problem"]),
    ("http::auth::page", &["http::app", "http::problem"]),
    ("http::auth::guard", &["http::app", "http::dashboard", "http::problem"]),
    ("http::auth::people", HANDLER),
    (
        "http::auth::tokens",
        &[
            "http::app",
            "http::auth",
            "http::auth::people",
            "http::body",
            "http::problem",
            "http::time",
        ],
    ),
    ("http::body", &["http::app", "http::problem"]),
    ("http::dto", &["http::auth", "http::time"]),
    ("http::sessions::access", &["http::app", "http::auth", "http::dto", "http::problem"]),
    ("http::activity", HANDLER),
    (
        "http::agents",
        &[
            "http::app",
            "http::auth",
            "http::body",
            "http::agents",
            "http::problem",
            "http::streams::sse",
            "mcp",
        ],
    ),
    ("http::autonomy", HANDLER),
    ("http::health", HANDLER),
    ("http::memory", HANDLER),
    ("http::model", HANDLER),
    ("http::model_requests", HANDLER),
    ("http::notebook", HANDLER),
    ("http::openai", HANDLER),
    ("http::plans", HANDLER),
    ("http::sessions", HANDLER),
    ("http::streams::sse", &["http::app", "http::auth", "http::problem"]),
    (
        "http::streams",
        &[
            "http::app",
            "http::auth",
            "http::connections",
            "http::params",
            "http::problem",
            "http::sessions::access",
            "http::streams",
        ],
    ),
    ("http", &["http"]),
    ("lib", &[]),
];

/// The longest name in the table that a module is or lies in.
fn part(table: &[Part], module: &str) -> Option<&'static str> {
    let is_in = |part: &&str| module == *part || module.starts_with(&format!("{part}::"));
    table.iter().map(|(part, _)| *part).filter(is_in).max_by_key(|part| part.len())
}

/// The arrows between modules that a table does not allow.
fn forbidden(table: &[Part], arrows: &Arrows) -> Vec<String> {
    let mut found = Vec::new();
    for (from, targets) in arrows {
        let Some(part_from) = part(table, from) else {
            found.push(format!("{from} is not in the table"));
            continue;
        };
        let (_, allowed) = table.iter().find(|(name, _)| *name == part_from).unwrap();
        for to in targets {
            let within = part(table, to) == Some(part_from);
            let is_allowed = |name: &&str| to == name || to.starts_with(&format!("{name}::"));
            if !within && !allowed.iter().any(is_allowed) {
                found.push(format!("{from} -> {to}"));
            }
        }
    }
    found
}

#[test]
fn modules_use_only_what_the_tables_allow() {
    let tables: [(&str, &[Part], usize); 3] =
        [("domain", &DOMAIN, 300), ("runtime", &RUNTIME, 90), ("surfaces", &SURFACES, 90)];
    for (name, table, least) in tables {
        let arrows = modules::arrows(&root().join(format!("crates/{name}/src"))).unwrap();
        let many = arrows.values().map(BTreeSet::len).sum::<usize>();
        assert!(many > least, "{name}: {many} arrows: the sources were not read");
        assert_eq!(forbidden(table, &arrows), Vec::<String>::new(), "{name}");
    }
}

/// What surfaces name of the runtime's ports: what ports give and take, who a caller is (`Access`), and which model is asked
/// (`Connection`). No journal, no lane, no broadcast, no toolbox.
const PORTS_OF_SURFACES: [&str; 20] = [
    "Access",
    "AccessError",
    "AgentGrant",
    "Answer",
    "Connection",
    "Found",
    "Hint",
    "Hints",
    "JournalError",
    "ListChange",
    "ModelWish",
    "Preview",
    "Recorded",
    "SessionPage",
    "SessionQuery",
    "SessionRow",
    "Signal",
    "Subscription",
    "Ticket",
    "Tried",
];

/// The names that a source takes from the runtime's ports.
fn names_from_ports(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, found) in text.match_indices("ports::") {
        let (mut depth, mut tree) = (0_i32, String::new());
        for letter in text[at + found.len()..].chars() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' | ';' | ')' | '>' | '<' | '(' if depth == 0 => break,
                _ => {}
            }
            if depth < 0 {
                break;
            }
            tree.push(letter);
            if depth == 0 && letter == '}' {
                break;
            }
        }
        let words = tree.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        names.extend(words.filter(|word| word.starts_with(char::is_uppercase)).map(str::to_owned));
    }
    names
}

#[test]
fn surfaces_reach_no_port_of_the_runtime() {
    let (mut names, mut read) = (BTreeSet::new(), 0);
    for (path, text) in files("crates/surfaces/src", ".rs") {
        names.extend(names_from_ports(&text));
        read += 1;
        for engine in ["engine::", "runtime::Runtime", "Ports"] {
            assert!(!text.contains(engine), "{path} names {engine}");
        }
    }
    assert!(read > 30, "{read} sources were read");
    assert_eq!(names, PORTS_OF_SURFACES.map(str::to_owned).into());
    let reaches = "use x::ports::{\n    journal::{Journal, Recorded},\n    signal::Lane,\n};";
    assert_eq!(
        names_from_ports(reaches).into_iter().collect::<Vec<_>>(),
        ["Journal", "Lane", "Recorded"]
    );
}

#[test]
fn an_arrow_that_is_not_in_the_table_is_found() {
    let mut arrows = modules::arrows(&root().join("crates/domain/src")).unwrap();
    for (from, to) in [
        ("rules::plan::decide", "rules::turn::gate"),
        ("model::turn", "session"),
        ("next", "language::prompt"),
    ] {
        arrows.get_mut(from).unwrap().insert(to.into());
        assert_eq!(forbidden(&DOMAIN, &arrows), [format!("{from} -> {to}")]);
        arrows.get_mut(from).unwrap().remove(to);
    }
    arrows.insert("elsewhere".into(), BTreeSet::new());
    assert_eq!(forbidden(&DOMAIN, &arrows), ["elsewhere is not in the table"]);
}

#[test]
fn no_files_of_a_crate_use_each_other_in_a_circle() {
    for name in ["domain", "format", "runtime", "surfaces", "planwright"] {
        let arrows = modules::arrows(&root().join(format!("crates/{name}/src"))).unwrap();
        assert_eq!(modules::circles(&arrows), Vec::<BTreeSet<String>>::new(), "{name}");
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

/// A rename is durable only when its directory is synced: it is done where that is.
#[test]
fn files_get_their_names_only_where_the_directory_is_synced() {
    let at_home = [
        "crates/outbound/src/durable_file.rs",
        "crates/outbound/src/toolbox_files.rs",
        "crates/planwright/src/durable_file.rs",
    ];
    let mut found = BTreeSet::new();
    for crate_name in ["domain", "runtime", "outbound", "surfaces", "planwright"] {
        for (path, text) in files(&format!("crates/{crate_name}/src"), ".rs") {
            if ["fs::rename(", "directory.rename(", ".persist("]
                .iter()
                .any(|call| text.contains(call))
            {
                assert!(text.contains("fn sync_"), "{path} does not sync the directory");
                found.insert(path);
            }
        }
    }
    assert_eq!(found, at_home.map(str::to_owned).into());
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

/// Every crate forbids unsafe code, but for the one that only denies it, and there one file expects it.
#[test]
fn unsafe_code_is_in_one_file() {
    for (path, text) in files("crates", "Cargo.toml") {
        let forbids = text.contains("\n[lints]\nworkspace = true");
        let denies = text.contains("\nunsafe_code = \"deny\"\n");
        assert_eq!((forbids, denies), (path != "crates/sandbox/Cargo.toml", !forbids), "{path}");
    }
    let unsafe_code = |text: &str| text.contains("(unsafe_code");
    let expecting = files("crates/sandbox/src", ".rs").into_iter();
    let expecting: Vec<_> = expecting.filter(|(_, text)| unsafe_code(text)).collect();
    let [(path, _)] = expecting.as_slice() else { panic!("{expecting:?}") };
    assert_eq!(path, "crates/sandbox/src/listener.rs");
}

#[test]
fn every_source_file_says_what_it_is_about() {
    for directory in [
        "crates/domain",
        "crates/runtime",
        "crates/outbound",
        "crates/sandbox",
        "crates/planwright",
        "crates/testkit",
        "crates/bench",
    ] {
        for (path, text) in files(directory, ".rs") {
            assert!(text.starts_with("//! "), "{path} does not open with a module comment");
        }
    }
}

/// The names that a script prints where it is given none.
fn listed_by(script: &str) -> BTreeSet<String> {
    let listed = Command::new(root().join(script)).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// The steps of a run: limit in seconds, name, command.
fn steps(script: &str) -> Vec<(u32, String, String)> {
    let text = read(script);
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("step "));
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            let (limit, name) = (words.next().unwrap(), words.next().unwrap());
            let command: Vec<_> = words.collect();
            (limit.parse().unwrap(), name.to_owned(), command.join(" "))
        })
        .collect()
}

#[test]
fn every_proof_is_a_step_of_the_run_and_of_the_nightly_run() {
    let proofs = listed_by("prove");
    assert!(proofs.len() >= 20, "{proofs:?}");
    for script in [".ci/run", ".ci/nightly"] {
        let steps = steps(script);
        for proof in &proofs {
            let command = format!("./prove {proof}");
            let is_run = |(_, _, run): &(u32, String, String)| {
                run == &command || run == &format!("{command} --quick")
            };
            assert!(steps.iter().any(is_run), "{script} does not run {command}");
        }
    }
    let quick =
        steps(".ci/nightly").into_iter().find(|(_, _, command)| command.contains("--quick"));
    assert_eq!(quick, None, "the nightly run is at full size");
}

#[test]
fn a_step_that_fails_or_takes_too_long_fails_the_run_and_is_counted() {
    let place = tempfile::tempdir().unwrap();
    let run = |script: &str| {
        let script = format!("set -euo pipefail; source {}/.ci/steps; {script}", root().display());
        let ran = Command::new("bash").args(["-c", &script]).current_dir(&place).output().unwrap();
        let said = String::from_utf8(ran.stdout).unwrap();
        let last: Vec<_> = said.lines().rev().take(2).map(str::to_owned).collect();
        (ran.status.code(), last.into_iter().rev().collect::<Vec<_>>())
    };
    let tests = "echo '  Summary [ 1.0s] 5 tests run: 3 passed (1 slow), 2 failed, 0 skipped'";
    let (not_run, failed) = ("NOT RUN: agents: no network", "a step before it failed");
    let lines = |lines: [&str; 2]| lines.map(str::to_owned).to_vec();
    assert_eq!(
        run("step 9 one true; step 9 two true; skip agents 'no network'; finish"),
        (Some(0), lines([not_run, "2 passed, 0 failed"]))
    );
    assert_eq!(
        run("step 9 one true; step 1 slow sleep 60; step 9 last true; finish"),
        (Some(1), lines([&format!("NOT RUN: last: {failed}"), "1 passed, 1 failed"]))
    );
    assert_eq!(
        run("total_limit=1; step 9 slow sleep 60; skip agents 'no network'; finish"),
        (Some(1), lines([not_run, "0 passed, 1 failed"]))
    );
    assert_eq!(
        run(&format!(
            "after_failure=continue; step 9 tests bash -c \"{tests}; exit 1\"; step 9 last true; \
             skip agents 'no network'; finish"
        )),
        (Some(1), lines([not_run, "4 passed, 2 failed"]))
    );
}

/// The names that a row of the contributors' table has in backticks.
fn listed_for_contributors(verb: &str) -> BTreeSet<String> {
    let page = read("CONTRIBUTING.md");
    let row = page.lines().find(|line| line.starts_with(&format!("| `{verb} NAME` |"))).unwrap();
    let what = row.split('|').nth(2).unwrap();
    what.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn contributors_are_told_of_every_proof_and_every_proof_is_described() {
    let proofs = listed_by("prove");
    assert_eq!(listed_for_contributors("./prove"), proofs);
    let page = read("docs/PROOFS.md");
    for proof in proofs {
        assert!(page.contains(&format!("\n## `./prove {proof}`\n")), "PROOFS.md lacks {proof}");
    }
}

#[test]
fn the_invariants_page_says_which_of_them_the_machine_checks() {
    let sources =
        read("crates/testkit/src/machine.rs") + &read("crates/testkit/src/machine/watch.rs");
    let page = read("docs/INVARIANTS.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let checked: BTreeSet<_> =
        rows.filter(|name| sources.contains(&format!("\"{name}: "))).collect();
    let told =
        page.split("\n\n").find(|part| part.starts_with("`./prove machine` checks")).unwrap();
    let told = told.split("one session: ").nth(1).unwrap().split('.').next().unwrap();
    assert_eq!(told.split('`').skip(1).step_by(2).collect::<BTreeSet<_>>(), checked);
}

#[test]
fn the_proofs_page_counts_the_mutants_that_there_are() {
    let sources = read("crates/proofs/src/mutants.rs");
    let count = sources.split("MUTANTS: [Mutant; ").nth(1).unwrap().split(']').next().unwrap();
    let page = read("docs/PROOFS.md");
    assert!(page.contains(&format!("are copied, and {count} passages of")), "{count} mutants");
}

#[test]
fn every_promise_has_what_was_promised_and_what_was_shown() {
    let page = read("docs/PROOFS.md");
    let section = page.split("\n## Promised and shown\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    assert!(rows.len() >= 24, "{} promises", rows.len());
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 4 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
    }
}

/// A figure that the row itself calls short or missed is not called reached beside it.
#[test]
fn no_figure_is_called_reached_that_is_short() {
    for line in read("docs/BENCHMARKS.md").lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [.., target] = cells[..] else { continue };
        let is_short = cells.iter().any(|cell| cell.contains("short"));
        let is_told = target.contains("missed");
        assert!(!is_short || !target.contains("reached") || is_told, "{line}");
    }
}

/// What the build of the dashboard asks of Node is what people are told to have.
#[test]
fn the_documented_version_of_node_is_the_one_that_the_build_needs() {
    let lock: serde_json::Value = serde_json::from_str(&read("web/package-lock.json")).unwrap();
    for package in ["vite", "rolldown"] {
        let wanted = &lock["packages"][format!("node_modules/{package}")]["engines"]["node"];
        assert_eq!(wanted, "^20.19.0 || >=22.12.0", "{package}");
    }
    for page in ["README.md", "CONTRIBUTING.md"] {
        let told = read(page).contains("Node 20.19 or newer in the 20 line, or 22.12 and newer");
        assert!(told, "{page} names another Node");
    }
}

#[test]
fn the_changelog_names_what_agents_and_other_programs_talk_to() {
    let page = read("CHANGELOG.md");
    for command in
        ["planwright mcp", "/mcp", "/v1/chat/completions", "/v1/responses", "planwright up"]
    {
        assert!(page.contains(command), "CHANGELOG.md lacks {command}");
    }
}

/// Every test that the map of requirements names is there, and its counts are those of its rows.
#[test]
fn the_map_of_security_requirements_names_tests_that_are_there() {
    let page = read("docs/ASVS.md");
    let named: Vec<_> =
        page.split('`').skip(1).step_by(2).filter_map(|words| words.split_once(".rs::")).collect();
    assert!(named.len() > 80, "{}", named.len());
    for (path, name) in named {
        let text = read(&format!("crates/{path}.rs"));
        assert!(text.contains(&format!("fn {name}(")), "{path}.rs has no {name}");
    }
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let rows: Vec<Vec<_>> = rows.map(|row| row.split(" | ").map(str::trim).collect()).collect();
    let states = ["holds", "partly", "no", "does not apply"];
    let count = |state: &str| -> u32 {
        let is_numbered = |row: &Vec<&str>| row[0].contains('.');
        let fits = rows.iter().filter(|row| is_numbered(row) && row.get(2) == Some(&state));
        let of_chapter = |row: &[&str]| {
            let number = row[0].trim_matches(['|', ' ']).split('.').next().unwrap_or_default();
            let chapter = rows.iter().find(|row| row[0].starts_with(&format!("| V{number} ")));
            let all = chapter.and_then(|chapter| chapter.last()).unwrap();
            all.trim_end_matches(['|', ' ']).parse().unwrap()
        };
        fits.map(|row| match row[1] {
            "the whole chapter" => of_chapter(row),
            _ => requirements(row[0].trim_matches(['|', ' '])),
        })
        .sum()
    };
    let counted = states.map(count).map(|count| count.to_string());
    let all = rows.iter().find(|row| row[0] == "| all").expect("a row for all");
    let told: Vec<_> = all[1..].iter().map(|cell| cell.trim_end_matches(['|', ' '])).collect();
    assert_eq!(counted.to_vec(), told);
}

/// How many requirements a row is about: one, a range of the last number, or several of them.
fn requirements(row: &str) -> u32 {
    let parts = row.split(", ").map(|part| match part.split_once('–') {
        None => 1,
        Some((first, last)) => {
            let number = |words: &str| words.rsplit('.').next().unwrap().parse::<u32>().unwrap();
            number(last) - number(first) + 1
        }
    });
    parts.sum()
}
