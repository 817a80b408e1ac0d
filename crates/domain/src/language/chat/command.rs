//! The commands that people type, read.

use crate::model::{
    autonomy::budget::Meter,
    command::{Ending, Permit, Start, Verdict},
    effect::Declared,
    id::PlanId,
    plan::{Strategy, step::OnFailure},
};

/// What a line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Words for the agent.
    Message(String),
    /// A command.
    Command(ChatCommand),
}

/// A command that people type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatCommand {
    /// `/help`
    Help,
    /// Shows something, and changes nothing.
    Look(Look),
    /// Asks for something to happen.
    Act(Act),
    /// Asks for another conversation.
    Route(Route),
}

/// Which conversation a chat talks to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `/new`
    New,
    /// `/switch <key>`
    Switch(String),
}

/// What people ask to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// `/plan status`
    Status,
    /// `/plan show [rev]`
    Show(Option<u32>),
    /// `/plan diff [a b]`
    Diff(Option<(u32, u32)>),
    /// `/plan list`
    List,
    /// `/plan comments`
    Comments,
    /// `/auto status`, `/goal`, `/task`, `/schedule`
    Work,
    /// `/sessions`
    Sessions,
    /// `/memory [words]`
    Memory(String),
    /// `/notebook`, `/notebook show [page]`
    Notebook(Option<String>),
    /// `/delete` without a yes: what would go.
    Deletion,
    /// `/limits`
    Limits,
}

/// What people ask to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// `/plan on [strategy]`
    PlanOn(Strategy),
    /// `/plan off`, `/plan done`
    PlanEnd(Ending),
    /// `/plan approve [rev] [hold] [continue]`
    Approve {
        /// The revision that is named; what was shown last, if none is.
        named: Option<RevisionName>,
        /// Whether it starts at once.
        start: Start,
        /// What happens to the rest when a recorded call fails.
        on_failure: OnFailure,
        /// What is leased instead of what the plan declares.
        grant: Option<Declared>,
        /// What the execution must be told.
        note: Option<String>,
    },
    /// `/allow <id> [plan]`, `/deny <id>`, `/plan replan <text>`
    Permit {
        /// The digest of the call, or the beginning of it; the one that waits if none is named.
        named: Option<String>,
        /// The decision.
        permit: Permit,
    },
    /// `/plan changes <text>`
    Changes(String),
    /// `/plan edit <document>`
    Edit(String),
    /// `/plan reject [why]`
    Reject(Option<String>),
    /// `/plan resume`
    Resume,
    /// `/plan stop`
    PlanStop,
    /// `/plan skip <step>`
    Skip(u32),
    /// `/plan settle <call> happened|not`
    Settle {
        /// The call, or the beginning of its id.
        call: String,
        /// What the person found.
        verdict: Verdict,
    },
    /// `/limits raise`
    RaiseLimit,
    /// `/compact`
    Compact,
    /// `/stop`
    Stop,
    /// `/reset`
    Reset,
    /// Goals, tasks, runs and schedules.
    Work(WorkAct),
    /// `/rename <title>`
    Rename(String),
    /// `/archive`
    Archive,
    /// `/delete yes`
    Delete,
    /// `/notebook on`, `/notebook off`
    Notebook(bool),
    /// `/memory save <text>`
    MemorySave(String),
    /// `/memory edit <id> <text>`
    MemoryEdit(String, String),
    /// `/memory forget <id>`
    MemoryForget(String),
    /// `/memory promote <id>`
    MemoryPromote(String),
}

/// A line that begins with `/` and is no command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineRefusal {
    /// No such command.
    #[error(
        "{0:?} is not a command; did you mean {1}? (/help lists them; begin with // to say it to the agent)"
    )]
    Unknown(String, &'static str),
    /// A word that does not fit.
    #[error("{command} {problem}")]
    BadWords {
        /// The command.
        command: &'static str,
        /// What does not fit.
        problem: String,
    },
}

/// What an approval names: the revision that the person means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevisionName {
    /// A revision by its number.
    Number(u32),
    /// The revision of this plan that was shown.
    Plan(PlanId),
    /// A revision by the first digits of its digest, in lower case.
    Digest(String),
}

/// What people ask of goals, tasks, runs and schedules. What they name, they name by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkAct {
    /// `/goal add <what>`
    AddGoal(String),
    /// `/goal done <n>`, `/goal drop <n>`
    EndGoal {
        /// The goal.
        number: u32,
        /// Whether it was reached.
        reached: bool,
    },
    /// `/task add [g<n>] <what>`
    AddTask {
        /// The goal it belongs to.
        goal: Option<u32>,
        /// In words.
        title: String,
    },
    /// `/task done <n>`, `/task drop <n>`
    EndTask {
        /// The task.
        number: u32,
        /// Whether it is done.
        done: bool,
    },
    /// `/auto on [g<n>|t<n>] [plan] [time=1h] [calls=50] [tools=50] [tokens=100000] [spend=1]`
    On {
        /// What it works on; the oldest open task that stands alone, if nothing is named.
        target: Option<Named>,
        /// Whether it drafts a plan first.
        drafts: bool,
        /// What it may use, where that is said.
        budget: Vec<(Meter, u64)>,
    },
    /// `/auto off [r<n>]`
    Off(Option<u32>),
    /// `/auto resume [r<n>]`
    Resume(Option<u32>),
    /// `/schedule add …`
    AddSchedule {
        /// When.
        when: When,
        /// For this goal.
        goal: Option<u32>,
        /// What is to be done.
        title: String,
    },
    /// `/schedule off <n>`
    EndSchedule(u32),
}

/// A goal or a task, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A goal.
    Goal(u32),
    /// A task.
    Task(u32),
}

/// When a schedule gives slots, as it is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// `0 9 * * 1-5 Europe/Berlin`
    Cron {
        /// The five fields.
        expression: String,
        /// The time zone.
        zone: String,
    },
    /// `every 2h`
    Every {
        /// After so long.
        micros: i64,
    },
    /// `at 2026-11-16T09:00 Europe/Berlin`
    Once {
        /// Date and time of day.
        at: String,
        /// The time zone.
        zone: String,
    },
}
