//! Everything that a runtime does, over the product's own rules, in memory: chats, pointers, sessions, turns, runs,
//! memory, deliveries.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use planwright_domain::{
    actor::{Person, PersonId},
    autonomy::{AutoExecutionContext, budget::Budget, event::AutoEvent},
    command::{
        Approving, AutoCommand, Decision, Ending, Given, Issued, LifeCommand, ModelCommand,
        PersonCommand, SessionCommand, StartingCall, SystemCommand, Target, Terms,
    },
    digest::Digest,
    effect::{Aim, Bracket, Effect, Repeat, ToolFacts},
    id::{Incarnation, OwnerId, PlanId, Seq},
    identity::{ChannelType, SessionKey},
    memory::{
        Chain, Item, ItemKind, MemoryCommand, MemoryEvent, Scope, ScopeKind, rank::Recalled,
        select::select, words,
    },
    next::{Next, next, takes_room},
    notebook::NotebookEvent,
    owner::{self, DayUse, Moved, Owner, OwnerCommand, OwnerEvent, Resolution},
    plan::{Reads, Strategy, event::PlanEvent},
    policy::Policy,
    quota::{Day, Quota, QuotaUse},
    session::{
        Session, SessionEvent, begins_turn, decide,
        life::{Life, LifeEvent},
        limits_of,
    },
    time::Time,
    turn::{Answer, CallKind, CallResult, Cause, RequestedCall, Usage, event::TurnEvent},
};
use uuid::Uuid;

use super::{
    op::{Act, Chat, Op, TurnKind, goal_id, task_id},
    reference::{Reference, key},
    wiring::{Wiring, deletes},
};

/// How many tokens of what is remembered a turn is told.
const BUDGET_TOKENS: usize = 800;

/// Everything there is.
pub(crate) struct World<'w> {
    wiring: &'w dyn Wiring,
    policy: Arc<Policy>,
    /// The sessions, by where they are kept.
    pub(crate) sessions: BTreeMap<SessionKey, Session>,
    events: BTreeMap<SessionKey, Vec<(Time, SessionEvent)>>,
    owners: BTreeMap<OwnerId, Owner>,
    /// What is remembered, with whose it is.
    pub(crate) items: Vec<(OwnerId, Item)>,
    /// When each session last moved.
    pub(crate) updated: BTreeMap<SessionKey, usize>,
    /// How many fresh keys were given out.
    pub(crate) fresh: usize,
    /// What each chat talked to before it was moved last.
    pub(crate) captured: BTreeMap<Chat, SessionKey>,
    /// What each connected chat listens to.
    pub(crate) listens: BTreeMap<Chat, SessionKey>,
    at: usize,
    drawn: u32,
    /// What moved since the last command.
    pub(crate) moved: Vec<(SessionKey, Seq)>,
    /// Whether the last command was accepted.
    pub(crate) accepted: bool,
    news: Vec<(SessionKey, SessionEvent)>,
    delivered: Vec<(Chat, SessionKey)>,
    approved: BTreeMap<PlanId, Digest>,
    seen: BTreeMap<SessionKey, Vec<Digest>>,
    promoted: BTreeMap<OwnerId, BTreeSet<String>>,
    /// The commands by which something was promoted or forgotten everywhere, by when.
    promotions: BTreeMap<usize, (OwnerId, OwnerCommand)>,
    recollections: BTreeMap<SessionKey, Vec<Recalled>>,
    broken: Option<String>,
    /// How many recollections there were.
    pub(crate) recalls: u64,
    /// How many of them held something shared.
    pub(crate) shared: u64,
    /// What each owner may use.
    quota: Option<Quota>,
    /// How often a turn was paused or did not begin because its owner had used what they may.
    pub(crate) limited: u64,
    quiet: bool,
}

impl<'w> World<'w> {
    /// A world in which nothing has happened, and in which every owner may use so much.
    pub(crate) fn new(wiring: &'w dyn Wiring, quota: Option<Quota>) -> Self {
        Self {
            wiring,
            quota,
            limited: 0,
            policy: Arc::default(),
            sessions: BTreeMap::new(),
            events: BTreeMap::new(),
            owners: BTreeMap::new(),
            items: Vec::new(),
            updated: BTreeMap::new(),
            fresh: 0,
            captured: BTreeMap::new(),
            listens: BTreeMap::new(),
            at: 0,
            drawn: 0,
            moved: Vec::new(),
            accepted: false,
            news: Vec::new(),
            delivered: Vec::new(),
            approved: BTreeMap::new(),
            seen: BTreeMap::new(),
            promoted: BTreeMap::new(),
            promotions: BTreeMap::new(),
            recollections: BTreeMap::new(),
            broken: None,
            recalls: 0,
            shared: 0,
            quiet: false,
        }
    }

