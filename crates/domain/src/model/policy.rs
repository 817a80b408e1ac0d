//! Who may decide, how long a plan waits for it, and when a person is reminded.
//!
//! The operator sets it; it arrives inside commands, is part of the decision, and its digest is in the
//! record of every approval. (How many must agree comes later: it has its place here.)

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::Person,
    digest::{Digest, Encoder},
    effect::{Envelope, FILE_TOOLS},
    identity::Root,
    refusal::Refusal,
    time::Time,
};

/// Who may decide, and when.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The people who may; everyone who may decide at all, if none are named.
    pub people: BTreeSet<String>,
    /// The kinds of surfaces they may stand at: `cli`, `web`, `api`; all, if none are named.
    pub surfaces: BTreeSet<String>,
    /// How often a person is reminded of a plan that waits.
    pub remind_micros: Option<i64>,
    /// How long a revision waits for a decision before only a newer one can be approved.
    pub expires_micros: Option<i64>,
    /// How long ago a person may have given their passphrase, to decide on what approving a plan leases without a word: files
    /// under the session's root. However long, if it is not set.
    pub age_micros_max: Option<i64>,
    /// The same for everything else: commands, hosts, more money, what becomes known everywhere.
    pub risky_age_micros_max: Option<i64>,
    /// What a lease may cost, in millionths of a dollar, before it counts as more.
    pub usual_spend_micros_max: Option<u64>,
    /// The roots that a session may have. A new one has the first, where nobody chooses another. They are not among the rules
    /// on who may decide: what an approval is bound to is the root that its session has.
    pub roots: Vec<Root>,
}

/// By how much the clocks of nodes may differ.
const CLOCKS_DIFFER_MICROS: i64 = 60_000_000;

/// How much can come of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    /// No more than files under the session's root.
    Usual,
    /// More: a command, a host, money, what is known everywhere.
    More,
}

/// What happens while a revision waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waits {
    /// When a person is reminded next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remind_at: Option<Time>,
    /// How often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remind_micros: Option<i64>,
    /// When it can no longer be approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// Whether a passphrase that was given so long ago was given lately enough; if not, within how many minutes it must have been.
pub(crate) fn check_age(age_micros: Option<i64>, max: i64) -> Result<(), i64> {
    match age_micros {
        // The clocks of nodes differ a little; what was given in the future was not given.
        Some(age) if (-CLOCKS_DIFFER_MICROS..=max).contains(&age) => Ok(()),
        Some(_) | None => Err(max / 60_000_000),
    }
}

impl Policy {
    /// Whether this person may decide from where they stand.
    #[must_use]
    pub fn admits(&self, person: &Person) -> bool {
        let kind = person.surface.0.split_whitespace().next().unwrap_or_default();
        (self.people.is_empty() || self.people.contains(&person.id.0))
            && (self.surfaces.is_empty() || self.surfaces.contains(kind))
    }

    /// Whether a person gave their passphrase lately enough for this; if not, within how many minutes it must have been.
    pub fn check_age(&self, person: &Person, at: Time, risk: Risk) -> Result<(), i64> {
        let max = match risk {
            Risk::Usual => self.age_micros_max,
            Risk::More => self.risky_age_micros_max,
        };
        let age = person.authenticated.map(|given| at.0.saturating_sub(given.0));
        max.map_or(Ok(()), |max| check_age(age, max))
    }

    /// What can come of this lease.
    #[must_use]
    pub fn risk_of(&self, lease: &Envelope) -> Risk {
        let spends = lease.spend_micros_max.zip(self.usual_spend_micros_max);
        let is_usual = lease.tools.keys().all(|tool| FILE_TOOLS.contains(&tool.as_str()))
            && lease.hosts.is_empty()
            && spends.is_none_or(|(spend, usual)| spend <= usual);
        if is_usual { Risk::Usual } else { Risk::More }
    }

    /// What can come of a call of this tool.
    #[must_use]
    pub fn risk_of_tool(tool: &str) -> Risk {
        if FILE_TOOLS.contains(&tool) { Risk::Usual } else { Risk::More }
    }

    /// The root of a session that begins: the one that is wished for, if it is allowed; without a wish, the first.
    pub(crate) fn root(&self, wished: Option<&Root>) -> Result<Option<Root>, Refusal> {
        match wished {
            None => Ok(self.roots.first().cloned()),
            Some(root) if self.roots.contains(root) => Ok(Some(root.clone())),
            Some(root) => Err(Refusal::RootNotAllowed {
                root: root.0.clone(),
                allowed: self.roots.iter().map(|root| root.0.clone()).collect(),
            }),
        }
    }

    /// What a revision that begins to wait now waits for.
    #[must_use]
    pub fn waits(&self, at: Time) -> Option<Waits> {
        if self.remind_micros.is_none() && self.expires_micros.is_none() {
            return None;
        }
        Some(Waits {
            remind_at: self.remind_micros.map(|micros| at.plus_micros(micros)),
            remind_micros: self.remind_micros,
            expires_at: self.expires_micros.map(|micros| at.plus_micros(micros)),
        })
    }

    /// The digest of all of it; none for the policy that restricts nothing.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        let restricts = !self.people.is_empty() || !self.surfaces.is_empty();
        if !restricts && self.remind_micros.is_none() && self.expires_micros.is_none() {
            return None;
        }
        let encoder = Encoder::of("policy", 1).number("people", self.people.len() as u64);
        let encoder = self.people.iter().fold(encoder, |encoder, name| encoder.field("name", name));
        let encoder = encoder.number("surfaces", self.surfaces.len() as u64);
        let surfaces = self.surfaces.iter();
        let encoder = surfaces.fold(encoder, |encoder, name| encoder.field("surface", name));
        let micros = |micros: Option<i64>| micros.map(|micros| micros.to_string());
        let encoder = encoder
            .optional("remind", micros(self.remind_micros).as_deref())
            .optional("expires", micros(self.expires_micros).as_deref());
        Some(encoder.digest())
    }
}

impl Waits {
    /// When something is due because of it.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        [self.remind_at, self.expires_at].into_iter().flatten().min()
    }
}
