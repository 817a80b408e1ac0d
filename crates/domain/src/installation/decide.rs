//! Deciding on what is asked of the installation: accounts, grants, and what the log takes up.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    account::{Account, Invitation, Role},
    command::{AccountRefusal, InstallationCommand, NewGrant, Requester},
    event::InstallationEvent,
    grant::{GRANTS_OF_A_KIND_MAX, Grant},
    state::Installation,
};
use crate::model::{
    actor::{OWNER, PersonId, Standing},
    digest::Digest,
    hidden::is_hidden,
    id::{GrantId, Seq},
    limits,
    policy::check_age,
    time::Time,
};

/// Decides one command: events, or a refusal in words. Pure. What is the case already has no events.
pub fn decide(
    installation: &Installation,
    command: &InstallationCommand,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    match command.clone() {
        InstallationCommand::Add { person, roles, invitation, by } => {
            administers(installation, &by)?;
            add(installation, person, roles, invitation, by.person)
        }
        InstallationCommand::Invite { person, invitation, by } => {
            administers(installation, &by)?;
            invite(installation, person, invitation, by.person)
        }
        InstallationCommand::InviteOwner { invitation } => invite_owner(installation, invitation),
        InstallationCommand::ChooseFirst { person, hash } => {
            installation.may_choose_first(&person)?;
            Ok(vec![InstallationEvent::PassphraseChosen { person, hash }])
        }
        InstallationCommand::Accept { secret, hash, now } => {
            accept(installation, secret, hash, now)
        }
        InstallationCommand::Change { person, old, hash } => {
            change(installation, person, old, hash)
        }
        InstallationCommand::Reset { person, hash, now } => {
            known(installation, &person)?;
            Ok(vec![InstallationEvent::PassphraseReset { person, hash, at: now }])
        }
        InstallationCommand::SetRoles { person, roles, by } => {
            administers(installation, &by)?;
            set_roles(installation, person, with_speech(roles), by.person)
        }
        InstallationCommand::Remove { person, by } => {
            administers(installation, &by)?;
            remove(installation, person, by.person)
        }
        InstallationCommand::Give { grant, now } => give(installation, grant, now),
        InstallationCommand::Renew { id, standing, known, now } => {
            renew(installation, id, standing, known, now)
        }
        InstallationCommand::Revoke { id, with, now } => revoke(installation, id, with, now),
        InstallationCommand::EndPlace { id, person, now } => {
            end_place(installation, id, person, now)
        }
        InstallationCommand::UnlockTerminal { person, surface, known } => {
            still_known(installation, &person, known)?;
            Ok(vec![InstallationEvent::TerminalUnlocked { person, surface }])
        }
        InstallationCommand::Begin { settings, key } => Ok(begin(installation, settings, key)),
        InstallationCommand::Import { archive, sessions, is_vouched } => {
            Ok(vec![InstallationEvent::Imported { archive, sessions, is_vouched }])
        }
        InstallationCommand::TakeHeads(heads) => {
            Ok(heads.into_iter().map(InstallationEvent::HeadTaken).collect())
        }
        InstallationCommand::Erase(erased) => Ok(vec![InstallationEvent::SessionErased(erased)]),
        InstallationCommand::EraseOwner { owner, by } => {
            Ok(vec![InstallationEvent::OwnerErased { owner, by }])
        }
    }
}

fn known<'a>(
    installation: &'a Installation,
    person: &PersonId,
) -> Result<&'a Account, AccountRefusal> {
    let missing = || AccountRefusal::NoSuchPerson { person: person.0.clone() };
    installation.account(person).ok_or_else(missing)
}

fn invite(
    installation: &Installation,
    person: PersonId,
    invitation: Invitation,
    by: PersonId,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    known(installation, &person)?;
    if person.0 == OWNER {
        return Err(AccountRefusal::OwnerNotInvited);
    }
    Ok(vec![InstallationEvent::PersonInvited { person, invitation, by: Some(by) }])
}

