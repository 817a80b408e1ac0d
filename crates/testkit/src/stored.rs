//! A journal with something of everything that is stored, for proofs about the stored form.

use std::collections::BTreeSet;

use crate::people::{ada_key, introduce, owner_id, person};
use planwright_domain::{
    actor::{OWNER, PersonId, Standing},
    autonomy::{TaskEnd, budget::Budget, schedule::Rhythm},
    command::{
        AutoCommand, Claim, Decision, Issued, LifeCommand, Missed, NewSchedule, PersonCommand,
        SessionCommand, SystemCommand, Target,
    },
    digest::Digest,
    effect::Bracket,
    id::{GoalId, GrantId, Incarnation, OwnerId, RunId, ScheduleId, Seq, TaskId},
    identity::{ChannelType, ConversationKey, SessionKey, Transport},
    installation::{
        self, Installation, InstallationCommand, Invitation, NewGrant, Requester, Role,
    },
    log::{Erased, SessionHead},
    memory::{Chain, ItemKind, MemoryCommand},
    owner::{self, DayUse, Moved, Owner, OwnerCommand},
    quota::{Day, Limit, LimitReached, Quota},
    time::Time,
};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::{journal::KeptView, memory::Store},
};
use uuid::Uuid;

use crate::{machine, prose};

/// How many generated sequences are looked at; those are kept that hold a kind of event that none before them holds.
const GENERATED: u64 = 500;
/// How many messages are enough for a snapshot.
const MESSAGES: u128 = 80;
/// How many heads are enough for the state of the installation to be kept.
const HEADS: u64 = 80;

/// The session with memories, outputs, refusals and a snapshot.
#[must_use]
pub fn talk() -> SessionKey {
    identity("cli:stored-0000")
}

/// Who speaks in it.
#[must_use]
pub fn ada() -> OwnerId {
    owner_id("ada")
}

/// What can be remembered there.
#[must_use]
pub fn chain() -> Chain {
    Chain::of(ada(), &talk().identity, None)
}

fn identity(text: &str) -> SessionKey {
    ada_key(text).unwrap_or_else(|_| unreachable!("an identity"))
}

/// Fills a journal, always with the same; the sessions that it then has.
pub async fn fill(journal: &dyn Store) -> anyhow::Result<Vec<SessionKey>> {
    let mut sessions = vec![talk(), deleted()];
    one_of_everything(journal).await?;
    scheduled_and_deleted(journal).await?;
    let mut kinds = BTreeSet::new();
    for seed in 0..GENERATED {
        let session = identity(&format!("cli:stored-{:04}", seed + 1));
        let (commands, found) = machine::commands(session.clone(), seed);
        if found.is_subset(&kinds) {
            continue;
        }
        kinds.extend(found);
        for asked in commands {
            dispatch(journal, &session, asked).await?;
        }
        sessions.push(session);
    }
    Ok(sessions)
}

/// The session with a schedule, which was deleted.
fn deleted() -> SessionKey {
    identity("cli:stored-gone")
}

/// Slots that were missed, claimed and ended; then the session is deleted, and the removal of its pages fails, is lost, and
/// is done.
async fn scheduled_and_deleted(journal: &dyn Store) -> anyhow::Result<()> {
    const HOUR: i64 = 3_600_000_000;
    let person = person("ada", "cli", Standing::Decides);
    let (schedule, run) = (Uuid::from_u128(0x5ced).into(), Uuid::from_u128(0x4a7).into());
    let add = PersonCommand::Auto(AutoCommand::AddSchedule(NewSchedule {
        schedule,
        rhythm: Rhythm::Every { micros: HOUR, from: Time(1) },
        title: "Look for new photographs".into(),
        goal: None,
        budget: Budget::default(),
        next: Time(HOUR),
        jitter_micros_max: 5_000_000,
    }));
    let claim = SystemCommand::ClaimSlot(Claim {
        schedule,
        missed: Some(Missed { first: Time(HOUR), last: Time(2 * HOUR), count: 2 }),
        slot: Time(3 * HOUR),
        next: Some(Time(4 * HOUR)),
        until: Time(3 * HOUR + HOUR / 2),
        task: Uuid::from_u128(0x7a5c).into(),
        run,
    });
    let bracket = Bracket {
        incarnation: Incarnation(Uuid::from_u128(0x11fe)),
        start_by: Time(5 * HOUR),
        deadline: Time(6 * HOUR),
    };
    let start = |attempt| SystemCommand::StartRemoval { attempt, bracket };
    let why = "the disk is full".to_owned();
    let commands = [
        SessionCommand::Person(person.clone(), add),
        SessionCommand::System(claim),
        SessionCommand::Person(
            person.clone(),
            PersonCommand::Auto(AutoCommand::Off { run: Some(run) }),
        ),
        SessionCommand::Person(person, PersonCommand::Life(LifeCommand::Delete)),
        SessionCommand::System(start(1)),
        SessionCommand::System(SystemCommand::RecordRemovalFailure { attempt: 1, why }),
        SessionCommand::System(start(2)),
        SessionCommand::System(SystemCommand::OrphanRemoval { attempt: 2 }),
        SessionCommand::System(start(3)),
        SessionCommand::System(SystemCommand::RecordPagesRemoved { attempt: 3, pages: 2 }),
    ];
    for (number, command) in (1..).zip(commands) {
        let at = Time(3 * HOUR + i64::from(number) * 10_000_000);
        let at = if number == 1 { Time(1) } else { at };
        let asked = Issued::new(Uuid::from_u128(0x1000 + u128::from(number as u32)), at, command);
        let answer = dispatch(journal, &deleted(), asked).await?;
        anyhow::ensure!(!answer.is_refused(), "{number}: {answer:?}");
    }
    Ok(())
}

