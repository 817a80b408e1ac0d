//! Points in time, as microseconds since the Unix epoch. They only ever arrive inside commands.

use serde::{Deserialize, Serialize};

/// A point in time: microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// This time, moved by so many microseconds.
    #[must_use]
    pub fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}
