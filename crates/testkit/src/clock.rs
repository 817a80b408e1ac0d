//! A clock that moves only when a test says so.

use std::sync::atomic::{AtomicI64, Ordering};

use planwright_domain::time::Time;
use planwright_runtime::ports::Clock;

/// A clock that moves only when a test says so.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at this time.
    #[must_use]
    pub fn at(time: Time) -> Self {
        Self(AtomicI64::new(time.0))
    }

    /// Moves it on.
    pub fn pass_micros(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::SeqCst))
    }
}
