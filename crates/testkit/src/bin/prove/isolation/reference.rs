//! What each command was meant for, kept apart from every rule: a map of chats, owners and ends.

use std::collections::{BTreeMap, BTreeSet};

use planwright_domain::{
    actor::PersonId,
    id::Seq,
    identity::{ConversationKey, SessionIdentity},
};

use super::{
    op::{Act, Chat, KEYS, LEGACY, Op},
    world::World,
};

/// What each chat talks to, whose each session is, and what has ended.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    pointers: BTreeMap<Chat, SessionIdentity>,
    /// What each chat talked to before it was moved last.
    captured: BTreeMap<Chat, SessionIdentity>,
    owners: BTreeMap<SessionIdentity, PersonId>,
    archived: BTreeSet<SessionIdentity>,
    /// Sessions that were deleted.
    pub(crate) deleted: BTreeSet<SessionIdentity>,
    /// Sessions in which runs were turned on and not off since.
    pub(crate) running: BTreeSet<SessionIdentity>,
    touched: BTreeMap<SessionIdentity, usize>,
    clock: usize,
    /// What each connected chat listens to.
    pub(crate) listens: BTreeMap<Chat, SessionIdentity>,
    fresh: usize,
}

/// The key that a switch names.
#[must_use]
pub(crate) fn key(number: usize) -> ConversationKey {
    let text = KEYS.get(number).copied().unwrap_or(LEGACY);
    ConversationKey::legacy(text).unwrap_or_else(|_| unreachable!("a key has letters"))
}

/// The key that a chat gets when it has none: the so-manieth.
#[must_use]
pub(crate) fn fresh_key(number: usize) -> ConversationKey {
    ConversationKey::legacy(&format!("fresh-key-{number:04}"))
        .unwrap_or_else(|_| unreachable!("a key has letters"))
}

impl Reference {
    /// What this chat talks to, if it talks to anything.
    #[must_use]
    pub(crate) fn pointed(&self, chat: Chat) -> Option<SessionIdentity> {
        self.pointers.get(&chat).cloned()
    }

    fn theirs(&self, identity: &SessionIdentity, person: &PersonId) -> bool {
        self.owners.get(identity).is_none_or(|owner| owner == person)
    }

    /// Whether a chat may talk to this session.
    fn reachable(&self, identity: &SessionIdentity, person: &PersonId) -> bool {
        let made = self.owners.contains_key(identity);
        let may_be = made || identity.key.may_be_new();
        may_be && !self.deleted.contains(identity) && self.theirs(identity, person)
    }

    /// The session that this chat talks to when something is received.
    fn resolved(&self, chat: Chat) -> SessionIdentity {
        let (person, channel) = (chat.person().id, chat.transport().channel);
        let pointed = self.pointers.get(&chat).filter(|found| self.reachable(found, &person));
        if let Some(found) = pointed {
            return found.clone();
        }
        let newest = self
            .owners
            .iter()
            .filter(|(identity, owner)| **owner == person && identity.channel == channel)
            .filter(|(identity, _)| {
                !self.deleted.contains(*identity) && !self.archived.contains(*identity)
            })
            .max_by_key(|(identity, _)| self.touched.get(*identity).copied().unwrap_or(0));
        newest.map_or_else(
            || SessionIdentity::new(channel, fresh_key(self.fresh)),
            |(identity, _)| identity.clone(),
        )
    }

    /// The session that a command is meant for; none if it is about none.
    #[must_use]
    pub(crate) fn target(&self, op: &Op) -> Option<SessionIdentity> {
        match op {
            Op::Say { from, captured: true, .. } if self.captured.contains_key(from) => {
                self.captured.get(from).cloned()
            }
            Op::Say { from, .. }
            | Op::Advance { from, .. }
            | Op::Promote { from, .. }
            | Op::Connect { from } => Some(self.resolved(*from)),
            Op::Switch { .. } | Op::Disconnect { .. } | Op::ForgetGlobal { .. } => None,
        }
    }

    /// Keeps what a command was meant for. Whose a session is, and which were touched when, is told by its events.
    pub(super) fn apply(
        &mut self,
        op: &Op,
        target: Option<&SessionIdentity>,
        world: &World<'_>,
    ) -> Result<(), String> {
        self.clock += 1;
        match op {
            Op::Switch { from, key: named } => {
                let identity = SessionIdentity::new(from.transport().channel, key(*named));
                if self.reachable(&identity, &from.person().id) {
                    self.moves(*from, identity);
                }
            }
            Op::Disconnect { from } => {
                self.pointers.remove(from);
                self.listens.remove(from);
            }
            Op::ForgetGlobal { .. } => {}
            Op::Connect { from } => {
                let identity = self.resolves(*from);
                self.listens.insert(*from, identity);
            }
            Op::Advance { from, .. } | Op::Promote { from, .. } => {
                self.resolves(*from);
            }
            Op::Say { from, captured, act } => {
                let stale = *captured && self.captured.contains_key(from);
                if !stale {
                    self.resolves(*from);
                }
                if let Some(identity) = target {
                    self.said(*from, *act, identity, world)?;
                }
            }
        }
        for (identity, version) in &world.moved {
            if *version > Seq(0) {
                self.touched.insert(identity.clone(), self.clock);
            }
        }
        Ok(())
    }

    fn said(
        &mut self,
        from: Chat,
        act: Act,
        identity: &SessionIdentity,
        world: &World<'_>,
    ) -> Result<(), String> {
        let person = from.person().id;
        let gone = self.deleted.contains(identity);
        let foreign = !self.theirs(identity, &person);
        if world.accepted && gone {
            return Err("lifecycle: something was accepted in a deleted session".into());
        }
        let decides = matches!(act, Act::ApproveCurrent | Act::ApproveStale);
        if world.accepted && foreign && !decides {
            return Err("label: someone spoke in the session of another".into());
        }
        if !world.accepted {
            return Ok(());
        }
        if !decides {
            self.owners.entry(identity.clone()).or_insert(person);
        }
        match act {
            Act::AutoOn { .. } => {
                self.running.insert(identity.clone());
            }
            Act::AutoOff | Act::Reset => {
                self.running.remove(identity);
            }
            Act::Delete => {
                self.running.remove(identity);
                self.deleted.insert(identity.clone());
            }
            Act::Archive => {
                self.archived.insert(identity.clone());
            }
            Act::Message(_) => {
                self.archived.remove(identity);
            }
            Act::ApproveStale => return Err("digest: a stale approval was accepted".into()),
            Act::PlanOn
            | Act::PlanOff
            | Act::PlanDone
            | Act::ApproveCurrent
            | Act::AddGoal(_)
            | Act::AddTask { .. }
            | Act::Save(_)
            | Act::Forget(_) => {}
        }
        Ok(())
    }

    fn moves(&mut self, chat: Chat, identity: SessionIdentity) {
        if let Some(before) = self.pointers.insert(chat, identity) {
            self.captured.insert(chat, before);
        }
    }

    fn resolves(&mut self, chat: Chat) -> SessionIdentity {
        let identity = self.resolved(chat);
        if identity.key == fresh_key(self.fresh) {
            self.fresh += 1;
        }
        if self.pointers.get(&chat) != Some(&identity) {
            self.moves(chat, identity.clone());
        }
        identity
    }

    /// Whose a session is.
    #[must_use]
    pub(crate) fn owner(&self, identity: &SessionIdentity) -> Option<&PersonId> {
        self.owners.get(identity)
    }
}
