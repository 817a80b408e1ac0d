//! Chats, runs and memories that meet: a switch with a command, an end with a tick, a promotion with a question.

use std::sync::{Arc, Mutex, PoisonError};

use planwright_domain::{
    autonomy::budget::Budget,
    command::{AutoCommand, LifeCommand, PersonCommand, SessionCommand, Target},
    id::{CommandId, MemoryId, Seq},
    identity::{ChannelType, SessionKey, Transport},
    memory::{ItemKind, MemoryCommand},
    next::{Due, Next, next},
    owner::OwnerCommand,
    session::SessionEvent,
    turn::event::TurnEvent,
};
use planwright_outbound::ids_random::fresh_id;
use planwright_runtime::{
    commands::reply::{Reply, Spoken},
    ports::{journal::Recorded, memory::Store, toolbox::Toolbox},
    runtime::Runtime,
};
use uuid::Uuid;

use super::{
    Journals, Met, Place,
    gated::{Gate, Gated},
    turnstile::{Choice, Turnstile, answer_of, crashed, following},
};
use crate::staged::{Counting, Staged, ada, runtime, talk};

/// What meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meeting {
    SwitchPlanOn,
    OffTick,
    DeleteSay,
    DisconnectSay,
    PromoteRecall,
    DeleteTick,
}

impl Meeting {
    pub(super) const ALL: [Self; 6] = [
        Self::SwitchPlanOn,
        Self::OffTick,
        Self::DeleteSay,
        Self::DisconnectSay,
        Self::PromoteRecall,
        Self::DeleteTick,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SwitchPlanOn => "switch ∥ /plan on",
            Self::OffTick => "/auto off ∥ tick",
            Self::DeleteSay => "delete ∥ pointer",
            Self::DisconnectSay => "disconnect ∥ routes",
            Self::PromoteRecall => "promote ∥ retrieve",
            Self::DeleteTick => "delete ∥ tick",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::SwitchPlanOn => "switch",
            Self::OffTick => "off",
            Self::DeleteSay => "gone",
            Self::DisconnectSay => "route",
            Self::PromoteRecall => "promote",
            Self::DeleteTick => "ends",
        }
    }

    /// Whether one of the two has many points, or holds the row of its session for long.
    pub(super) fn has_a_step(self) -> bool {
        matches!(self, Self::OffTick | Self::DeleteTick) || self.deletes()
    }

    /// A deletion stores more than one statement, and holds the row of its session meanwhile.
    fn deletes(self) -> bool {
        matches!(self, Self::DeleteTick | Self::DeleteSay)
    }
}

