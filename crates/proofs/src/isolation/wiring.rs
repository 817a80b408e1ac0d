//! How the product is put together, and the ways in which it could be put together wrongly.
//!
//! The sound wiring calls the product and adds nothing. A mutant does one thing as a plausible mistake would;
//! none of it is in the product's own source.

use planwright_domain::{
    command::{AutoCommand, LifeCommand, PersonCommand},
    digest::Digest,
    id::OwnerId,
    identity::{ChannelType, SessionKey},
    memory::{Chain, Item, Scope, rank::Candidates},
    owner::{self, Resolution},
    quota::Used,
};

use super::{op::Chat, reference::fresh_key, world::World};

/// The joints at which something could go wrong.
pub(crate) trait Wiring: Sync {
    /// What it is called.
    fn name(&self) -> &'static str {
        "sound"
    }

    /// The session that a chat talks to, and whether its pointer must be moved there.
    fn resolve(&self, world: &World<'_>, chat: Chat) -> Resolution {
        let (id, transport) = (chat.person().owner, chat.transport());
        let owner = world.owner(id);
        let pointed = owner.pointers.get(&transport);
        let session = pointed.map(|key| (key, world.session(&chat.session(key.clone()))));
        let named = session.as_ref().map(|(key, session)| (*key, session));
        let newest = world.newest(id, transport.channel).map(|newest| newest.identity);
        owner::resolve(id, named, newest, fresh_key(world.fresh))
    }

    /// Where the state of a session is kept.
    fn place(&self, identity: &SessionKey) -> SessionKey {
        identity.clone()
    }

    /// What a chain of scopes finds.
    fn candidates(&self, world: &World<'_>, chain: &Chain) -> Vec<Candidates> {
        let of_scope = |scope: &Scope| {
            let theirs =
                |(owner, item): &&(OwnerId, Item)| item.scope == *scope && *owner == chain.owner();
            let items = world.items.iter().filter(theirs);
            found(items.map(|(_, item)| item.clone()).collect())
        };
        chain.scopes().iter().map(of_scope).collect()
    }

    /// What a command of a person comes to, and where.
    fn fan_out(
        &self,
        _: &World<'_>,
        identity: &SessionKey,
        command: PersonCommand,
    ) -> Vec<(SessionKey, PersonCommand)> {
        vec![(identity.clone(), command)]
    }

    /// The digest that an approval is decided on.
    fn approves(&self, named: Digest, _current: Digest) -> Digest {
        named
    }

    /// Whether what is saved becomes known everywhere by itself.
    fn promotes(&self) -> bool {
        false
    }

    /// The chats to which events of this session are delivered.
    fn delivers(&self, world: &World<'_>, identity: &SessionKey) -> Vec<Chat> {
        let listens = world.listens.iter().filter(|(_, to)| *to == identity);
        listens.map(|(chat, _)| *chat).collect()
    }

    /// What else happens when a chat is gone.
    fn disconnects(&self, _: &World<'_>, _: Chat) -> Vec<(SessionKey, PersonCommand)> {
        Vec::new()
    }

    /// Whether a deleted session leaves no trace, so that its key can be used again.
    fn forgets_deleted(&self) -> bool {
        false
    }

    /// What an owner has used.
    fn used(&self, world: &World<'_>, owner: OwnerId) -> Used {
        let (turns, tokens) = (world.turns(|of| of == owner), world.tokens(|of| of == owner));
        Used { turns, tokens, ..Used::default() }
    }

    /// Whether an item is the one that a session forgets.
    fn is_forgotten(&self, key: &SessionKey, (owner, item): &(OwnerId, Item), id: u128) -> bool {
        let is_theirs = *owner == key.owner && item.scope.session() == Some(&key.identity);
        is_theirs && item.id.0.as_u128() == id
    }
}

/// What a scope gives, counted over these items alone.
fn found(items: Vec<Item>) -> Candidates {
    let count = items.len() as u64;
    let words = items.iter().map(|item| item.words().len() as u64).sum();
    Candidates { items, count, words, ..Candidates::default() }
}

/// As it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sound;

impl Wiring for Sound {}

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    GlobalPlanFlag,
    StalePointer,
    BareTaskScope,
    BareGoalScope,
    DeliveryByCurrentPointer,
    StaleApproval,
    GlobalOff,
    AutoPromotion,
    MissingChannel,
    MissingOwner,
    ScopesOfEveryOwner,
    ZombieAfterDelete,
    ZombieAfterOff,
    DisconnectKillsRuns,
    GlobalOfEveryOwner,
    SessionScopeByKey,
    RepairToAnyOwner,
    ForgetByBareId,
    GlobalReset,
    SharedStatistics,
    GoalBlind,
    TokensOfEveryOwner,
    TurnsOfEveryOwner,
}

