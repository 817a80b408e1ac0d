//! What meets, and in every order: each race is played once for every interleaving of its named points, and once
//! more with a crash at each of them, against both journals. One outcome, whatever the order: the one that the
//! order of commits gives.
//!
//! On SQLite one process owns the journal; on PostgreSQL the two who meet are two nodes, and nothing but the
//! database stands between them. A crash ends both, and what is left is opened anew, goes on, and is asked again
//! by whoever had no answer.

use std::{
    collections::BTreeMap,
    panic,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use planwright_domain::{
    actor::{Person, Standing},
    command::{Decision, PersonCommand, SessionCommand, Start},
    id::{CommandId, Seq},
    identity::SessionKey,
    next::Next,
    plan::{Strategy, event::PlanEvent},
    session::{Session, SessionEvent},
    turn::event::TurnEvent,
};
use planwright_outbound::ids_random::fresh_id;
use planwright_outbound::{journal_postgres::PostgresJournal, journal_sqlite::SqliteJournal};
use planwright_runtime::{
    ports::{
        journal::{Answer, Recorded},
        memory::Store,
        toolbox::Toolbox,
    },
    runtime::Runtime,
};
use planwright_testkit::people::{introduce, person};
use planwright_testkit::{scratch, servers::Postgres};

use crate::{
    on_threads,
    staged::{Counting, Staged, ada, document, runtime, talk},
};

mod gated;
mod routes;
mod turnstile;

use gated::{Gate, Gated};
use routes::Meeting;
use turnstile::{Choice, Crashed, Turnstile, answer_of, crashed, following};

/// Proves it.
pub(crate) fn prove(quick: bool, only: String) -> anyhow::Result<bool> {
    let ordinary = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if !panicked.payload().is::<Crashed>() {
            ordinary(panicked);
        }
    }));
    on_threads(4, all(quick, only))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(quick: bool, only: String) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let names = Race::ALL.map(Race::name).into_iter().chain(Meeting::ALL.map(Meeting::name));
    anyhow::ensure!(
        names.clone().any(|name| name.contains(&only)),
        "no race has {only:?} in its name; there are {:?}",
        names.collect::<Vec<_>>()
    );
    let mut totals = Totals::default();
    // At quick size every other one, and not the same ones each time.
    let half = fastrand::u32(..2);
    let mut nth = 0_u32;
    let mut is_left_out = |name: &str, is_long: bool| {
        let is_chosen = name.contains(&only) && !(quick && is_long);
        nth += u32::from(is_chosen);
        !is_chosen || (quick && only.is_empty() && nth % 2 == half)
    };
    let places: [(Opens, bool); 2] = [(Place::sqlite, false), (Place::postgres, true)];
    // Each in a place of its own: an owner has no more chats than a limit, and a race can begin thousands.
    for (open, is_slow) in places {
        for race in Race::ALL {
            if !is_left_out(race.name(), is_slow && race.has_a_step()) {
                let mut place = open()?;
                let met = explore(&mut place, race).await?;
                totals.add(place.name(), race.name(), &met);
            }
        }
        for meeting in Meeting::ALL {
            if !is_left_out(meeting.name(), is_slow && meeting.has_a_step()) {
                let mut place = open()?;
                let met = routes::explore(&mut place, meeting).await?;
                totals.add(place.name(), meeting.name(), &met);
            }
        }
    }
    let Totals { races, empty, orders, crashes, wrong } = totals;
    let well = wrong == 0 && races > 0 && empty == 0;
    println!(
        "races: {races} races against both journals, {empty} without an order or a crash; {orders} orders and {crashes} crashes, {wrong} wrong, {:.0} s (target 0, 0) {}",
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// What came of all races.
#[derive(Default)]
struct Totals {
    races: u64,
    /// Those in which nothing met: there was no order, or no point to crash at.
    empty: u64,
    orders: u64,
    crashes: u64,
    wrong: usize,
}

impl Totals {
    #[expect(clippy::print_stdout, reason = "a proof prints its figures")]
    fn add(&mut self, place: &str, name: &str, met: &Met) {
        println!("{place:<10} {name:<24} {:>5} orders {:>6} crashes", met.orders, met.crashes);
        met.outcomes.iter().for_each(|(label, count)| println!("    {count:>5}  {label}"));
        met.wrong.iter().take(5).for_each(|words| println!("    wrong: {words}"));
        self.races += 1;
        self.empty += u64::from(met.orders == 0 || met.crashes == 0);
        self.orders += met.orders;
        self.crashes += met.crashes;
        self.wrong += met.wrong.len();
    }
}

/// What came of one race.
#[derive(Default)]
struct Met {
    orders: u64,
    crashes: u64,
    outcomes: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

async fn explore(place: &mut Place, race: Race) -> anyhow::Result<Met> {
    let mut met = Met::default();
    let mut script = Some(Vec::new());
    let mut journals = place.open().await?;
    while let Some(told) = script {
        let number = met.orders + met.crashes;
        let identity = talk(&format!("{}-{number:06}", race.key()));
        let one_writer = place.has_one_writer();
        let case = Case { race, identity: &identity, journals: &journals, one_writer };
        let (played, given) = case.play(&told).await?;
        if crashed(&played) {
            met.crashes += 1;
            journals = place.open().await?;
        } else {
            met.orders += 1;
        }
        let after = after(&journals[0], race, &identity, &given).await?;
        let choices: Vec<_> = played.iter().map(|(choice, _)| *choice).collect();
        match verdict(race, &after, given.ran.load(Ordering::SeqCst)) {
            Ok(label) => *met.outcomes.entry(label).or_default() += 1,
            Err(why) => met.wrong.push(format!("{why}; {choices:?}; {identity}")),
        }
        script = following(played);
    }
    Ok(met)
}

/// Where the journal lives.
enum Place {
    Sqlite(tempfile::TempDir),
    Postgres(Box<Postgres>),
}

/// Makes a place in which nothing has happened.
type Opens = fn() -> anyhow::Result<Place>;

/// As the two who meet have it: the same on one machine, one each on two nodes.
type Journals = [Arc<dyn Store>; 2];

impl Place {
    fn sqlite() -> anyhow::Result<Self> {
        Ok(Self::Sqlite(scratch::directory_in_memory("races")?))
    }

    #[expect(clippy::unnecessary_wraps, reason = "as the other place is made")]
    fn postgres() -> anyhow::Result<Self> {
        Ok(Self::Postgres(Box::new(Postgres::start())))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }

    fn has_one_writer(&self) -> bool {
        matches!(self, Self::Sqlite(_))
    }

    async fn open(&self) -> anyhow::Result<Journals> {
        let journals: Journals = match self {
            Self::Sqlite(home) => {
                let journal: Arc<dyn Store> =
                    Arc::new(SqliteJournal::open(&home.path().join("journal.sqlite"))?);
                [journal.clone(), journal]
            }
            Self::Postgres(server) => [
                Arc::new(PostgresJournal::open(&server.address()).await?),
                Arc::new(PostgresJournal::open(&server.address()).await?),
            ],
        };
        introduce(&*journals[0], &["ada"]).await?;
        Ok(journals)
    }
}

/// What meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Race {
    ApproveSetContent,
    ApproveApprove,
    ApproveReject,
    StopStep,
    SupersedeStep,
    ResetApprove,
}

impl Race {
    const ALL: [Self; 6] = [
        Self::ApproveSetContent,
        Self::ApproveApprove,
        Self::ApproveReject,
        Self::StopStep,
        Self::SupersedeStep,
        Self::ResetApprove,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::ApproveSetContent => "approve ∥ set_content",
            Self::ApproveApprove => "approve ∥ approve",
            Self::ApproveReject => "approve ∥ reject",
            Self::StopStep => "stop ∥ step",
            Self::SupersedeStep => "supersede ∥ step",
            Self::ResetApprove => "reset ∥ approve",
        }
    }

    /// Whether one of the two does a step, which has many points.
    fn has_a_step(self) -> bool {
        matches!(self, Self::StopStep | Self::SupersedeStep)
    }

    fn key(self) -> &'static str {
        match self {
            Self::ApproveSetContent => "content",
            Self::ApproveApprove => "approve",
            Self::ApproveReject => "reject",
            Self::StopStep => "stop",
            Self::SupersedeStep => "supersede",
            Self::ResetApprove => "reset",
        }
    }
}

