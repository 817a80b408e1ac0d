//! Whether a session is there, what people call it, and who may do what in it.

use serde::{Deserialize, Serialize};

use crate::{
    actor::{Person, Standing},
    agent::is_foreign,
    autonomy::event::AutoEvent,
    command::{Asked, LifeCommand, PersonCommand, SessionCommand},
    identity::Root,
    limits,
    refusal::Refusal,
    session::{Session, SessionEvent, everything_ends},
};

/// Whether a session is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// It is.
    #[default]
    Open,
    /// It was put away.
    Archived,
    /// It was deleted, for good.
    Deleted,
}

impl Life {
    /// The name, as programs read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Archived => "archived",
            Self::Deleted => "deleted",
        }
    }
}

/// What happened to a session itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LifeEvent {
    /// It began, in this root: the first event of a session where the operator names roots.
    Opened {
        /// The root.
        root: Root,
    },
    /// It is called something else.
    Renamed {
        /// The title.
        title: String,
        /// Who.
        by: Person,
    },
    /// It was put away.
    Archived {
        /// Who.
        by: Person,
    },
    /// It was brought back.
    Restored {
        /// Who.
        by: Person,
    },
    /// It was deleted.
    Deleted {
        /// Who.
        by: Person,
    },
}

/// Whether this person may ask this of the session: it is there, and it is theirs. Who may decide may review
/// and decide in the sessions of others too.
pub(crate) fn may_ask(
    session: &Session,
    person: &Person,
    command: &PersonCommand,
) -> Result<(), Refusal> {
    let identity = session.identity.to_string();
    if session.life == Life::Deleted {
        return Err(Refusal::SessionDeleted { identity });
    }
    let theirs = session.owner == person.owner;
    let reviews = match command {
        // Whether they may is looked at where it is decided.
        PersonCommand::Decide(_) | PersonCommand::EditPlan { .. } => true,
        PersonCommand::RecordShown { .. } | PersonCommand::MarkSeen { .. } => {
            person.standing == Standing::Decides
        }
        PersonCommand::Say { .. }
        | PersonCommand::StartPlan { .. }
        | PersonCommand::EndPlan(_)
        | PersonCommand::Reset
        | PersonCommand::Compact
        | PersonCommand::Stop
        | PersonCommand::PausePlan
        | PersonCommand::Auto(_)
        | PersonCommand::Memory(_)
        | PersonCommand::Notebook { .. }
        | PersonCommand::Life(_) => false,
    };
    if theirs || reviews { Ok(()) } else { Err(Refusal::NotYours { identity }) }
}

/// Whether a session may begin under this key.
pub(crate) fn may_begin(session: &Session) -> Result<(), Refusal> {
    if session.identity.key.may_be_new() {
        return Ok(());
    }
    Err(Refusal::LegacyKeyIsNotNew { identity: session.identity.to_string() })
}

/// The root in which a session begins with this command; none where the operator names no roots.
pub(crate) fn opens_in(
    session: &Session,
    asked: &Asked<SessionCommand>,
) -> Result<Option<Root>, Refusal> {
    if let SessionCommand::Person(person, command) = &asked.command {
        may_begin(session)?;
        may_ask(session, person, command)?;
    }
    match (&asked.project, wished_root(asked)) {
        (Some(project), _) => Ok(Some(project.clone())),
        (None, Some(_)) if is_foreign(session) => {
            Err(Refusal::AgentElsewhere { identity: session.identity.to_string() })
        }
        (None, wished) => asked.policy.root(wished),
    }
}

/// The root that a person names to open the session in, if that is all the command does.
pub(crate) fn wished_root(asked: &Asked<SessionCommand>) -> Option<&Root> {
    if let SessionCommand::Person(_, PersonCommand::Life(LifeCommand::Open { root })) =
        &asked.command
    {
        return Some(root);
    }
    None
}

/// Whether this person may see the session: it is theirs, or they may decide in it.
#[must_use]
pub fn may_see(session: &Session, person: &Person) -> bool {
    let theirs = session.owner == person.owner;
    theirs || person.standing == Standing::Decides
}

/// Whether this person may make known everywhere what this session remembers: its owner alone.
pub fn may_promote(session: &Session, person: &Person) -> Result<(), Refusal> {
    if session.owner == person.owner {
        return Ok(());
    }
    Err(Refusal::NotYours { identity: session.identity.to_string() })
}

/// Names, puts away, brings back or deletes a session.
pub(crate) fn lives(
    session: &Session,
    person: &Person,
    command: &LifeCommand,
) -> Result<Vec<SessionEvent>, Refusal> {
    let by = person.clone();
    let life = |event| Ok(vec![SessionEvent::Life(event)]);
    match command {
        LifeCommand::Open { .. } => {
            let (identity, root) = (session.identity.to_string(), session.root.as_ref());
            let root = root.map_or_else(|| "its workspace".into(), |root| root.0.clone());
            Err(Refusal::RootStands { identity, root })
        }
        LifeCommand::Rename { title } => {
            let (bytes, limit) = (title.trim().len(), limits::TITLE_BYTES_MAX);
            match bytes {
                0 => Err(Refusal::EmptyMessage),
                _ if bytes > limit => Err(Refusal::MessageTooLong { bytes, limit }),
                _ => life(LifeEvent::Renamed { title: title.trim().to_owned(), by }),
            }
        }
        LifeCommand::Archive if !session.auto.runs.is_empty() => {
            Err(Refusal::RunsGoOn { count: session.auto.runs.len() })
        }
        LifeCommand::Archive if session.life == Life::Archived => Ok(Vec::new()),
        LifeCommand::Archive => life(LifeEvent::Archived { by }),
        LifeCommand::Restore if session.life == Life::Open => Ok(Vec::new()),
        LifeCommand::Restore => life(LifeEvent::Restored { by }),
        LifeCommand::Delete => {
            let mut events = everything_ends(session, person);
            let why = "its session was deleted".to_owned();
            events.extend(session.auto.schedules.keys().map(|schedule| {
                let (schedule, why) = (*schedule, why.clone());
                SessionEvent::Auto(AutoEvent::ScheduleEnded { schedule, why })
            }));
            events.push(SessionEvent::Life(LifeEvent::Deleted { by }));
            Ok(events)
        }
    }
}
