//! How often each caller may ask, how often anyone may try to log in, and how many streams a person may have open.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use governor::{
    DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
};
use planwright_domain::{actor::PersonId, id::GrantId};

use crate::http::problem::Problem;

/// How many tries there may be from all addresses together, for each that one address may have: to look at a passphrase takes
/// long.
const ALL_SHARE: u32 = 3;
/// How many tries there may be at one account from all addresses together, for each that one address may have.
const ACCOUNT_SHARE: u32 = 2;
/// From so many on, what is known of callers and tries long ago is forgotten.
const TRIES_KNOWN: usize = 4_096;

/// How often each caller may ask.
pub(crate) struct Limits {
    callers: DefaultKeyedRateLimiter<GrantId>,
    logins: DefaultKeyedRateLimiter<By>,
    accounts: DefaultKeyedRateLimiter<PersonId>,
    all_logins: DefaultDirectRateLimiter,
    clock: DefaultClock,
    streams: Arc<Mutex<BTreeMap<PersonId, usize>>>,
    streams_max: usize,
}

/// By whom a login is tried.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum By {
    Address(IpAddr),
    /// Somebody who has a token or a login of this person: they are not held up by those who have none.
    Bearer(PersonId),
}

impl Limits {
    pub(crate) fn new(
        requests_per_second: u32,
        logins_per_minute: u32,
        streams_max: usize,
    ) -> Self {
        let at_least_one = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let share = |share| at_least_one(logins_per_minute.saturating_mul(share));
        Self {
            callers: RateLimiter::keyed(Quota::per_second(at_least_one(requests_per_second))),
            logins: RateLimiter::keyed(Quota::per_minute(at_least_one(logins_per_minute))),
            accounts: RateLimiter::keyed(Quota::per_minute(share(ACCOUNT_SHARE))),
            all_logins: RateLimiter::direct(Quota::per_minute(share(ALL_SHARE))),
            clock: DefaultClock::default(),
            streams: Arc::default(),
            streams_max,
        }
    }

    /// Whether a caller may ask now.
    pub(crate) fn asks(&self, grant: GrantId) -> Result<(), Problem> {
        if self.callers.len() > TRIES_KNOWN {
            self.callers.retain_recent();
        }
        self.callers.check_key(&grant).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            wait_for(wait, "too_often", "you ask too often")
        })
    }

    /// Whether a login may be tried now from this address, at this account; `known` is whose token or login came with it. A
    /// token of one person is of no use at the account of another.
    pub(crate) fn login(
        &self,
        from: IpAddr,
        known: Option<&PersonId>,
        account: Option<&PersonId>,
    ) -> Result<(), Problem> {
        if self.logins.len() > TRIES_KNOWN {
            self.logins.retain_recent();
        }
        if self.accounts.len() > TRIES_KNOWN {
            self.accounts.retain_recent();
        }
        let now = self.clock.now();
        let address = self.logins.check_key(&By::Address(network(from)));
        let tried = address
            .and_then(|()| account.map_or(Ok(()), |account| self.accounts.check_key(account)))
            .and_then(|()| self.all_logins.check());
        let Err(until) = tried else { return Ok(()) };
        let known = known.filter(|known| account.is_none_or(|account| account == *known));
        if known.is_some_and(|known| self.logins.check_key(&By::Bearer(known.clone())).is_ok()) {
            return Ok(());
        }
        Err(wait_for(until.wait_time_from(now), "too_many_logins", "too many logins were tried"))
    }

    /// Opens one of the streams that a person may have, with all their tokens together: whoever has one makes more.
    pub(crate) fn stream(&self, person: &PersonId) -> Result<OpenStream, Problem> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let open = streams.entry(person.clone()).or_default();
        if *open >= self.streams_max {
            let words = format!("{} streams of yours are open; close one first", *open);
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", words));
        }
        *open += 1;
        Ok(OpenStream { person: person.clone(), streams: self.streams.clone() })
    }
}

/// A stream that is open until this is dropped.
pub(crate) struct OpenStream {
    person: PersonId,
    streams: Arc<Mutex<BTreeMap<PersonId, usize>>>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = streams.get_mut(&self.person) {
            *open -= 1;
            if *open == 0 {
                streams.remove(&self.person);
            }
        }
    }
}