/// What one of the two does.
#[derive(Clone)]
enum Deed {
    Asks(CommandId, PersonCommand),
    Advances,
    Binds(Transport, SessionKey),
    Unbinds(Transport),
    Says(CommandId, Transport, &'static str),
    Promotes(MemoryId, &'static str),
    Recalls,
}

/// What a deed came to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Came {
    Accepted(SessionKey),
    Refused(String),
    Recalled(Vec<String>),
    Nothing,
}

const REMEMBERED: &str = "tea is drunk at four";

/// Two sessions of one person, the chats that talk to the first, and what the two do.
struct Stage {
    first: SessionKey,
    second: SessionKey,
    chats: [Transport; 2],
    deeds: [Deed; 2],
    /// Where a line went when it was received: who had no answer asks again there.
    received: Mutex<Option<SessionKey>>,
}

async fn stage(meeting: Meeting, runtime: &Runtime, number: u64) -> anyhow::Result<Stage> {
    let named = |which: &str| talk(&format!("{}-{which}-{number:06}", meeting.key()));
    let (first, second) = (named("a"), named("b"));
    let chat = |which: &str| {
        Transport::new(ChannelType::Cli, &format!("{}-{which}-{number}", meeting.key()))
    };
    let chats = [chat("x"), chat("y")];
    for identity in [&first, &second] {
        let staged = Staged { runtime, identity };
        let title = "hello".into();
        staged.ask(PersonCommand::Life(LifeCommand::Rename { title })).await?;
    }
    for chat in &chats {
        runtime
            .commands
            .bind(&ada(), chat, &first.identity.key)
            .await?
            .map_err(anyhow::Error::from)?;
    }
    let staged = Staged { runtime, identity: &first };
    let item = MemoryId(Uuid::new_v5(&Uuid::NAMESPACE_OID, first.to_string().as_bytes()));
    if meeting == Meeting::PromoteRecall {
        let save = MemoryCommand::Save { id: item, kind: ItemKind::Fact, text: REMEMBERED.into() };
        staged.ask(PersonCommand::Memory(save)).await?;
    }
    if matches!(meeting, Meeting::OffTick | Meeting::DeleteTick | Meeting::DisconnectSay) {
        let task = Uuid::now_v7().into();
        let title = "look after it".into();
        let add = AutoCommand::AddTask { task, goal: None, title };
        staged.ask(PersonCommand::Auto(add)).await?;
        let (run, budget) = (Uuid::now_v7().into(), Budget::default());
        let on = AutoCommand::On { run, target: Target::Task(task), budget, drafts: false };
        staged.ask(PersonCommand::Auto(on)).await?;
    }
    let asks = |command| Deed::Asks(fresh_id(), command);
    let delete = || asks(PersonCommand::Life(LifeCommand::Delete));
    let deeds = match meeting {
        Meeting::SwitchPlanOn => [
            Deed::Binds(chats[0].clone(), second.clone()),
            Deed::Says(fresh_id(), chats[0].clone(), "/plan on"),
        ],
        Meeting::OffTick => {
            [asks(PersonCommand::Auto(AutoCommand::Off { run: None })), Deed::Advances]
        }
        Meeting::DeleteSay => [delete(), Deed::Says(fresh_id(), chats[0].clone(), "hello?")],
        Meeting::DisconnectSay => [
            Deed::Unbinds(chats[0].clone()),
            Deed::Says(fresh_id(), chats[1].clone(), "still there?"),
        ],
        Meeting::PromoteRecall => [Deed::Promotes(item, REMEMBERED), Deed::Recalls],
        Meeting::DeleteTick => [delete(), Deed::Advances],
    };
    Ok(Stage { first, second, chats, deeds, received: Mutex::default() })
}

async fn does(node: &Runtime, stage: &Stage, deed: &Deed) -> anyhow::Result<Came> {
    let came = |refusal: String| Came::Refused(refusal);
    Ok(match deed {
        Deed::Asks(id, command) => {
            let command = SessionCommand::Person(ada(), command.clone());
            match node.engine.dispatch(&stage.first, *id, command).await? {
                planwright_runtime::ports::journal::Answer::Accepted { .. } => {
                    Came::Accepted(stage.first.clone())
                }
                planwright_runtime::ports::journal::Answer::Refused(refusal) => {
                    came(refusal.kind().into())
                }
            }
        }
        Deed::Advances => {
            node.engine.advance(&stage.first).await?;
            Came::Nothing
        }
        Deed::Binds(chat, to) => match node.commands.bind(&ada(), chat, &to.identity.key).await? {
            Ok(session) => Came::Accepted(session),
            Err(refusal) => came(refusal.kind().into()),
        },
        Deed::Unbinds(chat) => {
            let unbind = OwnerCommand::Unbind { transport: chat.clone() };
            match node.commands.own(ada().owner, unbind).await? {
                Ok(_) => Came::Accepted(stage.first.clone()),
                Err(refusal) => came(refusal.kind().into()),
            }
        }
        Deed::Says(id, chat, line) => says(node, stage, (*id, chat, line)).await?,
        Deed::Promotes(item, text) => {
            match node.commands.promote(&ada(), &stage.first, *item, text).await? {
                Ok(_) => Came::Accepted(stage.first.clone()),
                Err(refusal) => came(refusal.kind().into()),
            }
        }
        Deed::Recalls => {
            let recalled = node.queries.memory(&stage.second, REMEMBERED).await?;
            let own = recalled.items.into_iter();
            // Other plays of this race have promoted the same words.
            let item = |from: &Recalled| from.is_of(&stage.first);
            Came::Recalled(own.map(Recalled).filter(item).map(|found| found.0.item.text).collect())
        }
    })
}

/// Somebody says a line in a chat; if they ask again, where they said it first.
async fn says(
    node: &Runtime,
    stage: &Stage,
    (id, chat, line): (CommandId, &Transport, &str),
) -> anyhow::Result<Came> {
    let before = stage.received.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let identity = match before {
        Some(identity) => identity,
        None => node.commands.resolve(ada().owner, chat).await?,
    };
    *stage.received.lock().unwrap_or_else(PoisonError::into_inner) = Some(identity.clone());
    let (id, said) = (id, line.to_owned());
    let transport = Some(chat.clone());
    let spoken = Spoken { identity, transport, person: ada(), id, line: said };
    Ok(match node.commands.handle_line(spoken).await? {
        Reply::Accepted { session, .. } => {
            Came::Accepted(SessionKey::named(&session, ada().owner)?)
        }
        Reply::Refused(refusal) => Came::Refused(refusal.kind().into()),
        Reply::Moved { .. }
        | Reply::Sessions(_)
        | Reply::Work(_)
        | Reply::Memory(_)
        | Reply::Notebook(_)
        | Reply::Unreadable(_)
        | Reply::Status(_)
        | Reply::Revision(_)
        | Reply::Diff(_)
        | Reply::Plans(_)
        | Reply::Comments(_)
        | Reply::Nothing(_)
        | Reply::Help => anyhow::bail!("{line:?} was not a command"),
    })
}

struct Recalled(planwright_domain::memory::rank::Ranked);

impl Recalled {
    fn is_of(&self, session: &SessionKey) -> bool {
        use planwright_domain::memory::Provenance;
        match &self.0.item.provenance {
            Provenance::Promoted { from, .. } => *from == session.identity,
            Provenance::Model { .. } | Provenance::Person { .. } | Provenance::Legacy => true,
        }
    }
}

pub(super) async fn explore(place: &mut Place, meeting: Meeting) -> anyhow::Result<Met> {
    let mut met = Met::default();
    let mut script = Some(Vec::new());
    let mut journals = place.open().await?;
    while let Some(told) = script {
        let number = met.orders + met.crashes;
        let one_writer = place.has_one_writer() || meeting.deletes();
        let plain = runtime(journals[0].clone(), Arc::new(Counting::default()));
        let stage = Arc::new(stage(meeting, &plain, number).await?);
        let (played, came) = play(&journals, one_writer, &stage, &told).await?;
        if crashed(&played) {
            met.crashes += 1;
            journals = place.open().await?;
        } else {
            met.orders += 1;
        }
        let choices: Vec<_> = played.iter().map(|(choice, _)| *choice).collect();
        match verdict(meeting, &journals[0], &stage, &came).await {
            Ok(label) => *met.outcomes.entry(label).or_default() += 1,
            Err(why) => met.wrong.push(format!("{why:#}; {choices:?}; {}", stage.first)),
        }
        script = following(played);
    }
    Ok(met)
}

type Played = Vec<(Choice, Vec<Choice>)>;

async fn play(
    journals: &Journals,
    one_writer: bool,
    stage: &Arc<Stage>,
    script: &[Choice],
) -> anyhow::Result<(Played, [Option<Came>; 2])> {
    let turnstile = Arc::new(Turnstile::new(one_writer));
    let toolbox: Arc<dyn Toolbox> = Arc::new(Counting::default());
    let mut tasks = Vec::new();
    for (actor, inner) in journals.iter().enumerate() {
        let gate = Gate { turnstile: turnstile.clone(), actor };
        let journal = Gated { inner: inner.clone(), gate: gate.clone() };
        let node = runtime(Arc::new(journal), Arc::new(Gated { inner: toolbox.clone(), gate }));
        let (stage, turnstile) = (stage.clone(), turnstile.clone());
        let acting = tokio::spawn(async move { does(&node, &stage, &stage.deeds[actor]).await });
        tasks.push(tokio::spawn(async move {
            let told = acting.await;
            turnstile.leave(actor);
            told
        }));
    }
    let told = script.to_vec();
    let played = tokio::task::spawn_blocking(move || turnstile.play(&told)).await?;
    let mut came = [None, None];
    for (came, task) in came.iter_mut().zip(tasks) {
        *came = answer_of(&played, task.await?)?;
    }
    Ok((played, came))
}

impl Stage {
    /// Which session somebody's command reached.
    fn name_of(&self, came: &Came) -> &'static str {
        match came {
            Came::Accepted(session) if *session == self.first => "the first",
            Came::Accepted(session) if *session == self.second => "the second",
            Came::Accepted(_) => "a new one",
            Came::Refused(_) | Came::Recalled(_) | Came::Nothing => "",
        }
    }
}

