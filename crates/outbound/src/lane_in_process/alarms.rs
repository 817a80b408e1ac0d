//! The timer queue: when to act on sessions whose time is yet to come. The next alarm is found without looking at the others.

use std::collections::{BTreeSet, HashMap};

use planwright_domain::{identity::SessionKey, time::Time};

/// Alarms by their times. A session has one at most.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    queue: BTreeSet<(Time, SessionKey)>,
    times: HashMap<SessionKey, Time>,
}

impl Alarms {
    /// Rings at this time, unless an earlier one is set for this session.
    pub(super) fn set_sooner(&mut self, session: SessionKey, time: Time) {
        if self.times.get(&session).is_none_or(|set| time < *set) {
            self.remove(&session);
            self.times.insert(session.clone(), time);
            self.queue.insert((time, session));
        }
    }

    /// The session is acted on: whoever does says when it is due again.
    pub(super) fn remove(&mut self, session: &SessionKey) {
        if let Some((session, time)) = self.times.remove_entry(session) {
            self.queue.remove(&(time, session));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    /// When the first one rings.
    pub(super) fn first(&self) -> Option<Time> {
        self.queue.first().map(|(time, _)| *time)
    }

    /// The next session whose time has come.
    pub(super) fn ring(&mut self, now: Time) -> Option<SessionKey> {
        self.first().filter(|time| *time <= now)?;
        let (_, session) = self.queue.pop_first()?;
        self.times.remove(&session);
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_domain::id::OwnerId;

    fn session(key: &str) -> SessionKey {
        SessionKey::named(&format!("cli:{key}"), OwnerId(uuid::Uuid::from_u128(1))).unwrap()
    }

    fn rung(alarms: &mut Alarms, now: i64) -> Vec<SessionKey> {
        std::iter::from_fn(|| alarms.ring(Time(now))).collect()
    }

    #[test]
    fn alarms_ring_in_order_once_and_not_before_their_time() {
        let mut alarms = Alarms::default();
        for (key, time) in [("late-0001", 30), ("early-0001", 10), ("middle-0001", 20)] {
            alarms.set_sooner(session(key), Time(time));
        }
        assert_eq!((alarms.first(), rung(&mut alarms, 9)), (Some(Time(10)), vec![]));
        assert_eq!(rung(&mut alarms, 20), [session("early-0001"), session("middle-0001")]);
        assert_eq!(rung(&mut alarms, 40), [session("late-0001")]);
        assert_eq!((alarms.first(), alarms.times.len()), (None, 0));
    }

    #[test]
    fn a_session_has_one_alarm_and_none_when_it_is_removed() {
        let mut alarms = Alarms::default();
        for time in [20, 30, 10] {
            alarms.set_sooner(session("talk-0001"), Time(time));
        }
        assert_eq!((alarms.first(), alarms.queue.len()), (Some(Time(10)), 1), "the earliest");
        alarms.remove(&session("talk-0001"));
        assert_eq!(rung(&mut alarms, 100), []);
    }
}