impl Mutant {
    /// All of them.
    pub(crate) const ALL: [Self; 23] = [
        Self::GlobalPlanFlag,
        Self::StalePointer,
        Self::BareTaskScope,
        Self::BareGoalScope,
        Self::DeliveryByCurrentPointer,
        Self::StaleApproval,
        Self::GlobalOff,
        Self::AutoPromotion,
        Self::MissingChannel,
        Self::MissingOwner,
        Self::ScopesOfEveryOwner,
        Self::ZombieAfterDelete,
        Self::ZombieAfterOff,
        Self::DisconnectKillsRuns,
        Self::GlobalOfEveryOwner,
        Self::SessionScopeByKey,
        Self::RepairToAnyOwner,
        Self::ForgetByBareId,
        Self::GlobalReset,
        Self::SharedStatistics,
        Self::GoalBlind,
        Self::TokensOfEveryOwner,
        Self::TurnsOfEveryOwner,
    ];

    /// Whether a foreign item would be taken for one of this scope.
    fn mistakes(self, scope: &Scope, item: &Scope) -> bool {
        match (self, scope, item) {
            (Self::BareTaskScope, Scope::Task(_, wanted), Scope::Task(_, task)) => wanted == task,
            (Self::BareGoalScope, Scope::Goal(_, wanted), Scope::Goal(_, goal)) => wanted == goal,
            (Self::SessionScopeByKey, Scope::Session(wanted), Scope::Session(session)) => {
                wanted.key == session.key
            }
            (Self::ScopesOfEveryOwner, wanted, scope) => wanted == scope,
            (_, _, _) => false,
        }
    }

    fn everywhere(
        world: &World<'_>,
        identity: &SessionKey,
        command: PersonCommand,
    ) -> Vec<(SessionKey, PersonCommand)> {
        let mut all = vec![(identity.clone(), command.clone())];
        let others = world.sessions.keys().filter(|other| *other != identity);
        all.extend(others.map(|other| (other.clone(), command.clone())));
        all
    }
}

