//! A whole installation, written out and brought in.

pub mod archive;
pub mod erase;
