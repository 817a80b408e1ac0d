//! A plan in words: the card, the question, the revision, the comments, the diff.

use planwright_domain::{
    diff::{Change, PartChange},
    outcome::PlanCard,
};

use super::text::{Text, Tone};
use crate::queries::{
    comments::{CommentRow, ReplyRow},
    view::{AskView, DiffView, RevisionView, StatusView},
};

/// How many unchanged rows a diff shows around a change.
const AROUND: usize = 2;

/// Lines in a frame.
struct Frame {
    tone: Tone,
    text: Text,
}

impl Frame {
    fn new(tone: Tone, head: Text) -> Self {
        Self {
            tone, text: Text::default().and(tone, "╭").and(Tone::Plain, " ").then(head).line()
        }
    }

    fn row(self, row: Text) -> Self {
        let text = self.text.and(self.tone, "│").and(Tone::Plain, " ").then(row).line();
        Self { text, ..self }
    }

    fn words(self, tone: Tone, words: impl Into<String>) -> Self {
        self.row(Text::default().and(tone, words))
    }

    fn end(self, quick: &[String]) -> Text {
        self.text.and(self.tone, "╰").and(Tone::Dim, format!(" {}", quick.join(" · "))).line()
    }
}

/// A call that waits for permission, in full.
#[must_use]
pub fn ask(ask: &AskView, quick: &[String]) -> Text {
    let head = Text::default()
        .and(Tone::Bold, format!("May {} run?", ask.tool))
        .and(Tone::Dim, format!(" ({}) {}", ask.effect, ask.digest.short()));
    let mut frame = Frame::new(Tone::Warn, head).words(Tone::Plain, &ask.why);
    for line in ask.arguments.lines() {
        frame = frame.words(Tone::Plain, format!("  {line}"));
    }
    if let Some(pattern) = &ask.pattern {
        frame = frame.words(Tone::Dim, format!("until the plan ends: {pattern}"));
    }
    frame.words(Tone::Dim, format!("denied by itself at {}", ask.expires)).end(quick)
}

/// A plan, in a frame.
#[must_use]
pub fn card(card: &PlanCard, quick: &[String]) -> Text {
    let status =
        card.basis.map_or_else(|| card.status.to_lowercase(), |basis| basis.status().into());
    let mut head = format!("Plan {status}");
    if let (Some(revision), Some(digest)) = (card.revision, &card.digest) {
        head.push_str(&format!(" · rev {revision} · {}", digest.short()));
    }
    let mut frame = Frame::new(Tone::Calm, Text::default().and(Tone::Bold, head));
    if !card.title.is_empty() {
        frame = frame.words(Tone::Plain, &card.title);
    }
    if let Some(claimed) = &card.claimed {
        frame = frame.words(Tone::Plain, claimed);
    }
    if let Some(waits) = &card.waits {
        frame = frame.words(Tone::Warn, waits);
    }
    if let Some(outside) = &card.outside {
        frame = frame.words(Tone::Warn, outside);
    }
    for step in &card.steps {
        let came_out = step.came_out.as_deref().unwrap_or("·");
        let words = format!("  {}. {} ", step.number, step.words);
        frame = frame.row(Text::default().and(Tone::Plain, words).and(Tone::Dim, came_out));
    }
    if let Some(drafted) = card.drafted {
        frame = frame.words(Tone::Dim, format!("A draft with {drafted} steps is open."));
    }
    if !card.allows.is_empty() && card.observed.is_empty() {
        frame = frame.words(Tone::Dim, "Approval allows the agent to:");
        for words in &card.allows {
            frame = frame.words(Tone::Plain, format!("  {words}"));
        }
    }
    if !card.observed.is_empty() {
        frame = frame.words(Tone::Dim, "Observed:");
        for words in &card.observed {
            frame = frame.words(Tone::Plain, format!("  {words}"));
        }
    } else if card.basis.is_some() {
        frame = frame.words(Tone::Warn, "Observed: no call ran.");
    }
    if !card.gaps.is_empty() {
        frame = frame.words(Tone::Warn, "No call was reported for:");
        for words in &card.gaps {
            frame = frame.words(Tone::Plain, format!("  {words}"));
        }
    }
    frame.end(quick)
}

/// Where a session stands.
#[must_use]
pub fn status(view: &StatusView) -> Text {
    let text = Text::of(Tone::Dim, view.session.to_string());
    let mut text = match &view.plan {
        Some(plan) if view.plan_active => text.then(card(plan, &[])),
        Some(plan) => text.then(Text::of(
            Tone::Plain,
            format!("no plan work; the last plan: {} ({})", plan.title, plan.status),
        )),
        None => text.then(Text::of(Tone::Plain, "no plan work; /plan on begins it")),
    };
    if view.turn_open {
        text = text.then(Text::of(Tone::Plain, "a turn is under way"));
    }
    if view.queued > 0 {
        text = text.then(Text::of(Tone::Plain, format!("{} waiting", view.queued)));
    }
    if let Some(waiting) = &view.ask {
        text = text.then(ask(waiting, &view.quick_commands));
    }
    for doubt in &view.doubts {
        let words = format!(
            " {} {}\n  /plan settle {} happened|not",
            doubt.tool, doubt.arguments, doubt.call
        );
        text = text.and(Tone::Warn, "⚠ in doubt:").and(Tone::Plain, words).line();
    }
    let (input, output) = (view.usage.input, view.usage.output);
    text.then(Text::of(Tone::Dim, format!("tokens so far: {input} in, {output} out")))
}

