//! A plan as it is drawn: the card, the question, the revision, the ledger, the diff.

use planwright_domain::{
    diff::{Change, PartChange},
    outcome::PlanCard,
};
use planwright_runtime::view::{AskView, CommentRow, DiffView, RevisionView, StatusView};

use super::{BAD, BOLD, CALM, DIM, GOOD, Terminal, WARN, visible::visible};

/// How many unchanged rows a diff shows around a change.
const AROUND: usize = 2;

impl Terminal {
    /// A call that waits for permission, in full, in a box.
    pub(super) fn ask(&mut self, ask: &AskView, quick: &[String]) {
        let mut text = format!(
            "{WARN}╭{WARN:#} {BOLD}May {} run?{BOLD:#} {DIM}({}) {}{DIM:#}\n",
            ask.tool,
            ask.effect,
            ask.digest.short()
        );
        let mut row = |words: &str| text.push_str(&format!("{WARN}│{WARN:#} {words}\n"));
        row(&visible(&ask.why));
        visible(&ask.arguments).lines().for_each(|line| row(&format!("  {line}")));
        if let Some(pattern) = &ask.pattern {
            row(&format!("{DIM}until the plan ends: {}{DIM:#}", visible(pattern)));
        }
        row(&format!("{DIM}denied by itself at {}{DIM:#}", ask.expires));
        text.push_str(&format!("{WARN}╰{WARN:#} {DIM}{}{DIM:#}\n", quick.join(" · ")));
        self.raw(&text);
    }

    /// A plan, in a box.
    pub fn card(&mut self, card: &PlanCard, quick: &[String]) {
        let mut head = format!("Plan {}", card.status.to_lowercase());
        if let (Some(revision), Some(digest)) = (card.revision, &card.digest) {
            head.push_str(&format!(" · rev {revision} · {}", digest.short()));
        }
        let mut text = format!("{CALM}╭{CALM:#} {BOLD}{head}{BOLD:#}\n");
        let mut row = |words: &str| text.push_str(&format!("{CALM}│{CALM:#} {words}\n"));
        if !card.title.is_empty() {
            row(&visible(&card.title));
        }
        if let Some(word) = &card.word {
            row(&visible(word));
        }
        if let Some(waits) = &card.waits {
            row(&format!("{WARN}{}{WARN:#}", visible(waits)));
        }
        for step in &card.steps {
            let came_out = step.came_out.as_deref().unwrap_or("·");
            row(&format!("  {}. {} {DIM}{came_out}{DIM:#}", step.number, visible(&step.words)));
        }
        if let Some(drafted) = card.drafted {
            row(&format!("{DIM}A draft with {drafted} steps is open.{DIM:#}"));
        }
        if !card.allows.is_empty() && card.done.is_empty() {
            row(&format!("{DIM}Approval allows the agent to:{DIM:#}"));
            card.allows.iter().for_each(|words| row(&format!("  {words}")));
        }
        if !card.done.is_empty() {
            row(&format!("{DIM}Done to the world:{DIM:#}"));
            card.done
                .iter()
                .for_each(|words| row(&format!("  {GOOD}✓{GOOD:#} {}", visible(words))));
        }
        text.push_str(&format!("{CALM}╰{CALM:#} {DIM}{}{DIM:#}\n", quick.join(" · ")));
        self.raw(&text);
    }

    pub(super) fn status(&mut self, view: &StatusView) {
        self.raw(&format!("{DIM}{}{DIM:#}\n", view.session));
        match &view.plan {
            Some(card) if view.plan_active => self.card(card, &[]),
            Some(card) => self.raw(&format!(
                "no plan work; the last plan: {} ({})\n",
                visible(&card.title),
                card.status
            )),
            None => self.raw("no plan work; /plan on begins it\n"),
        }
        if view.turn_open {
            self.raw("a turn is under way\n");
        }
        if view.queued > 0 {
            self.raw(&format!("{} waiting\n", view.queued));
        }
        if let Some(ask) = &view.ask {
            self.ask(ask, &view.quick_commands);
        }
        for doubt in &view.doubts {
            self.raw(&format!(
                "{WARN}⚠ in doubt:{WARN:#} {} {}\n  /plan settle {} happened|not\n",
                doubt.tool,
                visible(&doubt.arguments),
                doubt.call
            ));
        }
        self.raw(&format!(
            "{DIM}tokens so far: {} in, {} out{DIM:#}\n",
            view.usage.input, view.usage.output
        ));
    }

