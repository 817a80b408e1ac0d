//! The audit log: what belongs to the installation and to no session. Who uses it and what each may do, which passphrase each
//! chose, who was let in, what was set, and how far the decisions of every session had come.
//!
//! It is a stream of its own, and each entry is chained to the one before with its number and its time. It holds ids, codes and
//! digests, and nothing that anybody wrote. A passphrase is never in it, nor is what it is hashed to: only the digest of that
//! hash, so that nobody replaces a passphrase by writing a file.
//!
//! Must always hold:
//! - `one-choice`: a first passphrase is chosen once, by a person who was invited or at the first run; from then on it is
//!   changed by whoever knows it, or reset where everyone sees it.
//! - `an-owner`: the owner is always there, and may always do everything.
//! - `recorded-grants`: nobody gets in with a token or a login that this log does not hold.

mod account;
mod command;
mod decide;
mod entry;
mod event;
mod grant;
mod state;

pub use account::{Account, Invitation, RESET_TOLD_MICROS, Reset, Role};
pub use command::{AccountRefusal, InstallationCommand, NewGrant, Requester};
pub use decide::{decide, invited, named_well};
pub use event::InstallationEvent;
pub use grant::{GRANTS_OF_A_KIND_MAX, Grant, TERMINAL_MICROS, Terminal};
pub use state::{INSTALLATION_FOLD_VERSION, Installation, beginning};
