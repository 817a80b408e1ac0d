//! A model that plays a story: no key, no network, always the same. It says so in its name.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use planwright_domain::turn::{FailureKind, ModelFailure, Usage};
use planwright_runtime::ports::model::{
    Message, Model, ModelAnswer, ModelRequest, OnPreview, WireCall,
};
use serde_json::json;

/// The files that the story is about, with their contents.
pub const FILES: [(&str, &str); 2] = [
    ("notes/monday.md", "# Monday\n- call the plumber\n- photo server: disk 91 % full\n"),
    ("notes/thursday.md", "# Thursday\n- plumber came, pipe fixed\n- ordered a 4 TB disk\n"),
];

const FIRST_PLAN: &str = "# Weekly review from my notes

1. Read every file under `notes/`.
2. Write `review.md`: what got done, what is open.
3. Shorten `notes/monday.md` to what is still open.
";

const SECOND_PLAN: &str = "# Weekly review from my notes

1. Read every file under `notes/`.
2. Copy `notes/monday.md` to `backup/monday.md`.
3. Write `review.md`: what got done, what is open.
4. Shorten `notes/monday.md` to what is still open.
";

const REVIEW: &str = "# Review of the week

Done: the plumber came and fixed the pipe.
Open: the photo server's disk is 91 % full; a 4 TB disk is ordered.
";

/// A model that plays a story.
#[derive(Debug)]
pub struct DemoModel {
    pace: Duration,
    has_stumbled: AtomicBool,
}

impl DemoModel {
    /// A model that speaks at this pace, a word at a time.
    #[must_use]
    pub fn new(pace: Duration) -> Self {
        Self { pace, has_stumbled: AtomicBool::new(false) }
    }
}

#[async_trait]
impl Model for DemoModel {
    async fn answer(
        &self,
        request: &ModelRequest,
        preview: OnPreview<'_>,
    ) -> Result<ModelAnswer, ModelFailure> {
        let (last, rounds) = last_message(&request.messages);
        let executing =
            last.starts_with("Execute the approved plan") || last.starts_with("Go on with");
        if executing && rounds == 0 && !self.has_stumbled.swap(true, Ordering::SeqCst) {
            return Err(ModelFailure {
                kind: FailureKind::Transient,
                message: "the demo model is busy (a failure on purpose)".into(),
                retry_after_micros: Some(700_000),
            });
        }
        let planning = request.tools.iter().any(|tool| tool.name == "plan_set_content");
        let (text, calls) = match (executing, last.starts_with("Changes were requested")) {
            // What is executed is the plan that was approved, and nothing else.
            (true, _) if last.contains("backup/monday.md") => copying(rounds),
            (true, _) => execution(rounds),
            (false, true) => revision(rounds),
            (false, false) if planning => first_draft(rounds),
            (false, false) => (
                "I am the demo: a scripted model without a network. I only know one story. Switch plan work on with /plan on, then ask me for a weekly review.",
                vec![],
            ),
        };
        for word in text.split_inclusive(' ') {
            preview(word);
            tokio::time::sleep(self.pace).await;
        }
        let read = 900 + 40 * request.messages.len() as u64;
        let usage = Usage::tokens(read, 20 + text.len() as u64 / 4);
        let calls = calls.into_iter().enumerate().map(|(at, (tool, arguments))| WireCall {
            wire_id: format!("demo_{}_{at}", request.messages.len()),
            tool: tool.into(),
            arguments,
        });
        Ok(ModelAnswer {
            text: text.into(),
            calls: calls.collect(),
            usage: Some(usage),
            kept: Vec::new(),
        })
    }

    fn window_tokens(&self) -> usize {
        128_000
    }

    fn name(&self) -> String {
        "Demo (scripted, no network)".into()
    }
}

type Answer = (&'static str, Vec<(&'static str, String)>);

