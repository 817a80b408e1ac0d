//! How often each caller may ask.

use std::num::NonZeroU32;

use axum::http::StatusCode;
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use uuid::Uuid;

use crate::http::problem::Problem;

/// How often each caller may ask.
pub(crate) struct Limits {
    pub(super) callers: DefaultKeyedRateLimiter<Uuid>,
    logins: DefaultDirectRateLimiter,
}

impl Limits {
    pub(crate) fn new(requests_per_second: u32, logins_per_minute: u32) -> Self {
        let at_least_one = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Self {
            callers: RateLimiter::keyed(Quota::per_second(at_least_one(requests_per_second))),
            logins: RateLimiter::direct(Quota::per_minute(at_least_one(logins_per_minute))),
        }
    }

    /// Whether a login may be tried now.
    pub(crate) fn login(&self) -> Result<(), Problem> {
        let words = "too many logins were tried; wait a minute";
        self.logins
            .check()
            .map_err(|_| Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_logins", words))
    }
}
