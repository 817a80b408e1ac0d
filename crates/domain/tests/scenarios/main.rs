//! What may happen in a session, told as scenarios. Most of Planwright's tests live here.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a broken expectation in a test is a failed test"
)]

mod accounts;
mod agents;
mod autonomy;
mod blocks;
mod chat;
mod compaction;
mod decisions;
mod discussion;
mod effects;
mod envelope;
mod failures;
mod given;
mod identities;
mod imports;
mod invariants;
mod ledger;
mod lifecycle;
mod limits;
mod memory;
mod outcomes;
mod permission;
mod policy;
mod quota;
mod reports;
mod review;
mod roots;
mod seed_000;
mod seed_001;
mod seed_002;
mod seed_003;
mod seed_004;
mod turns;
mod words;