    /// The session as it stands.
    #[must_use]
    pub(crate) fn session(&self, identity: &SessionKey) -> Session {
        let place = self.wiring.place(identity);
        self.sessions.get(&place).cloned().unwrap_or_else(|| Session::new(identity.clone()))
    }

    /// What belongs to an owner.
    #[must_use]
    pub(crate) fn owner(&self, id: OwnerId) -> Owner {
        self.owners.get(&id).cloned().unwrap_or_else(|| Owner::new(id))
    }

    /// The owner's newest session of a channel that is there and was not put away.
    #[must_use]
    pub(crate) fn newest(&self, owner: OwnerId, channel: ChannelType) -> Option<SessionKey> {
        let there = self.sessions.iter().filter(|(key, session)| {
            key.identity.channel == channel && session.owner == owner && session.life == Life::Open
        });
        let newest = there.max_by_key(|(identity, _)| self.updated.get(*identity).copied());
        newest.map(|(identity, _)| identity.clone())
    }

    fn id(&mut self) -> Uuid {
        self.drawn += 1;
        Uuid::from_u128(((self.at as u128 + 1) << 64) | u128::from(self.drawn))
    }

    /// How many turns are under way, of owners for which this holds.
    pub(super) fn turns(&self, of: impl Fn(OwnerId) -> bool) -> u64 {
        let open =
            self.sessions.values().filter(|session| of(session.owner) && takes_room(session));
        open.count() as u64
    }

    /// The tokens that owners have used for which this holds.
    pub(super) fn tokens(&self, of: impl Fn(OwnerId) -> bool) -> u64 {
        let owners = self.owners.values().filter(|owner| of(owner.id));
        owners.map(|owner| owner.used_on(Day(0)).tokens).sum()
    }

    fn now(&self) -> Time {
        Time(1_000_000 * (self.at as i64 + 1))
    }

    fn begin(&mut self, at: usize) {
        self.at = at;
        self.drawn = 0;
        self.accepted = false;
        self.moved.clear();
        self.news.clear();
        self.delivered.clear();
    }

    /// Does what a command says, by the way of its chat; the session in which it landed.
    pub(super) fn apply(&mut self, at: usize, op: &Op) -> Result<Option<SessionKey>, String> {
        self.begin(at);
        let landed = match op {
            Op::Switch { from, key: named } => {
                let identity = from.session(key(*named));
                if owner::is_reachable(identity.owner, &self.session(&identity)) {
                    self.bind(*from, identity, Moved::Requested);
                }
                None
            }
            Op::Connect { from } => {
                let identity = self.resolve(*from);
                self.listens.insert(*from, identity.clone());
                Some(identity)
            }
            Op::Disconnect { from } => {
                for (identity, command) in self.wiring.disconnects(self, *from) {
                    self.person(&identity, &from.person(), command);
                }
                self.listens.remove(from);
                let unbind = OwnerCommand::Unbind { transport: from.transport() };
                self.own(from.person().owner, &unbind);
                None
            }
            Op::Say { from, act, captured } => {
                let before = self.captured.get(from).cloned().filter(|_| *captured);
                let identity = before.unwrap_or_else(|| self.resolve(*from));
                self.act(&identity, *from, *act);
                Some(identity)
            }
            Op::Advance { from, steps, turn, salt } => {
                let identity = self.resolve(*from);
                self.advance(&identity, *steps, *turn, *salt);
                Some(identity)
            }
            Op::Promote { from, which } => {
                let identity = self.resolve(*from);
                self.promote(&identity, &from.person(), *which);
                Some(identity)
            }
            Op::ForgetGlobal { from, which } => {
                let person = from.person().owner;
                let id = self.owner(person).promoted.iter().nth(*which).copied();
                if let Some(id) = id {
                    let command = OwnerCommand::Forget { id };
                    self.promotions.insert(self.at, (person, command.clone()));
                    self.own(person, &command);
                }
                None
            }
        };
        self.broken.take().map_or(Ok(landed), Err)
    }

