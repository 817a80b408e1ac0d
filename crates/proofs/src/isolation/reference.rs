//! What each command was meant for, kept apart from every rule: a map of chats, owners and ends.

use std::collections::{BTreeMap, BTreeSet};

use planwright_domain::{
    id::Seq,
    identity::{ConversationKey, SessionKey},
};

use super::{
    op::{Act, Chat, KEYS, LEGACY, Op},
    world::World,
};

/// What each chat talks to, which sessions there are, and what has ended.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    pointers: BTreeMap<Chat, SessionKey>,
    /// What each chat talked to before it was moved last.
    captured: BTreeMap<Chat, SessionKey>,
    /// The sessions in which something was accepted.
    made: BTreeSet<SessionKey>,
    archived: BTreeSet<SessionKey>,
    /// Sessions that were deleted.
    pub(crate) deleted: BTreeSet<SessionKey>,
    /// Sessions in which runs were turned on and not off since.
    pub(crate) running: BTreeSet<SessionKey>,
    touched: BTreeMap<SessionKey, usize>,
    clock: usize,
    /// What each connected chat listens to.
    pub(crate) listens: BTreeMap<Chat, SessionKey>,
    fresh: usize,
}

/// The key that a switch names.
#[must_use]
pub(crate) fn key(number: usize) -> ConversationKey {
    let text = KEYS.get(number).copied().unwrap_or(LEGACY);
    ConversationKey::legacy(text).unwrap_or_else(|_| unreachable!("a key has letters"))
}

/// The key that a chat gets when it has none: by its number.
#[must_use]
pub(crate) fn fresh_key(number: usize) -> ConversationKey {
    ConversationKey::legacy(&format!("fresh-key-{number:04}"))
        .unwrap_or_else(|_| unreachable!("a key has letters"))
}

impl Reference {
    /// What this chat talks to, if it talks to anything.
    #[must_use]
    pub(crate) fn pointed(&self, chat: Chat) -> Option<SessionKey> {
        self.pointers.get(&chat).cloned()
    }

    /// Whether the owner of this session may talk to it.
    fn reachable(&self, key: &SessionKey) -> bool {
        let may_be = self.made.contains(key) || key.identity.key.may_be_new();
        may_be && !self.deleted.contains(key)
    }

    /// The session that this chat talks to when something is received.
    fn resolved(&self, chat: Chat) -> SessionKey {
        let (owner, channel) = (chat.person().owner, chat.transport().channel);
        let pointed = self.pointers.get(&chat).filter(|found| self.reachable(found));
        if let Some(found) = pointed {
            return found.clone();
        }
        let newest = self
            .made
            .iter()
            .filter(|key| key.owner == owner && key.identity.channel == channel)
            .filter(|key| !self.deleted.contains(*key) && !self.archived.contains(*key))
            .max_by_key(|key| self.touched.get(*key).copied().unwrap_or(0));
        newest.cloned().unwrap_or_else(|| chat.session(fresh_key(self.fresh)))
    }

    /// The session that a command is meant for; none if it is about none.
    #[must_use]
    pub(crate) fn target(&self, op: &Op) -> Option<SessionKey> {
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
        target: Option<&SessionKey>,
        world: &World<'_>,
    ) -> Result<(), String> {
        self.clock += 1;
        match op {
            Op::Switch { from, key: named } => {
                let identity = from.session(key(*named));
                if self.reachable(&identity) {
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
        identity: &SessionKey,
        world: &World<'_>,
    ) -> Result<(), String> {
        let gone = self.deleted.contains(identity);
        let foreign = identity.owner != from.person().owner;
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
            self.made.insert(identity.clone());
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

    fn moves(&mut self, chat: Chat, identity: SessionKey) {
        if let Some(before) = self.pointers.insert(chat, identity) {
            self.captured.insert(chat, before);
        }
    }

    fn resolves(&mut self, chat: Chat) -> SessionKey {
        let identity = self.resolved(chat);
        if identity.identity.key == fresh_key(self.fresh) {
            self.fresh += 1;
        }
        if self.pointers.get(&chat) != Some(&identity) {
            self.moves(chat, identity.clone());
        }
        identity
    }
}
