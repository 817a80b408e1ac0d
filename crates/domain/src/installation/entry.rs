//! What the audit log says of an event, in codes, ids and digests: this is what is chained.

use super::{
    account::{Invitation, Role},
    event::InstallationEvent,
    grant::Grant,
};
use crate::model::{
    actor::Standing,
    log::{Entry, Erased, SessionHead},
    time::Time,
};

impl InstallationEvent {
    /// What the audit log says of it.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let (who, subject, verdict, arguments) = match self {
            Self::PersonAdded { person, roles, by } => {
                (Some(&by.0), person.0.clone(), "added", names(roles))
            }
            Self::PersonInvited { person, invitation: Invitation { secret, until }, by } => {
                let arguments = vec![secret.to_string(), until.0.to_string()];
                (by.as_ref().map(|by| &by.0), person.0.clone(), "invited", arguments)
            }
            Self::PassphraseChosen { person, hash } => {
                (Some(&person.0), person.0.clone(), "chosen", vec![hash.to_string()])
            }
            Self::PassphraseChanged { person, hash } => {
                (Some(&person.0), person.0.clone(), "changed", vec![hash.to_string()])
            }
            Self::PassphraseReset { person, hash, at } => {
                (None, person.0.clone(), "reset", vec![hash.to_string(), at.0.to_string()])
            }
            Self::RolesChanged { person, roles, by } => {
                (Some(&by.0), person.0.clone(), "may", names(roles))
            }
            Self::PersonRemoved { person, by } => {
                (Some(&by.0), person.0.clone(), "removed", Vec::new())
            }
            Self::Granted { id, grant } => {
                (Some(&grant.person.0), id.to_string(), "given", of_grant(grant))
            }
            Self::GrantRenewed { id, standing } => {
                (None, id.to_string(), "renewed", vec![named(*standing).to_owned()])
            }
            Self::GrantRevoked { id, by } => (Some(&by.0), id.to_string(), "revoked", Vec::new()),
            Self::TerminalUnlocked { person, surface } => {
                (Some(&person.0), surface.clone(), "unlocked", Vec::new())
            }
            Self::SettingsFound { settings } => {
                let setting = |(name, digest): (&String, _)| [name.clone(), format!("{digest}")];
                let all = settings.iter().flat_map(setting).collect();
                (None, "settings".into(), "found", all)
            }
            Self::KeyFound { key } => (None, key.to_string(), "found", Vec::new()),
            Self::Imported { archive, sessions, is_vouched } => {
                let verdict = if *is_vouched { "imported" } else { "imported_and_held" };
                (None, archive.to_string(), verdict, vec![sessions.to_string()])
            }
            Self::HeadTaken(SessionHead { session, seq, head }) => {
                let arguments = vec![seq.0.to_string(), head.to_string()];
                (None, session.to_string(), "taken", arguments)
            }
            Self::SessionErased(Erased { of: SessionHead { session, seq, head }, by, asked }) => {
                let arguments = vec![seq.0.to_string(), head.to_string(), asked.0.to_string()];
                (Some(&by.0), session.to_string(), "erased", arguments)
            }
            Self::OwnerErased { owner, by } => {
                (Some(&by.0), owner.to_string(), "erased", Vec::new())
            }
        };
        Entry {
            kind: self.kind().to_owned(),
            who: who.cloned(),
            owner: None,
            surface: None,
            subject,
            verdict: verdict.to_owned(),
            arguments,
        }
    }
}

fn names<'a>(roles: impl IntoIterator<Item = &'a Role>) -> Vec<String> {
    roles.into_iter().map(|role| role.name().to_owned()).collect()
}

const fn named(standing: Standing) -> &'static str {
    match standing {
        Standing::Speaks => "speaks",
        Standing::Decides => "decides",
    }
}

fn of_grant(grant: &Grant) -> Vec<String> {
    let time = |time: Option<Time>| time.map_or("-".to_owned(), |time| time.0.to_string());
    vec![
        named(grant.standing).to_owned(),
        grant.surface.name().to_owned(),
        grant.created.0.to_string(),
        time(grant.expires),
        time(grant.authenticated),
        if grant.is_page { "page" } else { "-" }.to_owned(),
        grant.token.map_or("-".to_owned(), |token| token.to_string()),
        grant.details.to_string(),
    ]
}