    /// Does the same at the session for which it was meant, and what was promoted meanwhile.
    pub(super) fn apply_at(
        &mut self,
        at: usize,
        op: &Op,
        target: Option<&SessionKey>,
        whole: &World<'_>,
    ) -> Result<(), String> {
        self.begin(at);
        match (op, target) {
            (Op::Promote { .. } | Op::ForgetGlobal { .. }, _) => {
                if let Some((person, command)) = whole.promotions.get(&at) {
                    self.own(*person, command);
                }
            }
            (Op::Say { from, act, .. }, Some(identity)) => self.act(identity, *from, *act),
            (Op::Advance { steps, turn, salt, .. }, Some(identity)) => {
                self.advance(identity, *steps, *turn, *salt);
            }
            (_, _) => {}
        }
        self.broken.take().map_or(Ok(()), Err)
    }

    fn resolve(&mut self, chat: Chat) -> SessionKey {
        match self.wiring.resolve(self, chat) {
            Resolution::Stands(key) => chat.session(key),
            Resolution::Repair(key) => {
                let identity = chat.session(key);
                if identity.identity.key == super::reference::fresh_key(self.fresh) {
                    self.fresh += 1;
                }
                self.bind(chat, identity.clone(), Moved::Repaired);
                identity
            }
        }
    }

    fn bind(&mut self, chat: Chat, identity: SessionKey, why: Moved) {
        let (person, transport) = (chat.person().owner, chat.transport());
        let before = self.owner(person).pointers.get(&transport).cloned();
        let key = identity.identity.key;
        self.own(person, &OwnerCommand::Bind { transport, key, why });
        if let Some(before) = before {
            self.captured.insert(chat, chat.session(before));
        }
    }

    fn own(&mut self, person: OwnerId, command: &OwnerCommand) {
        let owner = self.owner(person);
        let Ok(events) = owner::decide(&owner, command) else { return };
        for event in &events {
            match event {
                OwnerEvent::MemoryPromoted { item } => {
                    self.promoted.entry(person).or_default().insert(item.text.clone());
                    self.items.push((person, (**item).clone()));
                }
                OwnerEvent::MemoryForgotten { id } => {
                    self.items.retain(|(owner, item)| {
                        !(*owner == person && item.scope == Scope::Global && item.id == *id)
                    });
                }
                OwnerEvent::PointerMoved { .. }
                | OwnerEvent::PointerDropped { .. }
                | OwnerEvent::ModelsUsed { .. }
                | OwnerEvent::LimitRaised { .. } => {}
            }
        }
        match owner.fold(&events) {
            Ok(after) => {
                self.owners.insert(person, after);
            }
            Err(corrupt) => self.broken = Some(corrupt.to_string()),
        }
    }