/// What came of it, once everyone who had no answer has asked again and everything rests.
async fn verdict(
    meeting: Meeting,
    journal: &Arc<dyn Store>,
    stage: &Stage,
    came: &[Option<Came>; 2],
) -> anyhow::Result<String> {
    let node = runtime(journal.clone(), Arc::new(Counting::default()));
    let drive = |identity| drive_until_erasure(&node, identity);
    // A new life first does what is due, for whoever advanced; then it hears those who had no answer.
    drive(&stage.first).await?;
    let mut told = Vec::new();
    for (deed, came) in stage.deeds.iter().zip(came) {
        told.push(match came {
            Some(came) => came.clone(),
            None if matches!(deed, Deed::Advances) => Came::Nothing,
            None => does(&node, stage, deed).await?,
        });
    }
    drive(&stage.first).await?;
    drive(&stage.second).await?;
    let events = journal.events(&stage.first, Seq(0), usize::MAX).await?;
    let session = |key| node.queries.session(key);
    let (first, second) = (session(&stage.first).await?, session(&stage.second).await?);
    let landed = stage.name_of(&told[1]);
    match meeting {
        Meeting::SwitchPlanOn => {
            let plans = (first.plan().is_some(), second.plan().is_some());
            let named = (landed == "the first", landed == "the second");
            anyhow::ensure!(plans == named, "the reply names {landed}, and plans are in {plans:?}");
            Ok(format!("/plan on is in {landed}, as the reply says"))
        }
        Meeting::OffTick => {
            nothing_after(&events, "run_ended")?;
            anyhow::ensure!(first.auto.runs.is_empty(), "a run is left");
            Ok("off; nothing of it starts after that".into())
        }
        Meeting::DeleteTick => {
            is_deleted(&node, &stage.first, &events).await?;
            Ok("deleted; nothing of it starts after that, and it is erased".into())
        }
        Meeting::DeleteSay => {
            is_deleted(&node, &stage.first, &events).await?;
            match &told[1] {
                Came::Accepted(_) => Ok(format!("the line is in {landed}")),
                Came::Refused(kind) if kind == "session_deleted" => Ok("it is refused".into()),
                Came::Refused(_) | Came::Recalled(_) | Came::Nothing => {
                    anyhow::bail!("{:?}", told[1])
                }
            }
        }
        Meeting::DisconnectSay => {
            let owner = journal.owner(ada().owner).await?;
            anyhow::ensure!(!owner.pointers.contains_key(&stage.chats[0]), "the route is there");
            let other = owner.pointers.get(&stage.chats[1]);
            anyhow::ensure!(other == Some(&stage.first.identity.key), "the other route is gone");
            anyhow::ensure!(!first.auto.runs.is_empty(), "a run is gone");
            anyhow::ensure!(landed == "the first", "the line is in {landed}");
            Ok("only that route is gone; the run goes on".into())
        }
        Meeting::PromoteRecall => {
            let recalled = |came: &Came| match came {
                Came::Recalled(found) => Ok(found.clone()),
                Came::Accepted(_) | Came::Refused(_) | Came::Nothing => {
                    Err(anyhow::anyhow!("{came:?}"))
                }
            };
            let found = recalled(&told[1])?;
            let whole = found.iter().all(|text| text == REMEMBERED) && found.len() <= 1;
            anyhow::ensure!(whole, "recalled in part: {found:?}");
            let now = recalled(&does(&node, stage, &Deed::Recalls).await?)?;
            anyhow::ensure!(now == [REMEMBERED], "afterwards: {now:?}");
            Ok(if found.is_empty() { "before" } else { "after" }.into())
        }
    }
}

