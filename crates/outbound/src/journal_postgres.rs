//! The journal on PostgreSQL: many nodes, one truth.
//!
//! An append decides on the session as this node last knew it and stores everything in one
//! statement that holds only if the stream has not moved since: one round trip, one commit. Where it
//! has moved, the append reads what is new and decides again, in the end under the row's lock. So
//! what is warm here may be old, and nothing that was decided on an old session is stored or answered.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use deadpool_postgres::{GenericClient, Object, Pool};
use futures_util::FutureExt as _;
use object_store::ObjectStore;
use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{CommandId, MemoryId, OwnerId, Seq},
    identity::{ChannelType, SessionKey},
    installation::{AccountRefusal, Installation},
    memory::{Chain, Item, Question, rank::Candidates},
    owner::Owner,
    quota::{Day, Used},
    refusal::Refusal,
    session::{Session, erasure, life::Life},
    time::Time,
};
use planwright_format::body::Packer;
use planwright_runtime::{
    failpoint,
    ports::{
        journal::{
            Answer, Append, Archive, BackedOff, Decide, DecideInstallation, DecideOwner,
            DecisionPage, DecisionQuery, DueRow, InstallationRecorded, Journal, JournalError,
            KeptAnswer, KeptView, OwnerRecorded, Recorded, Reserved, SessionPage, SessionQuery,
            SessionRow, Since, Stream, TakenHeads, Undecided,
        },
        memory::Memory,
    },
};

use tokio::sync::OwnedRwLockReadGuard;

mod erase;
mod installation;
mod memory;
mod owner;
mod read;
mod schema;
mod search;
mod staged;
mod usage;
mod write;

use crate::{
    journal::{
        COLD_FOLD_MIN, engine, fold,
        known_installation::KnownInstallation,
        outputs::{Beside, OutputRow, OutputStore, SealedOutput},
        remembering::{ItemPlace, Whose, of_session},
        sealed::{AnswerRow, seal_snapshot, seal_view},
        search::{READ_AT_ONCE, Unindexed, WORDS_MAX},
        warm::Warm,
    },
    postgres::{ANSWER_MAX, connection, pool},
};
use read::Known;
use write::Stored;
pub use write::append_statement;

/// No command has this id, and nothing was answered to it.
const NOT_ASKED_AGAIN: CommandId = CommandId(uuid::Uuid::nil());
/// How often an append decides without the row's lock.
const UNLOCKED_MAX: u32 = 3;
/// How long a node trusts what it knows of the installation.
const INSTALLATION_TRUSTED: Duration = Duration::from_millis(500);
/// How many idle packers are kept.
const PACKERS_MAX: usize = 16;
/// Why what lies in a bucket is not to be had.
const BUCKET_NOT_NAMED: &str = "outputs of the session are kept in a bucket that was not named here; set notebook.bucket as the nodes do";
/// Appends to one session wait for each other here, so that they do not collide there.
const STRIPES: usize = 1_024;

/// The journal on PostgreSQL.
pub struct PostgresJournal {
    pool: Pool,
    warm: Mutex<Warm>,
    /// The streams' numbers, which never change.
    known: Mutex<std::collections::HashMap<SessionKey, Known>>,
    /// Packers that nobody uses at the moment. They are not shared: to pack takes long, and nobody waits for another's.
    packers: Mutex<Vec<Packer>>,
    /// The level of events that may be written.
    level: AtomicU32,
    stripes: Vec<tokio::sync::Mutex<()>>,
    hasher: RandomState,
    installation: KnownInstallation,
    /// Where long outputs are kept; in their rows, if there is none.
    outputs: Option<OutputStore>,
}

impl PostgresJournal {
    /// Opens the journal at this address, and brings its schema up to date.
    pub async fn open(address: &str) -> Result<Self, JournalError> {
        let pool = pool(address)?;
        schema::migrate(&mut connection(&pool).await?).await?;
        Self::over(pool)
    }

    fn over(pool: Pool) -> Result<Self, JournalError> {
        Ok(Self {
            pool,
            warm: Mutex::default(),
            known: Mutex::default(),
            packers: Mutex::default(),
            level: AtomicU32::new(1),
            stripes: std::iter::repeat_with(tokio::sync::Mutex::default).take(STRIPES).collect(),
            hasher: RandomState::new(),
            installation: KnownInstallation::default(),
            outputs: None,
        })
    }

