//! Rules of goals, tasks, runs and schedules.

pub(crate) mod claim;
pub mod decide;
pub mod evolve;
pub(crate) mod react;
pub mod standing;
