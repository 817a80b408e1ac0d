//! An `Idempotency-Key` stands for one request: the same key with another body is refused.
//!
//! What a key was used for is remembered for the latest keys while the process runs. After a restart, or at another node,
//! the first answer is given again, whatever the body: the journal keeps one answer for each key.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use axum::http::StatusCode;
use planwright_domain::digest::Digest;
use uuid::Uuid;

use crate::http::problem::Problem;

/// How many keys are remembered.
const KEYS_MAX: usize = 16_384;

/// The latest keys, and the digest of what each was used for.
#[derive(Default)]
pub(crate) struct Keys {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    bodies: HashMap<Uuid, Digest>,
    order: VecDeque<Uuid>,
}

impl Keys {
    /// Refuses a key that was used for another body.
    pub(crate) fn check(&self, key: Uuid, body: &[u8]) -> Result<(), Problem> {
        if self.is_used_otherwise(key, Digest::of(body)) {
            let words = "this Idempotency-Key was used for another body; use a new key for a new request, or send the same again";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "key_used", words));
        }
        Ok(())
    }

    /// Forgets a key whose request was not taken: it may be mended and sent again.
    pub(crate) fn forget(&self, key: Uuid) {
        let known = &mut *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.bodies.remove(&key).is_some() {
            known.order.retain(|other| *other != key);
        }
    }

    fn is_used_otherwise(&self, key: Uuid, body: Digest) -> bool {
        let known = &mut *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = known.bodies.get(&key) {
            return *used != body;
        }
        known.bodies.insert(key, body);
        known.order.push_back(key);
        if known.order.len() > KEYS_MAX
            && let Some(oldest) = known.order.pop_front()
        {
            known.bodies.remove(&oldest);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_keys_are_remembered_and_no_more() {
        let keys = Keys::default();
        let of = |text: &str| Digest::of(text.as_bytes());
        assert!(!keys.is_used_otherwise(Uuid::from_u128(1), of("a")));
        assert!(!keys.is_used_otherwise(Uuid::from_u128(1), of("a")), "the same again");
        assert!(keys.is_used_otherwise(Uuid::from_u128(1), of("b")));
        for at in 2..=KEYS_MAX as u128 + 1 {
            assert!(!keys.is_used_otherwise(Uuid::from_u128(at), of("a")));
        }
        assert_eq!(keys.known.lock().unwrap().bodies.len(), KEYS_MAX);
        assert!(!keys.is_used_otherwise(Uuid::from_u128(1), of("b")), "long ago");
        keys.forget(Uuid::from_u128(1));
        assert!(!keys.is_used_otherwise(Uuid::from_u128(1), of("c")), "it was not taken");
        let known = keys.known.lock().unwrap();
        let of_it = known.order.iter().filter(|key| **key == Uuid::from_u128(1)).count();
        assert_eq!(
            (of_it, known.order.len()),
            (1, KEYS_MAX),
            "it is forgotten once, and in its turn"
        );
    }
}
