//! The canonical names under which a run's context travels. They are written here and nowhere else.

use crate::model::autonomy::AutoExecutionContext;

/// The kind of run.
pub const AUTO_RUN_KIND: &str = "AUTO_RUN_KIND";
/// The run.
pub const AUTO_RUN_ID: &str = "AUTO_RUN_ID";
/// The goal.
pub const AUTO_GOAL_ID: &str = "AUTO_GOAL_ID";
/// The task.
pub const AUTO_TASK_ID: &str = "AUTO_TASK_ID";
/// The channel of the session.
pub const SESSION_IDENTITY_CHANNEL: &str = "SESSION_IDENTITY_CHANNEL";
/// The conversation of the session.
pub const SESSION_IDENTITY_CONVERSATION: &str = "SESSION_IDENTITY_CONVERSATION";

impl AutoExecutionContext {
    /// The context, under its canonical names.
    #[must_use]
    pub fn attributes(&self) -> Vec<(&'static str, String)> {
        let mut attributes = vec![
            (SESSION_IDENTITY_CHANNEL, self.session.channel.name().to_owned()),
            (SESSION_IDENTITY_CONVERSATION, self.session.key.as_str().to_owned()),
            (AUTO_RUN_KIND, self.kind.name().to_owned()),
            (AUTO_RUN_ID, self.run_id.to_string()),
            (AUTO_TASK_ID, self.task_id.to_string()),
        ];
        attributes.extend(self.goal_id.map(|goal| (AUTO_GOAL_ID, goal.to_string())));
        attributes
    }
}
