//! Executes the notebook's tools over the port of its pages.
//!
//! A page is read, changed by a rule of the domain, and written only if nobody wrote in between.

use std::time::Duration;

use planwright_domain::{
    id::{CallId, Seq},
    identity::SessionKey,
    notebook::{
        self, NotebookEvent, NotebookRefusal, Page, archive_name, archived, fitting, line, minute,
        minute_in_words, section, template,
        tool::{NotebookCall, NotebookTool},
        with_line,
    },
    session::{Session, SessionEvent, life::Life},
    turn::{CallResult, CallStatus, OpenCall},
};
use serde_json::json;
use tokio::time::timeout;

use crate::{
    engine::tool_call::{ToolRunner, ended, exported},
    ports::{
        journal::{Answer, JournalError},
        notebook::{Kept, NotebookError, Put},
        toolbox::{Ran, ToolRun},
    },
    revisions::of_plan,
};

/// How often a page is read again because somebody wrote in between.
const TRIES_MAX: u32 = 16;

/// Why a call came to nothing: for the model, or for the operator.
enum Trouble {
    Refused(String),
    Store(NotebookError),
}

impl From<NotebookRefusal> for Trouble {
    fn from(refusal: NotebookRefusal) -> Self {
        Self::Refused(refusal.to_string())
    }
}

impl From<NotebookError> for Trouble {
    fn from(error: NotebookError) -> Self {
        Self::Store(error)
    }
}

impl From<JournalError> for Trouble {
    fn from(error: JournalError) -> Self {
        Self::Store(NotebookError(error.to_string()))
    }
}

impl ToolRunner {
    /// Whether the notebook is on in this session.
    pub(crate) fn has_notebook(&self, session: &Session) -> bool {
        session.notebook.is_on(self.settings.enabled)
    }

    /// One in this many findings of this session is noted.
    pub(crate) fn note_every(&self, session: &Session) -> u64 {
        if self.has_notebook(session) { self.settings.note_every } else { 0 }
    }

    /// Removes the pages of a deleted session, each within this limit, and says how many it removed.
    pub(crate) async fn remove_pages(
        &self,
        identity: &SessionKey,
        limit: Duration,
    ) -> Result<u32, NotebookError> {
        let late =
            |_| NotebookError(format!("the store did not answer within {} s", limit.as_secs()));
        let mut pages = 0;
        for name in timeout(limit, self.notebook.list(identity)).await.map_err(late)?? {
            timeout(limit, self.notebook.remove(identity, &name)).await.map_err(late)??;
            pages += 1;
        }
        Ok(pages)
    }

    /// Makes a call of a notebook tool.
    pub(crate) async fn use_notebook(&self, tool: NotebookTool, run: &ToolRun) -> Ran {
        match self.notebook_call(tool, run).await {
            Ok(ran) => ran,
            Err(Trouble::Refused(words)) => ended(CallStatus::Failed, words),
            Err(Trouble::Store(error)) => {
                tracing::warn!(session_identity = %run.identity, %error, event = "notebook_failed");
                ended(CallStatus::Failed, error.to_string())
            }
        }
    }

