//! Types that are mapped one to one from domain types, and back: the stored form, and what a surface publishes.
//!
//! Each declaration names the domain type that it stands for. A domain type may be renamed at any time: the build then shows
//! the declaration that must name it anew.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use planwright_domain::{
    actor::{PersonId, Surface},
    digest::Digest,
    id::{
        CallId, GoalId, GrantId, Incarnation, MemoryId, OwnerId, PlanId, RunId, ScheduleId, Seq,
        TaskId, TurnId,
    },
    identity::{ConversationKey, Root, SessionIdentity, TransportChatId},
    plan::block::BlockSet,
    quota::Day,
    time::Time,
};
use serde::{Deserialize, Serialize};

/// Declares types, each with the domain type that it is mapped from, after the attributes that all structs and all enums get:
///
/// ```text
/// { #[derive(…)] } { #[derive(…)] }
/// struct Name = path::Name { field: Type, other "inBytes": Type; optional: Type }
/// enum Name = path::Name { Plain, Tuple(of: Type), Fields { field: Type; optional: Type } }
/// ```
///
/// A field has the name of the domain's field, or the one that stands behind it. Fields behind a semicolon are left out where
/// they have their default value.
#[macro_export]
macro_rules! mapped {
    ({ $(#[$for_structs:meta])* } { $(#[$for_enums:meta])* }) => {};
    (
        { $(#[$for_structs:meta])* } { $(#[$for_enums:meta])* }
        $(#[$meta:meta])*
        struct $name:ident = $($path:ident)::+ {
            $($(#[$about:meta])* $field:ident $($as:literal)?: $type:ty),*
            $(; $($(#[$about_optional:meta])* $optional:ident $($optional_as:literal)?: $optional_type:ty),+)?
        }
        $($rest:tt)*
    ) => {
        $(#[$for_structs])*
        $(#[$meta])*
        pub(crate) struct $name {
            $($(#[$about])* $(#[serde(rename = $as)])? $field: $type,)*
            $($(
                $(#[$about_optional])*
                $(#[serde(rename = $optional_as)])?
                #[serde(default, skip_serializing_if = "planwright_format::mapping::is_default")]
                $optional: $optional_type,
            )+)?
        }

        impl $crate::mapping::Form for $name {
            type Domain = planwright_domain::$($path)::+;

            fn of(domain: &Self::Domain) -> Self {
                let planwright_domain::$($path)::+ { $($field,)* $($($optional,)+)? } = domain;
                Self {
                    $($field: $crate::mapping::Form::of($field),)*
                    $($($optional: $crate::mapping::Form::of($optional),)+)?
                }
            }

            fn domain(self) -> Self::Domain {
                planwright_domain::$($path)::+ {
                    $($field: $crate::mapping::Form::domain(self.$field),)*
                    $($($optional: $crate::mapping::Form::domain(self.$optional),)+)?
                }
            }
        }

        $crate::mapped! { { $(#[$for_structs])* } { $(#[$for_enums])* } $($rest)* }
    };
    (
        { $(#[$for_structs:meta])* } { $(#[$for_enums:meta])* }
        $(#[$meta:meta])*
        enum $name:ident = $($path:ident)::+ {
            $(
                $(#[$variant_meta:meta])*
                $variant:ident
                $({
                    $($(#[$about:meta])* $field:ident $($as:literal)?: $type:ty),*
                    $(; $($(#[$about_optional:meta])* $optional:ident $($optional_as:literal)?: $optional_type:ty),+)?
                })?
                $(( $($at:ident: $at_type:ty),+ ))?
            ),* $(,)?
        }
        $($rest:tt)*
    ) => {
        $(#[$for_enums])*
        $(#[$meta])*
        pub(crate) enum $name {
            $(
                $(#[$variant_meta])*
                $variant
                $({
                    $($(#[$about])* $(#[serde(rename = $as)])? $field: $type,)*
                    $($(
                        $(#[$about_optional])*
                $(#[serde(rename = $optional_as)])?
                #[serde(default, skip_serializing_if = "planwright_format::mapping::is_default")]
                        $optional: $optional_type,
                    )+)?
                })?
                $(( $($at_type),+ ))?
            ),*
        }

        impl $crate::mapping::Form for $name {
            type Domain = planwright_domain::$($path)::+;

            fn of(domain: &Self::Domain) -> Self {
                use planwright_domain::$($path)::+ as Domain;

                match domain {
                    $(
                        Domain::$variant
                        $({ $($field,)* $($($optional,)+)? })?
                        $(( $($at),+ ))? => Self::$variant
                        $({
                            $($field: $crate::mapping::Form::of($field),)*
                            $($($optional: $crate::mapping::Form::of($optional),)+)?
                        })?
                        $(( $($crate::mapping::Form::of($at)),+ ))?,
                    )*
                }
            }

            fn domain(self) -> Self::Domain {
                use planwright_domain::$($path)::+ as Domain;

                match self {
                    $(
                        Self::$variant
                        $({ $($field,)* $($($optional,)+)? })?
                        $(( $($at),+ ))? => Domain::$variant
                        $({
                            $($field: $crate::mapping::Form::domain($field),)*
                            $($($optional: $crate::mapping::Form::domain($optional),)+)?
                        })?
                        $(( $($crate::mapping::Form::domain($at)),+ ))?,
                    )*
                }
            }
        }

        $crate::mapped! { { $(#[$for_structs])* } { $(#[$for_enums])* } $($rest)* }
    };
}

/// A type that stands for a domain type.
pub trait Form: Sized {
    /// The domain type.
    type Domain;

    /// From the domain type.
    fn of(domain: &Self::Domain) -> Self;

    /// The domain type again.
    fn domain(self) -> Self::Domain;
}

/// Types whose text form is their definition: they stand for themselves.
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
    BlockSet, CallId, ConversationKey, Digest, GoalId, GrantId, Incarnation, MemoryId, OwnerId, PersonId, PlanId, Root, RunId, ScheduleId, Seq,
    Day, SessionIdentity, Surface, TaskId, Time, TransportChatId, TurnId,
}

/// A text that the domain may know from the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(String);

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
#[must_use]
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
