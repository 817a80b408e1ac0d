//! New ids, from the operating system's clock and random source.

use planwright_domain::id::CommandId;
use planwright_runtime::ports::Ids;
use uuid::Uuid;

/// Ids of random bits: versions 7 and 4 of RFC 9562.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn ordered(&self) -> Uuid {
        Uuid::now_v7()
    }

    fn opaque(&self) -> Uuid {
        Uuid::new_v4()
    }
}

/// The id of a command that nobody gave before, where no runtime is at hand.
#[must_use]
pub fn fresh_id() -> CommandId {
    RandomIds.command()
}