/// A person's commands of every kind.
fn commands() -> Vec<PersonCommand> {
    let mut commands = Vec::new();
    for number in 0..MESSAGES {
        commands.push(PersonCommand::Say { text: prose::prose(240, number as u64) });
    }
    // Refused for good, so the refusal is kept: there is no plan.
    commands.push(PersonCommand::Decide(Decision::Resume));
    let goal: GoalId = Uuid::from_u128(0x60a1).into();
    let task: TaskId = Uuid::from_u128(0x7a5c).into();
    let title = "Keep the photographs of 1998".to_owned();
    commands.push(PersonCommand::Auto(AutoCommand::AddGoal { goal, title: title.clone() }));
    commands.push(PersonCommand::Auto(AutoCommand::AddTask { task, goal: Some(goal), title }));
    let end = TaskEnd::Done { summary: "All of them are there".into() };
    commands.push(PersonCommand::Auto(AutoCommand::EndTask { task, end }));
    commands.push(PersonCommand::Auto(AutoCommand::EndGoal { goal, reached: true }));
    let schedule: ScheduleId = Uuid::from_u128(0x5ced).into();
    commands.push(PersonCommand::Auto(AutoCommand::AddSchedule(NewSchedule {
        schedule,
        rhythm: Rhythm::Every { micros: 3_600_000_000, from: Time(1) },
        title: "Look for new photographs".into(),
        goal: None,
        budget: Budget::default(),
        next: Time(7_200_000_000),
        jitter_micros_max: 0,
    })));
    commands.push(PersonCommand::Auto(AutoCommand::EndSchedule { schedule }));
    let alone: TaskId = Uuid::from_u128(0xa10e).into();
    let title = "Name the people in them".to_owned();
    commands.push(PersonCommand::Auto(AutoCommand::AddTask { task: alone, goal: None, title }));
    let run: RunId = Uuid::from_u128(0x4a7).into();
    let (target, budget) = (Target::Task(alone), Budget::default());
    commands.push(PersonCommand::Auto(AutoCommand::On { run, target, budget, drafts: false }));
    commands.push(PersonCommand::Auto(AutoCommand::Off { run: Some(run) }));
    commands.push(PersonCommand::Notebook { on: true });
    commands.push(PersonCommand::Life(LifeCommand::Rename { title: "Photographs".into() }));
    commands.push(PersonCommand::Life(LifeCommand::Archive));
    commands.push(PersonCommand::Life(LifeCommand::Restore));
    for (number, text) in (1..).zip(["Backups live in /backup", "The service is called photos"]) {
        let (id, kind) = (Uuid::from_u128(number).into(), ItemKind::Fact);
        commands.push(PersonCommand::Memory(MemoryCommand::Save { id, kind, text: text.into() }));
    }
    let (id, text) = (Uuid::from_u128(2).into(), "The service is called pictures".into());
    commands.push(PersonCommand::Memory(MemoryCommand::Change { id, text }));
    commands.push(PersonCommand::Memory(MemoryCommand::Forget { id }));
    commands
}