    fn act(&mut self, identity: &SessionKey, from: Chat, act: Act) {
        let person = from.person();
        let (goal, task) = (goal_id, task_id);
        let session = self.session(identity);
        let current = session.plan().and_then(|plan| plan.current.as_ref()).map(|head| head.digest);
        let command = match act {
            Act::Message(salt) => PersonCommand::Say { text: label(identity, salt) },
            Act::PlanOn => PersonCommand::StartPlan {
                plan: self.id().into(),
                strategy: Strategy::Document,
                reads: Reads::Record,
            },
            Act::PlanOff => PersonCommand::EndPlan(Ending::Off),
            Act::PlanDone => PersonCommand::EndPlan(Ending::Done),
            Act::ApproveCurrent => {
                let Some(digest) = current else { return };
                self.person(identity, &person, PersonCommand::RecordShown { digest });
                if let Some(plan) = session.plan() {
                    self.approved.insert(plan.id, digest);
                }
                approve(digest)
            }
            Act::ApproveStale => {
                let Some(current) = current else { return };
                let seen = self.seen.get(identity);
                let stale = seen.and_then(|seen| seen.iter().rev().find(|seen| **seen != current));
                let stale = stale.copied().unwrap_or_else(|| Digest::of(b"never shown"));
                self.person(identity, &person, PersonCommand::RecordShown { digest: current });
                approve(self.wiring.approves(stale, current))
            }
            Act::AddGoal(number) if session.auto.goals.contains_key(&goal(number)) => return,
            Act::AddGoal(number) => {
                let title = label(identity, number.into());
                PersonCommand::Auto(AutoCommand::AddGoal { goal: goal(number), title })
            }
            Act::AddTask { task: number, .. } if session.auto.tasks.contains_key(&task(number)) => {
                return;
            }
            Act::AddTask { goal: of, task: number } => {
                let of = of.map(goal).filter(|goal| session.auto.goals.contains_key(goal));
                let title = label(identity, number.into());
                PersonCommand::Auto(AutoCommand::AddTask { task: task(number), goal: of, title })
            }
            Act::AutoOn { goal: of } => {
                let of = of.map(goal).filter(|goal| session.auto.goals.contains_key(goal));
                let target = of.map_or(Target::NextTask, Target::Goal);
                let (run, budget) = (self.id().into(), Budget::default());
                PersonCommand::Auto(AutoCommand::On { run, target, budget, drafts: false })
            }
            Act::AutoOff => PersonCommand::Auto(AutoCommand::Off { run: None }),
            Act::Save(salt) => {
                let (id, text) = (self.memory_id(identity), label(identity, salt));
                let kind = ItemKind::Fact;
                PersonCommand::Memory(MemoryCommand::Save { id: id.into(), kind, text })
            }
            Act::Forget(number) => {
                let id = Uuid::from_u128(700 + u128::from(number)).into();
                PersonCommand::Memory(MemoryCommand::Forget { id })
            }
            Act::Reset => PersonCommand::Reset,
            Act::Delete => PersonCommand::Life(LifeCommand::Delete),
            Act::Archive => PersonCommand::Life(LifeCommand::Archive),
        };
        self.perform(identity, &person, command);
    }

    /// What was shown first does not count: the answer to the command itself does.
    fn perform(&mut self, identity: &SessionKey, person: &Person, command: PersonCommand) {
        self.accepted = false;
        let off = matches!(command, PersonCommand::Auto(AutoCommand::Off { .. }));
        let done = self.wiring.fan_out(self, identity, command);
        if done.is_empty() && off {
            self.accepted = !self.session(identity).auto.runs.is_empty();
        }
        for (place, command) in done {
            self.person(&place, person, command);
        }
    }

    /// Ids of what is remembered are counted in each session, so that they are the same in all.
    fn memory_id(&self, identity: &SessionKey) -> Uuid {
        let saved = self.events.get(identity).into_iter().flatten();
        let saved = saved
            .filter(|(_, event)| matches!(event, SessionEvent::Memory(MemoryEvent::Saved { .. })));
        Uuid::from_u128(700 + saved.count() as u128)
    }

    fn person(&mut self, identity: &SessionKey, person: &Person, command: PersonCommand) {
        let forgets = deletes(&command);
        let accepted = self.ask(identity, SessionCommand::Person(person.clone(), command));
        self.accepted |= accepted;
        if accepted && forgets && self.wiring.forgets_deleted() {
            self.sessions.remove(&self.wiring.place(identity));
        }
    }

    fn ask(&mut self, identity: &SessionKey, command: SessionCommand) -> bool {
        let session = self.session(identity);
        let limits = limits_of(&command);
        let quota = self.quota.filter(|_| !limits.is_empty()).map(|quota| QuotaUse {
            owner: PersonId(identity.owner.to_string()),
            quota,
            used: self.wiring.used(self, identity.owner),
        });
        let asked = Issued::new(self.id(), self.now(), command).under(self.policy.clone());
        let asked = asked.with_quota(quota.clone().map(Arc::new));
        let Ok(events) = decide(&session, &asked) else { return false };
        let room = quota.as_ref().filter(|_| begins_turn(&session, &events));
        if let Some(quota) = room
            && quota.turn_room().is_some_and(|room| room.check(quota.used.turns).is_err())
        {
            self.limited += 1;
            return false;
        }
        let is_pause = |event: &SessionEvent| {
            matches!(event, SessionEvent::Turn(TurnEvent::TurnPaused { .. }))
        };
        self.limited += u64::from(events.iter().any(is_pause));
        let after = match session.fold(asked.at, &events) {
            Ok(after) => after,
            Err(corrupt) => {
                self.broken = Some(corrupt.to_string());
                return false;
            }
        };
        if events.is_empty() {
            return true;
        }
        self.remember(identity, &events);
        if let Some(head) = after.plan().and_then(|plan| plan.current.as_ref()) {
            let seen = self.seen.entry(identity.clone()).or_default();
            if seen.last() != Some(&head.digest) {
                seen.push(head.digest);
            }
        }
        for chat in self.wiring.delivers(self, identity) {
            self.delivered.push((chat, identity.clone()));
        }
        let of = |usage: Usage| usage.input + usage.output;
        let (day, tokens) = (Day(0), of(after.usage) - of(session.usage));
        let used = DayUse { tokens, cost_micros: 0 };
        self.own(identity.owner, &OwnerCommand::CountUse { day, used });
        self.moved.push((identity.clone(), after.version));
        self.updated.insert(identity.clone(), self.at + 1);
        self.sessions.insert(self.wiring.place(identity), after);
        if !self.quiet {
            self.news.extend(events.iter().map(|event| (identity.clone(), event.clone())));
        }
        let recorded = events.into_iter().map(|event| (asked.at, event));
        self.events.entry(identity.clone()).or_default().extend(recorded);
        true
    }