fn invite_owner(
    installation: &Installation,
    invitation: Invitation,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    if installation.is_chosen() {
        return Err(AccountRefusal::AlreadyChosen);
    }
    let person = PersonId(OWNER.into());
    Ok(vec![InstallationEvent::PersonInvited { person, invitation, by: None }])
}

fn accept(
    installation: &Installation,
    secret: Digest,
    hash: Digest,
    now: Time,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    let (person, account) = invited(installation, secret, now).ok_or(AccountRefusal::BadLink)?;
    let person = person.clone();
    Ok(vec![match account.passphrase {
        None => InstallationEvent::PassphraseChosen { person, hash },
        Some(_) => InstallationEvent::PassphraseChanged { person, hash },
    }])
}

fn change(
    installation: &Installation,
    person: PersonId,
    old: Digest,
    hash: Digest,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    match known(installation, &person)?.passphrase {
        None => Err(AccountRefusal::NoneChosen { person: person.0 }),
        Some(holds) if holds != old => Err(AccountRefusal::Outdated),
        Some(_) => Ok(vec![InstallationEvent::PassphraseChanged { person, hash }]),
    }
}

fn set_roles(
    installation: &Installation,
    person: PersonId,
    roles: BTreeSet<Role>,
    by: PersonId,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    if known(installation, &person)?.roles == roles {
        return Ok(Vec::new());
    }
    if person.0 == OWNER {
        return Err(AccountRefusal::OwnerStays);
    }
    Ok(vec![InstallationEvent::RolesChanged { person, roles, by }])
}

fn remove(
    installation: &Installation,
    person: PersonId,
    by: PersonId,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    known(installation, &person)?;
    if person.0 == OWNER {
        return Err(AccountRefusal::OwnerStays);
    }
    Ok(vec![InstallationEvent::PersonRemoved { person, by }])
}

fn renew(
    installation: &Installation,
    id: GrantId,
    standing: Standing,
    known: Seq,
    now: Time,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    let (grant, _) = installation.grant(id, now).ok_or(AccountRefusal::NoSuchGrant)?;
    if !grant.is_login() || grant.expires.is_none() {
        return Err(AccountRefusal::NotALogin);
    }
    still_known(installation, &grant.person, known)?;
    Ok(vec![InstallationEvent::GrantRenewed { id, standing }])
}

fn end_place(
    installation: &Installation,
    id: GrantId,
    person: PersonId,
    now: Time,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    match installation.grant(id, now) {
        Some((grant, _)) if grant.person != person => Err(AccountRefusal::NoSuchGrant),
        Some(_) => Ok(vec![InstallationEvent::GrantRevoked { id, by: person }]),
        None => Ok(Vec::new()),
    }
}

fn begin(
    installation: &Installation,
    settings: BTreeMap<String, Digest>,
    key: Digest,
) -> Vec<InstallationEvent> {
    let other_key = (installation.key != Some(key)).then_some(InstallationEvent::KeyFound { key });
    let others = (installation.settings != settings)
        .then_some(InstallationEvent::SettingsFound { settings });
    other_key.into_iter().chain(others).collect()
}

/// Whether the passphrase that somebody gave then is still theirs.
fn still_known(
    installation: &Installation,
    person: &PersonId,
    known: Seq,
) -> Result<(), AccountRefusal> {
    match installation.account(person) {
        None => Err(AccountRefusal::NoSuchPerson { person: person.0.clone() }),
        Some(account) if known < account.passphrase_since => Err(AccountRefusal::Outdated),
        Some(_) => Ok(()),
    }
}

