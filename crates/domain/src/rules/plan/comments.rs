//! The ledger of comments: each has a number, and a newer revision answers every one that is open.
//! What is only posted waits for the next request, which takes it along.

use crate::{
    model::{
        actor::{Person, PersonId},
        digest::Digest,
        limits,
        plan::{
            Plan, RevisionHead,
            event::PlanEvent,
            refusal::PlanRefusal,
            review::{Comment, Posted, Reply, Said},
        },
    },
    rules::plan::bounds::{bounded, numbers, stale, within},
};

/// What the author is told of a comment that they know, and did not answer.
const OPENED_AGAIN: &str = "(opened again: it was asked for before, and has no answer yet)";

/// What a request for changes asks: the posted comments, a thread as one, and the new ones with their numbers, if they say
/// something about what is there.
pub(crate) fn asked(
    plan: &Plan,
    head: &RevisionHead,
    comments: &[Comment],
) -> Result<Vec<Comment>, PlanRefusal> {
    let mut asked = threads(plan, head);
    // One that was settled while it was asked for, and opened again since: its author has the words.
    let again = plan.comments_open.difference(&plan.resolved);
    let again = again.filter(|number| asked.iter().all(|comment| comment.number != **number));
    let again: Vec<_> = again
        .map(|number| Comment { number: *number, ..Comment::on_the_whole(OPENED_AGAIN) })
        .collect();
    asked.extend(again);
    if asked.is_empty() && comments.iter().all(|comment| comment.text.trim().is_empty()) {
        return Err(PlanRefusal::NoComments);
    }
    within("the list of comments", comments.len(), limits::COMMENTS_MAX)?;
    for (number, comment) in (plan.commented + 1..).zip(comments) {
        fits(head, comment)?;
        asked.push(Comment { number, reply_to: None, ..comment.clone() });
    }
    Ok(asked)
}

/// Whether a comment speaks of what is there, at no greater length than it may.
fn fits(head: &RevisionHead, comment: &Comment) -> Result<(), PlanRefusal> {
    bounded("a comment", &comment.text, limits::COMMENT_BYTES_MAX)?;
    let first = comment.line.unwrap_or(1);
    let is_outside = |line: &u32| *line == 0 || *line > head.lines;
    let is_before = |last: &u32| is_outside(last) || *last < first || comment.line.is_none();
    let wrong = comment.line.filter(is_outside).or(comment.last_line.filter(is_before));
    if let Some(line) = wrong {
        return Err(PlanRefusal::NoSuchLine { line, lines: head.lines });
    }
    if let Some(step) = comment.step
        && !head.steps.iter().any(|there| there.number == step)
    {
        let open = numbers(head.steps.iter());
        return Err(PlanRefusal::NoSuchStep { step, open });
    }
    Ok(())
}

/// What was posted and is not settled, a comment for each thread: the words of its first comment, then who added what.
/// Lines of an older revision are named as such.
fn threads(plan: &Plan, head: &RevisionHead) -> Vec<Comment> {
    let mut threads: Vec<Comment> = Vec::new();
    for Posted { comment, revision, by } in plan.posted.values() {
        let number = comment.thread();
        if plan.resolved.contains(&number) {
            continue;
        }
        if let Some(thread) = threads.iter_mut().find(|thread| thread.number == number) {
            thread.text.push_str(&format!("\n  {}: {}", by.0, comment.text));
        } else if *revision == head.number || comment.line.is_none() {
            threads.push(Comment { number, ..comment.clone() });
        } else {
            let text = format!("(on {} of revision {revision}) {}", comment.place(), comment.text);
            let (line, last_line) = (None, None);
            threads.push(Comment { number, line, last_line, text, ..comment.clone() });
        }
    }
    threads
}

/// What somebody says in the discussion of the current revision.
pub(crate) fn discuss(
    plan: &Plan,
    base: Option<Digest>,
    said: &Said,
    by: &Person,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let said = match said {
        Said::Comment { comment } => Said::Comment { comment: posted(plan, base, comment)? },
        Said::Edit { number, text } => {
            let before = own(plan, *number, &by.id)?;
            said_in_words(text)?;
            let more = text.len().saturating_sub(before);
            has_room(plan, more)?;
            keeps_room(plan, more)?;
            Said::Edit { number: *number, text: text.clone() }
        }
        Said::Resolve { number } | Said::Reopen { number } => {
            begins(plan, *number)?;
            if plan.resolved.contains(number) == matches!(said, Said::Resolve { .. }) {
                return Ok(Vec::new());
            }
            if matches!(said, Said::Reopen { .. }) {
                let of_thread = plan.posted.values().map(|posted| &posted.comment);
                let of_thread = of_thread.filter(|comment| comment.thread() == *number);
                has_room(plan, of_thread.map(|comment| comment.text.len()).sum())?;
            }
            said.clone()
        }
    };
    Ok(vec![PlanEvent::Discussed { said, by: by.clone() }])
}