    /// The same, where long outputs are kept in a bucket that every node reaches.
    #[must_use]
    pub fn with_outputs_in(self, bucket: Arc<dyn ObjectStore>) -> Self {
        Self { outputs: Some(OutputStore::in_bucket(bucket)), ..self }
    }

    /// The connections, for what else the nodes share there.
    #[must_use]
    pub fn pool(&self) -> Pool {
        self.pool.clone()
    }

    /// Events up to this level may be written: every node knows them.
    pub fn write_up_to(&self, level: u32) {
        self.level.store(level, Ordering::SeqCst);
    }

    fn level(&self) -> u32 {
        self.level.load(Ordering::SeqCst)
    }

    /// Asks over one connection, and gives the connection up if the answer does not come.
    async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut Object) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let mut client = connection(&self.pool).await?;
        match tokio::time::timeout(ANSWER_MAX, question(&mut client)).await {
            Ok(answer) => answer,
            Err(_) => {
                drop(Object::take(client));
                let words =
                    format!("the database did not answer within {} s", ANSWER_MAX.as_secs());
                Err(JournalError::Engine(words.into()))
            }
        }
    }

    /// Held from before an output is written until its row is.
    async fn writing_outputs(&self) -> Option<OwnedRwLockReadGuard<()>> {
        match &self.outputs {
            Some(outputs) => Some(outputs.writing().await),
            None => None,
        }
    }

    /// An output as its row holds it: one that is long is in the bucket, if there is one.
    async fn take_output(
        &self,
        session: &SessionKey,
        text: String,
    ) -> Result<SealedOutput, JournalError> {
        // An output may have megabytes: a thread that serves others is no place to hash and compress it.
        let key = session.clone();
        let sealing = tokio::task::spawn_blocking(move || SealedOutput::of(&key, &text));
        let output = sealing.await.map_err(engine)??;
        match &self.outputs {
            Some(outputs) => outputs.take(session, output).await,
            None => Ok(output),
        }
    }

    fn sealed_item(&self, place: &ItemPlace, item: &Item) -> Result<Vec<u8>, JournalError> {
        self.with_packer(|packer| place.seal(packer, item))
    }

    fn with_packer<T>(
        &self,
        pack: impl FnOnce(&mut Packer) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let idle = self.packers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut packer = match idle {
            Some(packer) => packer,
            None => Packer::new().map_err(engine)?,
        };
        let packed = pack(&mut packer);
        let mut idle = self.packers.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < PACKERS_MAX {
            idle.push(packer);
        }
        packed
    }

    fn warm(&self, identity: &SessionKey) -> Option<(Arc<Session>, Known)> {
        let known =
            self.known.lock().unwrap_or_else(PoisonError::into_inner).get(identity).copied();
        let warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner).get(identity);
        warm.zip(known)
    }

    fn keep(&self, session: Arc<Session>, known: Known, news: Vec<Recorded>) {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() > 64 * STRIPES {
            all.clear();
        }
        all.insert(session.key(), known);
        drop(all);
        self.warm.lock().unwrap_or_else(PoisonError::into_inner).put(session, news);
    }

    /// Keeps nothing of a session that was erased.
    fn forget(&self, identity: &SessionKey) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(identity);
        self.warm.lock().unwrap_or_else(PoisonError::into_inner).forget(identity);
    }

    /// The session as it stands now: what is warm, and what came after it.
    async fn fresh(
        &self,
        client: &Object,
        identity: &SessionKey,
    ) -> Result<(Arc<Session>, Option<Known>), JournalError> {
        if let Some((warm, known)) = self.warm(identity) {
            let news =
                read::events_if_there(client, identity, known, warm.version, usize::MAX).await?;
            match news {
                // Another node may have erased it.
                None => self.forget(identity),
                Some(news) if news.is_empty() => return Ok((warm, Some(known))),
                Some(news) => {
                    let session = Arc::new(fold(Session::clone(&warm), &news)?);
                    self.keep(session.clone(), known, news);
                    return Ok((session, Some(known)));
                }
            }
        }
        let (session, mut known) = read::session(client, identity).await?;
        let session = Arc::new(session);
        if let Some(known) = &mut known {
            if session.version.0 - known.snapshot.0 >= COLD_FOLD_MIN {
                // Whoever reads need not be able to write.
                if let Err(error) = self.keep_snapshot(client, known, &session).await {
                    tracing::warn!(session = %identity, %error, "a session that was folded whole could not be kept so");
                }
            }
            self.keep(session.clone(), *known, Vec::new());
        }
        Ok((session, known))
    }

    /// Keeps a session as it stands, so that nobody folds all of it again.
    async fn keep_snapshot(
        &self,
        client: &Object,
        known: &mut Known,
        session: &Session,
    ) -> Result<(), JournalError> {
        let level = self.level();
        let body = self.with_packer(|packer| seal_snapshot(packer, session, level))?;
        write::snapshot(client, *known, session.version, &body).await?;
        known.snapshot = session.version;
        Ok(())
    }

    /// Decides and stores; nothing if the stream moved meanwhile.
    async fn attempt(
        &self,
        client: &impl GenericClient,
        session: &Session,
        known: Option<Known>,
        request: &AppendRequest<'_>,
        lock: Lock,
    ) -> Result<Option<Done>, JournalError> {
        let before = session.version;
        let append = match (request.decide)(session) {
            Err(Undecided::Corrupt(corrupt)) => return Err(corrupt.into()),
            Err(Undecided::Refused(refusal)) => {
                return refuse(client, session, known, request, refusal).await;
            }
            Ok(append) => append,
        };
        let changes = of_session(&append.events);
        if lock == Lock::None && (!changes.is_empty() || append.turns.is_some()) {
            // More than one statement: only in a transaction.
            return Ok(None);
        }
        if let Some(room) = &append.turns
            && let Err(refusal) = usage::check_room(client, session.owner, room).await?
        {
            return refuse(client, session, known, request, refusal).await;
        }
        let rows = self.with_packer(|packer| {
            write::Rows::pack(packer, &append, known, |_| request.at, self.level())
        })?;
        failpoint::hit("journal.before_commit");
        let identity = &session.key();
        let version = append.after.version;
        let answer = Answer::Accepted { before, version };
        let command = request.command.unwrap_or(NOT_ASKED_AGAIN);
        let row = AnswerRow::new(identity, command, &answer)?;
        match write::store(client, known, request, row, &append, &rows).await? {
            Stored::Moved => Ok(None),
            Stored::Answered => {
                let found = read::answer(client, identity, command).await?;
                Ok(found.and_then(|(_, answer)| answer).map(Done::answered))
            }
            Stored::Yes(known) => {
                let seal = |place: &_, item: &_| self.sealed_item(place, item);
                memory::change(client, &seal, Whose::Session(identity), &changes).await?;
                let events = (before.following().0..).zip(append.events);
                let news =
                    events.map(|(seq, event)| Recorded { seq: Seq(seq), at: request.at, event });
                Ok(Some(Done { answer, news: Some((append.after, known, news.collect())) }))
            }
        }
    }

    /// Keeps warm what is committed, and answers.
    fn settle(&self, done: Done) -> Answer {
        failpoint::hit("journal.after_commit");
        if let Some((session, known, news)) = done.news {
            self.keep(Arc::new(session), known, news);
        }
        done.answer
    }
}