fn first_draft(rounds: usize) -> Answer {
    match rounds {
        0 => (
            "Let me look at your notes first.",
            vec![
                ("list_files", json!({}).to_string()),
                ("read_file", json!({"path": "notes/monday.md"}).to_string()),
                ("read_file", json!({"path": "notes/thursday.md"}).to_string()),
            ],
        ),
        1 => ("", vec![("plan_set_content", json!({"plan_markdown": FIRST_PLAN}).to_string())]),
        _ => ("I wrote a plan of three steps. Nothing is changed before you approve it.", vec![]),
    }
}

fn revision(rounds: usize) -> Answer {
    match rounds {
        0 => {
            let replies = json!([{"comment": 1}]);
            let content = json!({"plan_markdown": SECOND_PLAN, "replies": replies});
            ("", vec![("plan_set_content", content.to_string())])
        }
        _ => ("Revision 2 keeps a copy before anything is shortened.", vec![]),
    }
}

/// The execution of the second plan: a copy, and then what the first one does.
fn copying(rounds: usize) -> Answer {
    let (_, monday) = FILES[0];
    match rounds {
        0 => (
            "First the copy.",
            vec![(
                "write_file",
                json!({"path": "backup/monday.md", "content": monday}).to_string(),
            )],
        ),
        3 => reported(
            "review written, Monday's note shortened, a copy kept",
            "review.md, backup/monday.md",
        ),
        4.. => {
            ("Done. Your review is in review.md, and the old note is in backup/monday.md.", vec![])
        }
        _ => execution(rounds - 1),
    }
}

fn execution(rounds: usize) -> Answer {
    match rounds {
        0 => (
            "Now the review.",
            vec![("write_file", json!({"path": "review.md", "content": REVIEW}).to_string())],
        ),
        1 => (
            "",
            vec![(
                "edit_file",
                json!({"path": "notes/monday.md", "old": "- call the plumber\n", "new": ""})
                    .to_string(),
            )],
        ),
        2 => reported("review written, Monday's note shortened", "review.md"),
        _ => ("Done. Your review is in review.md.", vec![]),
    }
}

fn reported(summary: &str, evidence: &str) -> Answer {
    let report = json!({"status": "done", "summary": summary, "evidence": evidence});
    ("", vec![("plan_report", report.to_string())])
}

/// What was last said from outside, and how often the model has answered since.
fn last_message(messages: &[Message]) -> (&str, usize) {
    let at = messages.iter().rposition(|message| matches!(message, Message::User(_)));
    let rest = at.map_or(messages, |at| &messages[at..]);
    let last = match rest.first() {
        Some(Message::User(text)) => text.as_str(),
        Some(Message::Assistant { .. } | Message::Tool { .. }) | None => "",
    };
    (last, rest.iter().filter(|message| matches!(message, Message::Assistant { .. })).count())
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use planwright_runtime::ports::model::{Message, Model as _, ModelRequest};

    use super::{DemoModel, FIRST_PLAN, SECOND_PLAN};

    /// The paths that are written when this plan was approved.
    async fn written(plan: &str) -> Vec<String> {
        let model = DemoModel::new(Duration::ZERO);
        model.has_stumbled.store(true, std::sync::atomic::Ordering::SeqCst);
        let mut messages = vec![Message::User(format!("Execute the approved plan\n\n{plan}"))];
        let mut paths = Vec::new();
        for _ in 0..6 {
            let (system, tools) = (String::new(), Vec::new());
            let said = Arc::new(messages.clone());
            let request = ModelRequest { system, messages: said, tools, cache_key: None };
            let answer = model.answer(&request, &|_| {}).await.unwrap();
            for call in &answer.calls {
                let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
                paths.extend(arguments["path"].as_str().map(str::to_owned));
            }
            let (text, calls) = (answer.text, answer.calls);
            messages.push(Message::Assistant { text, calls, kept: None });
        }
        paths
    }

    #[tokio::test]
    async fn the_demo_writes_what_the_approved_plan_says_and_nothing_else() {
        assert_eq!(written(FIRST_PLAN).await, ["review.md", "notes/monday.md"]);
        let all = ["backup/monday.md", "review.md", "notes/monday.md"];
        assert_eq!(written(SECOND_PLAN).await, all);
    }
}
