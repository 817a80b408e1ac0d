//! Whether a session is there, what people call it, and who may do what in it.

use crate::model::{
    actor::{Person, Standing},
    command::{Issued, LifeCommand, PersonCommand, SessionCommand},
    identity::Root,
    plan::refusal::PlanRefusal,
    policy::{Policy, Risk},
    refusal::Refusal,
    session::{Session, is_foreign, life::Life},
    time::Time,
};

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
        PersonCommand::RecordShown { .. }
        | PersonCommand::MarkSeen { .. }
        | PersonCommand::Discuss { .. } => person.standing == Standing::Decides,
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
    issued: &Issued<SessionCommand>,
) -> Result<Option<Root>, Refusal> {
    if let SessionCommand::Person(person, command) = &issued.command {
        may_begin(session)?;
        may_ask(session, person, command)?;
    }
    match (&issued.project, wished_root(issued)) {
        (Some(project), _) => Ok(Some(project.clone())),
        (None, Some(_)) if is_foreign(session) => {
            Err(Refusal::AgentElsewhere { identity: session.identity.to_string() })
        }
        (None, wished) => issued.policy.root(wished),
    }
}

/// The root that a person names to open the session in, if that is all the command does.
pub(crate) fn wished_root(issued: &Issued<SessionCommand>) -> Option<&Root> {
    if let SessionCommand::Person(_, PersonCommand::Life(LifeCommand::Open { root })) =
        &issued.command
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
pub fn may_promote(
    session: &Session,
    person: &Person,
    at: Time,
    policy: &Policy,
) -> Result<(), Refusal> {
    if session.owner != person.owner {
        return Err(Refusal::NotYours { identity: session.identity.to_string() });
    }
    // Whoever takes a token of theirs must not teach every later session.
    let lately = policy.check_age(person, at, Risk::More);
    lately.map_err(|minutes| PlanRefusal::AskAgain { minutes }.into())
}
