//! What a session waits for, in words.

use planwright_domain::next::Waiting;

/// What a session waits for, in words.
#[must_use]
pub fn waits_for(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::Decision => "a plan waits for your decision",
        Waiting::Resume => "an execution waits for you",
        Waiting::Doubt => "a call is in doubt",
        Waiting::Permission => "a call waits for your permission",
        Waiting::Run => "a run waits for you",
        Waiting::Limit => "a limit is reached",
    }
}
