//! Whether and when a model that did not answer is asked again, and which one.

use crate::model::{
    id::TurnId,
    limits,
    time::Time,
    turn::{FailureKind, ModelFailure, asking::Asking},
};

/// What is done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// The turn ends with it.
    Never,
    /// A model is asked again, then.
    At(Time, Asking),
}

/// What is done about this failure, where so many other models can be asked.
pub(crate) fn again(
    turn: TurnId,
    now: Asking,
    at: Time,
    failure: &ModelFailure,
    others: u32,
) -> Again {
    let tried = Asking { tries: now.tries + 1, since: now.since.or(Some(at)), ..now };
    let ours = |micros: i64| jittered(turn, tried, micros);
    // Nobody waits longer than this, whatever a server asks for.
    let within = |wait: i64, then: Asking| {
        let until = at.plus_micros(wait);
        let since = then.since.unwrap_or(at);
        (until.0 - since.0 <= limits::SUSPENDED_MICROS_MAX).then_some(Again::At(until, then))
    };
    let asked = failure.retry_after_micros.map(|wait| wait.max(0));
    let soon = within(asked.unwrap_or_else(|| ours(500_000_i64 << tried.tries.min(6))), tried);
    let another = (now.model < others)
        .then_some(Again::At(at, Asking { model: now.model + 1, tries: 0, ..tried }));
    let tries_max = if another.is_some() {
        limits::MODEL_TRIES_BEFORE_ANOTHER
    } else {
        limits::MODEL_ATTEMPTS_MAX
    };
    match failure.kind {
        FailureKind::Transient | FailureKind::Malformed | FailureKind::Empty
            if tried.tries < tries_max && (soon.is_some() || another.is_none()) =>
        {
            soon.unwrap_or(Again::Never)
        }
        FailureKind::Malformed | FailureKind::Empty | FailureKind::Permanent => {
            another.unwrap_or(Again::Never)
        }
        FailureKind::Transient => another.unwrap_or_else(|| {
            let minutes = (1_i64 << tried.suspended.min(4)).min(15);
            let wait = ours(minutes * 60_000_000).max(asked.unwrap_or(0));
            let then = Asking { model: 0, tries: 0, suspended: tried.suspended + 1, ..tried };
            within(wait, then).unwrap_or(Again::Never)
        }),
        FailureKind::TooLarge if now.halved < limits::HALVED_MAX => {
            Again::At(at, Asking { halved: now.halved + 1, ..tried })
        }
        FailureKind::TooLarge | FailureKind::Limit | FailureKind::Withheld => Again::Never,
    }
}

/// A wait, a quarter more or less, so that those who failed together do not come back together.
fn jittered(turn: TurnId, tried: Asking, micros: i64) -> i64 {
    let seed = turn.0.as_u128() ^ u128::from(tried.tries) << 7 ^ u128::from(tried.suspended) << 19;
    let mixed = (seed ^ seed >> 64) as u64;
    let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let spread = i64::try_from(mixed % 1_001).unwrap_or(0) - 500;
    micros + micros * spread / 2_000
}
