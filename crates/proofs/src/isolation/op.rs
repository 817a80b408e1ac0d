//! What can happen in a history, with weights that favour conflict.

use fastrand::Rng;
use planwright_domain::{
    actor::{Person, Standing},
    id::{GoalId, TaskId},
    identity::{ChannelType, ConversationKey, SessionIdentity, SessionKey, Transport},
};

use planwright_testkit::people;
use uuid::Uuid;

use super::{reference::Reference, world::World};

/// One command of a history. What it names is fixed when it is made, so that it can be played again.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// A line in a chat, or in the session that the chat talked to a while ago.
    Say { from: Chat, act: Act, captured: bool },
    /// The chat is connected: events of the session it talks to are delivered to it.
    Connect { from: Chat },
    /// The chat is gone.
    Disconnect { from: Chat },
    /// The chat talks to another session.
    Switch { from: Chat, key: usize },
    /// The session of this chat goes on by itself, so many steps.
    Advance { from: Chat, steps: u8, turn: TurnKind, salt: u64 },
    /// What its person remembers of this session becomes known everywhere.
    Promote { from: Chat, which: usize },
    /// Something is known everywhere no more.
    ForgetGlobal { from: Chat, which: usize },
}

/// What a line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Message(u64),
    PlanOn,
    PlanOff,
    PlanDone,
    ApproveCurrent,
    ApproveStale,
    AddGoal(u8),
    AddTask { goal: Option<u8>, task: u8 },
    AutoOn { goal: Option<u8> },
    AutoOff,
    Save(u64),
    Forget(u8),
    Reset,
    Delete,
    Archive,
}

/// What the model does in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnKind {
    Talk,
    Content,
    SaveTask,
    SaveGoal,
    SaveSession,
    ReadFile,
    Report,
    PlanReport,
}

/// A chat, and who sits at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chat(pub(crate) usize);

/// The keys that both channels share.
pub(crate) const KEYS: [&str; 3] = ["shared-key-1", "shared-key-2", "shared-key-3"];
/// A key from before there were rules for keys: it can make no session.
pub(crate) const LEGACY: &str = "a:b%2F\u{e9}";

impl Chat {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self(0), Self(1), Self(2), Self(3)];

    /// Where it is.
    #[must_use]
    pub(crate) fn transport(self) -> Transport {
        let channel = if self.0 < 2 { ChannelType::Web } else { ChannelType::Telegram };
        Transport::new(channel, &format!("chat-{}", self.0))
    }

    /// Who sits at it.
    #[must_use]
    pub(crate) fn person(self) -> Person {
        let name = if self.0 == 3 { "bea" } else { "ada" };
        people::person(name, &format!("chat-{}", self.0), Standing::Decides)
    }

    /// The session of whoever sits at it, in its channel.
    #[must_use]
    pub(crate) fn session(self, key: ConversationKey) -> SessionKey {
        let identity = SessionIdentity::new(self.transport().channel, key);
        SessionKey::new(self.person().owner, identity)
    }
}

/// A goal by its number; the same in every session.
pub(crate) fn goal_id(number: u8) -> GoalId {
    Uuid::from_u128(500 + u128::from(number)).into()
}

/// A task by its number; the same in every session.
pub(crate) fn task_id(number: u8) -> TaskId {
    Uuid::from_u128(600 + u128::from(number)).into()
}

/// The next command.
pub(super) fn generate(rng: &mut Rng, at: usize, reference: &Reference, world: &World<'_>) -> Op {
    let from = Chat(rng.usize(0..4));
    if at < 3 {
        return Op::Switch { from: Chat(at), key: at % 2 };
    }
    let salt = rng.u64(..);
    match rng.u8(0..100) {
        0..=10 => Op::Switch { from, key: rng.usize(0..KEYS.len() + 1) },
        11..=13 => Op::Connect { from },
        14..=15 => Op::Disconnect { from },
        16..=46 => {
            let kinds = [
                TurnKind::Talk,
                TurnKind::Content,
                TurnKind::SaveTask,
                TurnKind::SaveGoal,
                TurnKind::SaveGoal,
                TurnKind::SaveSession,
                TurnKind::ReadFile,
                TurnKind::Report,
                TurnKind::PlanReport,
            ];
            let turn = kinds[rng.usize(0..kinds.len())];
            Op::Advance { from, steps: rng.u8(1..14), turn, salt }
        }
        47..=51 => Op::Promote { from, which: rng.usize(0..4) },
        52 => Op::ForgetGlobal { from, which: rng.usize(0..4) },
        _ => {
            let act = act(rng, salt, leads_on(from, reference, world));
            Op::Say { from, act, captured: rng.u8(0..4) == 0 }
        }
    }
}

/// What would lead on in the session of this chat, if anything would.
fn leads_on(from: Chat, reference: &Reference, world: &World<'_>) -> Option<Act> {
    let identity = reference.pointed(from)?;
    let session = world.sessions.get(&identity)?;
    match session.plan() {
        Some(plan) if plan.awaits_decision() => return Some(Act::ApproveCurrent),
        Some(_) | None => {}
    }
    let auto = &session.auto;
    let goal = (0..2).find(|number| auto.goals.contains_key(&goal_id(*number)));
    let waits = goal.filter(|number| auto.open_task(Some(goal_id(*number))).is_some());
    match (goal, waits) {
        (None, _) => Some(Act::AddGoal(0)),
        (Some(goal), None) => {
            Some(Act::AddTask { goal: Some(goal), task: auto.numbered as u8 % 4 })
        }
        (Some(_), Some(goal)) if auto.runs.is_empty() => Some(Act::AutoOn { goal: Some(goal) }),
        (Some(_), Some(_)) => None,
    }
}

fn act(rng: &mut Rng, salt: u64, leads_on: Option<Act>) -> Act {
    if let Some(act) = leads_on.filter(|_| rng.u8(0..5) < 2) {
        return act;
    }
    let goal = |rng: &mut Rng| (rng.u8(0..3) > 0).then(|| rng.u8(0..2));
    match rng.u8(0..100) {
        0..=18 => Act::Message(salt),
        19..=28 => Act::PlanOn,
        29..=31 => Act::PlanOff,
        32..=33 => Act::PlanDone,
        34..=39 => Act::ApproveCurrent,
        40..=44 => Act::ApproveStale,
        45..=51 => Act::AddGoal(rng.u8(0..2)),
        52..=63 => Act::AddTask { goal: goal(rng), task: rng.u8(0..4) },
        64..=75 => Act::AutoOn { goal: goal(rng) },
        76..=80 => Act::AutoOff,
        81..=90 => Act::Save(salt),
        91..=93 => Act::Forget(rng.u8(0..4)),
        94..=95 => Act::Reset,
        96..=98 => Act::Delete,
        _ => Act::Archive,
    }
}