    fn remember(&mut self, identity: &SessionKey, events: &[SessionEvent]) {
        for event in events {
            match event {
                SessionEvent::Memory(MemoryEvent::Saved { item }) => {
                    let owner = self.session(identity).owner;
                    self.items.push((owner, (**item).clone()));
                    if self.wiring.promotes() {
                        let everywhere = Item { scope: Scope::Global, ..(**item).clone() };
                        self.items.push((owner, everywhere));
                    }
                }
                SessionEvent::Memory(MemoryEvent::Forgotten { id }) => {
                    let (wiring, id) = (self.wiring, id.0.as_u128());
                    self.items.retain(|kept| !wiring.is_forgotten(identity, kept, id));
                }
                SessionEvent::Life(LifeEvent::Deleted { .. }) => {
                    self.items.retain(|kept| !is_of(kept, identity));
                }
                SessionEvent::Memory(_)
                | SessionEvent::Notebook(_)
                | SessionEvent::Life(_)
                | SessionEvent::Plan(_)
                | SessionEvent::Turn(_)
                | SessionEvent::Auto(_)
                | SessionEvent::MessageQueued { .. }
                | SessionEvent::CauseWithdrawn { .. }
                | SessionEvent::ViewReset { .. }
                | SessionEvent::CompactionAsked { .. }
                | SessionEvent::AgentCalled { .. }
                | SessionEvent::Logged { .. } => {}
            }
        }
    }

    fn promote(&mut self, identity: &SessionKey, person: &Person, which: usize) {
        let session = self.session(identity);
        if session.owner != person.owner || session.life == Life::Deleted {
            return;
        }
        let own = self.items.iter().filter(|kept| is_of(kept, identity));
        let Some((_, item)) = own.clone().nth(which).cloned() else { return };
        let id = Uuid::new_v5(&item.id.0, identity.to_string().as_bytes()).into();
        let text = item.text.clone();
        let (item, by) = (Box::new(item), person.id.clone());
        let command = OwnerCommand::Promote { item, text, id, by };
        self.promotions.insert(self.at, (person.owner, command.clone()));
        self.own(person.owner, &command);
    }

    /// What is remembered that fits, with the oracles of what may and what must be in it.
    fn recall(
        &mut self,
        identity: &SessionKey,
        session: &Session,
        context: Option<&AutoExecutionContext>,
    ) -> Recalled {
        let owner = session.owner;
        let chain = Chain::of(owner, &identity.identity, context);
        let question = words("note");
        let found = self.wiring.candidates(self, &chain);
        let recalled = select(&chain, &question, found, self.now(), BUDGET_TOKENS);
        self.recalls += 1;
        for ranked in &recalled.items {
            self.must_be_own(identity, owner, &ranked.item.text, "was recalled");
        }
        let told = |kind| recalled.items.iter().any(|ranked| ranked.item.scope.kind() == kind);
        let kept = |scope: &Scope| {
            self.items.iter().any(|(of, item)| item.scope == *scope && *of == owner)
        };
        for kind in [ScopeKind::Goal, ScopeKind::Global] {
            let Some(scope) = chain.named(kind) else { continue };
            if kept(scope) {
                self.shared += 1;
                let said_nearer = kind == ScopeKind::Global && !recalled.items.is_empty();
                if !told(kind) && !said_nearer {
                    self.broken =
                        Some(format!("positive: {scope} keeps something that was not told"));
                }
            }
        }
        self.recollections.entry(identity.clone()).or_default().push(recalled.clone());
        recalled
    }

