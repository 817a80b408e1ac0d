//! Tools of a real MCP server: our own, as strict as the protocol.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{collections::BTreeMap, fs, sync::Arc, time::Duration};

use planwright_domain::{
    effect::{Effect, Repeat},
    turn::CallStatus,
};
use planwright_outbound::toolbox_mcp::{McpServer, McpToolbox, Pinned, Pins};
use planwright_runtime::ports::toolbox::{Ran, Tool, Toolbox as _};
use planwright_testkit::tool_run::tool_run;

struct Strict {
    home: tempfile::TempDir,
    toolbox: McpToolbox,
    pins: Arc<Pins>,
}

impl Strict {
    async fn start(pinned: &[(&str, Effect)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let pins = Arc::new(Pins::open(home.path().join("pins.json")).unwrap());
        let toolbox = toolbox(&home, pins.clone(), pinned);
        toolbox.refresh().await;
        Self { home, toolbox, pins }
    }

    fn ledger(&self) -> String {
        fs::read_to_string(self.home.path().join("ledger")).unwrap_or_default()
    }

    async fn run(&self, tool: &str, arguments: &str) -> Ran {
        self.toolbox.run(tool_run(tool, arguments)).await
    }

    fn names(&self) -> Vec<String> {
        self.toolbox.tools().iter().map(|tool| tool.spec.name.clone()).collect()
    }
}

fn toolbox(home: &tempfile::TempDir, pins: Arc<Pins>, pinned: &[(&str, Effect)]) -> McpToolbox {
    let file = |name: &str| home.path().join(name).display().to_string();
    let server = McpServer::Child {
        command: vec![env!("CARGO_BIN_EXE_strict-mcp").into(), file("ledger"), file("changed")],
        environment: BTreeMap::from([("GIVEN".to_owned(), "1".to_owned())]),
        directory: home.path().to_owned(),
        confinement: None,
    };
    let pinned = pinned.iter().map(|(name, effect)| {
        let repeat = if *effect == Effect::Read { Repeat::Harmless } else { Repeat::AskFirst };
        ((*name).to_owned(), Pinned { effect: *effect, repeat })
    });
    McpToolbox::new("strict", server, pinned.collect(), pins)
}

fn said(ran: Ran) -> (CallStatus, String) {
    match ran {
        Ran::Ended(result) => (result.status, result.output),
        Ran::Unknown { why } => panic!("{why}"),
    }
}

#[tokio::test]
async fn tools_are_external_whatever_the_server_says_until_the_operator_pins_them() {
    let strict = Strict::start(&[("look", Effect::Read)]).await;
    let effects: Vec<_> = strict
        .toolbox
        .tools()
        .iter()
        .map(|tool| (tool.spec.name.clone(), tool.facts.effect))
        .collect();
    let is_unconfined = |tool: &Tool| tool.is_unconfined;
    assert!(strict.toolbox.tools().iter().all(is_unconfined), "nothing confines this one");
    let external = |name: &str| (format!("strict__{name}"), Effect::External);
    assert_eq!(
        effects,
        [
            external("note"),
            ("strict__look".into(), Effect::Read),
            external("environment"),
            external("hang"),
            external("die")
        ]
    );
}

#[tokio::test]
async fn a_call_is_made_once_and_its_answer_told() {
    let strict = Strict::start(&[]).await;
    let told = said(strict.run("strict__note", r#"{"text": "one"}"#).await);
    assert_eq!((told, strict.ledger().as_str()), ((CallStatus::Done, "noted one".into()), "one\n"));
}

#[tokio::test]
async fn arguments_are_held_against_the_schema_before_the_server_sees_them() {
    let strict = Strict::start(&[]).await;
    assert!(strict.toolbox.check("strict__note", r#"{"text": "x"}"#).is_ok());
    for wrong in ["{}", r#"{"text": 7}"#, r#"{"text": "x", "more": 1}"#, "[]", "nonsense"] {
        assert!(strict.toolbox.check("strict__note", wrong).is_err(), "{wrong}");
    }
    assert_eq!(strict.ledger(), "");
}

#[tokio::test]
async fn a_child_inherits_nothing_but_the_path_and_what_it_is_given() {
    let strict = Strict::start(&[]).await;
    let (_, names) = said(strict.run("strict__environment", "{}").await);
    let mut names: Vec<_> = names.split(',').collect();
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "PATH"]);
}

#[tokio::test]
async fn a_server_that_ends_before_it_answers_leaves_an_unknown_outcome_and_is_started_again() {
    let strict = Strict::start(&[]).await;
    assert!(matches!(strict.run("strict__die", "{}").await, Ran::Unknown { .. }));
    assert_eq!(strict.ledger(), "died\n");
    strict.toolbox.refresh().await;
    assert_eq!(said(strict.run("strict__note", r#"{"text": "again"}"#).await).0, CallStatus::Done);
}

#[tokio::test]
async fn a_tool_whose_schema_changes_is_quarantined_until_it_is_accepted() {
    let strict = Strict::start(&[]).await;
    let before = strict.toolbox.tools()[0].facts.schema;
    fs::write(strict.home.path().join("changed"), "").unwrap();
    strict.toolbox.refresh().await;
    assert!(!strict.names().contains(&"strict__note".to_owned()));
    assert_eq!(strict.pins.quarantined(), ["strict__note"]);
    assert_eq!(said(strict.run("strict__note", r#"{"text": "x"}"#).await).0, CallStatus::Failed);
    let later = Arc::new(Pins::open(strict.home.path().join("pins.json")).unwrap());
    let again = toolbox(&strict.home, later, &[]);
    again.refresh().await;
    assert_eq!(again.tools().len(), 4, "another process remembers");
    assert!(strict.pins.accept("strict__note").unwrap());
    strict.toolbox.refresh().await;
    assert_ne!(strict.toolbox.tools()[0].facts.schema, before);
    assert_eq!(strict.ledger(), "");
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_unknown_and_its_server_is_told_to_stop() {
    let mut there = Strict::start(&[]).await;
    there.toolbox = there.toolbox.within(Duration::from_millis(300));
    let Ran::Unknown { why } = there.run("strict__hang", "{}").await else { panic!("it ended") };
    assert_eq!(why, "strict did not answer within 0 s, and was told to stop");
    let begun = std::time::Instant::now();
    while there.ledger() != "cancelled\n" {
        assert!(begun.elapsed() < Duration::from_secs(5), "it was never told: {}", there.ledger());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (status, _) = said(there.run("strict__note", r#"{"text": "still here"}"#).await);
    assert_eq!(status, CallStatus::Done, "the others go on");
}

#[tokio::test]
async fn a_server_that_cannot_be_started_brings_no_tools_and_says_why() {
    let home = tempfile::tempdir().unwrap();
    let pins = Arc::new(Pins::open(home.path().join("pins.json")).unwrap());
    let server = McpServer::Child {
        command: vec!["/nowhere/at/all".into()],
        environment: BTreeMap::new(),
        directory: home.path().to_owned(),
        confinement: None,
    };
    let toolbox = McpToolbox::new("gone", server, BTreeMap::new(), pins);
    toolbox.refresh().await;
    assert!(toolbox.tools().is_empty());
    assert!(toolbox.trouble().unwrap().contains("/nowhere/at/all"));
}
