//! Events of the installation.

use std::collections::{BTreeMap, BTreeSet};

use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{GrantId, OwnerId, Seq},
    time::Time,
};

use super::shared::{ChannelType, Standing};

stored! {
    #[derive(PartialOrd, Ord)]
    enum Role = installation::Role { Speak, Decide, Admin }

    struct Invitation = installation::Invitation { secret: Digest, until: Time }

    struct Grant = installation::Grant {
        person: PersonId, standing: Standing, surface: ChannelType, created: Time, is_page: bool, details: Digest;
        expires: Option<Time>, authenticated: Option<Time>, token: Option<GrantId>
    }

    struct SessionHead = log::SessionHead { session: Digest, seq: Seq, head: Digest }

    struct Erased = log::Erased { of: SessionHead, by: PersonId, asked: Time }

    enum InstallationEvent = installation::InstallationEvent {
        PersonAdded { person: PersonId, roles: BTreeSet<Role>, by: PersonId },
        PersonInvited { person: PersonId, invitation: Invitation; by: Option<PersonId> },
        PassphraseChosen { person: PersonId, hash: Digest },
        PassphraseChanged { person: PersonId, hash: Digest },
        PassphraseReset { person: PersonId, hash: Digest, at: Time },
        RolesChanged { person: PersonId, roles: BTreeSet<Role>, by: PersonId },
        PersonRemoved { person: PersonId, by: PersonId },
        Granted { id: GrantId, grant: Grant },
        GrantRenewed { id: GrantId, standing: Standing },
        GrantRevoked { id: GrantId, by: PersonId },
        TerminalUnlocked { person: PersonId, surface: String },
        SettingsFound { settings: BTreeMap<String, Digest> },
        KeyFound { key: Digest },
        Imported { archive: Digest, sessions: u64, is_vouched: bool },
        HeadTaken(of: SessionHead),
        SessionErased(erased: Erased),
        OwnerErased { owner: OwnerId, by: PersonId },
    }
}
