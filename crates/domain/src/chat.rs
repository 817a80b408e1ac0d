//! What people type: a message, or a command that begins with `/`.

pub mod work;

use work::WorkAct;

use crate::{
    command::{Ending, Permit, Start, Verdict},
    effect::Declared,
    notebook::Page,
    plan::{Strategy, front_matter, step::OnFailure},
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
        /// The revision or plan that is named, if one is.
        named: Option<String>,
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

/// Every command with its words, as `/help` lists them.
pub const HELP: [(&str, &str); 29] = [
    ("/plan on [document|collect|build]", "begin plan work in this session"),
    ("/plan status", "where the plan stands, and what waits for you"),
    ("/plan show [rev]", "read a revision in full"),
    ("/plan diff [a b]", "what changed between two revisions"),
    ("/plan list", "the plans of this session"),
    (
        "/plan approve [rev] [hold] [continue] [ask] [tools=a,b] [paths=src/] [hosts=h] [spend=2] [calls=9] [expires=2h] [note …]",
        "approve exactly what you were shown last",
    ),
    (
        "/plan changes <text>",
        "ask for a newer revision; begin with 12: or step 2: to speak of a place",
    ),
    ("/plan comments", "what was asked for, and what became of it"),
    ("/plan edit <document>", "write the document yourself"),
    ("/plan reject [why]", "end the plan unexecuted"),
    ("/plan resume · /plan stop", "go on with an execution, or pause it"),
    ("/plan skip <step>", "leave a step out; /plan resume then goes on"),
    ("/plan settle <call> happened|not", "say what became of a call in doubt"),
    (
        "/allow <id> [plan] · /deny <id>",
        "decide on a call that waits: once, until the plan ends, or not",
    ),
    ("/plan replan <text>", "instead of allowing a call: have the plan revised"),
    ("/plan done · /plan off", "end plan work: as finished, or as cancelled"),
    ("/goal add <what> · /goal done|drop <n>", "goals, whose tasks share what they find out"),
    ("/task add [g<n>] <what> · /task done|drop <n>", "tasks, of a goal or alone"),
    (
        "/auto on [g<n>|t<n>] [plan] [time=2h] [calls=50] [tools=80] [tokens=200000] [spend=1]",
        "let it work by itself, on a goal or on a task; with plan it drafts one first and waits for you",
    ),
    (
        "/auto off [r<n>] · /auto resume [r<n>] · /auto status",
        "end runs, let one go on, see them all",
    ),
    (
        "/schedule add <cron> <zone> <what> · /schedule add every 2h <what> · /schedule off <n>",
        "begin work by itself, at these times",
    ),
    ("/sessions · /new · /switch <key>", "your conversations; begin one; talk in another"),
    ("/rename <title> · /archive · /delete", "what becomes of this conversation"),
    (
        "/memory [words] · /memory save|forget|edit|promote …",
        "what is remembered here; make something known everywhere",
    ),
    (
        "/notebook [on|off|show <page>]",
        "planning files of this session: what is to be done, found out, done",
    ),
    ("/compact", "sum up what was said before, so that more fits"),
    ("/stop", "end what the agent is doing now"),
    ("/reset", "end everything here and start a new view"),
    ("/help", "this list"),
];

/// Reads a line.
pub fn parse(line: &str) -> Result<Line, LineRefusal> {
    let trimmed = line.trim();
    if let Some(message) = trimmed.strip_prefix("//") {
        return Ok(Line::Message(format!("/{message}")));
    }
    let Some(command) = trimmed.strip_prefix('/') else {
        return Ok(Line::Message(line.to_owned()));
    };
    let (verb, rest) = split(command);
    Ok(Line::Command(match verb {
        "plan" => plan(rest)?,
        "allow" => ChatCommand::Act(permit(rest, Some(Permit::Once))),
        "deny" => ChatCommand::Act(permit(rest, None)),
        "compact" => ChatCommand::Act(Act::Compact),
        "stop" => ChatCommand::Act(Act::Stop),
        "reset" => ChatCommand::Act(Act::Reset),
        "help" => ChatCommand::Help,
        "goal" => work::goal(rest)?,
        "task" => work::task(rest)?,
        "auto" => work::auto(rest)?,
        "schedule" => work::schedule(rest)?,
        "sessions" => ChatCommand::Look(Look::Sessions),
        "new" => ChatCommand::Route(Route::New),
        "switch" => ChatCommand::Route(Route::Switch(needed("/switch", rest)?)),
        "rename" => ChatCommand::Act(Act::Rename(needed("/rename", rest)?)),
        "archive" => ChatCommand::Act(Act::Archive),
        "delete" if rest == "yes" => ChatCommand::Act(Act::Delete),
        "delete" => ChatCommand::Look(Look::Deletion),
        "memory" => memory(rest)?,
        "notebook" => notebook(rest)?,
        _ => {
            return Err(LineRefusal::Unknown(
                format!("/{verb}"),
                nearest(
                    verb,
                    &[
                        "/plan status",
                        "/allow",
                        "/deny",
                        "/stop",
                        "/compact",
                        "/reset",
                        "/help",
                        "/goal",
                        "/task",
                        "/auto status",
                        "/schedule",
                        "/sessions",
                        "/new",
                        "/switch",
                        "/rename",
                        "/archive",
                        "/delete",
                        "/memory",
                        "/notebook",
                    ],
                ),
            ));
        }
    }))
}

fn needed(command: &'static str, words: &str) -> Result<String, LineRefusal> {
    if words.is_empty() {
        let problem = "needs a word more; /help lists the commands".into();
        return Err(LineRefusal::BadWords { command, problem });
    }
    Ok(words.to_owned())
}

fn memory(words: &str) -> Result<ChatCommand, LineRefusal> {
    let (verb, rest) = split(words);
    Ok(match verb {
        "save" => ChatCommand::Act(Act::MemorySave(needed("/memory save", rest)?)),
        "forget" => ChatCommand::Act(Act::MemoryForget(needed("/memory forget", rest)?)),
        "promote" => ChatCommand::Act(Act::MemoryPromote(needed("/memory promote", rest)?)),
        "edit" => {
            let (id, text) = split(rest);
            let text = needed("/memory edit", text)?;
            ChatCommand::Act(Act::MemoryEdit(id.to_owned(), text))
        }
        _ => ChatCommand::Look(Look::Memory(words.to_owned())),
    })
}

fn notebook(words: &str) -> Result<ChatCommand, LineRefusal> {
    Ok(match split(words) {
        ("on", "") => ChatCommand::Act(Act::Notebook(true)),
        ("off", "") => ChatCommand::Act(Act::Notebook(false)),
        ("", _) => ChatCommand::Look(Look::Notebook(None)),
        ("show", page) if Page::named(page).is_some() || page.starts_with("plan-") => {
            ChatCommand::Look(Look::Notebook(Some(page.to_owned())))
        }
        (_, _) => {
            let problem = "knows on, off and show task_plan|findings|progress|plan-<minute>".into();
            return Err(LineRefusal::BadWords { command: "/notebook", problem });
        }
    })
}

fn plan(words: &str) -> Result<ChatCommand, LineRefusal> {
    let (verb, rest) = split(words);
    let bad = |command: &'static str, problem: String| LineRefusal::BadWords { command, problem };
    Ok(match verb {
        "on" => ChatCommand::Act(Act::PlanOn(match rest {
            "" | "document" => Strategy::Document,
            "collect" => Strategy::Collect,
            "build" => Strategy::Build,
            other => {
                return Err(bad(
                    "/plan on",
                    format!("knows document, collect and build, not {other:?}"),
                ));
            }
        })),
        "off" => ChatCommand::Act(Act::PlanEnd(Ending::Off)),
        "done" => ChatCommand::Act(Act::PlanEnd(Ending::Done)),
        "" | "status" => ChatCommand::Look(Look::Status),
        "show" if rest.is_empty() => ChatCommand::Look(Look::Show(None)),
        "show" => ChatCommand::Look(Look::Show(Some(revision("/plan show", rest)?))),
        "diff" if rest.is_empty() => ChatCommand::Look(Look::Diff(None)),
        "diff" => {
            let (first, second) = split(rest);
            let (first, second) = (revision("/plan diff", first)?, revision("/plan diff", second)?);
            ChatCommand::Look(Look::Diff(Some((first, second))))
        }
        "list" => ChatCommand::Look(Look::List),
        "approve" => ChatCommand::Act(approve(rest)?),
        "comments" => ChatCommand::Look(Look::Comments),
        "edit" if rest.is_empty() => {
            return Err(bad("/plan edit", "needs the whole document".into()));
        }
        "edit" => ChatCommand::Act(Act::Edit(rest.to_owned())),
        "changes" if rest.is_empty() => {
            return Err(bad("/plan changes", "needs the words of what should change".into()));
        }
        "changes" => ChatCommand::Act(Act::Changes(rest.to_owned())),
        "reject" => ChatCommand::Act(Act::Reject((!rest.is_empty()).then(|| rest.to_owned()))),
        "resume" => ChatCommand::Act(Act::Resume),
        "stop" => ChatCommand::Act(Act::PlanStop),
        "replan" if rest.is_empty() => {
            return Err(bad("/plan replan", "needs the words of what should change".into()));
        }
        "replan" => {
            let permit = Permit::Replan { text: rest.to_owned() };
            ChatCommand::Act(Act::Permit { named: None, permit })
        }
        "skip" => match rest.trim_start_matches("step").trim().parse() {
            Ok(step) => ChatCommand::Act(Act::Skip(step)),
            Err(_) => return Err(bad("/plan skip", "needs the number of a step".into())),
        },
        "settle" => match split(rest) {
            (call, "happened") => {
                ChatCommand::Act(Act::Settle { call: call.into(), verdict: Verdict::Happened })
            }
            (call, "not") => {
                ChatCommand::Act(Act::Settle { call: call.into(), verdict: Verdict::DidNotHappen })
            }
            _ => return Err(bad("/plan settle", "needs a call and then happened or not".into())),
        },
        other => {
            let known = [
                "/plan on",
                "/plan off",
                "/plan done",
                "/plan status",
                "/plan show",
                "/plan diff",
                "/plan list",
                "/plan approve",
                "/plan changes",
                "/plan reject",
                "/plan resume",
                "/plan stop",
                "/plan settle",
                "/plan skip",
                "/plan replan",
                "/plan comments",
                "/plan edit",
            ];
            return Err(LineRefusal::Unknown(
                format!("/plan {other}"),
                nearest(&format!("plan {other}"), &known),
            ));
        }
    })
}

/// `[rev] [hold] [continue] [ask] [tools=…] [paths=…] [hosts=…] [spend=…] [calls=…] [expires=…] [note …]`
fn approve(words: &str) -> Result<Act, LineRefusal> {
    let (words, note) = match words.split_once("note ") {
        Some((words, note)) => (words, Some(note.trim().to_owned())),
        None => (words, None),
    };
    let (mut start, mut on_failure, mut named) = (Start::AtOnce, OnFailure::Stop, None);
    let mut grant: Option<Declared> = None;
    for word in words.split_whitespace() {
        match (word, word.split_once('=')) {
            ("hold", _) => start = Start::Hold,
            ("continue", _) => on_failure = OnFailure::Continue,
            ("ask", _) => grant = Some(grant.unwrap_or_default()),
            (_, Some((part, value))) => {
                front_matter::set(grant.get_or_insert_default(), part, value).map_err(
                    |refusal| LineRefusal::BadWords {
                        command: "/plan approve",
                        problem: refusal.to_string(),
                    },
                )?;
            }
            (other, None) => named = Some(other.to_owned()),
        }
    }
    Ok(Act::Approve { named, start, on_failure, grant, note })
}

/// `/allow <id> [plan]` and `/deny <id>`.
fn permit(words: &str, allowed: Option<Permit>) -> Act {
    let (id, rest) = split(words);
    let permit = match (allowed, rest) {
        (Some(_), "plan") => Permit::UntilPlanEnds,
        (Some(permit), _) => permit,
        (None, _) => Permit::Deny,
    };
    Act::Permit { named: (!id.is_empty()).then(|| id.to_owned()), permit }
}

fn revision(command: &'static str, word: &str) -> Result<u32, LineRefusal> {
    let bad = || LineRefusal::BadWords {
        command,
        problem: format!("needs the number of a revision, not {word:?}"),
    };
    word.trim_start_matches("rev").trim().parse().map_err(|_| bad())
}

fn split(words: &str) -> (&str, &str) {
    let words = words.trim();
    words.split_once(char::is_whitespace).map_or((words, ""), |(first, rest)| (first, rest.trim()))
}

/// The known word that shares the longest likeness with what was typed.
fn nearest(typed: &str, known: &[&'static str]) -> &'static str {
    let likeness = |word: &&&'static str| {
        let bare = word.trim_start_matches('/');
        (similar::TextDiff::from_chars(typed, bare).ratio() * 1000.0) as u32
    };
    known.iter().max_by_key(likeness).copied().unwrap_or("/help")
}