async fn one_of_everything(journal: &dyn Store) -> anyhow::Result<()> {
    let person = person("ada", "cli", Standing::Decides);
    for (number, command) in (1..).zip(commands()) {
        let command = SessionCommand::Person(person.clone(), command);
        let asked = Issued::new(Uuid::from_u128(number), Time(number as i64 * 1_000_000), command);
        dispatch(journal, &talk(), asked).await?;
    }
    for number in 0..4 {
        let text = prose::prose(5_000 + number as usize, number);
        anyhow::ensure!(
            journal.keep_output(&talk(), &text).await? == Digest::of(text.as_bytes()),
            "an output is kept under its digest"
        );
    }
    let view = KeptView { upto: Seq(80), form: 0, text: prose::prose(5_000, 5) };
    journal.keep_view(&talk(), view).await?;
    let transport = Transport::new(ChannelType::Cli, "terminal");
    let key = ConversationKey::new("stored-0000")?;
    let bind = OwnerCommand::Bind { transport, key, why: Moved::Requested };
    let item = journal.everything(&chain(), 10).await?.into_iter().next();
    let item = Box::new(item.ok_or_else(|| anyhow::anyhow!("nothing is remembered"))?);
    let text = item.text.clone();
    let by = person.id;
    let id = Uuid::from_u128(9).into();
    let promote = OwnerCommand::Promote { item, text, id, by: by.clone() };
    introduce(journal, &["ada"]).await?;
    let used = DayUse { tokens: 1_234, cost_micros: 5_678 };
    let count = OwnerCommand::CountUse { day: Day(0), used };
    let (quota, owner) = (Quota { tokens: Some(1_000), ..Quota::default() }, by.clone());
    let read = LimitReached { limit: Limit::Tokens, owner, used: 1_000, max: 1_000, until: None };
    let raise = OwnerCommand::RaiseLimit { read, quota, day: Day(0), by };
    for command in [bind, promote, count, raise] {
        let decide = Box::new(move |owner: &Owner| owner::decide(owner, &command));
        journal
            .append_owner(ada(), Time(200_000_000), decide)
            .await?
            .map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
    }
    fill_installation(journal).await
}

/// What belongs to the installation: every kind of its events.
pub async fn fill_installation(journal: &dyn Store) -> anyhow::Result<()> {
    let hash = |of: &str| Digest::of(of.as_bytes());
    let (bea, owner) = (PersonId("bea".into()), PersonId(OWNER.into()));
    let by = Requester { person: owner.clone(), age_micros: Some(0), age_micros_max: 1 };
    let invitation = Invitation { secret: hash("link"), until: Time(9) };
    let (old, now) = (hash("first"), Time(1));
    for command in [
        InstallationCommand::ChooseFirst { person: owner.clone(), hash: old },
        InstallationCommand::Change { person: owner.clone(), old, hash: hash("second") },
        InstallationCommand::Add {
            person: bea.clone(),
            roles: [Role::Decide].into(),
            invitation,
            by: by.clone(),
        },
        InstallationCommand::SetRoles {
            person: bea.clone(),
            roles: Role::ALL.into(),
            by: by.clone(),
        },
        InstallationCommand::Reset { person: owner, hash: hash("third"), now },
        InstallationCommand::Remove { person: bea, by },
    ]
    .into_iter()
    .chain(log_commands())
    {
        let decide = Box::new(move |before: &Installation| installation::decide(before, &command));
        journal.append_installation(Time(300_000_000), decide).await??;
    }
    Ok(())
}

/// What is recorded beside accounts: what was given, taken back, set, brought in and taken up; enough of it that the state is kept.
fn log_commands() -> impl Iterator<Item = InstallationCommand> {
    let hash = |of: &str| Digest::of(of.as_bytes());
    let (owner, at, now) = (PersonId(OWNER.into()), Time(300_000_000), Time(300_000_001));
    let [token, login] = [1, 2].map(|number| GrantId(Uuid::from_u128(number)));
    let known = Seq(8);
    let give = |id, standing, expires, token: Option<GrantId>| InstallationCommand::Give {
        grant: NewGrant {
            id,
            person: owner.clone(),
            standing,
            surface: ChannelType::Web,
            expires,
            authenticated: (standing == Standing::Decides).then_some((at, known)),
            is_page: token.is_some(),
            token,
            details: hash("details"),
        },
        now,
    };
    let settings = [("approver".to_owned(), hash("deciders"))].into();
    let surface = "cli:terminal".to_owned();
    let few = [
        give(token, Standing::Speaks, None, None),
        give(login, Standing::Decides, Some(Time(i64::MAX)), Some(token)),
        InstallationCommand::Renew { id: login, standing: Standing::Decides, known, now },
        InstallationCommand::UnlockTerminal { person: owner.clone(), surface, known },
        InstallationCommand::Begin { settings, key: hash("key") },
        InstallationCommand::Import { archive: hash("archive"), sessions: 3, is_vouched: true },
        InstallationCommand::Revoke { id: login, with: login, now },
    ];
    let heads = (1..=HEADS).map(|number| SessionHead {
        session: hash("session"),
        seq: Seq(number),
        head: Digest::of(&number.to_be_bytes()),
    });
    let of = SessionHead { session: hash("erased"), seq: Seq(7), head: hash("head") };
    let erased = Erased { of, by: owner.clone(), asked: at };
    few.into_iter().chain([
        InstallationCommand::TakeHeads(heads.collect()),
        InstallationCommand::Erase(erased),
        InstallationCommand::EraseOwner { owner: ada(), by: owner },
    ])
}
