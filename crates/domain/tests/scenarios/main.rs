//! What may happen in a session, told as scenarios. Most of Planwright's tests live here.

mod chat;
mod decisions;
mod effects;
mod given;
mod identities;
mod invariants;
mod lifecycle;
mod outcomes;
mod review;
mod seed_000;
mod turns;
