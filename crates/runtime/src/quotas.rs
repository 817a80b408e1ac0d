//! What owners may use, and how they stand with it: read where a command needs it, and given to `decide` inside the command.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use planwright_domain::{
    actor::PersonId,
    id::OwnerId,
    owner::Owner,
    quota::{Day, Limit, LimitReached, Quota, QuotaUse, Used},
    time::Time,
    turn::Usage,
};
use tokio::time::Instant;

use crate::{
    ports::{
        Clock, Ports,
        journal::{Journal, JournalError},
    },
    settings::{Limits, Settings},
};

/// How long what was read of an owner who is far from every limit is used again.
const USED_KEPT: Duration = Duration::from_secs(1);
/// How many owners are remembered.
const OWNERS_MAX: usize = 4_096;

/// How owners stand with what they may use.
#[derive(Clone)]
pub struct Quotas {
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    limits: Arc<Limits>,
    known: Arc<Mutex<HashMap<OwnerId, KnownOwner>>>,
}

/// What is remembered of an owner.
#[derive(Clone)]
struct KnownOwner {
    name: PersonId,
    far: Option<(Instant, Day, Arc<QuotaUse>)>,
}

impl Quotas {
    pub(crate) fn new(ports: &Ports, settings: &Settings) -> Self {
        Self {
            journal: ports.journal.clone(),
            clock: ports.clock.clone(),
            limits: settings.limits.clone(),
            known: Arc::default(),
        }
    }

    /// How an owner stands with these of their limits; nothing, if none of them is set.
    pub(crate) async fn of(
        &self,
        owner: OwnerId,
        limits: &[Limit],
        at: Time,
    ) -> Result<Option<Arc<QuotaUse>>, JournalError> {
        if limits.is_empty() || self.limits.is_unlimited() {
            return Ok(None);
        }
        let known = self.known(owner).await?;
        let quota = self.limits.of(&known.name);
        if limits.iter().all(|limit| quota.of(*limit).is_none()) {
            return Ok(None);
        }
        let day = Day::of(at);
        if let Some((read, of, far)) = &known.far
            && read.elapsed() < USED_KEPT
            && *of == day
        {
            return Ok(Some(far.clone()));
        }
        let reads = limits.iter().any(|limit| *limit != Limit::Turns);
        let (quota, used) = if reads {
            let (owner, used) = self.journal.used(owner, day).await?;
            (owner.quota_on(quota, day), used)
        } else {
            (quota, Used::default())
        };
        let found = Arc::new(QuotaUse { owner: known.name, quota, used });
        if reads && found.is_far() {
            let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = all.get_mut(&owner) {
                known.far = Some((Instant::now(), day, found.clone()));
            }
        }
        Ok(Some(found))
    }

    /// Counts what this process recorded to what it remembers: who comes near a limit is looked up again.
    pub(crate) fn add(&self, owner: OwnerId, usage: Usage) {
        let Usage { input, output, cost_micros, .. } = usage;
        if (input, output, cost_micros) == (0, 0, 0) {
            return;
        }
        self.add_used(owner, |used| {
            used.tokens = used.tokens.saturating_add(input).saturating_add(output);
            used.cost_micros = used.cost_micros.saturating_add(cost_micros);
        });
    }

    /// Counts so many bytes more to what it remembers.
    pub(crate) fn add_bytes(&self, owner: OwnerId, bytes: usize) {
        if bytes > 0 {
            self.add_used(owner, |used| used.bytes = used.bytes.saturating_add(bytes as u64));
        }
    }

    fn add_used(&self, owner: OwnerId, add: impl FnOnce(&mut Used)) {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get_mut(&owner) {
            known.far = known.far.take().and_then(|(read, day, mut far)| {
                add(&mut Arc::make_mut(&mut far).used);
                far.is_far().then_some((read, day, far))
            });
        }
    }

    /// How an owner stands with everything, read anew.
    pub async fn now(&self, owner: OwnerId) -> Result<(Owner, QuotaUse), JournalError> {
        let name = self.known(owner).await?.name;
        let day = Day::of(self.clock.now());
        let (found, used) = self.journal.used(owner, day).await?;
        let quota = found.quota_on(self.limits.of(&name), day);
        Ok((found, QuotaUse { owner: name, quota, used }))
    }

    /// What every owner may use who has no other limits.
    #[must_use]
    pub fn everyone(&self) -> Quota {
        self.limits.everyone
    }

    /// What an owner may use on a day on which nobody raised anything.
    pub async fn usual(&self, owner: OwnerId) -> Result<Quota, JournalError> {
        Ok(self.limits.of(&self.known(owner).await?.name))
    }

    /// Why a turn of this owner does not begin, if it does not: as many are under way as may be.
    pub(crate) async fn full(&self, owner: OwnerId) -> Result<Option<LimitReached>, JournalError> {
        let name = self.known(owner).await?.name;
        let quota = self.limits.of(&name);
        if quota.turns.is_none() {
            return Ok(None);
        }
        let (_, used) = self.journal.used(owner, Day::of(self.clock.now())).await?;
        let stands = QuotaUse { owner: name, quota, used };
        Ok(stands.reached(&[Limit::Turns], self.clock.now()))
    }

    async fn known(&self, owner: OwnerId) -> Result<KnownOwner, JournalError> {
        if let Some(known) =
            self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&owner).cloned()
        {
            return Ok(known);
        }
        let name = self.journal.owner_name(owner).await?;
        let name = name.unwrap_or_else(|| PersonId(owner.to_string()));
        let known = KnownOwner { name, far: None };
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= OWNERS_MAX {
            all.clear();
        }
        all.insert(owner, known.clone());
        Ok(known)
    }
}
