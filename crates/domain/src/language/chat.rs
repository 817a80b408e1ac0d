//! What people type: a message, or a command that begins with `/`.

pub mod approval;
pub mod command;
mod words;
pub mod work;

pub use command::{Act, ChatCommand, Line, LineRefusal, Look, Route};
use words::{alone, nearest, needed, split, whole_number};

use crate::model::{
    command::{Ending, Permit, Verdict},
    notebook::Page,
    plan::Strategy,
};

/// Every command with its words, as `/help` lists them.
pub const HELP: [(&str, &str); 30] = [
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
    ("/limits · /limits raise", "what you have used today; go on beyond a limit that is reached"),
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
        "allow" => ChatCommand::Act(approval::allow(rest)?),
        "deny" => ChatCommand::Act(approval::deny(rest)?),
        "limits" if rest == "raise" => ChatCommand::Act(Act::RaiseLimit),
        "limits" => alone("/limits", rest, ChatCommand::Look(Look::Limits))?,
        "compact" => alone("/compact", rest, ChatCommand::Act(Act::Compact))?,
        "stop" => alone("/stop", rest, ChatCommand::Act(Act::Stop))?,
        "reset" => alone("/reset", rest, ChatCommand::Act(Act::Reset))?,
        "help" => alone("/help", rest, ChatCommand::Help)?,
        "goal" => work::goal(rest)?,
        "task" => work::task(rest)?,
        "auto" => work::auto(rest)?,
        "schedule" => work::schedule(rest)?,
        "sessions" => alone("/sessions", rest, ChatCommand::Look(Look::Sessions))?,
        "new" => alone("/new", rest, ChatCommand::Route(Route::New))?,
        "switch" => ChatCommand::Route(Route::Switch(needed("/switch", rest)?)),
        "rename" => ChatCommand::Act(Act::Rename(needed("/rename", rest)?)),
        "archive" => alone("/archive", rest, ChatCommand::Act(Act::Archive))?,
        "delete" if rest == "yes" => ChatCommand::Act(Act::Delete),
        "delete" => alone("/delete", rest, ChatCommand::Look(Look::Deletion))?,
        "memory" => memory(rest)?,
        "notebook" => notebook(rest)?,
        _ => return Err(LineRefusal::Unknown(format!("/{verb}"), nearest_command(verb, rest))),
    }))
}

/// Every command with the word that it is known by: what a mistyped command is compared with.
const COMMANDS: [(&str, &str); 38] = [
    ("plan", "/plan status"),
    ("on", "/plan on"),
    ("off", "/plan off"),
    ("done", "/plan done"),
    ("status", "/plan status"),
    ("show", "/plan show"),
    ("diff", "/plan diff"),
    ("list", "/plan list"),
    ("approve", "/plan approve"),
    ("changes", "/plan changes"),
    ("reject", "/plan reject"),
    ("resume", "/plan resume"),
    ("plan stop", "/plan stop"),
    ("settle", "/plan settle"),
    ("skip", "/plan skip"),
    ("replan", "/plan replan"),
    ("comments", "/plan comments"),
    ("edit", "/plan edit"),
    ("allow", "/allow"),
    ("deny", "/deny"),
    ("stop", "/stop"),
    ("compact", "/compact"),
    ("limits", "/limits"),
    ("raise", "/limits raise"),
    ("reset", "/reset"),
    ("help", "/help"),
    ("goal", "/goal"),
    ("task", "/task"),
    ("auto", "/auto status"),
    ("schedule", "/schedule"),
    ("sessions", "/sessions"),
    ("new", "/new"),
    ("switch", "/switch"),
    ("rename", "/rename"),
    ("archive", "/archive"),
    ("delete", "/delete"),
    ("memory", "/memory"),
    ("notebook", "/notebook"),
];

/// The command that was probably meant by a verb that there is not, and the words after it.
fn nearest_command(verb: &str, rest: &str) -> &'static str {
    let known = COMMANDS.map(|(word, _)| word);
    let meant = nearest(verb, &known);
    if meant == "plan" && !rest.is_empty() {
        return nearest_plan_command(split(rest).0);
    }
    COMMANDS.iter().find(|(word, _)| *word == meant).map_or("/help", |(_, command)| command)
}

/// The command of plan work that was probably meant.
fn nearest_plan_command(verb: &str) -> &'static str {
    let known = COMMANDS.map(|(_, command)| command);
    let known: Vec<_> = known.into_iter().filter(|command| command.starts_with("/plan ")).collect();
    nearest(&format!("/plan {verb}"), &known)
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
        "off" => alone("/plan off", rest, ChatCommand::Act(Act::PlanEnd(Ending::Off)))?,
        "done" => alone("/plan done", rest, ChatCommand::Act(Act::PlanEnd(Ending::Done)))?,
        "" | "status" => alone("/plan status", rest, ChatCommand::Look(Look::Status))?,
        "show" if rest.is_empty() => ChatCommand::Look(Look::Show(None)),
        "show" => ChatCommand::Look(Look::Show(Some(revision("/plan show", rest)?))),
        "diff" if rest.is_empty() => ChatCommand::Look(Look::Diff(None)),
        "diff" => {
            let (first, second) = split(rest);
            let (first, second) = (revision("/plan diff", first)?, revision("/plan diff", second)?);
            ChatCommand::Look(Look::Diff(Some((first, second))))
        }
        "list" => alone("/plan list", rest, ChatCommand::Look(Look::List))?,
        "approve" => ChatCommand::Act(approval::approve(rest)?),
        "comments" => alone("/plan comments", rest, ChatCommand::Look(Look::Comments))?,
        "edit" if rest.is_empty() => {
            return Err(bad("/plan edit", "needs the whole document".into()));
        }
        "edit" => ChatCommand::Act(Act::Edit(rest.to_owned())),
        "changes" if rest.is_empty() => {
            return Err(bad("/plan changes", "needs the words of what should change".into()));
        }
        "changes" => ChatCommand::Act(Act::Changes(rest.to_owned())),
        "reject" => ChatCommand::Act(Act::Reject((!rest.is_empty()).then(|| rest.to_owned()))),
        "resume" => alone("/plan resume", rest, ChatCommand::Act(Act::Resume))?,
        "stop" => alone("/plan stop", rest, ChatCommand::Act(Act::PlanStop))?,
        "replan" if rest.is_empty() => {
            return Err(bad("/plan replan", "needs the words of what should change".into()));
        }
        "replan" => {
            let permit = Permit::Replan { text: rest.to_owned() };
            ChatCommand::Act(Act::Permit { named: None, permit })
        }
        "skip" => match whole_number(rest.strip_prefix("step").unwrap_or(rest).trim()) {
            Some(step) => ChatCommand::Act(Act::Skip(step)),
            None => return Err(bad("/plan skip", "needs the number of a step".into())),
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
            let typed = format!("/plan {other}");
            return Err(LineRefusal::Unknown(typed, nearest_plan_command(other)));
        }
    })
}

fn revision(command: &'static str, word: &str) -> Result<u32, LineRefusal> {
    let bad = || LineRefusal::BadWords {
        command,
        problem: format!("needs the number of a revision, not {word:?}"),
    };
    whole_number(word.strip_prefix("rev").unwrap_or(word).trim()).ok_or_else(bad)
}
