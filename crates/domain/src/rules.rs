//! The rules: `decide` and `evolve` of one subject each. They use the model. Where one subject's rule needs another's, the table
//! in `docs/ARCHITECTURE.md` names it; `session` joins them.

pub mod agent;
pub mod autonomy;
pub mod backoff;
pub mod life;
pub mod log;
pub mod memory;
pub mod notebook;
pub mod openings;
pub mod plan;
pub mod tools;
pub mod turn;
