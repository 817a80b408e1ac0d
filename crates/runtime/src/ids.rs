//! Ids of commands that are made from what they are about.

use planwright_domain::id::CommandId;
use uuid::Uuid;

/// A command id that the same report always gets, so that recording it twice has one effect.
pub(crate) fn report_id(of: Uuid, what: &str, round: u32, attempt: u32) -> CommandId {
    Uuid::new_v5(&of, format!("{what}:{round}:{attempt}").as_bytes()).into()
}