    /// A revision, in full: nothing is cut, and what cannot be seen is made visible.
    pub fn revision(&mut self, view: &RevisionView) {
        let (revision, digest) = (&view.revision, view.digest);
        let mut text = format!(
            "{BOLD}{}{BOLD:#}  {DIM}rev {} · {digest}{DIM:#}\n",
            visible(&revision.title),
            revision.number
        );
        // Only the line feed ends a line: a carriage return is something to be seen.
        for (at, line) in revision.markdown.split_terminator('\n').enumerate() {
            text.push_str(&format!("{DIM}{:>4}{DIM:#}  {}\n", at + 1, visible(line)));
        }
        if view.current && !view.allows.is_empty() {
            text.push_str(&format!(
                "{DIM}Approval allows the agent to: {}{DIM:#}\n",
                view.allows.join("; ")
            ));
        }
        self.raw(&text);
    }

    /// One line of the ledger.
    pub(super) fn comment(&mut self, row: &CommentRow) {
        let (style, mark) = match row.status() {
            "open" => (WARN, "○"),
            "declined" => (BAD, "✗"),
            _ => (GOOD, "✓"),
        };
        let became = match (row.answered_in, &row.declined) {
            (None, _) => "open".to_owned(),
            (Some(revision), None) => format!("addressed in rev {revision}"),
            (Some(revision), Some(why)) => format!("declined in rev {revision}: {}", visible(why)),
        };
        let (number, place) = (row.comment.number, row.comment.place());
        self.raw(&format!(
            "{style}{mark}{style:#} {number}. {} {DIM}(rev {}, {place}, by {}){DIM:#}\n     {became}\n",
            visible(&row.comment.text),
            row.revision,
            row.by.0
        ));
    }

    pub(super) fn diff(&mut self, view: &DiffView) {
        let changed: Vec<_> = view.rows.iter().map(|row| row.change != Change::Same).collect();
        let near = |at: usize| {
            let (from, to) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(changed.len()));
            changed[from..to].contains(&true)
        };
        let count = |change| view.rows.iter().filter(|row| row.change == change).count();
        let mut text = format!(
            "{BOLD}rev {} → {}{BOLD:#}  +{} −{} lines {DIM}since {}{DIM:#}\n",
            view.from,
            view.to,
            count(Change::Added),
            count(Change::Removed),
            view.since
        );
        for part in &view.parts {
            let (style, mark) = match part.change {
                PartChange::Same => continue,
                PartChange::Added => (GOOD, "+ new    "),
                PartChange::Removed => (BAD, "- gone   "),
                PartChange::Changed => (WARN, "~ changed"),
            };
            text.push_str(&format!("  {style}{mark}{style:#} {}\n", visible(&part.title)));
        }
        let mut hidden = 0;
        for (at, row) in view.rows.iter().enumerate() {
            if !near(at) {
                hidden += 1;
                continue;
            }
            if hidden > 0 {
                text.push_str(&format!("{DIM}  ({hidden} unchanged){DIM:#}\n"));
                hidden = 0;
            }
            let words = visible(&row.text);
            match row.change {
                Change::Same => text.push_str(&format!("  {words}\n")),
                Change::Added => text.push_str(&format!("{GOOD}+ {words}{GOOD:#}\n")),
                Change::Removed => text.push_str(&format!("{BAD}- {words}{BAD:#}\n")),
            }
        }
        if hidden > 0 {
            text.push_str(&format!("{DIM}  ({hidden} unchanged){DIM:#}\n"));
        }
        self.raw(&text);
    }
}