/// Whether others may move the stream meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    None,
    Row,
}

/// An append that has its answer.
struct Done {
    answer: Answer,
    /// What it changed.
    news: Option<(Session, Known, Vec<Recorded>)>,
}

impl Done {
    fn answered(answer: Answer) -> Self {
        Self { answer, news: None }
    }
}

/// A refusal stands only if nothing moved since what it was decided on, and nobody answered before.
async fn refuse(
    client: &impl GenericClient,
    session: &Session,
    known: Option<Known>,
    request: &AppendRequest<'_>,
    refusal: Refusal,
) -> Result<Option<Done>, JournalError> {
    let command = request.command.unwrap_or(NOT_ASKED_AGAIN);
    let found = read::answer(client, &session.key(), command).await?;
    let Some((version, answer)) = found else {
        let is_new = session.version == Seq(0);
        return Ok(is_new.then_some(Done::answered(Answer::Refused(refusal))));
    };
    if let Some(answer) = answer {
        return Ok(Some(Done::answered(answer)));
    }
    if version != session.version {
        return Ok(None);
    }
    if let (Some(known), Some(command)) = (known, request.command)
        && refusal.is_final()
    {
        let answer = Answer::Refused(refusal);
        let row = AnswerRow::new(&session.key(), command, &answer)?;
        write::answer(client, known, (command, request.at), &row).await?;
        return Ok(Some(Done::answered(answer)));
    }
    Ok(Some(Done::answered(Answer::Refused(refusal))))
}

