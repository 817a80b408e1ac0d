//! One value of one recorded event, changed.

use anyhow::Context as _;
use fastrand::Rng;
use planwright_format::body::{Packer, Place, open};
use serde_json::{Value, json};

/// One value of one recorded event, changed.
#[derive(Debug)]
pub(super) struct Change {
    /// The event's kind.
    pub(super) kind: &'static str,
    /// The field, by the event's kind and its path in it.
    pub(super) field: String,
    /// The event as it then is.
    pub(super) event: Value,
}

impl Change {
    /// Any, of the recorded revision or of the record of its approval.
    pub(super) fn any(
        rng: &mut Rng,
        event: impl Fn(&'static str) -> anyhow::Result<Stored>,
    ) -> anyhow::Result<Self> {
        let kind = if rng.bool() { "revision_added" } else { "plan_approved" };
        let mut event = event(kind)?.event;
        let mut leaves = Vec::new();
        collect(&event, String::new(), &mut leaves);
        // What an event says beside its digested contents is not what is approved.
        leaves.retain(|(path, _)| {
            let beside = ["/author", "/replies", "/waits", "/start"];
            !beside.iter().any(|name| path.contains(name))
        });
        let (path, value) = leaves[rng.usize(0..leaves.len())].clone();
        let to = match value {
            Value::String(text) if text.len() >= 32 && rng.bool() => other_digit(&text, rng),
            Value::String(text) => {
                json!(format!("{text}{}", ["x", " ", "\u{200b}"][rng.usize(0..3)]))
            }
            Value::Number(number) => json!(number.as_i64().unwrap_or(0) + rng.i64(1..9)),
            Value::Bool(value) => json!(!value),
            Value::Null | Value::Array(_) | Value::Object(_) => json!("x"),
        };
        *event.pointer_mut(&path).context("a field")? = to;
        Ok(Self { kind, field: format!("{kind}{path}"), event })
    }

    /// The body as it is stored, with a checksum that fits: whoever changes it on purpose can make one.
    pub(super) fn body(&self, stored: &Stored) -> anyhow::Result<Vec<u8>> {
        Ok(Packer::new()?.seal(&stored.place(self.kind), 1, &self.event)?)
    }
}

/// Where an event lies, and what it is.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    session: String,
    seq: i64,
    at: i64,
    pub(super) event: Value,
}

impl Stored {
    /// Out of its row.
    pub(super) fn read(
        session: String,
        kind: &str,
        (seq, at, body): (i64, i64, Vec<u8>),
    ) -> anyhow::Result<Self> {
        let mut stored = Self { session, seq, at, event: Value::Null };
        let opened = open(&stored.place(kind), &body)?;
        stored.event = serde_json::from_slice(&opened.json)?;
        Ok(stored)
    }

    fn place<'a>(&'a self, kind: &'a str) -> Place<'a> {
        let (seq, at) = (self.seq.cast_unsigned(), self.at);
        Place::Event { session: &self.session, seq, kind, at }
    }
}

/// The same text with one hexadecimal digit changed.
fn other_digit(text: &str, rng: &mut Rng) -> Value {
    let at = rng.usize(0..text.len());
    let other = |(index, letter): (usize, char)| {
        if index == at { if letter == '0' { '1' } else { '0' } } else { letter }
    };
    json!(text.chars().enumerate().map(other).collect::<String>())
}

fn collect(value: &Value, path: String, leaves: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| collect(value, format!("{path}/{key}"), leaves));
        }
        Value::Array(values) => {
            values
                .iter()
                .enumerate()
                .for_each(|(at, value)| collect(value, format!("{path}/{at}"), leaves));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            leaves.push((path, value.clone()));
        }
    }
}