    async fn notebook_call(&self, tool: NotebookTool, run: &ToolRun) -> Result<Ran, Trouble> {
        let identity = &run.identity;
        let session = self.journal.session(identity).await?;
        if !session.notebook.is_on(self.settings.enabled) || session.life == Life::Deleted {
            return Err(NotebookRefusal::Off.into());
        }
        let done = |words: String| Ok(ended(CallStatus::Done, words));
        match tool.parse_call(&run.arguments)? {
            NotebookCall::Init { title, force_new } => {
                done(self.init(identity, &session, &title, force_new).await?)
            }
            NotebookCall::Read(page) => {
                let kept = self.notebook.read(identity, page.file()).await?;
                done(kept.ok_or(NotebookRefusal::NoPage { page: page.name() })?.text)
            }
            NotebookCall::Write(page, content) => {
                let bytes = content.len();
                self.rewrite(identity, page, |_| Ok(content.clone())).await?;
                done(format!("{} has {bytes} bytes now.", page.name()))
            }
            NotebookCall::Update { page, section, content } => {
                let replaced = |kept: Option<&str>| {
                    let kept = kept.ok_or(NotebookRefusal::NoPage { page: page.name() })?;
                    Ok(section::replaced(kept, &section, &content)?)
                };
                self.rewrite(identity, page, replaced).await?;
                done(format!("{section:?} of {} is replaced.", page.name()))
            }
            NotebookCall::Clear => {
                for page in Page::ALL {
                    self.notebook.remove(identity, page.file()).await?;
                }
                done("The pages are removed; the archive stays.".into())
            }
            NotebookCall::List => {
                let names = self.notebook.list(identity).await?;
                let (archive, pages): (Vec<_>, Vec<_>) =
                    names.iter().partition(|name| name.starts_with("archive/"));
                let list = |names: Vec<&String>| match names.len() {
                    0 => "none".to_owned(),
                    _ => names
                        .into_iter()
                        .map(|name| name.trim_start_matches("archive/").trim_end_matches(".md"))
                        .collect::<Vec<_>>()
                        .join(", "),
                };
                done(format!("current: {}\narchive: {}", list(pages), list(archive)))
            }
            NotebookCall::Export(page) => self.export(run, &session, page).await,
        }
    }

    /// Makes the pages that are missing. What is complete is archived first, or what is there if that is wanted.
    async fn init(
        &self,
        identity: &SessionKey,
        session: &Session,
        title: &str,
        force_new: bool,
    ) -> Result<String, Trouble> {
        let now = self.clock.now();
        let stamp = minute_in_words(now);
        let fresh = |page| template::fresh(page, title, &stamp);
        let mut words = String::new();
        let current = self.notebook.read(identity, Page::TaskPlan.file()).await?;
        let current = current.map(|kept| kept.text);
        let complete = current.as_deref().is_some_and(notebook::completion::is_complete);
        // Asked again with the same words, there is nothing to archive: it has just begun.
        let begun = current.as_deref() == Some(&fresh(Page::TaskPlan));
        if complete || (force_new && current.is_some() && !begun) {
            let name = self.archive(identity, &minute(now)).await?;
            words = format!("The last one is archived as {name}. ");
            for page in Page::ALL {
                self.notebook.remove(identity, page.file()).await?;
            }
        }
        let mut made = Vec::new();
        for page in Page::ALL {
            let put = self.notebook.write(identity, page.file(), &fresh(page), None).await?;
            if put == Put::Done {
                made.push(page.name());
            }
        }
        words.push_str(&match made.len() {
            0 => "The pages are there already; nothing was changed.".to_owned(),
            _ => format!("Made {}.", made.join(", ")),
        });
        if session.plan().is_some() {
            words.push_str(" While plan work is active, task_plan is the plan itself.");
        }
        Ok(words)
    }

    /// Puts the pages into the archive, as one document. The same document is not archived twice.
    async fn archive(&self, identity: &SessionKey, minute: &str) -> Result<String, NotebookError> {
        let mut pages = Vec::new();
        for page in Page::ALL {
            if let Some(kept) = self.notebook.read(identity, page.file()).await? {
                pages.push((page, kept.text));
            }
        }
        let document = archived(&pages);
        for _ in 0..TRIES_MAX {
            let names = self.notebook.list(identity).await?;
            let taken: Vec<_> = names
                .iter()
                .filter_map(|name| name.strip_prefix("archive/")?.strip_suffix(".md"))
                .map(str::to_owned)
                .collect();
            for name in taken.iter().filter(|name| name.starts_with(&format!("plan-{minute}"))) {
                let kept = self.notebook.read(identity, &archive_file(name)).await?;
                if kept.is_some_and(|kept| kept.text == document) {
                    return Ok(name.clone());
                }
            }
            let name = archive_name(minute, &taken);
            let file = archive_file(&name);
            let put = self.notebook.write(identity, &file, &document, None).await?;
            if put == Put::Done {
                return Ok(name);
            }
        }
        Err(NotebookError("the archive is written to by others all the time".into()))
    }