/// What an append was asked.
struct AppendRequest<'a> {
    command: Option<CommandId>,
    at: Time,
    decide: &'a Decide,
}

#[async_trait]
impl Journal for PostgresJournal {
    async fn append(
        &self,
        identity: &SessionKey,
        command: Option<CommandId>,
        at: Time,
        decide: Decide,
    ) -> Result<Answer, JournalError> {
        let stripe = self.hasher.hash_one(identity) as usize % STRIPES;
        let _turn = self.stripes[stripe].lock().await;
        failpoint::hit("journal.before_begin");
        let request = AppendRequest { command, at, decide: &decide };
        let answer = self
            .ask(async |client| {
                let mut at_hand = self.warm(identity).map(|(warm, known)| (warm, Some(known)));
                for _ in 0..UNLOCKED_MAX {
                    let (session, known) = match at_hand.take() {
                        Some(at_hand) => at_hand,
                        None => self.fresh(client, identity).await?,
                    };
                    let tried =
                        self.attempt(&*client, &session, known, &request, Lock::None).await?;
                    if let Some(done) = tried {
                        return Ok(self.settle(done));
                    }
                }
                self.locked(client, identity, &request).await
            })
            .await;
        failpoint::hit("journal.before_acknowledge");
        answer
    }

    async fn session(&self, identity: &SessionKey) -> Result<Arc<Session>, JournalError> {
        self.ask(async |client| Ok(self.fresh(client, identity).await?.0)).await
    }

