//! What a person sees in a terminal: words, cards, diffs; or one JSON object a line.

use std::{
    collections::HashMap,
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use anstream::{AutoStream, ColorChoice, adapter::strip_str};
use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use planwright_domain::{
    chat::HELP,
    command::Permit,
    id::{CallId, TurnId},
    identity::SessionIdentity,
    notebook::NotebookEvent,
    plan::{event::PlanEvent, step::StepEnd},
    quota::LimitReached,
    session::SessionEvent,
    time::Time,
    turn::{
        CallStatus, ModelFailure, RequestedCall, ToolReply,
        event::{Arrival, TurnEnd, TurnEvent},
    },
};
use planwright_outbound::model_http::is_unreachable;
use planwright_runtime::{
    commands::reply::Reply,
    ports::{journal::Recorded, signal::Preview},
    queries::view::StatusView,
    reply_text::{Text, Tone, plan as plan_text, text_of},
};
use planwright_surfaces::http::streams::envelope::Envelope;
use serde_json::{Value, json};

pub mod visible;
pub mod work;

use visible::visible;

use crate::line_editor::Printer;

/// What was found of one thing: how it is, or what is wrong and what to do.
pub type Finding = Result<String, String>;

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();
const CALM: Style = AnsiColor::Cyan.on_default();

/// A terminal, or a pipe.
pub struct Terminal {
    json: bool,
    spinner: Option<ProgressBar>,
    /// What the calls under way are called.
    calls: HashMap<CallId, String>,
    /// How much of the answer under way was streamed.
    streamed: usize,
    /// The answer that was printed last; pieces of it that come late are dropped.
    printed: Option<(TurnId, u32)>,
    /// What was last said to be degraded.
    degraded: Vec<String>,
    /// Prints above the line that a person is typing, while one is read.
    printer: Option<Printer>,
    /// The end of what was streamed, until its line is full: the printer takes whole lines.
    unfinished: String,
    /// Whether it was said that something is under way.
    said_busy: bool,
    /// Whether it was said that the model cannot be reached. It is said once, until the model answers.
    said_unreachable: bool,
    /// Whether something could not be written out.
    is_lost: bool,
}

/// An event for scripts: they read what the API publishes.
fn published(session: &SessionIdentity, recorded: &Recorded) -> Value {
    let data = Envelope::of(&session.to_string(), recorded).data;
    json!({"type": "event", "session": session, "seq": recorded.seq, "at": recorded.at,
        "kind": recorded.event.kind(), "event": data})
}

impl Terminal {
    /// A terminal that speaks words, or JSON.
    #[must_use]
    pub fn new(json: bool) -> Self {
        Self {
            json,
            spinner: None,
            calls: HashMap::new(),
            streamed: 0,
            printed: None,
            degraded: Vec::new(),
            printer: None,
            unfinished: String::new(),
            said_busy: false,
            said_unreachable: false,
            is_lost: false,
        }
    }

    /// Whether it speaks JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints above the line that is typed from here on; without a printer, as to any terminal.
    pub fn print_through(&mut self, printer: Option<Printer>) {
        if !self.unfinished.is_empty() {
            self.raw("\n");
        }
        self.printer = printer;
    }

    /// One line of words; as JSON, a note.
    pub fn line(&mut self, text: &str) {
        self.row(text, || json!({"type": "note", "words": text}));
    }

    /// One line of words, or its JSON.
    pub fn row(&mut self, text: &str, value: impl FnOnce() -> Value) {
        if self.json {
            self.raw(&format!("{}\n", value()));
        } else {
            self.raw(&format!("{text}\n"));
        }
    }

    /// What was found of one thing.
    pub fn finding(&mut self, what: &str, finding: &Finding) {
        let (is_ok, words) = match finding {
            Ok(words) => (true, words),
            Err(words) => (false, words),
        };
        let mark = if is_ok { "✓" } else { "✗" };
        self.row(
            &format!("{mark} {what}: {words}"),
            || json!({"type": "finding", "what": what, "ok": is_ok, "words": words}),
        );
    }

    /// Why something did not happen.
    pub fn refusal(&mut self, words: &str) {
        let text = format!("{BAD}✗{BAD:#} {words}");
        self.row(&text, || json!({"type": "refused", "words": words}));
    }

    /// What everyone should know.
    pub fn notice(&mut self, words: &str) {
        let text = format!("{WARN}!{WARN:#} {words}");
        self.row(&text, || json!({"type": "notice", "words": words}));
    }

    /// What does not work as it should, when that changes.
    pub fn degraded(&mut self, sentences: &[String]) {
        if self.degraded == sentences {
            return;
        }
        self.degraded = sentences.to_vec();
        self.quiet();
        for words in sentences {
            let text = format!("{WARN}!{WARN:#} {words}");
            self.row(&text, || json!({"type": "degraded", "words": words}));
        }
        if sentences.is_empty() {
            self.row(
                &format!("{GOOD}✓{GOOD:#} everything gets through again"),
                || json!({"type": "recovered"}),
            );
        }
    }

    /// An error that ends the program.
    pub fn error(&mut self, error: &anyhow::Error) {
        self.quiet();
        if self.json {
            self.raw(&format!("{}\n", json!({"type": "error", "words": format!("{error:#}")})));
        } else {
            let _ = writeln!(anstream::stderr(), "{BAD}✗{BAD:#} {error:#}");
        }
    }

    /// The prompt, if someone can type.
    pub fn prompt(&mut self) {
        if !self.json && self.printer.is_none() && std::io::stdin().is_terminal() {
            self.raw(&format!("{CALM}you ›{CALM:#} "));
        }
    }

    /// The last line, so that the shell's prompt stands on its own.
    pub fn goodbye(&mut self) {
        self.quiet();
        if !self.json && self.printer.is_none() && std::io::stdin().is_terminal() {
            self.raw("\n");
        }
    }

    /// Something is under way.
    pub fn busy(&mut self, words: &str) {
        if self.printer.is_some() {
            // A spinner would draw over the line that is being typed.
            if !std::mem::replace(&mut self.said_busy, true) {
                self.raw(&format!("{DIM}· {words}{DIM:#}\n"));
            }
            return;
        }
        let in_the_way = self.json || self.streamed > 0 || self.spinner.is_some();
        if in_the_way || !std::io::stderr().is_terminal() {
            return;
        }
        let style = ProgressStyle::with_template("{spinner:.cyan} {msg} {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let spinner = ProgressBar::new_spinner().with_style(style).with_message(words.to_owned());
        spinner.enable_steady_tick(Duration::from_millis(100));
        self.spinner = Some(spinner);
    }

    /// Nothing is under way.
    pub fn quiet(&mut self) {
        self.quiet_spinner();
        self.said_busy = false;
    }

    fn quiet_spinner(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    /// A piece of an answer that is not committed yet.
    pub fn preview(&mut self, session: &SessionIdentity, preview: &Preview) {
        if self.json {
            let value = json!({"type": "preview", "session": session, "turn": preview.turn, "round": preview.round,
                "attempt": preview.attempt, "offset": preview.offset, "text": preview.text});
            self.raw(&format!("{value}\n"));
            return;
        }
        // A piece that does not fit what was streamed so far waits for the committed answer.
        let is_late = self.printed == Some((preview.turn, preview.round));
        if preview.offset == self.streamed && !is_late {
            self.streamed += preview.text.len();
            self.raw(&visible(&preview.text));
        }
    }

    /// Something that was recorded, in a session that now stands so.
    pub fn event(&mut self, view: &StatusView, recorded: &Recorded) {
        if self.json {
            let value = published(&view.session, recorded);
            self.raw(&format!("{value}\n"));
            return;
        }
        match &recorded.event {
            SessionEvent::Turn(event) => self.turn_event(view, event),
            SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }) => {
                self.raw(&format!("{WARN}⏸ paused:{WARN:#} {}\n", reason.in_words()));
            }
            SessionEvent::Plan(PlanEvent::PlanFailed { summary }) => {
                self.raw(&format!("{BAD}✗ the execution failed:{BAD:#} {}\n", visible(summary)));
            }
            SessionEvent::Plan(PlanEvent::DecisionReminded { .. }) => {
                self.raw(&format!("{WARN}⏰ a plan waits for your decision{WARN:#}: /plan show\n"));
            }
            SessionEvent::Plan(PlanEvent::DecisionExpired { .. }) => {
                self.raw(&format!(
                    "{WARN}⏱ nobody decided in time; a newer revision is needed{WARN:#}\n"
                ));
            }
            SessionEvent::Plan(PlanEvent::StepEnded { step, end, summary }) => {
                // A step with somebody's words on it is a claim; a call that was recorded and ran is none.
                let (style, mark) = match (end, summary) {
                    (StepEnd::Done, None) => (GOOD, "✓"),
                    (StepEnd::Failed { .. }, _) => (BAD, "✗"),
                    (
                        StepEnd::Done
                        | StepEnd::Reported { .. }
                        | StepEnd::Skipped { .. }
                        | StepEnd::Carried { .. },
                        _,
                    ) => (CALM, "·"),
                };
                let word = end.label_with(summary.as_deref());
                self.raw(&format!("{style}{mark}{style:#} step {step} {word}\n"));
            }
            SessionEvent::MessageQueued { .. } => self.queued(view),
            SessionEvent::CauseWithdrawn { why, .. } => self.raw(&format!("{DIM}· {why}{DIM:#}\n")),
            SessionEvent::Auto(event) => self.auto_event(event),
            SessionEvent::Memory(event) => self.memory_event(event),
            SessionEvent::Notebook(NotebookEvent::NoteDue { page, .. }) => {
                self.raw(&format!("{DIM}· noted in {}{DIM:#}\n", page.name()));
            }
            SessionEvent::AgentCalled {
                agent,
                tool,
                reply: ToolReply::Refused { words, .. },
                ..
            } => {
                let (agent, tool, words) = (visible(agent), visible(tool), visible(words));
                self.raw(&format!("{DIM}⚙ {agent}: {tool}{DIM:#} {BAD}✗{BAD:#} {words}\n"));
            }
            SessionEvent::AgentCalled { agent, tool, .. } => {
                self.raw(&format!("{DIM}⚙ {}: {}{DIM:#}\n", visible(agent), visible(tool)));
            }
            SessionEvent::Plan(_)
            | SessionEvent::Notebook(
                NotebookEvent::Switched { .. }
                | NotebookEvent::AgentCallStarted { .. }
                | NotebookEvent::PagesRemoved { .. }
                | NotebookEvent::RemovalStarted { .. }
                | NotebookEvent::RemovalFailed { .. }
                | NotebookEvent::RemovalOrphaned { .. },
            )
            | SessionEvent::Life(_)
            | SessionEvent::ViewReset { .. }
            | SessionEvent::CompactionAsked { .. }
            | SessionEvent::Logged { .. } => {}
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each event of a turn")]
    fn turn_event(&mut self, view: &StatusView, event: &TurnEvent) {
        match event {
            TurnEvent::ModelCallStarted { .. } => self.streamed = 0,
            TurnEvent::ModelAnswered { turn, round, answer, arrival: Arrival::InTime } => {
                self.end_of_text(&answer.text);
                self.said_unreachable = false;
                self.printed = Some((*turn, *round));
                self.calls = answer.calls.iter().map(|call| (call.id, label(call))).collect();
            }
            TurnEvent::ModelCallFailed { failure, retry_at, asking, .. } => {
                self.model_failed(failure, *retry_at, asking.is_suspended());
            }
            TurnEvent::ViewCompacted { messages, arrival: Arrival::InTime, .. } => {
                self.raw(&format!(
                    "{DIM}· {messages} messages are summed up for the model; everything stays recorded{DIM:#}\n"
                ));
            }
            TurnEvent::TurnPaused { reached, .. } => {
                self.end_of_text("");
                self.limited(reached);
            }
            TurnEvent::LimitWarned { near } => {
                self.raw(&format!(
                    "{WARN}⚠ most is used: {}; when all is, the turn waits and asks you{WARN:#}\n",
                    visible(&near.in_words())
                ));
            }
            TurnEvent::CallFinished { call, result, .. } => {
                let (label, first) =
                    (self.label(*call), visible(result.output.lines().next().unwrap_or_default()));
                let (style, mark) = match result.status {
                    CallStatus::Done => (GOOD, "✓"),
                    CallStatus::Failed => (BAD, "✗"),
                };
                let shown: String = first.chars().take(60).collect();
                self.raw(&format!(
                    "{DIM}⚙ {label}{DIM:#} {style}{mark}{style:#} {DIM}{shown}{DIM:#}\n"
                ));
            }
            TurnEvent::CallAnswered { call, reply: ToolReply::Planned } => {
                let label = self.label(*call);
                self.raw(&format!("{DIM}⚙ {label}{DIM:#} {CALM}planned, not run{CALM:#}\n"));
            }
            TurnEvent::CallAnswered { call, reply: ToolReply::Refused { words, .. } } => {
                let label = self.label(*call);
                self.raw(&format!("{DIM}⚙ {label}{DIM:#} {BAD}✗{BAD:#} {}\n", visible(words)));
            }
            TurnEvent::PermissionAsked { digest, .. } => {
                let ask = view.ask.as_ref().filter(|ask| ask.digest == *digest);
                if let Some(ask) = ask {
                    self.text(&plan_text::ask(ask, &view.quick_commands));
                }
            }
            TurnEvent::PermissionDecided { permit: Permit::Deny, by: None, .. } => {
                self.raw(&format!("{WARN}⏱ nobody decided in time; the call is denied{WARN:#}\n"));
            }
            TurnEvent::CallInDoubt { call, .. } => {
                let (label, id) = (self.label(*call), call.to_string());
                self.raw(&format!(
                    "{WARN}⚠ in doubt:{WARN:#} {label} had started when the process ended; nobody knows whether it took effect\n  look, then say: /plan settle {id} happened   or   /plan settle {id} not\n"
                ));
            }
            TurnEvent::TurnFinished { end, .. } => {
                self.turn_ended(view, end);
            }
            TurnEvent::ModelAnswered { .. }
            | TurnEvent::TurnStarted { .. }
            | TurnEvent::TurnResumed { .. }
            | TurnEvent::ViewCompacted { arrival: Arrival::Late, .. }
            | TurnEvent::ModelCallAbandoned { .. }
            | TurnEvent::ModelCallOrphaned { .. }
            | TurnEvent::CallStarted { .. }
            | TurnEvent::PermissionDecided { .. }
            | TurnEvent::CallAbandoned { .. }
            | TurnEvent::CallOrphaned { .. }
            | TurnEvent::DoubtSettled { .. }
            | TurnEvent::CallAnswered { .. } => {}
        }
    }

    /// A message waits behind a turn that waits for a limit.
    fn queued(&mut self, view: &StatusView) {
        if let Some(limit) = view.limit.as_ref().filter(|_| view.turn_open) {
            self.limited(limit);
        }
    }

    /// For which limit a turn waits, and what a person can do.
    fn limited(&mut self, limit: &LimitReached) {
        let (words, to_do) = (limit.in_words(), limit.what_to_do());
        self.raw(&format!("{WARN}⏸ {}; {to_do}{WARN:#}\n", visible(&words)));
    }

    fn model_failed(&mut self, failure: &ModelFailure, retry_at: Option<Time>, suspended: bool) {
        self.end_of_text("");
        let words = visible(&failure.message);
        match retry_at {
            Some(_) if is_unreachable(failure) => {
                if !std::mem::replace(&mut self.said_unreachable, true) {
                    self.raw(&format!(
                        "{BAD}✗{BAD:#} {words}; start that server, or choose another model with: planwright models set (what you said is kept, and answered once the model can be reached)\n"
                    ));
                }
            }
            Some(at) if suspended => self.raw(&format!(
                "{WARN}⏸ {words}; asked again by itself at {at}, or when you say something; /stop ends it{WARN:#}\n"
            )),
            Some(_) => self.raw(&format!("{WARN}↻ {words}; trying again{WARN:#}\n")),
            None => self.raw(&format!("{BAD}✗{BAD:#} {words}\n")),
        }
    }

    fn turn_ended(&mut self, view: &StatusView, end: &TurnEnd) {
        self.quiet();
        let has_card = match end {
            TurnEnd::Answered | TurnEnd::Compacted { messages: 1.. } => false,
            TurnEnd::Compacted { messages: 0 } => {
                self.raw(&format!("{DIM}· there is nothing to sum up yet{DIM:#}\n"));
                false
            }
            TurnEnd::Planned { .. } => true,
            TurnEnd::Failed { .. } => view.plan_active,
            TurnEnd::Stopped { .. } => {
                self.raw(&format!("{DIM}· stopped{DIM:#}\n"));
                view.plan_active
            }
            TurnEnd::InDoubt { .. } => view.plan_active,
            TurnEnd::Yielded => false,
        };
        if let (true, Some(card)) = (has_card, &view.plan) {
            self.text(&plan_text::card(card, &view.quick_commands));
        }
    }

    /// Ends a streamed answer: what was not streamed is printed now.
    fn end_of_text(&mut self, text: &str) {
        let rest = text.get(self.streamed..).unwrap_or_default();
        if self.streamed > 0 || !rest.is_empty() {
            self.raw(&format!("{}\n", visible(rest)));
        }
        self.streamed = 0;
    }

    /// The answer to a line; whether all of it was written out.
    pub fn reply(&mut self, reply: &Reply, id: Option<uuid::Uuid>) -> bool {
        self.is_lost = false;
        self.print_reply(reply, id);
        !self.is_lost
    }

    fn print_reply(&mut self, reply: &Reply, id: Option<uuid::Uuid>) {
        self.quiet();
        if self.json {
            let mut value = reply_json(reply);
            if let Some(id) = id {
                value["id"] = id.to_string().into();
            }
            self.raw(&format!("{value}\n"));
            return;
        }
        self.text(&text_of(reply));
    }

    /// Words in their colours, with nothing hidden in them.
    fn text(&mut self, text: &Text) {
        let drawn: String = text.spans.iter().map(|(tone, text)| draw(*tone, text)).collect();
        if !drawn.is_empty() {
            self.raw(&drawn);
        }
    }

    fn label(&self, call: CallId) -> String {
        self.calls.get(&call).cloned().unwrap_or_else(|| "a call".into())
    }

    fn raw(&mut self, text: &str) {
        if !self.json {
            self.quiet_spinner();
        }
        if let Some(printer) = &mut self.printer {
            self.unfinished.push_str(text);
            let whole = full_lines(&mut self.unfinished, columns());
            let plain = AutoStream::choice(&std::io::stdout()) == ColorChoice::Never;
            let whole = if plain { strip_str(&whole).to_string() } else { whole };
            if !whole.is_empty() {
                self.is_lost |= printer.print(whole).is_err();
            }
            return;
        }
        let mut out = anstream::stdout();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        self.is_lost |= written.is_err();
    }
}

/// How wide the terminal is.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.map_or(80, |size| usize::from(size.ws_col).max(20))
}

/// Takes the full lines off the beginning of a text: those that have ended, and those that are as wide as the terminal.
fn full_lines(text: &mut String, columns: usize) -> String {
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    let mut rest = text.split_off(end);
    let mut full = std::mem::take(text);
    while let Some((width, _)) = rest.char_indices().nth(columns) {
        let space = rest[..width].rfind(' ');
        let after = rest.split_off(space.map_or(width, |space| space + 1));
        full.push_str(rest.trim_end_matches(' '));
        full.push('\n');
        rest = after;
    }
    *text = rest;
    full
}

fn draw(tone: Tone, text: &str) -> String {
    let style = match tone {
        Tone::Plain => return visible(text),
        Tone::Dim => DIM,
        Tone::Bold => BOLD,
        Tone::Good => GOOD,
        Tone::Bad => BAD,
        Tone::Warn => WARN,
        Tone::Calm => CALM,
    };
    format!("{style}{}{style:#}", visible(text))
}

fn reply_json(reply: &Reply) -> Value {
    match reply {
        Reply::Accepted { session, version, words } => {
            json!({"type": "accepted", "session": session, "version": version, "words": words})
        }
        Reply::Moved { session, words } => {
            json!({"type": "moved", "session": session, "words": words})
        }
        Reply::Sessions(rows) => json!({"type": "sessions", "sessions": rows}),
        Reply::Work(view) => json!({"type": "work", "work": view}),
        Reply::Memory(view) => json!({"type": "memory", "memory": view}),
        Reply::Notebook(view) => json!({"type": "notebook", "notebook": view}),
        Reply::Refused(refusal) => {
            json!({"type": "refused", "kind": refusal.kind(), "words": refusal.to_string(), "refusal": refusal})
        }
        Reply::Unreadable(refusal) => {
            json!({"type": "refused", "kind": "unreadable", "words": refusal})
        }
        Reply::Nothing(words) => json!({"type": "nothing", "words": words}),
        Reply::Help => {
            json!({"type": "help", "commands": HELP.map(|(words, what)| json!([words, what]))})
        }
        Reply::Status(view) => json!({"type": "status", "status": view}),
        Reply::Revision(view) => json!({"type": "revision", "revision": view}),
        Reply::Diff(view) => json!({"type": "diff", "diff": view}),
        Reply::Comments(rows) => json!({"type": "comments", "comments": rows}),
        Reply::Plans(rows) => json!({"type": "plans", "plans": rows}),
    }
}

/// A call in a few words: its tool and the path it is about.
fn label(call: &RequestedCall) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let about =
        ["path", "pattern", "status"].into_iter().find_map(|name| arguments.get(name)?.as_str());
    match about {
        Some(about) => format!("{} {}", call.tool, visible(about)),
        None => call.tool.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::full_lines;

    #[test]
    fn a_streamed_text_is_printed_by_whole_lines_and_nothing_is_lost() {
        let mut text = String::new();
        let mut printed = String::new();
        for piece in ["one two ", "three\nfour five six", " seven eight", "\n"] {
            text.push_str(piece);
            printed.push_str(&full_lines(&mut text, 10));
        }
        assert_eq!(
            (printed.as_str(), text.as_str()),
            ("one two three\nfour five\nsix seven\neight\n", "")
        );
        let mut text = "a".repeat(25);
        assert_eq!(full_lines(&mut text, 10), format!("{0}\n{0}\n", "a".repeat(10)));
        assert_eq!(text, "aaaaa");
    }
}
