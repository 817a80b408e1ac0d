//! The comments on a plan as threads: what was said, what became of it, and where what it speaks of stands now.

use std::{collections::BTreeMap, ops::ControlFlow};

use planwright_domain::{
    actor::PersonId,
    id::Seq,
    identity::SessionKey,
    moved::{Fate, Place, Places},
    plan::{
        event::PlanEvent,
        review::{Author, Comment, Reply, Said},
    },
    session::SessionEvent,
    time::Time,
};
use serde::{Deserialize, Serialize};

use crate::{event_pages::for_each_event, ports::journal::JournalError, queries::Queries};

/// A comment with what followed on it: a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentRow {
    /// The comment.
    pub comment: Comment,
    /// The revision it speaks of.
    pub revision: u32,
    /// Who made it.
    pub by: PersonId,
    /// When.
    pub at: Time,
    /// Whether its words were changed since.
    #[serde(default)]
    pub is_edited: bool,
    /// What followed, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<ReplyRow>,
    /// What the last request for changes said of it; none if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Comment>,
    /// The revision that answered it last; none while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_in: Option<u32>,
    /// Why it was declined; addressed, if it was answered and there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declined: Option<String>,
    /// Who settled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<PersonId>,
    /// Where the lines that it speaks of stand in the newest revision; none if it speaks of no line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The number of that revision.
    #[serde(default)]
    pub placed_in: u32,
    /// The revision on which it was asked for last.
    #[serde(default)]
    pub asked_on: u32,
}

/// What was said after the first comment of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyRow {
    /// Its number, if a person posted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Who; nobody, if the author of a revision did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<PersonId>,
    /// The newest revision then.
    pub revision: u32,
    /// When.
    pub at: Time,
    /// The words; none where it was addressed without any.
    pub text: String,
    /// Whether the words were changed since.
    #[serde(default)]
    pub is_edited: bool,
    /// Whether a request for changes took it along.
    #[serde(default)]
    pub is_asked: bool,
}

impl CommentRow {
    /// What became of it, as programs read it.
    #[must_use]
    pub fn status(&self) -> &'static str {
        let waits = |reply: &ReplyRow| reply.number.is_some() && !reply.is_asked;
        match (&self.resolved, &self.asked, self.answered_in, &self.declined) {
            (Some(_), ..) => "resolved",
            (None, None, ..) => "posted",
            // It was settled when a newer revision came, and opened again since: nobody is at it.
            (None, Some(_), None, _) if self.placed_in > self.asked_on => "posted",
            (None, Some(_), None, _) => "open",
            (None, Some(_), Some(_), _) if self.replies.iter().any(waits) => "posted",
            (None, Some(_), Some(_), None) => "addressed",
            (None, Some(_), Some(_), Some(_)) => "declined",
        }
    }
}

impl Queries {
    /// The comments on the active plan, oldest first, and what became of each.
    pub async fn comments(&self, identity: &SessionKey) -> Result<Vec<CommentRow>, JournalError> {
        let session = self.session(identity).await?;
        let Some(plan) = session.plan() else { return Ok(Vec::new()) };
        let Some(first) = plan.revisions.first() else { return Ok(Vec::new()) };
        let mut ledger = Ledger::default();
        for_each_event(&*self.journal, identity, Seq(first.0 - 1), |recorded| {
            if let SessionEvent::Plan(event) = recorded.event {
                ledger.enter(event, recorded.at);
            }
            Ok::<_, JournalError>(ControlFlow::Continue(()))
        })
        .await?;
        Ok(ledger.placed())
    }
}

/// The threads so far, and the texts that they speak of.
#[derive(Default)]
struct Ledger {
    rows: Vec<CommentRow>,
    /// The number of the newest revision.
    revision: u32,
    texts: BTreeMap<u32, String>,
}

impl Ledger {
    fn enter(&mut self, event: PlanEvent, at: Time) {
        match event {
            PlanEvent::RevisionAdded { revision, replies, author, .. } => {
                self.revision = revision.number;
                self.texts.insert(revision.number, revision.markdown);
                let by = match author {
                    Author::Model => None,
                    Author::Person(person) => Some(person.id),
                };
                for reply in replies {
                    self.answer(reply, by.as_ref(), at);
                }
            }
            PlanEvent::ChangesRequested { comments, by, .. } => {
                for comment in comments {
                    self.ask(comment, &by.id, at);
                }
            }
            PlanEvent::Discussed { said, by } => self.discuss(said, by.id, at),
            PlanEvent::PlanStarted { .. }
            | PlanEvent::DraftChanged { .. }
            | PlanEvent::RevisionShown { .. }
            | PlanEvent::BlocksSeen { .. }
            | PlanEvent::DecisionReminded { .. }
            | PlanEvent::DecisionExpired { .. }
            | PlanEvent::PlanApproved { .. }
            | PlanEvent::ExecutionStarted { .. }
            | PlanEvent::StepQueued { .. }
            | PlanEvent::StepBegun { .. }
            | PlanEvent::StepEnded { .. }
            | PlanEvent::ExecutionPaused { .. }
            | PlanEvent::PlanFailed { .. }
            | PlanEvent::PlanEnded { .. } => {}
        }
    }

