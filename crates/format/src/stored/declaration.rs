//! How stored types are declared.

/// Declares stored types, each with the domain type that it stands for:
///
/// ```text
/// struct Name = path::Name { field: Type, other: Type; optional: Type }
/// enum Name = path::Name { Plain, Tuple(of: Type), Fields { field: Type; optional: Type } }
/// ```
macro_rules! stored {
    () => {};
    (
        $(#[$meta:meta])*
        struct $name:ident = $($path:ident)::+ {
            $($field:ident: $type:ty),* $(; $($optional:ident: $optional_type:ty),+)?
        }
        $($rest:tt)*
    ) => {
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        $(#[$meta])*
        pub(crate) struct $name {
            $($field: $type,)*
            $($(
                #[serde(default, skip_serializing_if = "crate::stored::is_default")]
                $optional: $optional_type,
            )+)?
        }

        impl crate::stored::Form for $name {
            type Domain = planwright_domain::$($path)::+;

            fn of(domain: &Self::Domain) -> Self {
                let planwright_domain::$($path)::+ { $($field,)* $($($optional,)+)? } = domain;
                Self {
                    $($field: crate::stored::Form::of($field),)*
                    $($($optional: crate::stored::Form::of($optional),)+)?
                }
            }

            fn domain(self) -> Self::Domain {
                planwright_domain::$($path)::+ {
                    $($field: crate::stored::Form::domain(self.$field),)*
                    $($($optional: crate::stored::Form::domain(self.$optional),)+)?
                }
            }
        }

        stored! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        enum $name:ident = $($path:ident)::+ {
            $(
                $(#[$variant_meta:meta])*
                $variant:ident
                $({ $($field:ident: $type:ty),* $(; $($optional:ident: $optional_type:ty),+)? })?
                $(( $($at:ident: $at_type:ty),+ ))?
            ),* $(,)?
        }
        $($rest:tt)*
    ) => {
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        $(#[$meta])*
        pub(crate) enum $name {
            $(
                $(#[$variant_meta])*
                $variant
                $({
                    $($field: $type,)*
                    $($(
                        #[serde(default, skip_serializing_if = "crate::stored::is_default")]
                        $optional: $optional_type,
                    )+)?
                })?
                $(( $($at_type),+ ))?
            ),*
        }

        impl crate::stored::Form for $name {
            type Domain = planwright_domain::$($path)::+;

            fn of(domain: &Self::Domain) -> Self {
                use planwright_domain::$($path)::+ as Domain;

                match domain {
                    $(
                        Domain::$variant
                        $({ $($field,)* $($($optional,)+)? })?
                        $(( $($at),+ ))? => Self::$variant
                        $({
                            $($field: crate::stored::Form::of($field),)*
                            $($($optional: crate::stored::Form::of($optional),)+)?
                        })?
                        $(( $(crate::stored::Form::of($at)),+ ))?,
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
                            $($field: crate::stored::Form::domain($field),)*
                            $($($optional: crate::stored::Form::domain($optional),)+)?
                        })?
                        $(( $(crate::stored::Form::domain($at)),+ ))?,
                    )*
                }
            }
        }

        stored! { $($rest)* }
    };
}
