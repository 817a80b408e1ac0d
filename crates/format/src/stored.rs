//! The stored types: every event and every refusal, in the names and fields that are written.
//!
//! What is declared here may be edited until 0.1.0 and never after: a new form is a new declaration beside the old one, and a new row in [`crate::event`].

/// Declares stored types: see [`crate::mapped`].
macro_rules! stored {
    ($($declared:tt)*) => {
        $crate::mapped! {
            {
                #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
                #[serde(deny_unknown_fields)]
            }
            {
                #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
                #[serde(rename_all = "snake_case", deny_unknown_fields)]
            }
            $($declared)*
        }
    };
}

pub(crate) mod autonomy;
pub(crate) mod installation;
pub(crate) mod memory;
pub(crate) mod notebook;
pub(crate) mod owner;
pub(crate) mod plan;
pub(crate) mod refusal;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod turn;