    fn row(&mut self, number: u32) -> Option<&mut CommentRow> {
        self.rows.iter_mut().find(|row| row.comment.number == number)
    }

    fn begin(&mut self, comment: Comment, by: PersonId, at: Time) {
        self.rows.push(CommentRow {
            comment,
            revision: self.revision,
            by,
            at,
            is_edited: false,
            replies: Vec::new(),
            asked: None,
            answered_in: None,
            declined: None,
            resolved: None,
            place: None,
            placed_in: 0,
            asked_on: 0,
        });
    }

    fn ask(&mut self, comment: Comment, by: &PersonId, at: Time) {
        if self.row(comment.number).is_none() {
            self.begin(comment.clone(), by.clone(), at);
        }
        let revision = self.revision;
        if let Some(row) = self.row(comment.number) {
            row.asked_on = revision;
            (row.answered_in, row.declined, row.asked) = (None, None, Some(comment));
            row.replies.iter_mut().for_each(|reply| reply.is_asked = true);
        }
    }

    fn answer(&mut self, reply: Reply, by: Option<&PersonId>, at: Time) {
        let revision = self.revision;
        let Some(row) = self.row(reply.comment) else { return };
        row.answered_in = Some(revision);
        let text = [reply.declined.clone(), reply.answer].into_iter().flatten().collect::<Vec<_>>();
        row.declined = reply.declined;
        row.replies.push(ReplyRow {
            number: None,
            by: by.cloned(),
            revision,
            at,
            text: text.join("\n"),
            is_edited: false,
            is_asked: true,
        });
    }

    fn discuss(&mut self, said: Said, by: PersonId, at: Time) {
        let revision = self.revision;
        match said {
            Said::Comment { comment } => match comment.reply_to {
                Some(thread) => {
                    let Some(row) = self.row(thread) else { return };
                    let (number, by) = (Some(comment.number), Some(by));
                    let (is_edited, is_asked) = (false, false);
                    let text = comment.text;
                    row.resolved = None;
                    row.replies.push(ReplyRow {
                        number,
                        by,
                        revision,
                        at,
                        text,
                        is_edited,
                        is_asked,
                    });
                }
                None => self.begin(comment, by, at),
            },
            Said::Edit { number, text } => {
                if let Some(row) = self.row(number) {
                    (row.comment.text, row.is_edited) = (text, true);
                    return;
                }
                let mut replies = self.rows.iter_mut().flat_map(|row| &mut row.replies);
                if let Some(reply) = replies.find(|reply| reply.number == Some(number)) {
                    (reply.text, reply.is_edited) = (text, true);
                }
            }
            Said::Resolve { number } => {
                self.row(number).into_iter().for_each(|row| row.resolved = Some(by.clone()));
            }
            Said::Reopen { number } => {
                self.row(number).into_iter().for_each(|row| row.resolved = None);
            }
        }
    }

    /// The threads, each with where what it speaks of stands now.
    fn placed(mut self) -> Vec<CommentRow> {
        let Some(newest) = self.texts.get(&self.revision) else { return self.rows };
        let mut places: BTreeMap<u32, Places> = BTreeMap::new();
        for row in &mut self.rows {
            row.placed_in = self.revision;
            let Some(text) = self.texts.get(&row.revision) else { continue };
            let comment = &row.comment;
            let line = comment.line.or_else(|| line_of_step(text, comment.step?));
            let Some(first) = line else { continue };
            let last = comment.last_line.unwrap_or(first);
            row.place = Some(if row.revision == self.revision {
                Place { first, last, fate: Fate::Same }
            } else {
                let places = places.entry(row.revision);
                places.or_insert_with(|| Places::new(text, newest)).of(first, last)
            });
        }
        self.rows
    }
}

/// The line in which a step of a plan begins.
fn line_of_step(markdown: &str, step: u32) -> Option<u32> {
    let begin = format!("{step}. ");
    let at = markdown.lines().position(|line| line.starts_with(&begin))?;
    u32::try_from(at + 1).ok()
}
