//! Goals, tasks, runs, schedules and memories, as a terminal shows them.

use planwright_domain::{autonomy::event::AutoEvent, memory::MemoryEvent, next::Waiting};
use planwright_runtime::{
    inbound::SessionLine,
    memories::MemoryView,
    notebook::NotebookView,
    work::{RunRow, WorkView},
};

use super::{BAD, BOLD, CALM, DIM, GOOD, Terminal, WARN, visible::visible};

impl Terminal {
    /// Something that happened to goals, tasks, runs or schedules.
    pub(super) fn auto_event(&mut self, event: &AutoEvent) {
        let text = match event {
            AutoEvent::RunStarted { context, .. } => {
                format!("{CALM}▶ a run begins{CALM:#} {DIM}{}{DIM:#}\n", context.kind.name())
            }
            AutoEvent::TaskEnded { end, .. } => {
                format!("{GOOD}■ task {}{GOOD:#} {}\n", end.word(), visible(end.summary()))
            }
            AutoEvent::RunWarned { meter, .. } => {
                format!("{WARN}⚠ most of the run's {} is used{WARN:#}\n", meter.words())
            }
            AutoEvent::RunPaused { why, .. } => {
                let why = visible(&why.in_words());
                format!("{WARN}⏸ the run waits for you:{WARN:#} {why}\n")
            }
            AutoEvent::RunEnded { end, .. } => {
                format!("{GOOD}■ the run ended:{GOOD:#} {}\n", end.name())
            }
            AutoEvent::GoalEnded { reached: true, .. } => {
                format!("{GOOD}★ the goal is reached{GOOD:#}\n")
            }
            AutoEvent::SlotsMissed { count, first, last, .. } => format!(
                "{WARN}⏱ {count} slots were missed{WARN:#} {DIM}from {first} to {last}{DIM:#}\n"
            ),
            AutoEvent::ScheduleEnded { why, .. } => {
                format!("{DIM}· a schedule is off: {}{DIM:#}\n", visible(why))
            }
            AutoEvent::GoalAdded { .. }
            | AutoEvent::GoalEnded { .. }
            | AutoEvent::TaskAdded { .. }
            | AutoEvent::Ticked { .. }
            | AutoEvent::RunMoved { .. }
            | AutoEvent::RunPinned { .. }
            | AutoEvent::RunResumed { .. }
            | AutoEvent::ScheduleAdded { .. }
            | AutoEvent::SlotClaimed { .. }
            | AutoEvent::SlotEnded { .. } => return,
        };
        self.raw(&text);
    }

    /// Something that happened to what is remembered.
    pub(super) fn memory_event(&mut self, event: &MemoryEvent) {
        if let MemoryEvent::Saved { item } = event {
            let (scope, text) = (item.scope.kind().name(), visible(&item.text));
            self.raw(&format!("{DIM}✎ remembered for the {scope}: {text}{DIM:#}\n"));
        }
    }

    pub(super) fn sessions(&mut self, rows: &[SessionLine]) {
        if rows.is_empty() {
            self.raw("no conversations yet\n");
        }
        for row in rows {
            let waits = match row.waiting {
                Some(waiting) => format!("  {WARN}{}{WARN:#}", waits_for(waiting)),
                None if row.archived => format!("  {DIM}put away{DIM:#}"),
                None => String::new(),
            };
            let title = visible(&row.title);
            self.raw(&format!("{}  {BOLD}{title}{BOLD:#}{waits}\n", row.session));
        }
    }

    pub(super) fn work(&mut self, view: &WorkView) {
        if *view == WorkView::default() {
            self.raw(
                "no goals, tasks, runs or schedules; begin with /task add <what>, then /auto on\n",
            );
        }
        for goal in &view.goals {
            self.raw(&format!("{BOLD}g{}{BOLD:#} {}\n", goal.number, visible(&goal.title)));
        }
        for task in &view.tasks {
            let goal = task.goal.map(|goal| format!(" {DIM}(g{goal}){DIM:#}")).unwrap_or_default();
            let came_out = match &task.ended {
                Some(word) => format!(" {GOOD}{word}{GOOD:#} {}", visible(&task.summary)),
                None => String::new(),
            };
            let title = visible(&task.title);
            self.raw(&format!("{BOLD}t{}{BOLD:#} {title}{goal}{came_out}\n", task.number));
        }
        for run in &view.runs {
            self.raw(&run_line(run));
        }
        for schedule in &view.schedules {
            let next = schedule.next.map_or_else(|| "never again".to_owned(), |at| at.to_string());
            self.raw(&format!(
                "{BOLD}s{}{BOLD:#} {} {DIM}{} · next {next}{DIM:#}\n",
                schedule.number,
                visible(&schedule.title),
                visible(&schedule.rhythm),
            ));
        }
    }

    pub(super) fn memory(&mut self, view: &MemoryView) {
        let chain: Vec<_> =
            view.chain.iter().map(|(scope, many)| format!("{}({many})", visible(scope))).collect();
        self.raw(&format!(
            "{DIM}{} | blocked: {} foreign{DIM:#}\n",
            chain.join(" → "),
            view.blocked
        ));
        for ranked in &view.items {
            let item = &ranked.item;
            let id = item.id.to_string();
            let why = if ranked.why.matched.is_empty() {
                String::new()
            } else {
                format!(" · {} · score {}", ranked.why.matched.join(" "), ranked.why.score)
            };
            self.raw(&format!(
                "{} {DIM}{} · {}{why}{DIM:#}\n",
                visible(&item.text),
                item.scope.kind().name(),
                &id[id.len() - 8..],
            ));
        }
    }
}

impl Terminal {
    pub(super) fn notebook(&mut self, view: &NotebookView) {
        let state = if view.on { "on" } else { "off; /notebook on turns it on" };
        let archive = match view.archive.len() {
            0 => String::new(),
            _ => format!(" · archive: {}", view.archive.join(", ")),
        };
        self.raw(&format!("{DIM}notebook: {state}{archive}{DIM:#}\n"));
        if view.plan_stands_in {
            self.raw(&format!(
                "{DIM}plan work is active: the plan stands in for task_plan; /plan show reads it{DIM:#}\n"
            ));
        }
        for page in &view.pages {
            self.raw(&format!("\n{BOLD}{}{BOLD:#}\n{}\n", page.name, visible(&page.text)));
        }
        if view.on && view.pages.is_empty() {
            self.raw("no pages yet; the agent begins them when the work is long enough\n");
        }
    }
}

/// What a session waits for, in words.
#[must_use]
pub fn waits_for(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::Decision => "a plan waits for your decision",
        Waiting::Resume => "an execution waits for you",
        Waiting::Doubt => "a call is in doubt",
        Waiting::Permission => "a call waits for your permission",
        Waiting::Run => "a run waits for you",
    }
}

fn run_line(run: &RunRow) -> String {
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
    let stands = match &run.waits {
        Some(why) => format!("{BAD}waits:{BAD:#} {}", visible(why)),
        None => format!("{GOOD}goes on{GOOD:#}"),
    };
    format!(
        "{BOLD}r{}{BOLD:#} {} on {on} · {stands} {DIM}{}{DIM:#}\n",
        run.number,
        run.kind,
        used.join(" · ")
    )
}
