//! What is published of a session's events: `session_event/1`.

use std::collections::{BTreeMap, BTreeSet};

use planwright_domain::{
    actor::{Person, Standing},
    autonomy::event::AutoEvent,
    id::Seq,
    notebook::NotebookEvent,
    plan::event::PlanEvent,
    session::{SessionEvent, life::LifeEvent},
    time::Time,
    turn::{
        ToolReply,
        event::{TurnEnd, TurnEvent},
    },
};
use planwright_format::event::known_kinds;
use planwright_runtime::ports::journal::Recorded;
use planwright_surfaces::http::{openapi, streams::envelope::Envelope};
use planwright_testkit::{event_samples, golden, people::person};
use serde_json::{Value, json};
use uuid::Uuid;

fn id<T: From<Uuid>>(number: u128) -> T {
    Uuid::from_u128(number).into()
}

fn ada() -> Person {
    person("ada", "cli", Standing::Decides)
}

/// How many events of one kind the dashboard's tests have at least where the golden journal has as many.
const SAMPLES_OF_A_KIND: usize = 4;

/// Events of every kind: those of the golden journal, and by hand those that it does not hold.
async fn events() -> Result<Vec<SessionEvent>, Box<dyn std::error::Error>> {
    let mut events = golden::events().await?;
    events.extend(event_samples::by_hand());
    Ok(events)
}

#[tokio::test]
async fn every_kind_of_event_is_published_under_its_name_and_read_again_as_it_was() {
    let mut kinds = BTreeSet::new();
    for (seq, event) in (1..).zip(events().await.unwrap()) {
        let recorded = Recorded { seq: Seq(seq), at: Time(1), event };
        let envelope = Envelope::of("cli:published", &recorded);
        let text = serde_json::to_string(&envelope).expect("an envelope");
        let again: Envelope = serde_json::from_str(&text).expect("an envelope");
        // A turn that failed is published as one that finished so.
        let kind = recorded.event.kind();
        kinds.insert(kind);
        assert_eq!(again.kind, if kind == "turn_failed" { "turn_finished" } else { kind });
        assert_eq!(again.event().expect("a known event"), recorded.event, "{text}");
    }
    assert_eq!(kinds, known_kinds().collect());
}

/// What the dashboard's tests fold: events of every kind, in the order of a journal, as one session's stream.
#[tokio::test]
async fn the_samples_of_the_dashboard_are_what_is_published() {
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    let mut samples = String::new();
    let mut events = golden::events().await.unwrap();
    events.retain(|event| {
        let many = taken.entry(event.kind()).or_default();
        *many += 1;
        *many <= SAMPLES_OF_A_KIND
    });
    events.extend(event_samples::by_hand());
    for (seq, event) in (1..).zip(events) {
        let recorded = Recorded { seq: Seq(seq), at: Time(1_000_000 * seq.cast_signed()), event };
        let envelope = serde_json::to_string(&Envelope::of("cli:sampled-0001", &recorded)).unwrap();
        samples
            .push_str(&format!("{}  {envelope}", if samples.is_empty() { "[\n" } else { ",\n" }));
    }
    samples.push_str("\n]\n");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/session/samples.json");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &samples).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap_or_default() == samples,
        "{path} has drifted; run: BLESS=1 cargo nextest run -p planwright-surfaces samples"
    );
}

#[test]
fn fields_are_in_camel_case_and_choices_in_snake_case() {
    let (reply, at) = (ToolReply::LeftRunning, Time(1_700_000_000_123_456));
    let event = |event| {
        let envelope = Envelope::of("cli:published", &Recorded { seq: Seq(4), at, event });
        (envelope.kind, envelope.data)
    };
    let answered = SessionEvent::Turn(TurnEvent::CallAnswered { call: id(1), reply });
    let call = "00000000-0000-0000-0000-000000000001";
    let data = json!({"call": call, "reply": {"kind": "left_running"}});
    assert_eq!(event(answered), ("call_answered".into(), data));
    let end = TurnEnd::Compacted { messages: 3 };
    let finished = SessionEvent::Turn(TurnEvent::TurnFinished { turn: id(1), end });
    let data = json!({"turn": call, "end": {"kind": "compacted", "messageCount": 3}});
    assert_eq!(event(finished), ("turn_finished".into(), data));
    let failed = NotebookEvent::RemovalFailed { why: "no space".into(), retry_at: at };
    let data = json!({"reason": "no space", "retryAt": "2023-11-14T22:13:20.123456Z"});
    assert_eq!(event(SessionEvent::Notebook(failed)), ("removal_failed".into(), data));
}

