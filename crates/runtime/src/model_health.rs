//! Whether the models answer: what the latest calls of this process came to, for those who operate it.
//!
//! Who asks after it needs no login, so it says which model and for how long, and the log says why.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use planwright_domain::{
    time::Time,
    turn::{FailureKind, ModelFailure},
};

use crate::ports::health::Part;

/// How many calls of a model fail in a row before it is said that it does not answer.
const FAILURES_MIN: u64 = 2;
/// For how long after its last failure that is said of a model that nobody asks any more.
const SAID_MICROS: i64 = 10 * 60 * 1_000_000;

/// What the latest calls came to, by the name of the model.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelHealth(Arc<Mutex<BTreeMap<String, Outage>>>);

/// A model whose latest calls all failed.
#[derive(Debug)]
struct Outage {
    since: Time,
    last: Time,
    calls: u64,
}

/// Whether a failure says something of the model's server, and not of what was asked.
fn is_of_the_server(kind: FailureKind) -> bool {
    match kind {
        FailureKind::Transient | FailureKind::Malformed | FailureKind::Permanent => true,
        FailureKind::TooLarge | FailureKind::Limit | FailureKind::Empty | FailureKind::Withheld => {
            false
        }
    }
}

impl ModelHealth {
    fn outages(&self) -> MutexGuard<'_, BTreeMap<String, Outage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call of this model ended so.
    pub(crate) fn note(&self, model: &str, failure: Option<&ModelFailure>, now: Time) {
        let mut outages = self.outages();
        if !failure.is_some_and(|failure| is_of_the_server(failure.kind)) {
            // Also one that was refused was answered.
            outages.remove(model);
            return;
        }
        let outage = outages.entry(model.to_owned()).or_insert_with(|| Outage {
            since: now,
            last: now,
            calls: 0,
        });
        outage.calls += 1;
        outage.last = now;
    }

    /// How the models are.
    pub(crate) fn part(&self, now: Time) -> Part {
        let mut outages = self.outages();
        outages.retain(|_, outage| outage.last.plus_micros(SAID_MICROS) > now);
        let words: Vec<_> = outages
            .iter()
            .filter(|(_, outage)| outage.calls >= FAILURES_MIN)
            .map(|(model, Outage { since, calls, .. })| {
                let seconds = (now.0 - since.0) / 1_000_000;
                format!("{model} has answered none of {calls} calls for {seconds} s")
            })
            .collect();
        let trouble = (!words.is_empty()).then(|| {
            format!("turns wait, and the model is asked again by itself: {}; the log says why (model_call_failed)", words.join("; "))
        });
        Part::new("model", trouble)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn fails(kind: FailureKind) -> ModelFailure {
        ModelFailure::new(kind, "the server cannot be reached")
    }

    #[test]
    fn a_model_that_answers_nobody_is_in_trouble_until_it_answers_or_nobody_asks() {
        let health = ModelHealth::default();
        let at = |seconds: i64| Time(seconds * SECOND);
        let well = Part::new("model", None);
        health.note("small", Some(&fails(FailureKind::Transient)), at(1));
        assert_eq!(health.part(at(2)), well, "one failure may be chance");
        health.note("small", Some(&fails(FailureKind::Transient)), at(3));
        let words = "turns wait, and the model is asked again by itself: small has answered none of 2 calls for 3 s; the log says why (model_call_failed)";
        assert_eq!(health.part(at(4)), Part::new("model", Some(words.into())));
        health.note("large", None, at(4));
        assert!(health.part(at(4)).trouble.is_some(), "another model answers");
        health.note("small", Some(&fails(FailureKind::TooLarge)), at(5));
        assert_eq!(health.part(at(5)), well, "a refusal is an answer");
        for second in [6, 7] {
            health.note("small", Some(&fails(FailureKind::Permanent)), at(second));
        }
        assert!(health.part(at(600)).trouble.is_some());
        assert_eq!(health.part(at(608)), well, "nobody has asked for ten minutes");
    }
}