    fn must_be_own(&mut self, identity: &SessionKey, owner: OwnerId, text: &str, how: &str) {
        for labelled in text.split("note [").skip(1) {
            let Some((origin, _)) = labelled.split_once(']') else { continue };
            let own = origin == identity.to_string();
            let promoted = || {
                self.promoted.get(&owner).is_some_and(|known| {
                    known.iter().any(|known| known.contains(&format!("[{origin}]")))
                })
            };
            if !own && !promoted() {
                self.broken = Some(format!("label: something of {origin} {how} in {identity}"));
            }
        }
    }

    /// The session goes on by itself, as `next` says.
    fn advance(&mut self, identity: &SessionKey, steps: u8, turn: TurnKind, salt: u64) {
        for step in 0..steps {
            let Some(command) = self.due(identity, turn, salt.wrapping_add(step.into())) else {
                return;
            };
            if !self.ask(identity, command) || self.broken.is_some() {
                return;
            }
        }
    }

    /// What the session is to be told next, if it does not wait.
    fn due(&mut self, identity: &SessionKey, turn: TurnKind, salt: u64) -> Option<SessionCommand> {
        let session = self.session(identity);
        let command = match next(&session) {
            Next::StartTurn(queued) => {
                let cause = session.queue.iter().find(|waiting| waiting.seq == queued);
                let run = cause.and_then(|waiting| session.auto.run_of(waiting.cause));
                let context = run.map(|run| run.context.clone());
                let recalled = self.recall(identity, &session, context.as_ref());
                let (turn, profile, call) = (self.id().into(), None, Some(self.bracket()));
                SystemCommand::StartTurn { turn, queued, profile, recalled, call }
            }
            Next::CallModel { attempt, .. } => {
                SystemCommand::StartModelCall { attempt, bracket: self.bracket() }
            }
            Next::AwaitModel { attempt, .. } => {
                let answer = self.answer(identity, &session, turn, salt);
                SystemCommand::RecordAnswer { attempt, answer, others: 0 }
            }
            Next::UsePlanTool { turn, call } => {
                let given = Given {
                    fresh: self.memory_or_fresh(identity, &session, call),
                    profiles: BTreeSet::new(),
                    memory: Some(Vec::new()),
                    markdown: None,
                };
                let command = ModelCommand::UsePlanTool { call, given };
                return Some(SessionCommand::Model(turn, command));
            }
            Next::RunCalls(due) => {
                let starting =
                    |attempt| StartingCall { attempt, tool: Some(facts()), aim: Aim::default() };
                let calls = due.into_iter().map(starting).collect();
                let (bracket, ask_until) = (self.bracket(), self.now());
                SystemCommand::StartCalls { calls, bracket, ask_until }
            }
            Next::AwaitCalls(calls) => {
                let (attempt, output) = (calls.first()?.attempt, label(identity, salt));
                let result = CallResult::done(output);
                SystemCommand::RecordResult { attempt, result, note_every: 0 }
            }
            Next::RemovePages { attempt, .. } => {
                SystemCommand::StartRemoval { attempt, bracket: self.bracket() }
            }
            Next::AwaitRemoval { attempt, .. } => {
                SystemCommand::RecordPagesRemoved { attempt, pages: 0 }
            }
            Next::Nothing
            | Next::Erase { .. }
            | Next::WaitForPerson(_)
            | Next::AwaitDecision { .. }
            | Next::AwaitSlot { .. }
            | Next::AwaitLimit { .. }
            | Next::AwaitPermission { .. } => return None,
        };
        Some(SessionCommand::System(command))
    }

    fn memory_or_fresh(
        &mut self,
        identity: &SessionKey,
        session: &Session,
        call: planwright_domain::id::CallId,
    ) -> PlanId {
        let turn = session.turn.as_ref();
        let asked = turn.and_then(|turn| turn.calls().iter().find(|at| at.requested.id == call));
        if asked.is_some_and(|asked| asked.requested.tool == "memory_save") {
            self.memory_id(identity).into()
        } else {
            self.id().into()
        }
    }

    fn bracket(&self) -> Bracket {
        let (start_by, deadline) = (self.now(), self.now().plus_micros(60_000_000));
        Bracket { incarnation: Incarnation(Uuid::from_u128(1)), start_by, deadline }
    }