/// A comment, with its number, if it can be posted on what was read.
fn posted(plan: &Plan, base: Option<Digest>, comment: &Comment) -> Result<Comment, PlanRefusal> {
    let Some(head) = &plan.current else {
        let status = plan.status.label().into();
        return Err(PlanRefusal::NothingToDecide { status });
    };
    said_in_words(&comment.text)?;
    fits(head, comment)?;
    match (comment.reply_to, base) {
        (Some(thread), _) => begins(plan, thread)?,
        (None, Some(base)) if base == head.digest => {}
        (None, base) => return Err(stale(base, head)),
    }
    has_room(plan, comment.text.len())?;
    keeps_room(plan, comment.text.len())?;
    for (size, limit) in [
        (unsettled(plan).count() + 1, limits::COMMENTS_MAX),
        (plan.commented as usize + 1, limits::COMMENTS_OF_PLAN_MAX),
    ] {
        within("the list of comments", size, limit)?;
    }
    Ok(Comment { number: plan.commented + 1, ..comment.clone() })
}

/// What the next request takes along.
fn unsettled(plan: &Plan) -> impl Iterator<Item = &Comment> {
    let posted = plan.posted.values().map(|posted| &posted.comment);
    posted.filter(|comment| !plan.resolved.contains(&comment.thread()))
}

/// Whether so many bytes more may wait for the next request.
fn has_room(plan: &Plan, more: usize) -> Result<(), PlanRefusal> {
    let waiting: usize = unsettled(plan).map(|comment| comment.text.len()).sum();
    within("what was posted and not asked for yet", waiting + more, limits::POSTED_BYTES_MAX)
}

/// Whether so many bytes more may be kept, with what is settled: that is no more when a thread is opened again.
fn keeps_room(plan: &Plan, more: usize) -> Result<(), PlanRefusal> {
    let all: usize = plan.posted.values().map(|posted| posted.comment.text.len()).sum();
    within(
        "what was posted, with what is settled",
        all + more,
        limits::POSTED_AND_SETTLED_BYTES_MAX,
    )
}

fn said_in_words(text: &str) -> Result<(), PlanRefusal> {
    if text.trim().is_empty() {
        return Err(PlanRefusal::EmptyText { what: "the comment".into() });
    }
    bounded("a comment", text, limits::COMMENT_BYTES_MAX)
}

/// Whether there is a comment of this number.
fn known(plan: &Plan, number: u32) -> Result<(), PlanRefusal> {
    if number == 0 || number > plan.commented {
        return Err(PlanRefusal::NoSuchComment { comment: number });
    }
    Ok(())
}

/// Whether a thread begins with the comment of this number.
fn begins(plan: &Plan, number: u32) -> Result<(), PlanRefusal> {
    known(plan, number)?;
    if plan.replies.contains(&number) {
        return Err(PlanRefusal::NoSuchComment { comment: number });
    }
    Ok(())
}

/// How many bytes a comment has, if this person may still change its words.
fn own(plan: &Plan, number: u32, by: &PersonId) -> Result<usize, PlanRefusal> {
    known(plan, number)?;
    let why = match plan.posted.get(&number) {
        Some(posted) if posted.by == *by => return Ok(posted.comment.text.len()),
        Some(posted) => format!("is by {}", posted.by.0),
        None => "was sent to the author already".to_owned(),
    };
    Err(PlanRefusal::CommentNotYours { comment: number, why })
}

/// Enters what was said into the plan.
pub(crate) fn enter(plan: &mut Plan, said: &Said, by: &PersonId) {
    match said {
        Said::Comment { comment } => {
            plan.commented = plan.commented.max(comment.number);
            // Whoever replies does not hold it for settled.
            plan.resolved.remove(&comment.thread());
            if comment.reply_to.is_some() {
                plan.replies.insert(comment.number);
            }
            let revision = plan.current.as_ref().map_or(0, |head| head.number);
            let posted = Posted { comment: comment.clone(), revision, by: by.clone() };
            plan.posted.insert(comment.number, posted);
        }
        Said::Edit { number, text } => {
            if let Some(posted) = plan.posted.get_mut(number) {
                posted.comment.text.clone_from(text);
            }
        }
        // Nothing that was said goes: whoever opens the thread again finds it as it was.
        Said::Resolve { number } => drop(plan.resolved.insert(*number)),
        Said::Reopen { number } => drop(plan.resolved.remove(number)),
    }
}

/// The replies, if every open comment has one.
pub(crate) fn answered(plan: &Plan, replies: Vec<Reply>) -> Result<Vec<Reply>, PlanRefusal> {
    let unknown = replies.iter().find(|reply| !plan.comments_open.contains(&reply.comment));
    if let Some(reply) = unknown {
        return Err(PlanRefusal::NoSuchComment { comment: reply.comment });
    }
    for reply in &replies {
        for (what, words) in [
            ("the reason to decline a comment", &reply.declined),
            ("the answer to a comment", &reply.answer),
        ] {
            let Some(words) = words else { continue };
            if words.trim().is_empty() {
                return Err(PlanRefusal::EmptyText { what: what.into() });
            }
            bounded(what, words, limits::COMMENT_BYTES_MAX)?;
        }
    }
    let has_reply = |number: &&u32| replies.iter().any(|reply| reply.comment == **number);
    // What a person settled needs no reply, and may have one.
    let open = plan.comments_open.difference(&plan.resolved);
    let left: Vec<_> = open.filter(|number| !has_reply(number)).collect();
    if left.is_empty() {
        return Ok(replies);
    }
    let left = left.into_iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    Err(PlanRefusal::CommentsUnanswered { left })
}
