//! The audit log: taking up the decisions of sessions, handing signed heads over, writing it all out, and checking it.

pub mod check;
pub mod head;
pub mod log_file;
pub mod sequencer;
