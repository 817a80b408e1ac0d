//! What the model is told of plan work: one short paragraph, and the words that open a turn.
//!
//! Must always hold:
//! - `compaction-safe`: while plan work is active, every request carries the paragraph, made anew
//!   from state, so no trimming of the history can lose the plan.

use crate::{
    plan::{Approval, Comment, Plan, PlanStatus, Progress, Revision},
    session::Session,
    turn::Turn,
};

/// The paragraph for the system prompt; none while plan work is inactive.
#[must_use]
pub fn plan_paragraph(session: &Session, turn: &Turn) -> Option<String> {
    let plan = session.plan()?;
    let running = matches!(plan.status, PlanStatus::Executing(_, Progress::Running));
    Some(if running && turn.executes() == Some(plan.id) {
        "You are executing an approved plan; plan_get loads it. Do only what it says, then call \
         plan_report. New content needs a new approval."
            .into()
    } else {
        format!(
            "Plan work is active; the plan is {}. Load it with plan_get. When you have a new draft, call \
             plan_set_content with all of it. Files cannot be changed before a person approves it.",
            plan.status.word()
        )
    })
}

/// The message that opens an execution turn: the approved document, verbatim, and its terms.
#[must_use]
pub fn execution_opening(revision: &Revision, approval: &Approval, again: bool) -> String {
    let mut text = format!(
        "{} the approved plan, revision {} ({}).\n\n{}\n",
        if again { "Go on with" } else { "Execute" },
        revision.number,
        approval.revision_digest,
        revision.markdown,
    );
    let allowed = approval.envelope.in_words();
    if !allowed.is_empty() {
        text.push_str(&format!("\nThe approval allows you to {}.\n", allowed.join("; ")));
    }
    for note in &approval.notes {
        text.push_str(&format!("\nNote from the approver: {note}\n"));
    }
    text
}

/// The message that carries review comments to the model.
#[must_use]
pub fn changes_opening(number: u32, comments: &[Comment]) -> String {
    let mut text = format!(
        "Changes were requested on revision {number} of the plan. Address each comment, then save the whole plan again with plan_set_content.\n"
    );
    for comment in comments {
        match comment.line {
            Some(line) => text.push_str(&format!("- line {line}: {}\n", comment.text)),
            None => text.push_str(&format!("- {}\n", comment.text)),
        }
    }
    text
}

/// The plan in one line, for headers and lists.
#[must_use]
pub fn plan_line(plan: &Plan) -> String {
    match &plan.current {
        Some(head) => format!(
            "{} · rev {} · {} · {}",
            plan.status.word(),
            head.number,
            head.digest.short(),
            head.title
        ),
        None => format!("{} · nothing written yet", plan.status.word()),
    }
}
