//! Which session a task advances, so that a lane can tell its own commits from others'.

use planwright_domain::identity::SessionKey;

tokio::task_local! {
    /// The session that this task advances. Its own commits need no wake-up: the lane is told what is due when it ends.
    pub(crate) static ADVANCING: SessionKey;
}

/// Whether this task advances this session.
pub(crate) fn is_own(identity: &SessionKey) -> bool {
    ADVANCING.try_with(|advancing| advancing == identity).unwrap_or(false)
}
