//! The stored types: every event and every refusal, in the names and fields that are written.
//!
//! Each declaration names the domain type that it is made from and turned into. A domain type may be renamed at any time:
//! the build then shows the declaration that must name it anew. What is declared here may be edited until 0.1.0 and never
//! after: a new form is a new declaration beside the old one, and a new row in [`crate::event`].
//!
//! Fields behind a semicolon are left out where they have their default value.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use planwright_domain::{
    actor::{PersonId, Surface},
    digest::Digest,
    id::{
        CallId, GoalId, Incarnation, MemoryId, OwnerId, PlanId, RunId, ScheduleId, Seq, TaskId,
        TurnId,
    },
    identity::{ConversationKey, Root, SessionIdentity, TransportChatId},
    plan::block::BlockSet,
    time::Time,
};
use serde::{Deserialize, Serialize};

#[macro_use]
mod declaration;

pub(crate) mod autonomy;
pub(crate) mod memory;
pub(crate) mod notebook;
pub(crate) mod owner;
pub(crate) mod plan;
pub(crate) mod refusal;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod turn;

/// A stored type, and the domain type that it stands for.
pub(crate) trait Form: Sized {
    /// The domain type.
    type Domain;

    fn of(domain: &Self::Domain) -> Self;

    fn domain(self) -> Self::Domain;
}

/// Types whose text form is their definition: they are stored as they are.
macro_rules! same {
    ($($same:ty),* $(,)?) => {$(
        impl Form for $same {
            type Domain = Self;

            fn of(domain: &Self) -> Self {
                Clone::clone(domain)
            }

            fn domain(self) -> Self {
                self
            }
        }
    )*};
}

same! {
    String, bool, u8, u32, u64, i64, usize,
    BlockSet, CallId, ConversationKey, Digest, GoalId, Incarnation, MemoryId, OwnerId, PersonId, PlanId, Root, RunId, ScheduleId, Seq,
    SessionIdentity, Surface, TaskId, Time, TransportChatId, TurnId,
}

/// A text that the domain may know from the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text(String);

impl Form for Text {
    type Domain = Cow<'static, str>;

    fn of(domain: &Self::Domain) -> Self {
        Self(domain.clone().into_owned())
    }

    fn domain(self) -> Self::Domain {
        self.0.into()
    }
}

impl<F: Form> Form for Box<F> {
    type Domain = Box<F::Domain>;

    fn of(domain: &Self::Domain) -> Self {
        Self::new(F::of(domain))
    }

    fn domain(self) -> Self::Domain {
        Box::new(F::domain(*self))
    }
}

impl<F: Form> Form for Option<F> {
    type Domain = Option<F::Domain>;

    fn of(domain: &Self::Domain) -> Self {
        domain.as_ref().map(F::of)
    }

    fn domain(self) -> Self::Domain {
        self.map(F::domain)
    }
}

impl<F: Form> Form for Vec<F> {
    type Domain = Vec<F::Domain>;

    fn of(domain: &Self::Domain) -> Self {
        domain.iter().map(F::of).collect()
    }

    fn domain(self) -> Self::Domain {
        self.into_iter().map(F::domain).collect()
    }
}

impl<F: Form<Domain: Ord> + Ord> Form for BTreeSet<F> {
    type Domain = BTreeSet<F::Domain>;

    fn of(domain: &Self::Domain) -> Self {
        domain.iter().map(F::of).collect()
    }

    fn domain(self) -> Self::Domain {
        self.into_iter().map(F::domain).collect()
    }
}

impl<F: Form> Form for BTreeMap<String, F> {
    type Domain = BTreeMap<String, F::Domain>;

    fn of(domain: &Self::Domain) -> Self {
        domain.iter().map(|(key, value)| (key.clone(), F::of(value))).collect()
    }

    fn domain(self) -> Self::Domain {
        self.into_iter().map(|(key, value)| (key, value.domain())).collect()
    }
}

/// Whether a field is left out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
