//! Why the notebook refuses a call.

use super::section::SectionRefusal;

/// Why a notebook tool did not do what was asked. The model reads these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotebookRefusal {
    /// It is off.
    #[error("policy_denied: the notebook is off here; a person turns it on with /notebook on")]
    Off,
    /// The arguments do not fit.
    #[error("the arguments of {tool} do not fit: {problem}")]
    BadArguments {
        /// The tool.
        tool: String,
        /// What does not fit.
        problem: String,
    },
    /// There is nothing to read or change.
    #[error("there is no {page} yet; begin with init_plan")]
    NoPage {
        /// The page.
        page: &'static str,
    },
    /// The page would be too long.
    #[error(
        "{page} would have {bytes} bytes, and the limit is {limit}; keep it short, or archive it with init_plan force_new"
    )]
    TooLong {
        /// The page.
        page: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Clearing is meant, or it is not.
    #[error(
        "nothing was cleared: call clear_plan with confirm = true to remove the current pages; the archive stays"
    )]
    NotConfirmed,
    /// The section cannot be replaced.
    #[error(transparent)]
    Section(#[from] SectionRefusal),
}
