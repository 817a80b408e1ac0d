//! What an owner may use, how much of it is gone, and which limit is reached.
//!
//! Tokens and money are counted by days in UTC, so that every node and every restart means the same day. 80 % warns, 100 %
//! pauses the turn that would use more, and asks.

use serde::{Deserialize, Serialize};

use crate::model::{actor::PersonId, time::Time};

/// From this share on a person is warned, in percent.
pub const WARNS_AT_PERCENT: u64 = 80;
/// What is far below every limit may be looked at less often, in percent.
const FAR_PERCENT: u64 = 50;
const DAY_MICROS: i64 = 86_400_000_000;

/// A day in UTC: days since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Day(pub i64);

impl Day {
    /// The day of this time.
    #[must_use]
    pub fn of(time: Time) -> Self {
        Self(time.0.div_euclid(DAY_MICROS))
    }

    /// When it ends.
    #[must_use]
    pub fn ends(self) -> Time {
        Time(self.0.saturating_add(1).saturating_mul(DAY_MICROS))
    }
}

/// One of the things of which an owner has only so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Turns at the same time.
    Turns,
    /// Tokens in a day, read and written.
    Tokens,
    /// Money in a day, in millionths of a dollar.
    Money,
    /// Bytes stored.
    Bytes,
}

impl Limit {
    /// An amount of it, as people read it.
    #[must_use]
    pub fn amount(self, amount: u64) -> String {
        match self {
            Self::Turns => format!("{amount} turns at the same time"),
            Self::Tokens => format!("{amount} tokens a day"),
            Self::Money => format!("{} a day", dollars(amount)),
            Self::Bytes => format!("{:.1} MB stored", amount as f64 / 1e6),
        }
    }

    /// Whether a person may raise it for a day.
    #[must_use]
    pub const fn is_raisable(self) -> bool {
        match self {
            Self::Tokens | Self::Money => true,
            Self::Turns | Self::Bytes => false,
        }
    }

    /// The name, as programs read it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Money => "money",
            Self::Bytes => "bytes",
        }
    }
}

/// What an owner may use; what is not named is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Turns at the same time.
    pub turns: Option<u64>,
    /// Tokens in a day.
    pub tokens: Option<u64>,
    /// Money in a day, in millionths of a dollar.
    pub cost_micros: Option<u64>,
    /// Bytes stored.
    pub bytes: Option<u64>,
}

/// What an owner has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Turns that are under way.
    pub turns: u64,
    /// Tokens today.
    pub tokens: u64,
    /// Money today, in millionths of a dollar.
    pub cost_micros: u64,
    /// Bytes stored.
    pub bytes: u64,
}

/// How an owner stands with what they may use. It arrives inside commands, as the time does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaUse {
    /// Whose.
    pub owner: PersonId,
    /// What they may use today.
    pub quota: Quota,
    /// What they have used.
    pub used: Used,
}

/// How many turns an owner may have under way: looked at where a turn begins, in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRoom {
    /// Whose.
    pub owner: PersonId,
    /// How many.
    pub max: u64,
}

impl TurnRoom {
    /// Whether another may begin while so many are under way.
    pub fn check(&self, under_way: u64) -> Result<(), LimitReached> {
        if under_way < self.max {
            return Ok(());
        }
        let (owner, used, max) = (self.owner.clone(), under_way, self.max);
        Err(LimitReached { limit: Limit::Turns, owner, used, max, until: None })
    }
}

/// A limit that is reached, or near.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitReached {
    /// Which.
    pub limit: Limit,
    /// Whose.
    pub owner: PersonId,
    /// How much is used.
    pub used: u64,
    /// How much may be.
    pub max: u64,
    /// Until when it holds; none, where no time changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Quota {
    /// How much of this may be used.
    #[must_use]
    pub fn of(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Turns => self.turns,
            Limit::Tokens => self.tokens,
            Limit::Money => self.cost_micros,
            Limit::Bytes => self.bytes,
        }
    }

    /// Whether nothing is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The same with so much more of one thing.
    #[must_use]
    pub fn raised(self, limit: Limit, by: u64) -> Self {
        let more = |max: Option<u64>| max.map(|max| max.saturating_add(by));
        match limit {
            Limit::Turns => Self { turns: more(self.turns), ..self },
            Limit::Tokens => Self { tokens: more(self.tokens), ..self },
            Limit::Money => Self { cost_micros: more(self.cost_micros), ..self },
            Limit::Bytes => Self { bytes: more(self.bytes), ..self },
        }
    }
}

impl Used {
    /// How much of this is used.
    #[must_use]
    pub fn of(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Turns => self.turns,
            Limit::Tokens => self.tokens,
            Limit::Money => self.cost_micros,
            Limit::Bytes => self.bytes,
        }
    }
}