/// Goes on, but looks at what happened before it is erased.
async fn drive_until_erasure(node: &Runtime, identity: &SessionKey) -> anyhow::Result<()> {
    let is_erasure = |next: &Next| matches!(next, Next::Erase { .. });
    Staged { runtime: node, identity }.drive_until(is_erasure).await
}

/// Nothing started after the deletion, and nothing is left in the end, unless a life that ended was removing the pages.
async fn is_deleted(
    node: &Runtime,
    identity: &SessionKey,
    events: &[Recorded],
) -> anyhow::Result<()> {
    nothing_after(events, "session_deleted")?;
    Staged { runtime: node, identity }.drive().await?;
    let session = node.queries.session(identity).await?;
    let is_later = matches!(next(&session).due(), Due::At(_));
    anyhow::ensure!(is_later || session.version == Seq(0), "it is not erased");
    Ok(())
}

/// After the first event of this kind nothing new starts; what had started may end.
fn nothing_after(events: &[Recorded], kind: &str) -> anyhow::Result<()> {
    let at = events.iter().position(|recorded| recorded.event.kind() == kind);
    let at = at.ok_or_else(|| anyhow::anyhow!("there is no {kind}"))?;
    let starts = |event: &SessionEvent| {
        matches!(
            event,
            SessionEvent::Turn(
                TurnEvent::TurnStarted { .. }
                    | TurnEvent::ModelCallStarted { .. }
                    | TurnEvent::CallStarted { .. }
            ) | SessionEvent::MessageQueued { .. }
                | SessionEvent::Auto(_)
        )
    };
    let later = events[at + 1..].iter().find(|recorded| starts(&recorded.event));
    match later {
        Some(recorded) => anyhow::bail!("{} after {kind}", recorded.event.kind()),
        None => Ok(()),
    }
}
