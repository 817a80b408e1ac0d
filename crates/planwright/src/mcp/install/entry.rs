//! The entry in the configuration of an agent.

/// What the entry starts.
pub(super) struct ServerCommand<'a> {
    pub(super) program: &'a str,
    pub(super) arguments: &'a [String],
}

/// What the entry is called.
pub(super) const NAME: &str = "planwright";
