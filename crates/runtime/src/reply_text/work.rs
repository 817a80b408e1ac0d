//! Sessions, goals, tasks, runs, schedules, memories and the notebook, in words.

use super::text::{Text, Tone};
use crate::{
    commands::reply::{LISTED_MAX, SessionLine},
    queries::autonomy::{RunRow, WorkView},
    queries::memory::MemoryView,
    queries::notebook::NotebookView,
    queries::waiting::waits_for,
};

/// The conversations of a person.
#[must_use]
pub fn sessions(rows: &[SessionLine]) -> Text {
    if rows.is_empty() {
        return Text::of(Tone::Plain, "no conversations yet");
    }
    let listed = rows.iter().take(LISTED_MAX).fold(Text::default(), |text, row| {
        let text = text.and(Tone::Plain, format!("{}  ", row.session)).and(Tone::Bold, &row.title);
        match row.waiting {
            Some(waiting) => text.and(Tone::Warn, format!("  {}", waits_for(waiting))),
            None if row.archived => text.and(Tone::Dim, "  put away"),
            None => text,
        }
        .line()
    });
    if rows.len() <= LISTED_MAX {
        return listed;
    }
    let more = format!("… the newest {LISTED_MAX} of more; the dashboard lists and searches all");
    listed.and(Tone::Dim, more).line()
}

/// Goals, tasks, runs and schedules.
#[must_use]
pub fn work(view: &WorkView) -> Text {
    if *view == WorkView::default() {
        let words =
            "no goals, tasks, runs or schedules; begin with /task add <what>, then /auto on";
        return Text::of(Tone::Plain, words);
    }
    let mut text = Text::default();
    for goal in &view.goals {
        let name = format!("g{}", goal.number);
        text = text.and(Tone::Bold, name).and(Tone::Plain, format!(" {}", goal.title)).line();
    }
    for task in &view.tasks {
        text = text
            .and(Tone::Bold, format!("t{}", task.number))
            .and(Tone::Plain, format!(" {}", task.title));
        if let Some(goal) = task.goal {
            text = text.and(Tone::Dim, format!(" (g{goal})"));
        }
        if let Some(word) = &task.ended {
            text = text.and(Tone::Bold, format!(" {word}"));
            text = text.and(Tone::Plain, format!(" {}", task.summary));
        }
        text = text.line();
    }
    for run in &view.runs {
        text = text.then(run_line(run));
    }
    for schedule in &view.schedules {
        let mut next = schedule.next.map_or_else(|| "never again".to_owned(), |at| at.to_string());
        if schedule.next.is_some() && schedule.jitter_micros > 0 {
            // Exact to a thousandth, so that nobody takes a beginning that was spread for a late one.
            let (seconds, rest) =
                (schedule.jitter_micros / 1_000_000, schedule.jitter_micros % 1_000_000);
            next = format!("{next}, begins {seconds}.{:03} s after it", rest / 1_000);
        }
        text = text
            .and(Tone::Bold, format!("s{}", schedule.number))
            .and(Tone::Plain, format!(" {} ", schedule.title))
            .and(Tone::Dim, format!("{} · next {next}", schedule.rhythm))
            .line();
    }
    text
}

fn run_line(run: &RunRow) -> Text {
    let on = match (run.goal, run.task) {
        (Some(goal), Some(task)) => format!("g{goal}, at t{task}"),
        (None, Some(task)) => format!("t{task}"),
        (_, None) => "its task has ended".into(),
    };
    let used: Vec<_> = run
        .used
        .iter()
        .map(|(meter, used, limit)| match meter.as_str() {
            "time" => format!("{}/{} min", used / 60_000_000, limit / 60_000_000),
            "money" => format!("${:.2}/{:.2}", *used as f64 / 1e6, *limit as f64 / 1e6),
            meter => format!("{used}/{limit} {meter}"),
        })
        .collect();
    let text = Text::default()
        .and(Tone::Bold, format!("r{}", run.number))
        .and(Tone::Plain, format!(" {} on {on} · ", run.kind));
    let text = match &run.waits {
        Some(why) => text.and(Tone::Bad, "waits:").and(Tone::Plain, format!(" {why}")),
        None => text.and(Tone::Good, "goes on"),
    };
    text.and(Tone::Dim, format!(" {}", used.join(" · "))).line()
}

/// What is remembered.
#[must_use]
pub fn memory(view: &MemoryView) -> Text {
    let chain: Vec<_> = view.chain.iter().map(|(scope, many)| format!("{scope}({many})")).collect();
    let head = format!("{} | blocked: {} foreign", chain.join(" → "), view.blocked);
    view.items.iter().fold(Text::of(Tone::Dim, head), |text, ranked| {
        let (item, id) = (&ranked.item, ranked.item.id.to_string());
        let why = if ranked.why.matched.is_empty() {
            String::new()
        } else {
            format!(" · {} · score {}", ranked.why.matched.join(" "), ranked.why.score)
        };
        let source = format!("{} · {}{why}", item.scope.kind().name(), &id[id.len() - 8..]);
        text.and(Tone::Plain, format!("{} ", item.text)).and(Tone::Dim, source).line()
    })
}

/// The notebook.
#[must_use]
pub fn notebook(view: &NotebookView) -> Text {
    let state = if view.on { "on" } else { "off; /notebook on turns it on" };
    let archive = match view.archive.len() {
        0 => String::new(),
        _ => format!(" · archive: {}", view.archive.join(", ")),
    };
    let mut text = Text::of(Tone::Dim, format!("notebook: {state}{archive}"));
    if view.plan_stands_in {
        let words = "plan work is active: the plan stands in for task_plan; /plan show reads it";
        text = text.then(Text::of(Tone::Dim, words));
    }
    for page in &view.pages {
        text = text.line().and(Tone::Bold, &page.name).and(Tone::Plain, format!("\n{}", page.text));
        text = text.line();
    }
    if view.on && view.pages.is_empty() {
        let words = "no pages yet; the agent begins them when the work is long enough";
        text = text.then(Text::of(Tone::Plain, words));
    }
    text
}