    fn answer(
        &mut self,
        identity: &SessionKey,
        session: &Session,
        kind: TurnKind,
        salt: u64,
    ) -> Answer {
        let text = label(identity, salt);
        let first = session.turn.as_ref().is_some_and(|turn| turn.round == 1);
        let save =
            |scope: &str| Some(("memory_save", serde_json::json!({"text": text, "scope": scope})));
        let run = session
            .turn
            .as_ref()
            .is_some_and(|turn| matches!(turn.cause.cause, Cause::Tick { .. }));
        let call = match kind {
            _ if !first => None,
            TurnKind::Talk => None,
            TurnKind::Content => session.plan().map(|_| {
                let markdown = format!("# Plan\n\n1. {text}\n");
                ("plan_set_content", serde_json::json!({"plan_markdown": markdown}))
            }),
            TurnKind::SaveTask if run => save("task"),
            TurnKind::SaveGoal if run => save("goal"),
            TurnKind::SaveTask | TurnKind::SaveGoal | TurnKind::SaveSession => save("session"),
            TurnKind::ReadFile => Some(("read_file", serde_json::json!({"path": "a.txt"}))),
            TurnKind::Report => {
                Some(("task_report", serde_json::json!({"status": "done", "summary": text})))
            }
            TurnKind::PlanReport => {
                Some(("plan_report", serde_json::json!({"status": "done", "summary": text})))
            }
        };
        let calls = call.into_iter().map(|(tool, arguments)| {
            let reads = tool == "read_file";
            RequestedCall {
                id: self.id().into(),
                wire_id: String::new(),
                tool: tool.into(),
                arguments: arguments.to_string(),
                kind: if reads { CallKind::Tool(facts()) } else { CallKind::Plan },
            }
        });
        let calls = calls.collect();
        Answer { text, calls, usage: Usage::tokens(1, 1), ..Answer::default() }
    }

    /// What must hold of what just happened, given what was meant before it.
    pub(super) fn check(&mut self, op: &Op, reference: &Reference) -> Result<(), String> {
        if matches!(op, Op::Disconnect { .. }) && !self.news.is_empty() {
            return Err("lifecycle: a chat that is gone changed a session".into());
        }
        for (chat, identity) in &self.delivered {
            if reference.listens.get(chat) != Some(identity) {
                return Err(format!("label: events of {identity} were delivered to {chat:?}"));
            }
        }
        let starts = matches!(op, Op::Say { act: Act::AutoOn { .. }, .. });
        for (identity, event) in std::mem::take(&mut self.news) {
            if reference.deleted.contains(&identity) && !is_late(&event) {
                return Err(format!("lifecycle: {} after {identity} was deleted", event.kind()));
            }
            if goes_on(&event) && !starts && !reference.running.contains(&identity) {
                return Err(format!("lifecycle: {} after off in {identity}", event.kind()));
            }
            let session = self.session(&identity);
            if let (SessionEvent::Plan(PlanEvent::ExecutionStarted { plan, .. }), Some(approval)) =
                (&event, session.plan().and_then(|plan| plan.status.approval()))
                && self.approved.get(plan) != Some(&approval.revision_digest)
            {
                return Err("digest: what executes is not what was approved".into());
            }
            for text in texts(&event) {
                self.must_be_own(&identity, session.owner, &text, "was recorded");
            }
        }
        self.broken.take().map_or(Ok(()), Err)
    }

    /// What must hold at the end.
    pub(super) fn finish(&mut self, reference: &Reference) -> Result<(), String> {
        for (identity, session) in &self.sessions {
            let off = !reference.running.contains(identity);
            if off && !session.auto.runs.is_empty() {
                return Err(format!("lifecycle: runs go on in {identity} after off"));
            }
            if session.key() != *identity {
                return Err(format!("label: {identity} became {}", session.key()));
            }
        }
        Ok(())
    }

