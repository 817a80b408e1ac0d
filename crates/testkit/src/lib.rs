//! How Planwright is proven. Nothing here is part of the program.
//!
//! [`machine`] throws generated commands at the domain; [`journal_contract`] is the suite that
//! every journal passes; [`scripted_model`] speaks a provider's wire format on loopback;
//! [`kill`] and [`power`] end real processes and look at what is left.

#![expect(clippy::expect_used, reason = "a broken expectation in a suite is a failed test")]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a script or a check often looks for one kind and passes over the rest"
)]

pub mod clock;
pub mod cluster;
pub mod event_samples;
pub mod files;
pub mod golden;
pub mod house;
pub mod journal_contract;
pub mod kill;
pub mod lane_stories;
pub mod ledger;
pub mod list_stories;
pub mod machine;
pub mod modules;
pub mod notebook_contract;
pub mod notebook_stories;
pub mod people;
pub mod power;
pub mod prose;
pub mod providers;
pub mod quota_stories;
pub mod scratch;
pub mod scripted_model;
pub mod seeds;
pub mod served;
pub mod servers;
pub mod stored;
pub mod stories;
pub mod streams;
pub mod tool_run;
pub mod work_stories;