/// A revision, in full: nothing is cut.
#[must_use]
pub fn revision(view: &RevisionView) -> Text {
    let (revision, digest) = (&view.revision, view.digest);
    let mut text = Text::default()
        .and(Tone::Bold, &revision.title)
        .and(Tone::Dim, format!("  rev {} · {digest}", revision.number))
        .line();
    // Only the line feed ends a line: a carriage return is something to be seen.
    for (at, line) in revision.markdown.split_terminator('\n').enumerate() {
        text = text
            .and(Tone::Dim, format!("{:>4}", at + 1))
            .and(Tone::Plain, format!("  {line}"))
            .line();
    }
    if let Some(outside) = &view.outside {
        text = text.then(Text::of(Tone::Warn, format!("{outside}\n")));
    }
    if view.current && !view.allows.is_empty() {
        let words = format!("Approval allows the agent to: {}", view.allows.join("; "));
        text = text.then(Text::of(Tone::Dim, words));
    }
    text
}

/// A comment, and what became of it.
#[must_use]
pub fn comment(row: &CommentRow) -> Text {
    let (tone, mark) = match row.status() {
        "open" | "posted" => (Tone::Warn, "○"),
        "declined" => (Tone::Bad, "✗"),
        // That it was addressed is the word of whoever wrote the revision.
        _ => (Tone::Plain, "·"),
    };
    let became = match (&row.resolved, row.answered_in, &row.declined) {
        (Some(by), ..) => format!("resolved by {}", by.0),
        (None, Some(revision), None) => format!("addressed in rev {revision}, says its author"),
        (None, Some(revision), Some(why)) => format!("declined in rev {revision}: {why}"),
        (None, None, _) if row.asked.is_none() => "posted; the next request takes it along".into(),
        (None, None, _) => "open".to_owned(),
    };
    let (number, place) = (row.comment.number, row.comment.place());
    let now = row.place.as_ref().filter(|place| Some(place.first) != row.comment.line);
    let now = now.map_or_else(String::new, |place| format!(", now {place}"));
    let said = |reply: &ReplyRow| {
        let by = reply.by.as_ref().map_or("the author", |by| &by.0);
        let is_repeated = row.declined.as_ref() == Some(&reply.text) || reply.text.is_empty();
        (!is_repeated).then(|| format!("\n     {by}: {}", reply.text))
    };
    let replies: String = row.replies.iter().filter_map(said).collect();
    Text::default()
        .and(tone, mark)
        .and(Tone::Plain, format!(" {number}. {} ", row.comment.text))
        .and(Tone::Dim, format!("(rev {}, {place}{now}, by {})", row.revision, row.by.0))
        .and(Tone::Plain, format!("{replies}\n     {became}"))
        .line()
}

/// What changed between two revisions.
#[must_use]
pub fn diff(view: &DiffView) -> Text {
    let changed: Vec<_> = view.rows.iter().map(|row| row.change != Change::Same).collect();
    let near = |at: usize| {
        let (from, to) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(changed.len()));
        changed[from..to].contains(&true)
    };
    let count = |change| view.rows.iter().filter(|row| row.change == change).count();
    let (added, removed) = (count(Change::Added), count(Change::Removed));
    let mut text = Text::default()
        .and(Tone::Bold, format!("rev {} → {}", view.from, view.to))
        .and(Tone::Plain, format!("  +{added} −{removed} lines "))
        .and(Tone::Dim, format!("since {}", view.since))
        .line();
    for part in &view.parts {
        let (tone, mark) = match part.change {
            PartChange::Same => continue,
            PartChange::Added => (Tone::Good, "  + new    "),
            PartChange::Removed => (Tone::Bad, "  - gone   "),
            PartChange::Changed => (Tone::Warn, "  ~ changed"),
        };
        text = text.and(tone, mark).and(Tone::Plain, format!(" {}", part.title)).line();
    }
    let hidden_rows = |hidden: usize| Text::of(Tone::Dim, format!("  ({hidden} unchanged)"));
    let mut hidden = 0;
    for (at, row) in view.rows.iter().enumerate() {
        if !near(at) {
            hidden += 1;
            continue;
        }
        if hidden > 0 {
            text = text.then(hidden_rows(hidden));
            hidden = 0;
        }
        text = text.then(match row.change {
            Change::Same => Text::of(Tone::Plain, format!("  {}", row.text)),
            Change::Added => Text::of(Tone::Good, format!("+ {}", row.text)),
            Change::Removed => Text::of(Tone::Bad, format!("- {}", row.text)),
        });
    }
    if hidden > 0 {
        text = text.then(hidden_rows(hidden));
    }
    text
}
