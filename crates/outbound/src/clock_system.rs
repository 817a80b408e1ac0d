//! The time of day, from the operating system.

use std::time::{SystemTime, UNIX_EPOCH};

use planwright_domain::time::Time;
use planwright_runtime::ports::Clock;

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}
