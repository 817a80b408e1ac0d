//! The ledger of comments: each has a number, and a newer revision answers every one that is open.

use crate::{
    model::{
        limits,
        plan::{
            Plan, RevisionHead,
            refusal::PlanRefusal,
            review::{Comment, Reply},
        },
    },
    rules::plan::bounds::{bounded, numbers},
};

/// The comments with their numbers, if they say something about what is there.
pub(crate) fn numbered(
    plan: &Plan,
    head: &RevisionHead,
    comments: &[Comment],
) -> Result<Vec<Comment>, PlanRefusal> {
    if comments.iter().all(|comment| comment.text.trim().is_empty()) {
        return Err(PlanRefusal::NoComments);
    }
    let (size, limit) = (comments.len(), limits::COMMENTS_MAX);
    if size > limit {
        return Err(PlanRefusal::TooLong { what: "the list of comments".into(), size, limit });
    }
    (plan.commented + 1..)
        .zip(comments)
        .map(|(number, comment)| {
            bounded("a comment", &comment.text, limits::COMMENT_BYTES_MAX)?;
            if let Some(line) = comment.line.filter(|line| *line == 0 || *line > head.lines) {
                return Err(PlanRefusal::NoSuchLine { line, lines: head.lines });
            }
            if let Some(step) = comment.step
                && !head.steps.iter().any(|there| there.number == step)
            {
                let open = numbers(head.steps.iter());
                return Err(PlanRefusal::NoSuchStep { step, open });
            }
            Ok(Comment { number, ..comment.clone() })
        })
        .collect()
}

/// The replies, if every open comment has one.
pub(crate) fn answered(plan: &Plan, replies: Vec<Reply>) -> Result<Vec<Reply>, PlanRefusal> {
    let unknown = replies.iter().find(|reply| !plan.comments_open.contains(&reply.comment));
    if let Some(reply) = unknown {
        return Err(PlanRefusal::NoSuchComment { comment: reply.comment });
    }
    for reason in replies.iter().filter_map(|reply| reply.declined.as_ref()) {
        if reason.trim().is_empty() {
            return Err(PlanRefusal::EmptyText { what: "the reason to decline a comment".into() });
        }
        bounded("a reason", reason, limits::COMMENT_BYTES_MAX)?;
    }
    let has_reply = |number: &&u32| replies.iter().any(|reply| reply.comment == **number);
    let left: Vec<_> = plan.comments_open.iter().filter(|number| !has_reply(number)).collect();
    if left.is_empty() {
        return Ok(replies);
    }
    let left = left.into_iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    Err(PlanRefusal::CommentsUnanswered { left })
}
