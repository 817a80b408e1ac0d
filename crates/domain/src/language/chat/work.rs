//! `/goal`, `/task`, `/auto`, `/schedule`: work without a person at the keyboard.

pub use super::command::{Named, When, WorkAct};
use super::{
    command::{Act, ChatCommand, LineRefusal, Look},
    words::{alone, split, whole_number},
};
use crate::model::autonomy::budget::Meter;

fn bad(command: &'static str, problem: &str) -> LineRefusal {
    LineRefusal::BadWords { command, problem: problem.to_owned() }
}

fn act(act: WorkAct) -> ChatCommand {
    ChatCommand::Act(Act::Work(act))
}

/// A number, with or without the letter of its kind.
fn number(command: &'static str, word: &str, letter: char) -> Result<u32, LineRefusal> {
    whole_number(word.strip_prefix(letter).unwrap_or(word))
        .ok_or_else(|| bad(command, "needs a number, as /auto status lists it"))
}

/// `g3` in front of the rest.
fn for_goal(words: &str) -> (Option<u32>, &str) {
    let (first, rest) = split(words);
    match first.strip_prefix('g').and_then(whole_number) {
        Some(goal) => (Some(goal), rest),
        None => (None, words),
    }
}

fn title(command: &'static str, words: &str) -> Result<String, LineRefusal> {
    if words.is_empty() {
        return Err(bad(command, "needs the words of what is to be done"));
    }
    Ok(words.to_owned())
}

pub(super) fn goal(words: &str) -> Result<ChatCommand, LineRefusal> {
    let (verb, rest) = split(words);
    Ok(match verb {
        "" | "list" | "status" => alone("/goal", rest, ChatCommand::Look(Look::Work))?,
        "add" => act(WorkAct::AddGoal(title("/goal add", rest)?)),
        "done" => act(WorkAct::EndGoal { number: number("/goal done", rest, 'g')?, reached: true }),
        "drop" => {
            act(WorkAct::EndGoal { number: number("/goal drop", rest, 'g')?, reached: false })
        }
        _ => return Err(bad("/goal", "knows add, done, drop and list")),
    })
}

pub(super) fn task(words: &str) -> Result<ChatCommand, LineRefusal> {
    let (verb, rest) = split(words);
    Ok(match verb {
        "" | "list" | "status" => alone("/task", rest, ChatCommand::Look(Look::Work))?,
        "add" => {
            let (goal, rest) = for_goal(rest);
            act(WorkAct::AddTask { goal, title: title("/task add", rest)? })
        }
        "done" => act(WorkAct::EndTask { number: number("/task done", rest, 't')?, done: true }),
        "drop" => act(WorkAct::EndTask { number: number("/task drop", rest, 't')?, done: false }),
        _ => return Err(bad("/task", "knows add, done, drop and list")),
    })
}

pub(super) fn auto(words: &str) -> Result<ChatCommand, LineRefusal> {
    let (verb, rest) = split(words);
    let run = |command, rest: &str| {
        if rest.is_empty() { Ok(None) } else { number(command, rest, 'r').map(Some) }
    };
    Ok(match verb {
        "" | "status" => alone("/auto status", rest, ChatCommand::Look(Look::Work))?,
        "on" => act(on(rest)?),
        "off" => act(WorkAct::Off(run("/auto off", rest)?)),
        "resume" => act(WorkAct::Resume(run("/auto resume", rest)?)),
        _ => return Err(bad("/auto", "knows on, off, status and resume")),
    })
}

fn on(words: &str) -> Result<WorkAct, LineRefusal> {
    let (mut target, mut drafts, mut budget) = (None, false, Vec::new());
    for word in words.split_whitespace() {
        let goal = word.strip_prefix('g').and_then(whole_number).map(Named::Goal);
        let task = word.strip_prefix('t').and_then(whole_number).map(Named::Task);
        match (word.split_once('='), goal.or(task)) {
            (Some((name, value)), _) => {
                let limit = limit(name, value)?;
                if budget.iter().any(|(meter, _)| *meter == limit.0) {
                    return Err(bad("/auto on", "has the same limit twice; nothing was started"));
                }
                budget.push(limit);
            }
            (None, Some(_)) if target.is_some() => {
                return Err(bad("/auto on", "takes one goal or task; nothing was started"));
            }
            (None, Some(named)) => target = Some(named),
            (None, None) if word == "plan" => drafts = true,
            (None, None) => {
                let problem = "takes g<n> or t<n>, plan, and time= calls= tools= tokens= spend=";
                return Err(bad("/auto on", problem));
            }
        }
    }
    Ok(WorkAct::On { target, drafts, budget })
}

fn limit(name: &str, value: &str) -> Result<(Meter, u64), LineRefusal> {
    let refused =
        || bad("/auto on", "needs limits like time=2h calls=50 tools=80 tokens=200000 spend=1.5");
    let whole = || value.parse().map_err(|_| refused());
    Ok(match name {
        "time" => (Meter::Time, span(value).ok_or_else(refused)?.cast_unsigned()),
        "calls" => (Meter::ModelCalls, whole()?),
        "tools" => (Meter::ToolCalls, whole()?),
        "tokens" => (Meter::Tokens, whole()?),
        "spend" => {
            let dollars: f64 = value.parse().map_err(|_| refused())?;
            if !(0.0..=crate::model::limits::SPEND_DOLLARS_MAX).contains(&dollars) {
                return Err(refused());
            }
            (Meter::Money, (dollars * 1e6) as u64)
        }
        _ => return Err(refused()),
    })
}

/// `90s`, `30m`, `2h`, `3d`, in microseconds.
fn span(text: &str) -> Option<i64> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    let many: i64 = digits.parse().ok().filter(|many| (1..=100_000).contains(many))?;
    Some(many * seconds * 1_000_000)
}

pub(super) fn schedule(words: &str) -> Result<ChatCommand, LineRefusal> {
    let (verb, rest) = split(words);
    Ok(match verb {
        "" | "list" | "status" => alone("/schedule", rest, ChatCommand::Look(Look::Work))?,
        "add" => act(add_schedule(rest)?),
        "off" => act(WorkAct::EndSchedule(number("/schedule off", rest, 's')?)),
        _ => return Err(bad("/schedule", "knows add, off and list")),
    })
}

fn add_schedule(words: &str) -> Result<WorkAct, LineRefusal> {
    let command = "/schedule add";
    let refused = || {
        bad(
            command,
            "needs when, where and what: 0 9 * * 1-5 Europe/Berlin <what>, every 2h <what>, or at 2026-11-16T09:00 Europe/Berlin <what>",
        )
    };
    let (first, rest) = split(words);
    let (when, rest) = match first {
        "every" => {
            let (every, rest) = split(rest);
            (When::Every { micros: span(every).ok_or_else(refused)? }, rest)
        }
        "at" => {
            let (at, rest) = split(rest);
            let (zone, rest) = split(rest);
            (When::Once { at: at.to_owned(), zone: zone.to_owned() }, rest)
        }
        _ => {
            let mut rest = words;
            let mut fields = Vec::new();
            for _ in 0..5 {
                let (field, after) = split(rest);
                fields.push(field);
                rest = after;
            }
            let (zone, rest) = split(rest);
            if zone.is_empty() {
                return Err(refused());
            }
            (When::Cron { expression: fields.join(" "), zone: zone.to_owned() }, rest)
        }
    };
    let (goal, rest) = for_goal(rest);
    Ok(WorkAct::AddSchedule { when, goal, title: title(command, rest)? })
}
