//! What a terminal talks to: an installation in this process, or a server that owns it.

use std::{collections::BTreeSet, path::Path};

use async_trait::async_trait;
use planwright_domain::{
    digest::Digest,
    id::{CommandId, Seq},
    identity::{ConversationKey, Root, SessionIdentity},
    next::Waiting,
};
use planwright_runtime::{
    commands::reply::Reply,
    ports::{journal::Recorded, signal::Subscription},
    queries::model_request_log::{RequestRow, RequestView},
    queries::view::StatusView,
};
use planwright_surfaces::http::auth::people::{InvitationGiven, PersonRow, RoleName};

/// Whether only what is asked for here is worked on, or everything that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// This session.
    ThisSession,
    /// All of them.
    Everything,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSession {
    /// Which session of the person.
    pub identity: SessionIdentity,
    /// What people call it.
    pub title: String,
    /// How many events it has.
    pub version: Seq,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// Why nobody acts on it any more, if it was parked.
    pub parked: Option<String>,
    /// Whether it was put away.
    pub archived: bool,
    /// Whether something is under way in it.
    pub running: bool,
}

/// What is asked about the people who use the installation.
#[derive(Debug, Clone)]
pub enum PeopleAct {
    /// Who they are.
    List,
    /// Add somebody.
    Add(String, BTreeSet<RoleName>),
    /// Say what somebody may do.
    SetRoles(String, BTreeSet<RoleName>),
    /// Give somebody a new link.
    Invite(String),
    /// Let somebody use it no more.
    Remove(String),
}

/// What is answered.
pub enum PeopleAnswer {
    /// Who they are.
    People(Vec<PersonRow>),
    /// The link that somebody is to be given.
    Link(InvitationGiven),
    /// It was done.
    Done,
}

/// What a terminal talks to.
#[async_trait]
pub trait Backend: Send {
    /// The session that is worked in.
    fn identity(&self) -> &SessionIdentity;

    /// What it is, for the first line.
    fn described(&self) -> String;

    /// Does what a line says.
    async fn handle_line(&self, id: CommandId, line: &str) -> anyhow::Result<Reply>;

    /// Records that a revision was shown here in full.
    async fn shown(&self, digest: Digest) -> anyhow::Result<()>;

    /// Where the session stands.
    async fn status(&self) -> anyhow::Result<StatusView>;

    /// The events after this place.
    async fn events(&self, after: Seq) -> anyhow::Result<Vec<Recorded>>;

    /// An output that was too long to be shown, whole.
    async fn output(&self, digest: Digest) -> anyhow::Result<Option<String>>;

    /// The requests that were made to models.
    async fn requests(&self) -> anyhow::Result<Vec<RequestRow>>;

    /// One of them, read again from the facts.
    async fn request_at(&self, seq: Seq) -> anyhow::Result<Option<RequestView>>;

    /// Subscription to the session.
    async fn listen(&self) -> anyhow::Result<Box<dyn Subscription>>;

    /// Whether a passphrase was chosen.
    fn has_passphrase(&self) -> bool;

    /// Whether the passphrase was given at this terminal not long ago.
    fn is_unlocked(&mut self) -> bool;

    /// Lets the person decide, if the passphrase is right.
    async fn unlock(&mut self, passphrase: &str) -> anyhow::Result<()>;

    /// Whose account is used here, for what is asked next.
    fn person(&self) -> &str;

    /// What everyone should know.
    fn notice(&self) -> Option<String>;

    /// Changes the person's passphrase.
    async fn change_passphrase(&mut self, old: &str, new: &str) -> anyhow::Result<()>;

    /// Looks at or changes who uses the installation.
    async fn people(&mut self, act: PeopleAct) -> anyhow::Result<PeopleAnswer>;

    /// Begins to act on what is due, where that is this process's task.
    fn work(&mut self, reach: Reach);

    /// Lets what has started here end.
    async fn rest(&mut self);

    /// The sessions, newest first.
    async fn sessions(&self, limit: usize) -> anyhow::Result<Vec<ListedSession>>;

    /// Works in the session that is the active one now.
    async fn choose(&mut self) -> anyhow::Result<()>;

    /// Makes a session the active one.
    async fn activate(&mut self, key: ConversationKey) -> anyhow::Result<()>;

    /// Begins a new session that works in this directory, and makes it the active one.
    async fn begin_in(&mut self, root: Root) -> anyhow::Result<()>;

    /// Brings in items from before there were scopes: known everywhere, and marked; how many.
    async fn import_memory(&self, file: &Path) -> anyhow::Result<usize>;

    /// Takes up a parked session again.
    async fn retry(&self) -> anyhow::Result<()>;
}
