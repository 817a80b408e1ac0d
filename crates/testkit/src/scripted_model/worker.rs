//! A model that plans and works, whatever it is asked: for chats, proofs and figures.

use std::sync::Arc;

use fastrand::Rng;
use serde_json::json;

use super::{Conduct, ScriptedReply, SeenRequest};
use crate::prose::sentence;

/// A model that, with plan work active, writes a plan of so many bytes; executing, writes so many
/// files, one a round, and reports done.
#[must_use]
pub fn worker(plan_bytes: usize, files: usize) -> Conduct {
    Arc::new(move |seen: &SeenRequest| {
        let executing = seen.last_message.starts_with("Execute the approved plan")
            || seen.last_message.starts_with("Go on with");
        let planning = seen.tools.iter().any(|tool| tool == "plan_set_content");
        if executing && seen.rounds < files {
            let path = format!("out/{}-{}.txt", seen.earlier, seen.rounds);
            return ScriptedReply::call("write_file", &json!({"path": path, "content": "work"}));
        }
        if executing && seen.rounds == files {
            return ScriptedReply::call(
                "plan_report",
                &json!({"status": "done", "summary": "all files written"}),
            );
        }
        if executing {
            return ScriptedReply::text("Done, as planned.");
        }
        let left = left_unanswered(seen);
        let writes = seen.rounds == 0 && !seen.last_message.starts_with("just talk");
        if planning && (writes || !left.is_empty()) {
            let markdown = plan(plan_bytes, seen.earlier);
            let replies: Vec<_> = left.iter().map(|number| json!({"comment": number})).collect();
            let content = if replies.is_empty() {
                json!({"plan_markdown": markdown})
            } else {
                json!({"plan_markdown": markdown, "replies": replies})
            };
            return ScriptedReply::call("plan_set_content", &content);
        }
        ScriptedReply::text("I have written what there is to say.")
    })
}

/// The comments that were just said to be unanswered, or were just made.
pub(super) fn left_unanswered(seen: &SeenRequest) -> Vec<u32> {
    let last = seen.body["messages"].as_array().and_then(|messages| messages.last());
    let text = last.and_then(|message| message["content"].as_str()).unwrap_or_default();
    if let Some((_, left)) = text.rsplit_once("every comment needs a reply") {
        let numbers = left.rsplit_once("left: ").map_or("", |(_, numbers)| numbers);
        return numbers.split(", ").filter_map(|number| number.trim().parse().ok()).collect();
    }
    let made = text.lines().filter_map(|line| line.strip_prefix("- comment ")?.split_once(','));
    made.filter_map(|(number, _)| number.parse().ok()).collect()
}

/// A plan of about so many bytes, different for each number.
#[must_use]
pub fn plan(bytes: usize, number: usize) -> String {
    let mut rng = Rng::with_seed(number as u64);
    let mut text = format!("# Plan {number}\n\n");
    let mut at = 1;
    while text.len() < bytes {
        text.push_str(&format!("{at}. {}\n", sentence(&mut rng)));
        at += 1;
    }
    text
}
