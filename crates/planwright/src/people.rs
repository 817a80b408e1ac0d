//! The people who use the installation, and their passphrases, from a terminal.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Context as _;
use planwright_domain::{actor::PersonId, installation::Role as DomainRole};
use planwright_surfaces::http::auth::people::{InvitationGiven, PersonRow, RoleName};
use serde_json::json;

use crate::{
    args::{PeopleCommand, Role},
    backend::{Backend, PeopleAct, PeopleAnswer},
    exit::Exit,
    installation::Installation,
    talk::{Lines, new_passphrase, unlock},
    terminal::{Terminal, visible::visible},
};

/// Looks at or changes who uses the installation. To change it needs the passphrase.
pub async fn run(
    backend: &mut dyn Backend,
    command: Option<&PeopleCommand>,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let (act, done) = match command {
        None | Some(PeopleCommand::List) => (PeopleAct::List, String::new()),
        Some(PeopleCommand::Add { name, roles }) => {
            (PeopleAct::Add(name.clone(), names(roles)), format!("{} was added", visible(name)))
        }
        Some(PeopleCommand::Role { name, roles }) => {
            let done =
                format!("{} may do this from now on: {}", visible(name), words(&names(roles)));
            (PeopleAct::SetRoles(name.clone(), names(roles)), done)
        }
        Some(PeopleCommand::Passphrase { name }) => {
            let done = format!("the passphrase of {} stands until the link is used", visible(name));
            (PeopleAct::Invite(name.clone()), done)
        }
        Some(PeopleCommand::Remove { name }) => {
            let done = format!("{} was removed: their logins and tokens have ended", visible(name));
            (PeopleAct::Remove(name.clone()), done)
        }
    };
    if !matches!(act, PeopleAct::List) && !backend.is_unlocked() {
        let mut lines = Lines::default();
        if !lines.is_terminal() {
            anyhow::bail!(
                "this needs your passphrase: run it in a terminal, or with --passphrase-stdin"
            )
        }
        unlock(backend, &mut lines).await?;
    }
    match backend.people(act).await? {
        PeopleAnswer::People(people) => list(&people, terminal),
        PeopleAnswer::Link(InvitationGiven { link, expires }) => terminal.row(
            &format!("{done}; give them this link, which works once, until {expires}:\n  {link}"),
            || json!({"type": "invitation", "link": link, "expires": expires}),
        ),
        PeopleAnswer::Done => terminal.row(&done, || json!({"type": "done"})),
    }
    Ok(Exit::Fine)
}

fn list(people: &[PersonRow], terminal: &mut Terminal) {
    for PersonRow { name, roles, has_passphrase, invited_until } in people {
        let state = match (has_passphrase, invited_until) {
            (true, None) => String::new(),
            (true, Some(until)) => format!("; has a link for another passphrase until {until}"),
            (false, Some(until)) => format!("; was invited until {until}"),
            (false, None) => "; chose no passphrase yet".into(),
        };
        terminal.row(
            &format!("{}: {}{state}", visible(name), words(roles)),
            || json!({"type": "person", "name": name, "roles": roles, "hasPassphrase": has_passphrase, "invitedUntil": invited_until}),
        );
    }
}

fn words(roles: &BTreeSet<RoleName>) -> String {
    let names: Vec<_> = roles.iter().map(|role| DomainRole::from(*role).name()).collect();
    names.join(", ")
}

fn names(roles: &[Role]) -> BTreeSet<RoleName> {
    let name = |role: &Role| match role {
        Role::Speak => RoleName::Speak,
        Role::Decide => RoleName::Decide,
        Role::Admin => RoleName::Admin,
    };
    roles.iter().map(name).collect()
}

/// Chooses the person's passphrase, or changes it.
pub async fn passphrase(
    backend: &mut dyn Backend,
    is_stdin: bool,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let mut lines = Lines::default();
    if !backend.has_passphrase() {
        let new = new_one(&mut lines, is_stdin, "choose a passphrase").await?;
        backend.unlock(&new).await?;
        terminal.line("chosen; deciding asks for it from now on");
        return Ok(Exit::Fine);
    }
    let old = if is_stdin || !lines.is_terminal() {
        lines.next().await.context("there was no line with the current passphrase")?
    } else {
        lines.hidden("current passphrase: ").await?
    };
    let new = new_one(&mut lines, is_stdin, "new passphrase").await?;
    backend.change_passphrase(old.trim_end_matches(['\n', '\r']), &new).await?;
    let who = visible(backend.person());
    terminal.line(&format!("changed; every login of {who} has ended, and asks for the new one"));
    Ok(Exit::Fine)
}

/// Gives a person another passphrase without the current one.
pub async fn reset(
    installation: Installation,
    person: &str,
    is_stdin: bool,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let mut lines = Lines::default();
    let asked = format!("a new passphrase for {}", visible(person));
    let new = new_one(&mut lines, is_stdin, &asked).await?;
    installation.accounts.reset(&PersonId(person.to_owned()), &new, Duration::ZERO).await?;
    terminal.line(RESET);
    Ok(Exit::Fine)
}

/// What a reset did.
pub(crate) const RESET: &str = "reset; all logins have ended, what was approved and not yet executed waits for a new decision, and everyone is told for seven days";

/// A new passphrase, typed twice, or from the next line of standard input.
pub(crate) async fn new_one(
    lines: &mut Lines,
    is_stdin: bool,
    asked: &str,
) -> anyhow::Result<String> {
    if is_stdin || !lines.is_terminal() {
        let line = lines.next().await.context("there was no line with the new passphrase")?;
        return Ok(line.trim_end_matches(['\n', '\r']).to_owned());
    }
    let prompt = format!("{asked} (8 characters or more): ");
    new_passphrase(lines, &prompt).await?.context("no passphrase was chosen")
}