    /// Changes a page by a rule; if somebody wrote in between, the rule sees what they wrote.
    async fn rewrite(
        &self,
        identity: &SessionKey,
        page: Page,
        rule: impl Fn(Option<&str>) -> Result<String, NotebookRefusal>,
    ) -> Result<(), Trouble> {
        for _ in 0..TRIES_MAX {
            let kept = self.notebook.read(identity, page.file()).await?;
            let (text, mark) = match &kept {
                Some(Kept { text, mark }) => (Some(text.as_str()), Some(mark.as_str())),
                None => (None, None),
            };
            let new = fitting(page, rule(text)?)?;
            if text == Some(new.as_str()) {
                return Ok(());
            }
            if self.notebook.write(identity, page.file(), &new, mark).await? == Put::Done {
                return Ok(());
            }
        }
        let words = format!("{} is written to by others all the time; try again", page.name());
        Err(Trouble::Refused(words))
    }

    /// Copies a page, or the plan that stands in for it, into the person's files: as a write of theirs.
    async fn export(&self, run: &ToolRun, session: &Session, page: Page) -> Result<Ran, Trouble> {
        let identity = &run.identity;
        let planned = session.plan().filter(|_| page == Page::TaskPlan);
        let planned = planned.and_then(|plan| Some((plan, plan.current.as_ref()?.number)));
        let text = match planned {
            Some((plan, number)) => {
                let found = of_plan(&*self.journal, identity, plan, number).await?;
                found.map(|(revision, _)| revision.markdown)
            }
            None => self.notebook.read(identity, page.file()).await?.map(|kept| kept.text),
        };
        let text = text.ok_or(NotebookRefusal::NoPage { page: page.name() })?;
        let arguments = json!({"path": exported(page), "content": text}).to_string();
        let write = ToolRun { tool: "write_file".into(), arguments, ..run.clone() };
        Ok(self.toolbox.run(write).await)
    }

    /// Writes the notes that became due with this result. A note is a help, not a fact: what cannot be written is
    /// logged, and the call stays what it was.
    pub(crate) async fn note(
        &self,
        identity: &SessionKey,
        recorded: &Answer,
        open: &OpenCall,
        call: CallId,
        result: &CallResult,
    ) {
        let Answer::Accepted { before, version } = recorded else { return };
        match self.due_page(identity, *before, *version, call).await {
            Ok(None) => {}
            Ok(Some(page)) => {
                let stamp = minute_in_words(self.clock.now());
                let line = line(&stamp, open, call, result);
                let title = "this session";
                let fresh = template::fresh(page, title, &stamp);
                let noted = self
                    .rewrite(identity, page, |text| Ok(with_line(text.unwrap_or(&fresh), &line)));
                match noted.await {
                    Ok(()) => {}
                    Err(Trouble::Refused(why)) => {
                        tracing::warn!(session_identity = %identity, why, event = "note_lost");
                    }
                    Err(Trouble::Store(error)) => {
                        tracing::warn!(session_identity = %identity, %error, event = "note_lost");
                    }
                }
            }
            Err(error) => {
                tracing::warn!(session_identity = %identity, %error, event = "note_lost");
            }
        }
    }

    async fn due_page(
        &self,
        identity: &SessionKey,
        before: Seq,
        version: Seq,
        noted: CallId,
    ) -> Result<Option<Page>, JournalError> {
        let many = usize::try_from(version.0 - before.0).unwrap_or(usize::MAX);
        let news = self.journal.events(identity, before, many).await?;
        let due = |event: &SessionEvent| {
            let SessionEvent::Notebook(NotebookEvent::NoteDue { call, page }) = event else {
                return None;
            };
            (*call == noted).then_some(*page)
        };
        Ok(news.iter().find_map(|recorded| due(&recorded.event)))
    }
}

fn archive_file(name: &str) -> String {
    format!("archive/{name}.md")
}
