//! What a turn opens with, where that is recorded: the words are decided with the event that holds them.

use crate::model::plan::review::Comment;

/// The message that opens the first turn of a task.
#[must_use]
pub fn task_opening(goal: Option<&str>, task: &str, before: &[String]) -> String {
    let mut text = goal.map(|goal| format!("The goal: {goal}\n")).unwrap_or_default();
    for line in before {
        text.push_str(&format!("Done for it so far: {line}\n"));
    }
    text.push_str(&format!("Your task: {task}\n"));
    text
}

/// The message that opens one more turn of a task.
#[must_use]
pub fn task_again(task: &str) -> String {
    format!("Go on with your task: {task}\n")
}

/// The message that carries review comments to the model.
#[must_use]
pub fn changes_opening(number: u32, comments: &[Comment]) -> String {
    let mut text = format!(
        "Changes were requested on revision {number} of the plan. Save it again, with a reply to each comment in \
         replies: {{\"comment\": 1}} if you addressed it, {{\"comment\": 1, \"declined\": \"why\"}} if not, with \"answer\": \"…\" where it asks something.\n"
    );
    for comment in comments {
        let Comment { number, text: words, .. } = comment;
        text.push_str(&format!("- comment {number}, on {}: {words}\n", comment.place()));
    }
    text
}