#[test]
fn a_time_that_no_calendar_reaches_is_published_as_the_last_moment_and_can_be_read() {
    for (retry_at, text) in [
        (Time(i64::MAX), "9999-12-30T22:00:00.999999999Z"),
        (Time(i64::MIN), "-009999-01-02T01:59:59Z"),
    ] {
        let why = "no space".into();
        let event = SessionEvent::Notebook(NotebookEvent::RemovalFailed { why, retry_at });
        let envelope = Envelope::of("cli:published", &Recorded { seq: Seq(1), at: Time(1), event });
        assert_eq!(envelope.data["retryAt"], text);
        assert!(envelope.event().is_ok());
    }
}

#[test]
fn the_subject_of_an_event_is_what_it_is_about() {
    let subject = |event| {
        let recorded = Recorded { seq: Seq(1), at: Time(1), event };
        Envelope::of("cli:published", &recorded).subject
    };
    let text = |number| Some(Uuid::from_u128(number).to_string());
    let auto = SessionEvent::Auto;
    let added =
        AutoEvent::TaskAdded { task: id(1), goal: Some(id(2)), title: "x".into(), by: None };
    assert_eq!(subject(auto(added)), text(1));
    assert_eq!(subject(auto(AutoEvent::RunMoved { run: id(3), task: id(1) })), text(3));
    let queued = PlanEvent::StepQueued { plan: id(4), step: 2 };
    assert_eq!(subject(SessionEvent::Plan(queued)), text(4));
    let reply = ToolReply::Planned;
    let answered = TurnEvent::CallAnswered { call: id(5), reply };
    assert_eq!(subject(SessionEvent::Turn(answered)), text(5));
    assert_eq!(subject(SessionEvent::Life(LifeEvent::Deleted { by: ada() })), None);
}

/// Names of all fields in a value.
fn fields(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                names.insert(name.clone());
                fields(value, names);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn the_description_names_every_type_of_event_and_no_field_in_another_case() {
    let api = openapi();
    let mut described = BTreeMap::new();
    let mut subjects = vec![&api["components"]["schemas"]["event.SessionEvent"]];
    while let Some(schema) = subjects.pop() {
        for one in ["anyOf", "oneOf"].iter().filter_map(|one| schema[*one].as_array()).flatten() {
            if let Some(name) = one["$ref"].as_str() {
                let name = name.trim_start_matches("#/components/schemas/");
                subjects.push(&api["components"]["schemas"][name]);
            } else {
                let kind = one["properties"]["type"]["const"].as_str().expect("a type");
                described.insert(kind.to_owned(), &one["properties"]["data"]);
            }
        }
    }
    let described: BTreeSet<_> = described.into_keys().collect();
    let published: BTreeSet<_> =
        known_kinds().filter(|kind| *kind != "turn_failed").map(str::to_owned).collect();
    assert_eq!(described, published);
    let mut names = BTreeSet::new();
    for (seq, event) in (1..).zip(events().await.unwrap()) {
        let recorded = Recorded { seq: Seq(seq), at: Time(1), event };
        fields(&Envelope::of("cli:published", &recorded).data, &mut names);
    }
    // The tools of an envelope are keys, too.
    let tools = ["edit_file", "glob_files", "grep_files", "list_files", "read_file", "write_file"];
    let snake = names.iter().filter(|name| name.contains('_'));
    assert_eq!(snake.filter(|name| !tools.contains(&name.as_str())).count(), 0, "{names:?}");
}
