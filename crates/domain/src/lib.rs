//! The planning core: what may happen in a session, and what should happen next.
//!
//! Start at [`session`]: [`session::decide`] turns a command into events or a refusal in words,
//! [`session::Session::evolve`] applies an event, and [`next::next`] says from state alone what
//! should happen now. Everything here is pure: ids and times arrive inside commands.
//!
//! A session in six lines, from `/plan on` to a plan that waits for its reader:
//!
//! ```
//! use planwright_domain::{actor::{Person, Standing}, command::{Asked, PersonCommand, SessionCommand},
//!     identity::SessionKey, session::{decide, Session}, time::Time};
//! let owner = uuid::Uuid::from_u128(7).into();
//! let session = Session::new(SessionKey::named("cli:my-first-talk", owner).unwrap());
//! let person = Person::new(owner, "me", "cli", Standing::Speaks);
//! let command = PersonCommand::StartPlan { plan: uuid::Uuid::from_u128(1).into(), strategy: Default::default(), reads: Default::default() };
//! let asked = Asked::new(uuid::Uuid::from_u128(2), Time(0), SessionCommand::Person(person, command));
//! let session = session.fold(&decide(&session, &asked).unwrap()).unwrap();
//! assert_eq!(session.plan().unwrap().status.word(), "Drafting");
//! ```

pub mod actor;
pub mod agent;
pub mod attempt;
pub mod autonomy;
pub mod chat;
pub mod command;
pub mod diff;
pub mod digest;
pub mod effect;
pub mod id;
pub mod identity;
pub mod limits;
pub mod log;
pub mod memory;
pub mod next;
pub mod notebook;
pub mod outcome;
pub mod owner;
pub mod plan;
pub mod policy;
pub mod prompt;
pub mod refusal;
pub mod session;
pub mod time;
pub mod tools;
pub mod turn;
