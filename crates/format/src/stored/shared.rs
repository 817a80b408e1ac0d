//! What events of several subjects hold.

use std::collections::{BTreeMap, BTreeSet};

use planwright_domain::{
    actor::{PersonId, Surface},
    digest::Digest,
    id::{Incarnation, OwnerId},
    time::Time,
};

stored! {
    enum ChannelType = identity::ChannelType { Web, Telegram, Cli, Api, Mcp, Acp }

    enum Standing = actor::Standing { Speaks, Decides }

    struct Person = actor::Person { owner: OwnerId, id: PersonId, surface: Surface, standing: Standing; authenticated: Option<Time> }

    enum PathLease = effect::PathLease {
        Nothing,
        Workspace,
        Under(of: BTreeSet<String>),
    }

    struct Envelope = effect::Envelope {
        tools: BTreeMap<String, Digest>, paths: PathLease; hosts: BTreeSet<String>,
        spend_micros_max: Option<u64>, calls_max: Option<u32>, expires_at: Option<Time>
    }

    enum Effect = effect::Effect { Internal, Read, Write, External }

    enum Repeat = effect::Repeat { Harmless, AskFirst }

    struct ToolFacts = effect::ToolFacts { effect: Effect, repeat: Repeat, schema: Digest }

    struct Declared = effect::Declared {
        ; tools: BTreeSet<String>, paths: BTreeSet<String>, hosts: BTreeSet<String>,
        spend_micros_max: Option<u64>, calls_max: Option<u32>, lasts_micros: Option<i64>
    }

    enum Touched = effect::Touched {
        Wrote { path: String, bytes: u64 },
        Reached { host: String },
    }

    struct FileChange = effect::FileChange {
        path: String, after: Digest; before: Option<Digest>, diff: Option<String>
    }

    struct Aim = effect::Aim { ; paths: BTreeSet<String>, hosts: BTreeSet<String> }

    enum Limit = quota::Limit { Turns, Tokens, Money, Bytes }

    struct LimitReached = quota::LimitReached {
        limit: Limit, owner: PersonId, used: u64, max: u64; until: Option<Time>
    }

    struct Bracket = effect::Bracket { incarnation: Incarnation, start_by: Time, deadline: Time }
}
