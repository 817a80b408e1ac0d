//! Points in time, as microseconds since the Unix epoch. They only ever arrive inside commands.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point in time: microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Time(pub i64);

impl fmt::Display for Time {
    /// As RFC 3339, in UTC. What no calendar reaches is the last moment that it does.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => time.fmt(formatter),
            Err(_) if self.0 < 0 => jiff::Timestamp::MIN.fmt(formatter),
            Err(_) => jiff::Timestamp::MAX.fmt(formatter),
        }
    }
}

impl Time {
    /// This time, moved by so many microseconds.
    #[must_use]
    pub fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}
