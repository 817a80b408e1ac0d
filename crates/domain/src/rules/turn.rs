//! Rules of turns: which report of the runtime moves one, which call may run, and who is asked.

pub mod decide;
pub mod evolve;
pub(crate) mod gate;
pub mod permission;
pub(crate) mod replay;
pub(crate) mod retry;
pub mod role;