/// What one of the two does.
enum Act {
    /// Asks for something.
    Asks(CommandId, Box<SessionCommand>),
    /// Does what is due.
    Advances,
}

impl Act {
    fn of(by: Person, command: PersonCommand) -> Self {
        Self::Asks(fresh_id(), Box::new(SessionCommand::Person(by, command)))
    }
}

fn bob() -> Person {
    person("bob", "cli-2", Standing::Decides)
}

/// What the two were told, as far as they were told anything.
struct Given {
    acts: [Act; 2],
    answers: [Option<Answer>; 2],
    ran: Arc<std::sync::atomic::AtomicU32>,
}

/// One run of one race.
struct Case<'a> {
    race: Race,
    identity: &'a SessionKey,
    journals: &'a Journals,
    one_writer: bool,
}

impl Case<'_> {
    /// Plays it as the script says.
    async fn play(&self, script: &[Choice]) -> anyhow::Result<(Vec<(Choice, Vec<Choice>)>, Given)> {
        let toolbox: Arc<Counting> = Arc::default();
        let stage = runtime(self.journals[0].clone(), toolbox.clone());
        let staged = Staged { runtime: &stage, identity: self.identity };
        let acts = self.race.stage(&staged).await?;
        let turnstile = Arc::new(Turnstile::new(self.one_writer));
        let mut tasks = Vec::new();
        for (actor, act) in acts.iter().enumerate() {
            let gate = Gate { turnstile: turnstile.clone(), actor };
            let journal = Gated { inner: self.journals[actor].clone(), gate: gate.clone() };
            let tools: Arc<dyn Toolbox> = toolbox.clone();
            let node = runtime(Arc::new(journal), Arc::new(Gated { inner: tools, gate }));
            let (identity, asks) = (self.identity.clone(), act.asks());
            let (turnstile, acting) =
                (turnstile.clone(), tokio::spawn(acts_on(node, identity, asks)));
            tasks.push(tokio::spawn(async move {
                let told = acting.await;
                turnstile.leave(actor);
                told
            }));
        }
        let told = script.to_vec();
        let played = tokio::task::spawn_blocking(move || turnstile.play(&told)).await?;
        let mut answers = [None, None];
        for (answer, task) in answers.iter_mut().zip(tasks) {
            *answer = answer_of(&played, task.await?)?.flatten();
        }
        Ok((played, Given { acts, answers, ran: toolbox.ran.clone() }))
    }
}