impl Wiring for Mutant {
    fn name(&self) -> &'static str {
        match self {
            Self::GlobalPlanFlag => "plan mode is one flag for all sessions",
            Self::StalePointer => "a switch does not reach the pointer that is resolved",
            Self::BareTaskScope => "a task's scope is its id alone",
            Self::BareGoalScope => "a goal's scope is its id alone",
            Self::DeliveryByCurrentPointer => "events go to whom the pointer names now",
            Self::StaleApproval => "an approval takes what is current",
            Self::GlobalOff => "off stops the runs of all sessions",
            Self::AutoPromotion => "what is saved is known everywhere",
            Self::MissingChannel => "a session is kept without its channel",
            Self::MissingOwner => "a session is kept without its owner",
            Self::ScopesOfEveryOwner => "what is remembered is found without its owner",
            Self::ZombieAfterDelete => "a deleted session can be made again",
            Self::ZombieAfterOff => "off is acknowledged and not done",
            Self::DisconnectKillsRuns => "a chat that is gone takes its runs with it",
            Self::GlobalOfEveryOwner => "what one owner promoted is known to all",
            Self::SessionScopeByKey => "a session's scope is its key alone",
            Self::RepairToAnyOwner => "a pointer is repaired to anyone's newest session",
            Self::ForgetByBareId => "something is forgotten wherever it has that id",
            Self::GlobalReset => "a reset resets all sessions",
            Self::SharedStatistics => "ranks are computed over all sessions",
            Self::TokensOfEveryOwner => "what others use counts against an owner's limit",
            Self::TurnsOfEveryOwner => "turns of others count against an owner's limit",
            Self::GoalBlind => "tasks of a goal do not see what it keeps",
        }
    }

    fn resolve(&self, world: &World<'_>, chat: Chat) -> Resolution {
        let sound = Sound.resolve(world, chat);
        match (self, &sound) {
            (Self::StalePointer, Resolution::Stands(_)) => match world.captured.get(&chat) {
                Some(before) => Resolution::Stands(before.identity.key.clone()),
                None => sound,
            },
            (Self::RepairToAnyOwner, Resolution::Repair(_)) => {
                let channel = chat.transport().channel;
                let newest =
                    world.updated.iter().filter(|(key, _)| key.identity.channel == channel);
                match newest.max_by_key(|(_, at)| **at) {
                    Some((key, _)) => Resolution::Repair(key.identity.key.clone()),
                    None => sound,
                }
            }
            (_, _) => sound,
        }
    }

    fn place(&self, identity: &SessionKey) -> SessionKey {
        let mut place = identity.clone();
        if *self == Self::MissingChannel {
            place.identity.channel = ChannelType::Web;
        }
        if *self == Self::MissingOwner {
            place.owner = Chat(0).person().owner;
        }
        place
    }

    fn candidates(&self, world: &World<'_>, chain: &Chain) -> Vec<Candidates> {
        let mut sound = Sound.candidates(world, chain);
        for (scope, found) in chain.scopes().iter().zip(&mut sound) {
            let is_foreign = |(owner, item): &&(OwnerId, Item)| {
                (*owner, &item.scope) != (chain.owner(), scope) && self.mistakes(scope, &item.scope)
            };
            let foreign = world.items.iter().filter(is_foreign);
            // The engine would hand it out as its own.
            let taken = foreign.map(|(_, item)| Item { scope: scope.clone(), ..item.clone() });
            found.items.extend(taken);
            match (self, scope) {
                (Self::GlobalOfEveryOwner, Scope::Global) => {
                    let all = world.items.iter().filter(|(_, item)| item.scope == Scope::Global);
                    found.items = all.map(|(_, item)| item.clone()).collect();
                }
                (Self::SharedStatistics, _) => found.count = world.items.len() as u64,
                (Self::GoalBlind, Scope::Goal(..)) => found.items.clear(),
                (_, _) => {}
            }
        }
        sound
    }

    fn fan_out(
        &self,
        world: &World<'_>,
        identity: &SessionKey,
        command: PersonCommand,
    ) -> Vec<(SessionKey, PersonCommand)> {
        match (self, &command) {
            (Self::GlobalPlanFlag, PersonCommand::StartPlan { .. } | PersonCommand::EndPlan(_))
            | (Self::GlobalOff, PersonCommand::Auto(AutoCommand::Off { .. }))
            | (Self::GlobalReset, PersonCommand::Reset) => {
                Self::everywhere(world, identity, command)
            }
            (Self::ZombieAfterOff, PersonCommand::Auto(AutoCommand::Off { .. })) => Vec::new(),
            (_, _) => vec![(identity.clone(), command)],
        }
    }

    fn approves(&self, named: Digest, current: Digest) -> Digest {
        if *self == Self::StaleApproval { current } else { named }
    }

    fn promotes(&self) -> bool {
        *self == Self::AutoPromotion
    }

    fn delivers(&self, world: &World<'_>, identity: &SessionKey) -> Vec<Chat> {
        if *self != Self::DeliveryByCurrentPointer {
            return Sound.delivers(world, identity);
        }
        let points = |chat: &Chat| {
            let owner = world.owner(chat.person().owner);
            let pointed = owner.pointers.get(&chat.transport());
            pointed.is_some_and(|key| chat.session(key.clone()) == *identity)
        };
        Chat::ALL
            .into_iter()
            .filter(points)
            .filter(|chat| world.listens.contains_key(chat))
            .collect()
    }

    fn disconnects(&self, world: &World<'_>, chat: Chat) -> Vec<(SessionKey, PersonCommand)> {
        if *self != Self::DisconnectKillsRuns {
            return Vec::new();
        }
        let off = || PersonCommand::Auto(AutoCommand::Off { run: None });
        let listened = world.listens.get(&chat);
        listened.map(|identity| (identity.clone(), off())).into_iter().collect()
    }

    fn forgets_deleted(&self) -> bool {
        *self == Self::ZombieAfterDelete
    }

    fn used(&self, world: &World<'_>, owner: OwnerId) -> Used {
        let mut used = Sound.used(world, owner);
        if *self == Self::TokensOfEveryOwner {
            used.tokens = world.tokens(|_| true);
        }
        if *self == Self::TurnsOfEveryOwner {
            used.turns = world.turns(|_| true);
        }
        used
    }

    fn is_forgotten(&self, key: &SessionKey, kept: &(OwnerId, Item), id: u128) -> bool {
        if *self == Self::ForgetByBareId {
            return kept.1.id.0.as_u128() == id;
        }
        Sound.is_forgotten(key, kept, id)
    }
}

/// Whether a command deletes its session.
pub(super) fn deletes(command: &PersonCommand) -> bool {
    matches!(command, PersonCommand::Life(LifeCommand::Delete))
}
