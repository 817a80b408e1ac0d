//! The notebook's pages, as a person looks at them.

use planwright_domain::{identity::SessionKey, notebook::Page};
use serde::{Deserialize, Serialize};

use crate::{
    ports::{journal::JournalError, notebook::NotebookError},
    queries::Queries,
};

/// The notebook, as a person looks at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotebookView {
    /// Whether it is on.
    pub on: bool,
    /// The pages there are, with their texts.
    pub pages: Vec<PageView>,
    /// The names of what was archived.
    pub archive: Vec<String>,
    /// Whether the plan stands in for `task_plan` now.
    pub plan_stands_in: bool,
}

/// A page, as a person looks at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageView {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl Queries {
    /// The notebook as a person looks at it: its pages, or one of them, or one of the archive.
    pub async fn notebook(
        &self,
        identity: &SessionKey,
        named: Option<&str>,
    ) -> Result<NotebookView, JournalError> {
        let session = self.session(identity).await?;
        let store = |error: NotebookError| JournalError::Engine(Box::new(error));
        let names = self.notebook.list(identity).await.map_err(store)?;
        let wanted = |name: &str| match named {
            None => !name.starts_with("archive/"),
            Some(named) => bare(name) == named,
        };
        let mut pages = Vec::new();
        for name in names.iter().filter(|name| wanted(name)) {
            if let Some(kept) = self.notebook.read(identity, name).await.map_err(store)? {
                pages.push(PageView { name: bare(name).to_owned(), text: kept.text });
            }
        }
        // As they are read: what is to be done, what was found out, what was done.
        pages.sort_by_key(|page| Page::named(&page.name));
        let archive = names.iter().filter(|name| name.starts_with("archive/"));
        Ok(NotebookView {
            on: self.tools.has_notebook(&session),
            pages,
            archive: archive.map(|name| bare(name).to_owned()).collect(),
            plan_stands_in: session.plan().is_some(),
        })
    }
}

fn bare(name: &str) -> &str {
    name.trim_start_matches("archive/").trim_end_matches(".md")
}
