//! A model that plans and works, whatever it is asked: for chats, proofs and figures.

use std::sync::Arc;

use serde_json::json;

use super::{Conduct, Said, Told};

/// A model that, with plan work active, writes a plan of so many bytes; executing, writes so many
/// files, one a round, and reports done.
#[must_use]
pub fn worker(plan_bytes: usize, files: usize) -> Conduct {
    Arc::new(move |told: &Told| {
        let executing = told.last_said.starts_with("Execute the approved plan")
            || told.last_said.starts_with("Go on with");
        let planning = told.tools.iter().any(|tool| tool == "plan_set_content");
        if executing && told.rounds < files {
            let path = format!("out/{}-{}.txt", told.earlier, told.rounds);
            return Said::call("write_file", &json!({"path": path, "content": "work"}));
        }
        if executing && told.rounds == files {
            return Said::call(
                "plan_report",
                &json!({"status": "done", "summary": "all files written"}),
            );
        }
        if executing {
            return Said::text("Done, as planned.");
        }
        if planning && told.rounds == 0 && !told.last_said.starts_with("just talk") {
            let markdown = plan(plan_bytes, told.earlier);
            return Said::call("plan_set_content", &json!({"plan_markdown": markdown}));
        }
        Said::text("I have written what there is to say.")
    })
}

/// A plan of about so many bytes, different for each number.
#[must_use]
pub fn plan(bytes: usize, number: usize) -> String {
    let mut text = format!("# Plan {number}\n\n");
    let mut at = 1;
    while text.len() < bytes {
        let word = (number * 7_919 + at * 104_729) % 65_536;
        text.push_str(&format!(
            "{at}. Write file {word:x} of part {}, then look whether it holds {:x}.\n",
            at % 7,
            word * 31
        ));
        at += 1;
    }
    text
}
