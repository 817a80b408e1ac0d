//! Rules of plan work.

pub mod authoring;
pub(crate) mod bounds;
pub(crate) mod comments;
pub mod decide;
pub mod document_steps;
pub mod evolve;
pub mod front_matter;
pub mod observe;
pub mod rendering;