    /// Whether a session is, to the byte, what it is in another world.
    pub(super) fn same_as(
        &mut self,
        twin: &mut World<'_>,
        identity: &SessionKey,
        at: usize,
        oracle: &str,
    ) -> Result<(), String> {
        (self.quiet, twin.quiet) = (true, true);
        (self.at, twin.at) = (at, at);
        let differs =
            |what: &str| format!("{oracle}: without the others, {what} of {identity} differ");
        if self.events.get(identity) != twin.events.get(identity) {
            return Err(differs("the events"));
        }
        let (here, there) = (self.session(identity), twin.session(identity));
        let events = self.events.get(identity).map_or(&[][..], Vec::as_slice);
        let stored = serde_json::to_string(events).map_err(|error| error.to_string())?;
        let stored: Vec<(Time, SessionEvent)> =
            serde_json::from_str(&stored).map_err(|error| error.to_string())?;
        let stored = stored.iter().map(|(at, event)| (*at, event));
        if Session::new(identity.clone()).fold_all(stored).as_ref() != Ok(&here) {
            return Err(format!("twin: the stored events of {identity} fold to another state"));
        }
        if here != there {
            return Err(differs("state and version"));
        }
        self.recall(identity, &here, None);
        twin.recall(identity, &there, None);
        if self.recollections.get(identity) != twin.recollections.get(identity) {
            return Err(differs("the recollections"));
        }
        self.broken.take().map_or(Ok(()), Err)
    }
}

/// Whether something is remembered of this session.
fn is_of((owner, item): &(OwnerId, Item), key: &SessionKey) -> bool {
    *owner == key.owner && item.scope.session() == Some(&key.identity)
}

/// A text that names the session it was written in.
fn label(identity: &SessionKey, salt: u64) -> String {
    format!("note [{identity}] {salt:x}")
}

fn facts() -> ToolFacts {
    ToolFacts { effect: Effect::Read, repeat: Repeat::Harmless, schema: Digest::of(b"schema") }
}

fn approve(digest: Digest) -> PersonCommand {
    PersonCommand::Decide(Decision::Approve(Approving::of(digest, Terms::default())))
}

/// What may still be recorded of a session that was deleted: what had started before.
fn is_late(event: &SessionEvent) -> bool {
    matches!(
        event,
        SessionEvent::Notebook(NotebookEvent::PagesRemoved { .. })
            | SessionEvent::Turn(
                TurnEvent::CallFinished { .. }
                    | TurnEvent::CallAbandoned { .. }
                    | TurnEvent::CallOrphaned { .. }
                    | TurnEvent::CallInDoubt { .. }
            )
    )
}

/// Whether an event is a run going on.
fn goes_on(event: &SessionEvent) -> bool {
    matches!(
        event,
        SessionEvent::Auto(AutoEvent::RunStarted { .. } | AutoEvent::Ticked { .. })
            | SessionEvent::Turn(TurnEvent::TurnStarted { context: Some(_), .. })
    )
}

/// The words that an event holds.
fn texts(event: &SessionEvent) -> Vec<String> {
    match event {
        SessionEvent::MessageQueued { text, .. } => vec![text.clone()],
        SessionEvent::Auto(AutoEvent::Ticked { words, .. }) => vec![words.clone()],
        SessionEvent::Auto(
            AutoEvent::GoalAdded { title, .. } | AutoEvent::TaskAdded { title, .. },
        ) => vec![title.clone()],
        SessionEvent::Auto(AutoEvent::TaskEnded { end, .. }) => vec![end.summary().to_owned()],
        SessionEvent::Plan(PlanEvent::RevisionAdded { revision, .. }) => {
            vec![revision.markdown.clone()]
        }
        SessionEvent::Memory(MemoryEvent::Saved { item }) => vec![item.text.clone()],
        SessionEvent::Turn(TurnEvent::TurnStarted { recalled, .. }) => {
            recalled.iter().map(|ranked| ranked.item.text.clone()).collect()
        }
        SessionEvent::Turn(TurnEvent::ModelAnswered { answer, .. }) => vec![answer.text.clone()],
        SessionEvent::Turn(TurnEvent::CallFinished { result, .. }) => vec![result.output.clone()],
        SessionEvent::Memory(_)
        | SessionEvent::Notebook(_)
        | SessionEvent::Life(_)
        | SessionEvent::Plan(_)
        | SessionEvent::Turn(_)
        | SessionEvent::Auto(_)
        | SessionEvent::CauseWithdrawn { .. }
        | SessionEvent::ViewReset { .. }
        | SessionEvent::CompactionAsked { .. }
        | SessionEvent::AgentCalled { .. }
        | SessionEvent::Logged { .. } => Vec::new(),
    }
}