async fn acts_on(
    node: Runtime,
    identity: SessionKey,
    asks: Option<(CommandId, SessionCommand)>,
) -> anyhow::Result<Option<Answer>> {
    match asks {
        Some((id, command)) => Ok(Some(node.engine.dispatch(&identity, id, command).await?)),
        None => {
            node.engine.advance(&identity).await?;
            Ok(None)
        }
    }
}

impl Act {
    fn asks(&self) -> Option<(CommandId, SessionCommand)> {
        match self {
            Self::Asks(id, command) => Some((*id, (**command).clone())),
            Self::Advances => None,
        }
    }
}

impl Race {
    /// Brings a session to where the two meet.
    async fn stage(self, staged: &Staged<'_>) -> anyhow::Result<[Act; 2]> {
        let digest = staged.ready(Strategy::Document).await?;
        let approve = || staged.approve(digest, Start::AtOnce);
        Ok(match self {
            Self::ApproveSetContent => {
                staged.ask(PersonCommand::Say { text: "once more".into() }).await?;
                staged.drive_until(|next| matches!(next, Next::UsePlanTool { .. })).await?;
                [Act::of(ada(), approve()), Act::Advances]
            }
            Self::ApproveApprove => {
                let shown = PersonCommand::RecordShown { digest };
                let shown = SessionCommand::Person(bob(), shown);
                staged.runtime.engine.dispatch(staged.identity, fresh_id(), shown).await?;
                [Act::of(ada(), approve()), Act::of(bob(), approve())]
            }
            Self::ApproveReject => {
                let reject = PersonCommand::Decide(Decision::Reject { digest, why: None });
                [Act::of(ada(), approve()), Act::of(bob(), reject)]
            }
            Self::ResetApprove => [Act::of(ada(), PersonCommand::Reset), Act::of(ada(), approve())],
            Self::StopStep | Self::SupersedeStep => {
                staged.ask(approve()).await?;
                staged.drive_until(|next| matches!(next, Next::RunCalls(_))).await?;
                let markdown = format!("{}\n2. Put another.\n", document("put"));
                let edit = PersonCommand::EditPlan {
                    suggested: false,
                    base: Some(digest),
                    markdown,
                    fresh: uuid::Uuid::now_v7().into(),
                };
                let act = match self {
                    Self::StopStep => Act::of(ada(), PersonCommand::Stop),
                    Self::SupersedeStep
                    | Self::ApproveSetContent
                    | Self::ApproveApprove
                    | Self::ApproveReject
                    | Self::ResetApprove => Act::of(bob(), edit),
                };
                [act, Act::Advances]
            }
        })
    }
}