/// The network that an address is given out with: one caller has all addresses of an IPv6 network to choose from, and every
/// program of this machine has all of loopback.
fn network(address: IpAddr) -> IpAddr {
    match address {
        address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
    }
}

fn wait_for(wait: Duration, kind: &str, words: &str) -> Problem {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let words = match seconds {
        0 | 1 => format!("{words}; wait a second"),
        seconds => format!("{words}; wait {seconds} seconds"),
    };
    Problem::new(StatusCode::TOO_MANY_REQUESTS, kind, words).after(seconds.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    #[test]
    fn wrong_tries_from_one_address_hold_up_that_address_alone() {
        let limits = Limits::new(1, 10, 1);
        for _ in 0..10 {
            limits.login(HERE, None, None).unwrap();
        }
        let refused = limits.login(HERE, None, None).unwrap_err();
        assert_eq!(refused.retry_after, Some(6), "ten in a minute are one in six seconds");
        assert!(refused.detail.ends_with("wait 6 seconds"), "{}", refused.detail);
        limits.login(address(1), None, None).unwrap();
    }

    #[test]
    fn tries_from_many_addresses_are_counted_together() {
        let limits = Limits::new(1, 10, 1);
        let tried = (0..100).filter(|at| limits.login(address(*at), None, None).is_ok());
        assert_eq!(tried.count(), 30);
    }

    #[test]
    fn all_of_loopback_is_one_address() {
        let limits = Limits::new(1, 10, 1);
        let of = |last| IpAddr::from(Ipv4Addr::new(127, 0, 0, last));
        let tried = (1..100).filter(|last| limits.login(of(*last), None, None).is_ok());
        assert_eq!(tried.count(), 10);
        assert!(limits.login(Ipv6Addr::LOCALHOST.into(), None, None).is_err());
    }

    #[test]
    fn whoever_has_a_secret_of_ours_has_tries_of_their_own() {
        let limits = Limits::new(1, 10, 1);
        while limits.login(HERE, None, None).is_ok() {}
        let ada = PersonId("ada".into());
        let tried = (0..100).filter(|_| limits.login(HERE, Some(&ada), None).is_ok());
        assert_eq!(tried.count(), 10);
    }

    #[test]
    fn all_addresses_of_an_ipv6_network_are_one() {
        let limits = Limits::new(1, 10, 1);
        let of = |last: u128| Ipv6Addr::from_bits((0x2001_0db8 << 96) | last).into();
        let tried = (0..100).filter(|last| limits.login(of(*last), None, None).is_ok());
        assert_eq!(tried.count(), 10);
    }

    #[test]
    fn a_stream_that_ends_makes_room_for_another() {
        let limits = Limits::new(1, 10, 2);
        let (ada, bea) = (PersonId("ada".into()), PersonId("bea".into()));
        let open: Vec<_> = (0..2).map(|_| limits.stream(&ada).unwrap()).collect();
        assert!(limits.stream(&ada).is_err());
        limits.stream(&bea).unwrap();
        drop(open);
        limits.stream(&ada).unwrap();
        assert!(limits.streams.lock().unwrap().is_empty(), "nothing is left of what ended");
    }

    #[test]
    fn what_is_known_of_tries_does_not_grow_for_ever() {
        let limits = Limits::new(1, u32::MAX / 4, 1);
        for at in 0..20_000_u32 {
            let _ = limits.login(Ipv4Addr::from_bits(at).into(), None, None);
        }
        assert!(limits.logins.len() < 20_000);
    }

    #[test]
    fn tries_at_one_account_are_counted_from_wherever_they_come() {
        let limits = Limits::new(1, 3, 1);
        let (ada, bea) = (PersonId("ada".into()), PersonId("bea".into()));
        let at_ada = (0..5).filter(|at| limits.login(address(*at), None, Some(&ada)).is_ok());
        assert_eq!(at_ada.count(), 5);
        let more = (5..30).filter(|at| limits.login(address(*at), None, Some(&ada)).is_ok());
        assert_eq!(more.count(), 1, "twice what one address may try");
        assert!(limits.login(address(31), None, Some(&bea)).is_ok(), "another account");
        assert!(limits.login(address(32), Some(&ada), Some(&ada)).is_ok(), "who has a token");
        let refused = limits.login(address(33), Some(&bea), Some(&ada));
        assert!(refused.is_err(), "a token of somebody else");
    }
}
