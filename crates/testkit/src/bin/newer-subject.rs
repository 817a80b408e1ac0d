//! The program under proof as a later version of it would be: messages are stored in lines, in a kind of level 2, and those
//! of level 1 are read with their line ends made equal.

use planwright_format::event::{Kind, register};
use serde_json::{Value, json};

fn main() -> std::process::ExitCode {
    let queued = Kind::first("message_queued");
    let noted = Kind {
        name: "message_noted",
        level: 2,
        downcast: Some(in_lines),
        upcast: Some(as_text),
        ..queued
    };
    let older = Kind { upcast: Some(with_equal_line_ends), ..queued };
    assert!(register(&[older, noted]), "nothing was read or written yet");
    planwright::main(Some(planwright_testkit::ledger::wrap))
}

fn in_lines(today: Value) -> Result<Value, String> {
    let message = &today["message_queued"];
    let text = message["text"].as_str().ok_or("a message without a text")?;
    Ok(json!({"lines": text.split('\n').collect::<Vec<_>>(), "by": message["by"]}))
}

fn as_text(stored: Value) -> Result<Value, String> {
    let lines: Vec<_> =
        stored["lines"].as_array().ok_or("a message without lines")?.iter().collect();
    let lines: Option<Vec<_>> = lines.into_iter().map(Value::as_str).collect();
    let text = lines.ok_or("a line that is no text")?.join("\n");
    Ok(json!({"message_queued": {"text": text, "by": stored["by"]}}))
}

fn with_equal_line_ends(mut stored: Value) -> Result<Value, String> {
    let text = &mut stored["message_queued"]["text"];
    *text = text.as_str().ok_or("a message without a text")?.replace("\r\n", "\n").into();
    Ok(stored)
}