/// What is left when everything has come to rest.
struct After {
    events: Vec<Recorded>,
    session: Arc<Session>,
    /// What each of the two was answered in the end.
    answers: [Option<Answer>; 2],
}

/// Goes on as a process does that has just started, and as people do who had no answer.
async fn after(
    journal: &Arc<dyn Store>,
    race: Race,
    identity: &SessionKey,
    given: &Given,
) -> anyhow::Result<After> {
    let toolbox = Counting { schema: 0, ran: given.ran.clone() };
    let next = runtime(journal.clone(), Arc::new(toolbox));
    let staged = Staged { runtime: &next, identity };
    staged.drive().await?;
    let mut answers = [None, None];
    for (at, act) in given.acts.iter().enumerate() {
        let Some((id, command)) = act.asks() else { continue };
        let again = next.engine.dispatch(identity, id, command).await?;
        if let Some(before) = &given.answers[at] {
            anyhow::ensure!(*before == again, "{}: {before:?}, then {again:?}", race.name());
        }
        answers[at] = Some(again);
    }
    staged.drive().await?;
    let events = journal.events(identity, Seq(0), usize::MAX).await?;
    Ok(After { events, session: next.queries.session(identity).await?, answers })
}

/// What came of it, in words; or what must not be.
fn verdict(race: Race, after: &After, ran: u32) -> Result<String, String> {
    let mut seen = Seen::default();
    for recorded in &after.events {
        seen.look(recorded)?;
    }
    let accepted = after.answers.iter().flatten().filter(|answer| !answer.is_refused()).count();
    if ran > 1 || ran as usize > seen.started - seen.abandoned {
        let Seen { started, abandoned, .. } = seen;
        return Err(format!("{ran} acts, {started} starts, {abandoned} abandoned"));
    }
    if seen.started != seen.ended {
        return Err(format!("{} starts, {} ends", seen.started, seen.ended));
    }
    let is_decision = matches!(race, Race::ApproveApprove | Race::ApproveReject);
    if is_decision && (accepted != 1 || seen.approvals + seen.rejections != 1) {
        return Err(format!("{accepted} of two decisions were accepted"));
    }
    if race == Race::ResetApprove
        && (ran > 0 && !seen.acted_before_reset || after.session.plan().is_some())
    {
        return Err("something is left after the reset".into());
    }
    let told = after.answers.iter().flatten().map(label).collect::<Vec<_>>().join(", ");
    let plan = after.session.plan().map(|plan| plan.status.label());
    let ended = after.session.last_ended.as_ref().map(|ended| ended.ended.label());
    Ok(format!("{told}: plan {}, {ran} acts", plan.or(ended).unwrap_or("none")))
}