    async fn events(
        &self,
        identity: &SessionKey,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Recorded>, JournalError> {
        let known =
            self.known.lock().unwrap_or_else(PoisonError::into_inner).get(identity).copied();
        self.ask(async |client| {
            let known = match known {
                Some(known) => Some(known),
                None => read::known(client, identity).await?,
            };
            match known {
                Some(known) => read::events(client, identity, known, after, limit).await,
                None => Ok(Vec::new()),
            }
        })
        .await
    }

    async fn events_since(
        &self,
        identity: &SessionKey,
        since: Since,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Recorded>, JournalError> {
        self.ask(async |client| read::events_since(client, identity, since, after, limit).await)
            .await
    }

    async fn keep_output(&self, identity: &SessionKey, text: &str) -> Result<Digest, JournalError> {
        let _writing = self.writing_outputs().await;
        let output = self.take_output(identity, text.to_owned()).await?;
        let (digest, is_beside) = (output.digest, output.body.is_none());
        let named = self.ask(async |client| write::output(client, identity, &output).await).await?;
        if let Some(outputs) = self.outputs.as_ref().filter(|_| !named && is_beside) {
            outputs.remove(identity, digest).await?;
        }
        Ok(digest)
    }

    async fn output(
        &self,
        identity: &SessionKey,
        digest: Digest,
    ) -> Result<Option<String>, JournalError> {
        let found = self.ask(async |client| read::output(client, identity, digest).await).await?;
        match (found, &self.outputs) {
            (None, _) => Ok(None),
            (Some(OutputRow::Here(text)), _) => Ok(Some(text)),
            (Some(OutputRow::Beside), Some(outputs)) => {
                outputs.read(identity, digest).await.map(Some)
            }
            (Some(OutputRow::Beside), None) => Err(JournalError::Engine(BUCKET_NOT_NAMED.into())),
        }
    }

    async fn sweep_outputs(&self, before: Time) -> Result<usize, JournalError> {
        let Some(outputs) = &self.outputs else { return Ok(0) };
        let is_named = |Beside { session, digest }| {
            async move {
                self.ask(async |client| read::has_output(client, &session, digest).await).await
            }
            .boxed()
        };
        outputs.sweep(before, is_named).await
    }

    async fn keep_view(&self, identity: &SessionKey, view: KeptView) -> Result<(), JournalError> {
        let (session, place) = (identity.clone(), (view.upto, view.form));
        let sealing = tokio::task::spawn_blocking(move || seal_view(&session, &view));
        let body = sealing.await.map_err(engine)??;
        self.ask(async |client| write::view(client, identity, place, &body).await).await
    }

    async fn kept_view(&self, identity: &SessionKey) -> Result<Option<KeptView>, JournalError> {
        self.ask(async |client| read::kept_view(client, identity).await).await
    }

    async fn due(&self, by: Option<Time>, limit: usize) -> Result<Vec<DueRow>, JournalError> {
        self.ask(async |client| read::due(client, by, limit).await).await
    }

    async fn take_due(
        &self,
        by: Time,
        reserved: Reserved,
        limit: usize,
    ) -> Result<Vec<DueRow>, JournalError> {
        self.ask(async |client| write::take_due(client, by, reserved, limit).await).await
    }

    async fn back_off(
        &self,
        identity: &SessionKey,
        now: Time,
        why: &str,
    ) -> Result<BackedOff, JournalError> {
        self.ask(async |client| {
            let transaction = client.transaction().await.map_err(engine)?;
            let backed_off = write::back_off(&transaction, identity, now, why).await?;
            transaction.commit().await.map_err(engine)?;
            Ok(backed_off)
        })
        .await
    }

    async fn unpark(&self, identity: &SessionKey, now: Time) -> Result<(), JournalError> {
        self.ask(async |client| write::unpark(client, identity, now).await).await
    }

    async fn sessions(
        &self,
        owner: Option<OwnerId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError> {
        self.ask(async |client| read::sessions(client, owner, limit).await).await
    }

    async fn row(&self, session: &SessionKey) -> Result<Option<SessionRow>, JournalError> {
        self.ask(async |client| read::session_row_of(client, session).await).await
    }

    async fn session_page(&self, query: &SessionQuery) -> Result<SessionPage, JournalError> {
        self.ask(async |client| read::session_page(client, query).await).await
    }

    async fn decisions(&self, query: &DecisionQuery) -> Result<DecisionPage, JournalError> {
        let query = *query;
        self.ask(async |client| read::decisions(client, query).await).await
    }

    async fn forget_answers(&self, before: Time, limit: usize) -> Result<usize, JournalError> {
        self.ask(async |client| write::forget_answers(client, before, limit).await).await
    }

    async fn planning(&self) -> Result<u64, JournalError> {
        self.ask(async |client| read::planning(client).await).await
    }

    async fn newest(
        &self,
        owner: OwnerId,
        channel: ChannelType,
    ) -> Result<Option<SessionKey>, JournalError> {
        self.ask(async |client| read::newest(client, owner, channel).await).await
    }

    async fn owner(&self, owner: OwnerId) -> Result<Owner, JournalError> {
        self.ask(async |client| owner::read(client, owner).await).await
    }

    async fn owner_of(&self, person: &PersonId, fresh: OwnerId) -> Result<OwnerId, JournalError> {
        self.ask(async |client| match owner::named(client, person).await? {
            Some(owner) => Ok(owner),
            None => owner::made(client, person, fresh).await,
        })
        .await
    }

    async fn append_owner(
        &self,
        owner: OwnerId,
        at: Time,
        decide: DecideOwner,
    ) -> Result<Result<Owner, Refusal>, JournalError> {
        self.ask(async |client| self.decide_owner(client, owner, at, &decide).await).await
    }

    async fn used(&self, owner: OwnerId, day: Day) -> Result<(Owner, Used), JournalError> {
        self.ask(async |client| usage::used(client, owner, day).await).await
    }

    async fn owner_name(&self, owner: OwnerId) -> Result<Option<PersonId>, JournalError> {
        self.ask(async |client| usage::name(client, owner).await).await
    }

    async fn count_use(&self, at: Time, limit: usize) -> Result<usize, JournalError> {
        self.ask(async |client| self.count(client, at, limit).await).await
    }

    async fn index_words(&self) -> Result<usize, JournalError> {
        let mut streams = self.ask(async |client| search::unindexed(&*client).await).await?;
        let (mut all, mut words_left) = (Vec::new(), WORDS_MAX);
        while !streams.is_empty() && words_left > 0 {
            let rest = streams.split_off(streams.len().min(READ_AT_ONCE));
            let some = std::mem::replace(&mut streams, rest);
            let mut events = self.ask(async |client| search::events(&*client, &some).await).await?;
            // Words are split where nobody else waits.
            let splitting = tokio::task::spawn_blocking(move || {
                let mut left = words_left;
                let split = |unindexed: Unindexed| {
                    let events = events.remove(&unindexed.stream).unwrap_or_default();
                    (left > 0).then(|| unindexed.indexed(events, &mut left))
                };
                let indexed: Vec<_> = some.into_iter().map_while(split).collect();
                (indexed, left)
            });
            let (indexed, left) = splitting.await.map_err(engine)?;
            all.extend(indexed);
            words_left = left;
        }
        if !all.is_empty() {
            self.ask(async |client| search::add(&*client, &all).await).await?;
        }
        Ok(all.len())
    }

    async fn postpone(
        &self,
        session: &SessionKey,
        version: Seq,
        until: Time,
    ) -> Result<(), JournalError> {
        self.ask(async |client| write::postpone(client, session, version, until).await).await
    }

    async fn unused_since(
        &self,
        life: Life,
        since: Time,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError> {
        self.ask(async |client| read::unused_since(client, life, since, limit).await).await
    }

    async fn installation(&self) -> Result<Arc<Installation>, JournalError> {
        if let Some(known) = self.installation.trusted(Some(INSTALLATION_TRUSTED)) {
            return Ok(known);
        }
        let latest = self.installation.latest();
        let read = self.ask(async |client| installation::read(client, &latest).await).await?;
        Ok(self.installation.keep(read))
    }

    async fn append_installation(
        &self,
        at: Time,
        decide: DecideInstallation,
    ) -> Result<Result<Arc<Installation>, AccountRefusal>, JournalError> {
        let stored =
            self.ask(async |client| self.decide_installation(client, at, &decide).await).await?;
        Ok(stored.map(|installation| self.installation.keep(installation)))
    }

    async fn audit_log(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<InstallationRecorded>, JournalError> {
        self.ask(async |client| installation::events(client, after, limit).await).await
    }

    async fn erase(&self, session: &SessionKey, at: Time) -> Result<bool, JournalError> {
        match &self.outputs {
            Some(outputs) => {
                if erasure(&*self.session(session).await?, at).is_some() {
                    outputs.remove_all(session).await?;
                }
            }
            None => {
                let beside = async |client: &mut Object| read::has_beside(client, session).await;
                if self.ask(beside).await? {
                    return Err(JournalError::Engine(BUCKET_NOT_NAMED.into()));
                }
            }
        }
        let erased = self.ask(async |client| self.erase_rows(client, session, at).await).await?;
        if let Some(outputs) = self.outputs.as_ref().filter(|_| erased) {
            outputs.remove_rest(session).await;
        }
        Ok(erased)
    }

    async fn erase_owner(
        &self,
        owner: OwnerId,
        by: &PersonId,
        at: Time,
    ) -> Result<(), JournalError> {
        self.ask(async |client| self.erase_owner_rows(client, owner, by, at).await).await
    }

    async fn scrub(&self) -> Result<bool, JournalError> {
        Ok(true)
    }

    async fn take_heads(
        &self,
        at: Time,
        after: i64,
        limit: usize,
    ) -> Result<TakenHeads, JournalError> {
        self.ask(async |client| self.take_up(client, at, after, limit).await).await
    }

    async fn active(
        &self,
        owner: Option<OwnerId>,
        since: Time,
        after: Option<&SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError> {
        self.ask(async |client| read::active(client, owner, since, after, limit).await).await
    }
}

#[async_trait]
impl Memory for PostgresJournal {
    async fn candidates(
        &self,
        chain: &Chain,
        question: &Question,
        limit: usize,
    ) -> Result<Vec<Candidates>, JournalError> {
        self.ask(async |client| memory::candidates(client, chain, question, limit).await).await
    }

    async fn item(&self, chain: &Chain, id: MemoryId) -> Result<Option<Item>, JournalError> {
        self.ask(async |client| memory::item(client, chain, id).await).await
    }

    async fn everything(&self, chain: &Chain, limit: usize) -> Result<Vec<Item>, JournalError> {
        self.ask(async |client| memory::everything(client, chain, limit).await).await
    }

    async fn elsewhere(&self, chain: &Chain) -> Result<u64, JournalError> {
        self.ask(async |client| memory::elsewhere(client, chain).await).await
    }
}

#[async_trait]
impl Archive for PostgresJournal {
    async fn keys(
        &self,
        after: Option<&SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, JournalError> {
        self.ask(async |client| read::keys(client, after, limit).await).await
    }

    async fn answers(
        &self,
        identity: &SessionKey,
    ) -> Result<BTreeMap<CommandId, KeptAnswer>, JournalError> {
        self.ask(async |client| read::answers(client, identity).await).await
    }

    async fn outputs(&self, identity: &SessionKey) -> Result<Vec<Digest>, JournalError> {
        self.ask(async |client| read::outputs(client, identity).await).await
    }

    async fn owners(&self) -> Result<Vec<(PersonId, OwnerId)>, JournalError> {
        self.ask(async |client| owner::owners(client).await).await
    }

    async fn adopt_owner(&self, person: &PersonId, owner: OwnerId) -> Result<bool, JournalError> {
        self.ask(async |client| owner::adopt(client, person, owner).await).await
    }

    async fn owner_events(&self, owner: OwnerId) -> Result<Vec<OwnerRecorded>, JournalError> {
        self.ask(async |client| owner::events(client, owner).await).await
    }

    async fn restore(&self, stream: Stream, append: Append) -> Result<bool, JournalError> {
        let updated = stream.events.last().map_or(Time(0), |recorded| recorded.at);
        let times = |event: usize| stream.events.get(event).map_or(updated, |recorded| recorded.at);
        let rows = self
            .with_packer(|packer| write::Rows::pack(packer, &append, None, times, self.level()))?;
        let mut outputs = Vec::new();
        let _writing = self.writing_outputs().await;
        for text in stream.outputs.values() {
            outputs.push(self.take_output(&stream.key, text.clone()).await?);
        }
        self.ask(async |client| {
            let transaction = client.transaction().await.map_err(engine)?;
            let is_new = write::restore(&transaction, &stream, &append, &rows).await?;
            if is_new {
                for output in &outputs {
                    write::output(&transaction, &stream.key, output).await?;
                }
                let seal = |place: &_, item: &_| self.sealed_item(place, item);
                let whose = Whose::Session(&stream.key);
                memory::change(&transaction, &seal, whose, &of_session(&append.events)).await?;
            }
            transaction.commit().await.map_err(engine)?;
            Ok(is_new)
        })
        .await
    }
}

impl PostgresJournal {
    /// Decides under the row's lock: for a session that others keep moving.
    async fn locked(
        &self,
        client: &mut Object,
        identity: &SessionKey,
        request: &AppendRequest<'_>,
    ) -> Result<Answer, JournalError> {
        loop {
            let transaction = client.transaction().await.map_err(engine)?;
            let (session, known) = read::locked(&transaction, identity).await?;
            let outcome = self.attempt(&transaction, &session, known, request, Lock::Row).await;
            if let Ok(Some(done)) = outcome {
                transaction.commit().await.map_err(engine)?;
                return Ok(self.settle(done));
            }
            // The stream was born between the two reads, or the command was answered elsewhere.
            transaction.rollback().await.map_err(engine)?;
            let command = request.command.unwrap_or(NOT_ASKED_AGAIN);
            if let Some((_, Some(answer))) = read::answer(client, identity, command).await? {
                return Ok(answer);
            }
            outcome?;
        }
    }
}
