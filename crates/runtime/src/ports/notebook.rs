//! Where the pages of notebooks lie: texts by session and name, written whole and compared before they are replaced.

use async_trait::async_trait;
use planwright_domain::identity::SessionKey;

/// A text, and the mark of its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The text.
    pub text: String,
    /// The mark: another version has another one.
    pub mark: String,
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It stands.
    Done,
    /// Something else stands there than was expected; nothing was written.
    Changed,
}

/// Why a page could not be had or written. The operator reads this.
#[derive(Debug, thiserror::Error)]
#[error("the notebook's store failed: {0}")]
pub struct NotebookError(pub String);

/// The pages of all sessions. A page is reached by its session and its name, and in no other way.
#[async_trait]
pub trait Notebooks: Send + Sync {
    /// The text under this name, if there is one.
    async fn read(&self, session: &SessionKey, name: &str) -> Result<Option<Kept>, NotebookError>;

    /// Writes a text, whole or not at all, if what stands there has this mark; if nothing stands there, with none.
    async fn write(
        &self,
        session: &SessionKey,
        name: &str,
        text: &str,
        expected: Option<&str>,
    ) -> Result<Put, NotebookError>;

    /// The names that there are, sorted.
    async fn list(&self, session: &SessionKey) -> Result<Vec<String>, NotebookError>;

    /// Removes what stands under this name, if anything does.
    async fn remove(&self, session: &SessionKey, name: &str) -> Result<(), NotebookError>;
}
