//! The line that a person types in a chat: history, editing, completion, and output that does not break it.
//!
//! The editor reads in a thread of its own. What is printed meanwhile goes through its printer, which puts it above the
//! line being typed and draws the line again.

use std::{
    borrow::Cow,
    io::{IsTerminal as _, Write as _},
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc as blocking},
};

use anstyle::AnsiColor;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::{
    CompletionType, Config, Context, Editor, ExternalPrinter, Helper, completion::Completer,
    error::ReadlineError, highlight::Highlighter, hint::Hinter, history::FileHistory,
    validate::Validator,
};
use tokio::sync::mpsc;

use crate::completion::complete;

/// The prompt. Its colour is not part of its width.
const PROMPT: &str = "you › ";
/// How many lines are kept in the history.
const HISTORY_MAX: usize = 1_000;
/// Ends bracketed paste, which the editor turns on while it reads.
const PASTE_OFF: &str = "\u{1b}[?2004l";

/// What came of reading a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// A line; a paste of several lines is one.
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of a pipe.
    End,
}

/// Prints above the line that is being typed.
pub type Printer = Box<dyn ExternalPrinter + Send>;

/// The sessions that can be completed, shared with the editor's thread.
type Sessions = Arc<Mutex<Vec<String>>>;

/// Reads lines that can be edited.
pub struct LineEditor {
    requests: blocking::Sender<()>,
    typed: mpsc::Receiver<Typed>,
    is_reading: bool,
    sessions: Sessions,
    modes: Termios,
}

impl LineEditor {
    /// The editor, and what prints above its line; none where there is no terminal that can do it.
    #[must_use]
    pub fn open(history: &Path) -> Option<(Self, Printer)> {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return None;
        }
        let modes = tcgetattr(std::io::stdin()).ok()?;
        let config = Config::builder()
            .bracketed_paste(true)
            .completion_type(CompletionType::List)
            .history_ignore_space(true)
            .max_history_size(HISTORY_MAX)
            .ok()?
            .build();
        let mut editor: Editor<ChatHelper, FileHistory> = Editor::with_config(config).ok()?;
        let printer: Printer = Box::new(editor.create_external_printer().ok()?);
        let sessions = Sessions::default();
        editor.set_helper(Some(ChatHelper { sessions: sessions.clone() }));
        let history = history.to_owned();
        // The first time there is none.
        let _ = editor.load_history(&history);
        let (requests, wanted) = blocking::channel();
        let (sender, typed) = mpsc::channel(1);
        let read = move || {
            while wanted.recv().is_ok() {
                let typed = match editor.readline(PROMPT) {
                    Ok(line) => {
                        let is_new = editor.add_history_entry(&line).unwrap_or(false);
                        if is_new && let Err(error) = editor.append_history(&history) {
                            tracing::warn!(%error, event = "history_not_kept");
                        }
                        Typed::Line(line)
                    }
                    Err(ReadlineError::Interrupted) => Typed::Interrupted,
                    Err(_) => Typed::End,
                };
                if sender.blocking_send(typed).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("line editor".into()).spawn(read).ok()?;
        Some((Self { requests, typed, is_reading: false, sessions, modes }, printer))
    }

    /// What is typed next. Nothing is lost if it is not waited for to the end.
    pub async fn next(&mut self) -> Typed {
        if !self.is_reading {
            self.is_reading = self.requests.send(()).is_ok();
        }
        let typed = self.typed.recv().await.unwrap_or(Typed::End);
        self.is_reading = false;
        typed
    }

    /// The keys that `/switch` can be completed with.
    pub fn offer(&self, keys: Vec<String>) {
        *self.sessions.lock().unwrap_or_else(PoisonError::into_inner) = keys;
    }
}

impl Drop for LineEditor {
    /// A line that nobody will read any more leaves the terminal as it was.
    fn drop(&mut self) {
        if self.is_reading {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.modes);
            let mut out = std::io::stdout();
            let _ = writeln!(out, "{PASTE_OFF}").and_then(|()| out.flush());
        }
    }
}

struct ChatHelper {
    sessions: Sessions,
}

impl Helper for ChatHelper {}
impl Validator for ChatHelper {}

impl Hinter for ChatHelper {
    type Hint = String;
}

impl Highlighter for ChatHelper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        let calm = AnsiColor::Cyan.on_default();
        let plain =
            anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never;
        if plain { prompt.into() } else { format!("{calm}{prompt}{calm:#}").into() }
    }
}

impl Completer for ChatHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        place: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(complete(line.get(..place).unwrap_or_default(), &sessions))
    }
}