fn label(answer: &Answer) -> &'static str {
    match answer {
        Answer::Accepted { .. } => "yes",
        Answer::Refused(refusal) => refusal.kind(),
    }
}

/// What must hold from one event to the next.
#[derive(Default)]
struct Seen {
    current: Option<planwright_domain::digest::Digest>,
    approvals: usize,
    rejections: usize,
    started: usize,
    abandoned: usize,
    ended: usize,
    /// Whether a plan executes, and nothing has stopped it.
    running: bool,
    acted_before_reset: bool,
}

impl Seen {
    fn look(&mut self, recorded: &Recorded) -> Result<(), String> {
        match &recorded.event {
            SessionEvent::Plan(event) => self.plan(event),
            SessionEvent::Turn(TurnEvent::CallStarted { .. }) => {
                self.started += 1;
                if self.running {
                    Ok(())
                } else {
                    Err("a step started that nothing allowed".into())
                }
            }
            SessionEvent::Turn(TurnEvent::CallFinished { .. } | TurnEvent::CallInDoubt { .. }) => {
                self.ended += 1;
                Ok(())
            }
            // Known not to have begun: it must not have acted.
            SessionEvent::Turn(TurnEvent::CallAbandoned { .. }) => {
                self.abandoned += 1;
                self.ended += 1;
                Ok(())
            }
            SessionEvent::ViewReset { .. } => {
                self.acted_before_reset = self.started > 0;
                self.running = false;
                Ok(())
            }
            SessionEvent::Turn(_)
            | SessionEvent::Auto(_)
            | SessionEvent::Memory(_)
            | SessionEvent::Notebook(_)
            | SessionEvent::CompactionAsked { .. }
            | SessionEvent::AgentCalled { .. }
            | SessionEvent::Life(_)
            | SessionEvent::MessageQueued { .. }
            | SessionEvent::CauseWithdrawn { .. }
            | SessionEvent::Logged { .. } => Ok(()),
        }
    }

    fn plan(&mut self, event: &PlanEvent) -> Result<(), String> {
        match event {
            PlanEvent::RevisionAdded { digest, .. } => {
                if self.running {
                    return Err("a revision came before the old plan had ended".into());
                }
                self.current = Some(*digest);
            }
            PlanEvent::PlanApproved { approval, .. } => {
                self.approvals += 1;
                if self.current != Some(approval.revision_digest) {
                    return Err("an approval of what was not current".into());
                }
            }
            PlanEvent::ExecutionStarted { .. } => self.running = true,
            PlanEvent::ExecutionPaused { .. } | PlanEvent::PlanFailed { .. } => {
                self.running = false;
            }
            PlanEvent::PlanEnded { ended, .. } => {
                self.running = false;
                self.rejections += usize::from(*ended == planwright_domain::plan::Ended::Rejected);
            }
            PlanEvent::PlanStarted { .. }
            | PlanEvent::DraftChanged { .. }
            | PlanEvent::DecisionReminded { .. }
            | PlanEvent::DecisionExpired { .. }
            | PlanEvent::RevisionShown { .. }
            | PlanEvent::BlocksSeen { .. }
            | PlanEvent::Discussed { .. }
            | PlanEvent::ChangesRequested { .. }
            | PlanEvent::StepQueued { .. }
            | PlanEvent::StepBegun { .. }
            | PlanEvent::StepEnded { .. } => {}
        }
        Ok(())
    }
}
