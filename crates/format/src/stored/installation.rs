//! Events of the installation.

use std::collections::BTreeSet;

use planwright_domain::{actor::PersonId, digest::Digest, time::Time};

stored! {
    #[derive(PartialOrd, Ord)]
    enum Role = installation::Role { Speak, Decide, Admin }

    struct Invitation = installation::Invitation { secret: Digest, until: Time }

    enum InstallationEvent = installation::InstallationEvent {
        PersonAdded { person: PersonId, roles: BTreeSet<Role>, by: PersonId },
        PersonInvited { person: PersonId, invitation: Invitation; by: Option<PersonId> },
        PassphraseChosen { person: PersonId, hash: Digest },
        PassphraseChanged { person: PersonId, hash: Digest },
        PassphraseReset { person: PersonId, hash: Digest, at: Time },
        RolesChanged { person: PersonId, roles: BTreeSet<Role>, by: PersonId },
        PersonRemoved { person: PersonId, by: PersonId },
    }
}
