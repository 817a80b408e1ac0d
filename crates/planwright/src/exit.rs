//! How the program ends, as scripts read it.

use planwright_domain::refusal::Refusal;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Fine,
    /// Something went wrong, and was said.
    Failed,
    /// Something waits for a person.
    WaitsForYou,
    /// The person decided on something that is no longer current.
    Stale,
    /// It is not allowed.
    Denied,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::Failed => 1,
            Exit::WaitsForYou => 3,
            Exit::Stale => 4,
            Exit::Denied => 5,
        })
    }
}

impl Exit {
    /// The exit that a refusal stands for.
    #[must_use]
    pub fn of(refusal: &Refusal) -> Self {
        match refusal.kind() {
            "stale_decision" => Self::Stale,
            "may_not_decide" | "policy_denied" | "not_shown" => Self::Denied,
            _ => Self::Failed,
        }
    }
}
