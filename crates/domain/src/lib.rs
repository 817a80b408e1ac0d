//! The planning core: what may happen in a session, and what should happen next.
//!
//! Start at [`session`]: [`session::decide`] turns a command into events or a refusal in words,
//! [`session::Session::evolve`] applies an event, and [`next::next`] says from state alone what
//! should happen now. Everything here is pure: ids and times arrive inside commands.
//!
//! A session in six lines, from `/plan on` to a plan that waits for its reader:
//!
//! ```
//! use planwright_domain::{actor::{Person, Standing}, command::{Issued, PersonCommand, SessionCommand},
//!     identity::SessionKey, session::{decide, Session}, time::Time};
//! let owner = uuid::Uuid::from_u128(7).into();
//! let session = Session::new(SessionKey::named("cli:my-first-talk", owner).unwrap());
//! let person = Person::new(owner, "me", "cli", Standing::Speaks);
//! let command = PersonCommand::StartPlan { plan: uuid::Uuid::from_u128(1).into(), strategy: Default::default(), reads: Default::default() };
//! let issued = Issued::new(uuid::Uuid::from_u128(2), Time(0), SessionCommand::Person(person, command));
//! let session = session.fold(Time(0), &decide(&session, &issued).unwrap()).unwrap();
//! assert_eq!(session.plan().unwrap().status.label(), "Drafting");
//! ```

pub mod installation;
pub mod language;
pub mod model;
pub mod next;
pub mod owner;
pub mod rules;
pub mod session;

pub use language::{chat, diff, moved, outcome, prompt};
pub use model::{
    actor, attempt, command, digest, effect, hidden, id, identity, limits, policy, quota, refusal,
    search, time,
};
pub use rules::{backoff, log, openings};

/// Foreign agents: what they call, and what is decided about it.
pub mod agent {
    pub use crate::{
        language::agent_tools::{all_specs, specs},
        model::{
            agent_call::{AgentCall, Answered},
            session::is_foreign,
            tools::PLAN_ASK,
        },
        rules::agent::*,
    };
}

/// Goals, tasks, runs and schedules.
pub mod autonomy {
    pub use crate::{model::autonomy::*, rules::autonomy::*};
}

/// What is remembered.
pub mod memory {
    pub use crate::{model::memory::*, rules::memory::*};

    /// How well an item fits a question.
    pub mod rank {
        pub use crate::{model::memory::rank::*, rules::memory::ranking::*};
    }
}

/// The notebook.
pub mod notebook {
    pub use crate::{
        model::notebook::*,
        rules::notebook::{tool::NotebookTool, *},
    };
}

/// Plans.
pub mod plan {
    pub use crate::{model::plan::*, rules::plan::*};
}

/// Tools that are answered here.
pub mod tools {
    pub use crate::{
        model::{
            effect::{FILE_TOOLS, document_envelope},
            tools::*,
        },
        rules::tools::*,
    };
}

/// Turns.
pub mod turn {
    pub use crate::{model::turn::*, rules::turn::*};
}
