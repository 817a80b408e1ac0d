//! What events of several subjects hold.

use std::collections::{BTreeMap, BTreeSet};

use planwright_domain::{
    actor::{PersonId, Surface},
    digest::Digest,
    id::{Incarnation, OwnerId},
};

use super::timestamp::Timestamp;

published! {
    enum Standing = actor::Standing { Speaks, Decides }

    /// Who did something, and where.
    struct Person = actor::Person { owner: OwnerId, id "name": PersonId, surface: Surface, standing: Standing; authenticated: Option<Timestamp> }

    #[serde(tag = "kind", content = "paths")]
    enum PathLease = effect::PathLease {
        Nothing,
        Workspace,
        Under(of: BTreeSet<String>),
    }

    /// What an approval allows.
    struct Envelope = effect::Envelope {
        tools: BTreeMap<String, Digest>, paths: PathLease, hosts: BTreeSet<String>;
        spend_micros_max: Option<u64>, calls_max: Option<u32>, expires_at: Option<Timestamp>
    }

    enum Effect = effect::Effect { Internal, Read, Write, External }

    enum Repeat = effect::Repeat { Harmless, AskFirst }

    /// A tool as it stood.
    struct ToolFacts = effect::ToolFacts { effect: Effect, repeat: Repeat, schema: Digest }

    /// What a plan declares that it needs.
    struct Declared = effect::Declared {
        tools: BTreeSet<String>, paths: BTreeSet<String>, hosts: BTreeSet<String>;
        spend_micros_max: Option<u64>, calls_max: Option<u32>, lasts_micros: Option<i64>
    }

    /// Something a call did to the world.
    #[serde(tag = "kind")]
    enum Touched = effect::Touched {
        Wrote { path: String, bytes: u64 },
        Reached { host: String },
    }

    /// What a call made of a file: the digests of what it held before, if it was there, and holds now, and the lines that differ, as a
    /// unified diff; no diff if it is too long, or what it held is no text.
    struct FileChange = effect::FileChange {
        path: String, after: Digest; before: Option<Digest>, diff: Option<String>
    }

    /// What a call is aimed at.
    struct Aim = effect::Aim { paths: BTreeSet<String>, hosts: BTreeSet<String> }

    enum Limit = quota::Limit { Turns, Tokens, Money, Bytes }

    /// A limit of an owner that is reached, or near.
    struct LimitReached = quota::LimitReached {
        limit: Limit, owner: PersonId, used: u64, max: u64; until: Option<Timestamp>
    }

    /// Who works on an effect, and until when.
    struct Bracket = effect::Bracket {
        incarnation: Incarnation, start_by: Timestamp, deadline: Timestamp
    }
}
