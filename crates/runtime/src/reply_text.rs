//! What a reply says, in words. A terminal colours them, a page shows them as they are: one text for every surface.

use planwright_domain::{chat::HELP, refusal::Refusal};

use crate::{commands::reply::Reply, queries::view::PlanRow};

pub mod plan;
pub mod text;
pub mod work;

pub use text::{Text, Tone};

/// What a reply says; nothing for a message, which needs no answer.
#[must_use]
pub fn text_of(reply: &Reply) -> Text {
    match reply {
        Reply::Accepted { words, .. } if words == "queued" => Text::default(),
        Reply::Accepted { words, .. } | Reply::Moved { words, .. } => {
            Text::marked(Tone::Good, "✓", words)
        }
        Reply::Sessions(rows) => work::sessions(rows),
        Reply::Work(view) => work::work(view),
        Reply::Memory(view) => work::memory(view),
        Reply::Notebook(view) => work::notebook(view),
        Reply::Refused(refusal) => Text::marked(Tone::Bad, "✗", &refusal_words(refusal)),
        Reply::Unreadable(words) => Text::marked(Tone::Bad, "✗", words),
        Reply::Nothing(words) => Text::of(Tone::Dim, words),
        Reply::Help => HELP.into_iter().fold(Text::default(), |text, (words, what)| {
            text.and(Tone::Bold, format!("  {words:<34}")).and(Tone::Plain, format!(" {what}\n"))
        }),
        Reply::Status(view) => plan::status(view),
        Reply::Revision(view) => plan::revision(view),
        Reply::Diff(view) => plan::diff(view),
        Reply::Comments(rows) if rows.is_empty() => {
            Text::of(Tone::Plain, "no comments on this plan")
        }
        Reply::Comments(rows) => {
            rows.iter().fold(Text::default(), |text, row| text.then(plan::comment(row)))
        }
        Reply::Plans(rows) if rows.is_empty() => {
            Text::of(Tone::Plain, "no plans yet; begin with /plan on")
        }
        Reply::Plans(rows) => {
            rows.iter().fold(Text::default(), |text, row| text.then(plan_row(row)))
        }
    }
}

fn plan_row(row: &PlanRow) -> Text {
    let title = if row.title.is_empty() { "(nothing written)" } else { &row.title };
    Text::of(Tone::Plain, format!("{:<11} {} revisions  {title}", row.status, row.revisions))
}

/// What a refusal means for the person in front of it.
fn refusal_words(refusal: &Refusal) -> String {
    match refusal.kind() {
        "stale_decision" => format!(
            "{refusal}. Nothing was approved.\n  what changed: /plan diff   the whole: /plan show"
        ),
        _ => refusal.to_string(),
    }
}
