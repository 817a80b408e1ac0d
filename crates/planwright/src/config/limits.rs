//! What owners may use, and how long sessions are kept.

use std::{collections::BTreeMap, sync::Arc};

use planwright_domain::{actor::PersonId, quota::Quota};
use planwright_runtime::settings::{Limits, Retention};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};

/// What each owner may use. 0 is no limit.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// How much money the models may cost an owner in a day (UTC), in dollars. Counted where the price of the model is known.
    #[serde(deserialize_with = "dollars")]
    pub dollars_per_day: f64,
    /// How many tokens an owner may use in a day (UTC), read and written.
    pub tokens_per_day: u64,
    /// How many turns of an owner may be under way at the same time; those that wait for a person do not count. What is more
    /// waits.
    pub turns: u32,
    /// How many megabytes the sessions of an owner may take: events and outputs, as they are stored. It is looked at every ten
    /// seconds.
    pub stored_megabytes: u64,
    /// Other limits for these owners, by their names. What is not named there is as if it stood in no configuration.
    pub owners: BTreeMap<String, OwnerLimitsConfig>,
}

/// What one owner may use. 0 is no limit.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OwnerLimitsConfig {
    /// How much money in a day, in dollars.
    #[serde(deserialize_with = "dollars")]
    pub dollars_per_day: f64,
    /// How many tokens in a day.
    pub tokens_per_day: u64,
    /// How many turns at the same time.
    pub turns: u32,
    /// How many megabytes stored.
    pub stored_megabytes: u64,
}

/// A day costs a dollar at most, until someone says otherwise.
const DOLLARS_PER_DAY: f64 = 1.0;
/// The least and the most that a limit can be.
const DOLLARS_MIN: f64 = 0.000_001;
const DOLLARS_MAX: f64 = 1_000_000.0;

/// An amount of money: what is no amount must not become no limit.
fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let dollars = f64::deserialize(deserializer)?;
    if dollars == 0.0 || (DOLLARS_MIN..=DOLLARS_MAX).contains(&dollars) {
        return Ok(dollars);
    }
    Err(D::Error::custom(format!(
        "{dollars} is no amount for a day: name dollars from {DOLLARS_MIN} to {DOLLARS_MAX}, or 0 for no limit"
    )))
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let OwnerLimitsConfig { dollars_per_day, tokens_per_day, turns, stored_megabytes } =
            OwnerLimitsConfig::default();
        let owners = BTreeMap::new();
        Self { dollars_per_day, tokens_per_day, turns, stored_megabytes, owners }
    }
}

impl Default for OwnerLimitsConfig {
    fn default() -> Self {
        Self { dollars_per_day: DOLLARS_PER_DAY, tokens_per_day: 0, turns: 0, stored_megabytes: 0 }
    }
}

impl OwnerLimitsConfig {
    fn quota(self) -> Quota {
        let set = |number: u64| (number > 0).then_some(number);
        Quota {
            turns: set(self.turns.into()),
            tokens: set(self.tokens_per_day),
            cost_micros: set((self.dollars_per_day * 1e6).round() as u64),
            bytes: set(self.stored_megabytes.saturating_mul(1_000_000)),
        }
    }
}

impl LimitsConfig {
    pub(super) fn limits(&self) -> Arc<Limits> {
        let Self { dollars_per_day, tokens_per_day, turns, stored_megabytes, owners } = self;
        let everyone = OwnerLimitsConfig {
            dollars_per_day: *dollars_per_day,
            tokens_per_day: *tokens_per_day,
            turns: *turns,
            stored_megabytes: *stored_megabytes,
        };
        let owners = owners.iter().map(|(name, limits)| (PersonId(name.clone()), limits.quota()));
        Arc::new(Limits { everyone: everyone.quota(), owners: owners.collect() })
    }
}

/// How long sessions are kept in which nothing happens. 0 is for good.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// After how many days a session that was put away is deleted, and erased.
    pub archived_days: u32,
    /// After how many days a session in which nothing goes on and nothing waits is deleted, and erased.
    pub idle_days: u32,
}

impl RetentionConfig {
    pub(super) fn retention(self) -> Retention {
        let set = |days: u32| (days > 0).then_some(days);
        Retention { archived_days: set(self.archived_days), idle_days: set(self.idle_days) }
    }
}