fn give(
    installation: &Installation,
    new: NewGrant,
    now: Time,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    let NewGrant { id, person, standing, surface, expires, authenticated, is_page, token, details } =
        new;
    let known = authenticated.map_or(installation.version, |(_, known)| known);
    still_known(installation, &person, known)?;
    if token.is_some_and(|token| installation.grant(token, now).is_none()) {
        return Err(AccountRefusal::NoSuchGrant);
    }
    let authenticated = authenticated.map(|(given, _)| given);
    let created = now;
    let grant = Grant {
        person,
        standing,
        surface,
        created,
        expires,
        authenticated,
        is_page,
        token,
        details,
    };
    let mut events = Vec::new();
    let lives = installation.grants.iter().filter(|(_, other)| !other.has_ended(now));
    let alike: Vec<_> = lives.filter(|(_, other)| grant.is_like(other)).collect();
    if alike.len() >= GRANTS_OF_A_KIND_MAX {
        // Whoever gives the passphrase gets in.
        if !grant.is_page && standing != Standing::Decides {
            let (person, surface) = (grant.person.0, surface.name());
            return Err(AccountRefusal::TooManyGrants { person, surface });
        }
        let oldest = alike.into_iter().min_by_key(|(id, other)| (other.created, **id));
        let by = grant.person.clone();
        events.extend(oldest.map(|(id, _)| InstallationEvent::GrantRevoked { id: *id, by }));
    }
    events.push(InstallationEvent::Granted { id, grant });
    Ok(events)
}

/// Takes a grant back: whoever has it, or somebody who sees it and gave their passphrase.
fn revoke(
    installation: &Installation,
    id: GrantId,
    with: GrantId,
    now: Time,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    let (asks, _) = installation.grant(with, now).ok_or(AccountRefusal::NoSuchGrant)?;
    if id != with && asks.authenticated.is_none() {
        return Err(AccountRefusal::NeedsPassphrase);
    }
    let (grant, _) = installation.grant(id, now).ok_or(AccountRefusal::NoSuchGrant)?;
    let mut seen = installation.seen_by(&asks.person);
    if id != with && !seen.any(|(person, _)| *person == grant.person) {
        return Err(AccountRefusal::NoSuchGrant);
    }
    Ok(vec![InstallationEvent::GrantRevoked { id, by: asks.person.clone() }])
}

fn add(
    installation: &Installation,
    person: PersonId,
    roles: BTreeSet<Role>,
    invitation: Invitation,
    by: PersonId,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    named_well(&person)?;
    if installation.account(&person).is_some() {
        return Err(AccountRefusal::AlreadyThere { person: person.0 });
    }
    if installation.people.len() >= limits::PEOPLE_MAX {
        return Err(AccountRefusal::TooMany);
    }
    let (roles, named) = (with_speech(roles), person.clone());
    let added = InstallationEvent::PersonAdded { person: named, roles, by: by.clone() };
    Ok(vec![added, InstallationEvent::PersonInvited { person, invitation, by: Some(by) }])
}

/// Who was given the link with this secret, if it still works.
#[must_use]
pub fn invited(
    installation: &Installation,
    secret: Digest,
    now: Time,
) -> Option<(&PersonId, &Account)> {
    let fits = |account: &Account| {
        account.invitation.is_some_and(|link| link.secret == secret && now < link.until)
    };
    installation.people.iter().find(|(_, account)| fits(account))
}

fn administers(installation: &Installation, by: &Requester) -> Result<(), AccountRefusal> {
    let Requester { person, age_micros, age_micros_max } = by;
    if !installation.account(person).is_some_and(|account| account.may(Role::Admin)) {
        return Err(AccountRefusal::NotAnAdmin { person: person.0.clone() });
    }
    check_age(*age_micros, *age_micros_max).map_err(|minutes| AccountRefusal::AskAgain { minutes })
}

/// Everyone speaks.
fn with_speech(mut roles: BTreeSet<Role>) -> BTreeSet<Role> {
    roles.insert(Role::Speak);
    roles
}

/// Whether a person may have this name: others read it beside what was decided.
pub fn named_well(person: &PersonId) -> Result<(), AccountRefusal> {
    let name = &person.0;
    let fits = (1..=limits::PERSON_BYTES_MAX).contains(&name.len())
        && name.trim() == name
        // Parts of a path that clients leave out, and names that are read as the owner's.
        && name.chars().any(|character| character != '.')
        && (name == OWNER || !name.eq_ignore_ascii_case(OWNER))
        && !name.chars().any(is_hidden);
    if fits { Ok(()) } else { Err(AccountRefusal::BadName) }
}