impl QuotaUse {
    /// The turns that the owner may have under way.
    #[must_use]
    pub fn turn_room(&self) -> Option<TurnRoom> {
        self.quota.turns.map(|max| TurnRoom { owner: self.owner.clone(), max })
    }

    /// Every limit that is named.
    fn limits(&self) -> impl Iterator<Item = (Limit, u64, u64)> {
        let all = [Limit::Turns, Limit::Money, Limit::Tokens, Limit::Bytes];
        all.into_iter()
            .filter_map(|limit| Some((limit, self.used.of(limit), self.quota.of(limit)?)))
    }

    fn told(&self, (limit, used, max): (Limit, u64, u64), at: Time) -> LimitReached {
        let until = match limit {
            Limit::Tokens | Limit::Money => Some(Day::of(at).ends()),
            Limit::Turns | Limit::Bytes => None,
        };
        LimitReached { limit, owner: self.owner.clone(), used, max, until }
    }

    /// The first of these limits that is reached.
    #[must_use]
    pub fn reached(&self, of: &[Limit], at: Time) -> Option<LimitReached> {
        let full = self.limits().find(|(limit, used, max)| of.contains(limit) && used >= max)?;
        Some(self.told(full, at))
    }

    /// Those of these limits of which so much is used that a person should know.
    #[must_use]
    pub fn near(&self, of: &[Limit], at: Time) -> Vec<LimitReached> {
        let near = self.limits().filter(|(limit, used, max)| {
            of.contains(limit) && is_share(*used, *max, WARNS_AT_PERCENT)
        });
        near.map(|near| self.told(near, at)).collect()
    }

    /// What is used, and how much may be, in words.
    #[must_use]
    pub fn in_words(&self, at: Time) -> String {
        let of = |limit: Limit, used: String, what: &str| match self.quota.of(limit) {
            Some(max) => format!("{used} of {}", limit.amount(max)),
            None => format!("{used}{what}, not limited"),
        };
        let Used { turns, tokens, cost_micros, bytes } = self.used;
        let money = dollars(cost_micros);
        let megabytes = format!("{:.1}", bytes as f64 / 1e6);
        format!(
            "{} has used {}; {}; {}; {}. What is counted by the day begins anew at {}.",
            self.owner.0,
            of(Limit::Money, money, " today"),
            of(Limit::Tokens, tokens.to_string(), " tokens today"),
            of(Limit::Turns, turns.to_string(), " turns under way"),
            of(Limit::Bytes, megabytes, " MB stored"),
            minute(Day::of(at).ends()),
        )
    }

    /// Whether every limit but that on turns, which is looked at where one begins, is far away.
    #[must_use]
    pub fn is_far(&self) -> bool {
        self.limits()
            .all(|(limit, used, max)| limit == Limit::Turns || !is_share(used, max, FAR_PERCENT))
    }
}

/// An amount of money: with as many digits as it takes to see it.
fn dollars(micros: u64) -> String {
    let dollars = micros as f64 / 1e6;
    if micros == 0 || micros >= 10_000 {
        format!("${dollars:.2}")
    } else {
        format!("${dollars:.4}")
    }
}

/// A time to the minute, as people read it.
fn minute(time: Time) -> String {
    let text = time.to_string();
    text.get(..16).map_or(text.clone(), |minute| format!("{} UTC", minute.replace('T', " ")))
}

/// Whether so much is this share of the most, or more.
pub(crate) fn is_share(used: u64, max: u64, percent: u64) -> bool {
    u128::from(used) * 100 >= u128::from(max) * u128::from(percent)
}

impl LimitReached {
    /// What is the case, in words: which limit, whose, and until when.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { limit, owner, used, max, until } = self;
        let max = limit.amount(*max);
        let used = match limit {
            Limit::Turns => format!("{used} are under way"),
            Limit::Tokens => format!("{used} are used"),
            Limit::Money => format!("{} is used", dollars(*used)),
            Limit::Bytes => format!("{:.1} MB are", *used as f64 / 1e6),
        };
        let until = match (limit, until) {
            (_, Some(until)) => format!("until {}", minute(*until)),
            (Limit::Turns, None) => "until one of them ends".to_owned(),
            (_, None) => "until something is deleted".to_owned(),
        };
        format!("{} may use {max}, and {used}; this holds {until}", owner.0)
    }

    /// What a person can do about it.
    #[must_use]
    pub fn what_to_do(&self) -> &'static str {
        match self.limit {
            Limit::Money | Limit::Tokens => {
                "who may decide can raise it for today with /limits raise, and the operator changes it in [limits]"
            }
            Limit::Turns => "it begins by itself then; the operator changes the limit in [limits]",
            Limit::Bytes => {
                "delete sessions that are of no use any more; the operator changes the limit in [limits]"
            }
        }
    }
}
