//! How the parts are wired: one process, one data directory.

use std::{io::BufRead as _, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use planwright_domain::{
    actor::{OWNER, Person, PersonId, Standing, Surface},
    command::{LifeCommand, PersonCommand},
    digest::Digest,
    id::{CommandId, Seq},
    identity::{ChannelType, ConversationKey, Root, SessionIdentity, SessionKey},
    installation::{self, TERMINAL_MICROS},
    memory::{Item, ItemKind, Provenance, Scope as MemoryScope},
    owner::OwnerCommand,
    time::Time,
};
use planwright_outbound::ids_random::RandomIds;
use planwright_outbound::{
    access_file::FileAccess,
    broadcast_in_process::InProcessBroadcast,
    clock_system::SystemClock,
    data_directory::{DataDirectory, JOURNAL},
    journal_sqlite::SqliteJournal,
    lane_in_process::{self, LaneWorker, Scope},
    model_http::HttpModel,
    model_switch::SwitchModel,
};
use planwright_runtime::{
    audit::sequencer::Sequencer,
    commands::{
        accounts::Accounts,
        reply::{Reply, Spoken},
    },
    ports::Ports,
    ports::{
        connection::{Connected, Connection},
        journal::{Answer, Journal as _, Recorded, SessionRow},
        model::{AgentProfile, Model, Profiles, default_profiles},
        signal::Subscription,
        toolbox::Toolbox,
    },
    queries::model_request_log::{RequestRow, RequestView},
    queries::view::StatusView,
    runtime::Runtime,
    secrets::Secrets,
    settings::Settings,
};
use planwright_surfaces::http::auth::{
    people::{invitation, named_roles, notice, person_rows},
    terminal_chat,
};
use tokio::{sync::watch, task::JoinHandle};
use uuid::Uuid;

use crate::{
    args::Args,
    backend::{Backend, ListedSession, PeopleAct, PeopleAnswer, Reach},
    config::{Config, ProfileConfig, audit::AuditParts},
    connection::{LiveConnection, chosen},
    data_path::data_path,
    known_secrets::known_secrets,
    models::{is_said, model_settings, roles},
    session::NamedSession,
    surface::surface,
    tools::Tools,
};

/// Puts something around the tools, for those who must watch them.
pub type WrapToolbox = fn(Arc<dyn Toolbox>) -> Arc<dyn Toolbox>;

/// A running installation, and the person in front of it.
pub struct Installation {
    /// The runtime.
    pub runtime: Runtime,
    /// The session that is worked in.
    pub session: SessionKey,
    /// The person at this terminal.
    pub person: Person,
    /// Who may do what.
    pub access: Arc<FileAccess>,
    /// Who uses it.
    pub accounts: Accounts,
    /// What is replaced in what tools give.
    pub secrets: Arc<Secrets>,
    has_passphrase: bool,
    /// When the passphrase was given at this terminal.
    given: Option<Time>,
    notice: Option<String>,
    /// Where people find its dashboard.
    url: String,
    /// Which model is asked, where that can be changed.
    pub connection: Option<Arc<dyn Connection>>,
    sequencer: Arc<Sequencer>,
    sequencing: Option<JoinHandle<()>>,
    housekeeping: Option<JoinHandle<()>>,
    worker: Option<LaneWorker>,
    working: Option<JoinHandle<()>>,
    stopping: watch::Sender<bool>,
    _directory: DataDirectory,
}

/// How many events are read at once.
const PAGE: usize = 256;
/// How long what has started may take to end when the program ends.
const DRAIN_MAX: Duration = Duration::from_secs(5);

impl Installation {
    /// Opens the installation that the arguments name.
    pub async fn open(
        args: &Args,
        config: &Config,
        wrap: Option<WrapToolbox>,
    ) -> anyhow::Result<Self> {
        let data = data_path(args)?;
        let Agents { model, profiles, connected, window_tokens } = agents(args, config)?;
        let configured = connected.url.clone().filter(|_| is_said(args, &config.model));
        let agents = (model.clone() as Arc<dyn Model>, profiles);
        let mut opened = Self::wire(&data, &args.workspace, agents, config, wrap).await?;
        let connection =
            LiveConnection::new(model, &data, &args.workspace, window_tokens, connected)
                .configured(configured)
                .hiding(opened.secrets.clone());
        opened.connection = Some(Arc::new(connection));
        opened.choose_session(args.session.as_deref()).await?;
        Ok(opened)
    }

    /// Wires the parts over this data directory, with this model.
    pub async fn wire(
        data: &Path,
        workspace: &Path,
        (model, profiles): (Arc<dyn Model>, Profiles),
        config: &Config,
        wrap: Option<WrapToolbox>,
    ) -> anyhow::Result<Self> {
        let directory = DataDirectory::own_for_installation(data, "planwright")?;
        let Tools { toolbox: tools, roots, .. } = Tools::open(config, workspace, directory.path())?;
        let toolbox = wrap.map_or_else(|| tools.clone(), |wrap| wrap(tools.clone()));
        let (lane, worker) = lane_in_process::in_process();
        let journal = Arc::new(SqliteJournal::open(&directory.path().join(JOURNAL))?);
        let AuditParts { sequencer, handover } =
            config.audit.parts(journal.clone(), directory.path())?;
        sequencer.begin(config.security_settings(&roots)).await?;
        let ports = Ports {
            journal: journal.clone(),
            memory: journal,
            lane,
            broadcast: Arc::new(InProcessBroadcast::default()),
            notebook: config.notebook.local(directory.path())?,
            roles: roles(config)?,
            model,
            profiles,
            toolbox,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            policy: Arc::new(config.approval.policy(&config.auto, roots)),
            handover,
            session_label: config.metrics.session_label,
        };
        let secrets = Arc::new(known_secrets(config, directory.path())?);
        let settings = Settings { secrets: secrets.clone(), ..config.settings() };
        let runtime = Runtime::new(&ports, &settings);
        let (name, surface) = (PersonId(OWNER.into()), Surface(surface()));
        let person = runtime.commands.person(&name, surface, Standing::Speaks, None).await?;
        let identity = SessionIdentity::new(ChannelType::Cli, runtime.commands.new_key()?);
        let session = SessionKey::new(person.owner, identity);
        let access = Arc::new(FileAccess::open(directory.path())?);
        let accounts = runtime.commands.accounts(access.clone());
        let state = accounts.installation().await?;
        Ok(Self {
            has_passphrase: state.is_chosen(),
            given: state.given_at(&name, &person.surface.0, runtime.queries.now()),
            notice: notice(&state, runtime.queries.now()),
            url: config.server.url(),
            runtime,
            session,
            person,
            access,
            accounts,
            secrets,
            connection: None,
            sequencer,
            sequencing: None,
            housekeeping: None,
            worker: Some(worker),
            working: None,
            stopping: watch::Sender::new(false),
            _directory: directory,
        })
    }

    /// Works in the named session, else in the one used last, else in a new one.
    pub async fn choose_session(&mut self, named: Option<&str>) -> anyhow::Result<()> {
        match named.map(NamedSession::parse).transpose()? {
            Some(NamedSession::OfThisTerminal(key)) => self.activate(key).await,
            Some(NamedSession::Elsewhere(identity)) => {
                let session = SessionKey::new(self.person.owner, identity);
                if self.runtime.queries.session(&session).await?.version == Seq(0) {
                    let identity = session.identity;
                    bail!("there is no session {identity}; planwright session lists them");
                }
                self.session = session;
                Ok(())
            }
            None => self.choose().await,
        }
    }
}

#[async_trait]
impl Backend for Installation {
    fn identity(&self) -> &SessionIdentity {
        &self.session.identity
    }

    fn described(&self) -> String {
        self.runtime.queries.model_name()
    }

    async fn handle_line(&self, id: CommandId, line: &str) -> anyhow::Result<Reply> {
        let (identity, person) = (self.session.clone(), self.person.clone());
        let (transport, line) = (Some(terminal_chat()), line.to_owned());
        Ok(self
            .runtime
            .commands
            .handle_line(Spoken { identity, transport, person, id, line })
            .await?)
    }

    async fn shown(&self, digest: Digest) -> anyhow::Result<()> {
        self.runtime.commands.shown(&self.session, &self.person, digest).await?;
        Ok(())
    }

    async fn status(&self) -> anyhow::Result<StatusView> {
        Ok(self.runtime.queries.status(&self.session).await?)
    }

    async fn events(&self, after: Seq) -> anyhow::Result<Vec<Recorded>> {
        Ok(self.runtime.queries.events(&self.session, after, PAGE).await?)
    }

    async fn output(&self, digest: Digest) -> anyhow::Result<Option<String>> {
        Ok(self.runtime.queries.output(&self.session, digest).await?)
    }

    async fn requests(&self) -> anyhow::Result<Vec<RequestRow>> {
        Ok(self.runtime.queries.requests(&self.session).await?)
    }

    async fn request_at(&self, seq: Seq) -> anyhow::Result<Option<RequestView>> {
        Ok(self.runtime.queries.request_at(&self.session, seq).await?)
    }

    async fn listen(&self) -> anyhow::Result<Box<dyn Subscription>> {
        Ok(self.runtime.queries.subscribe(&self.session))
    }

    fn has_passphrase(&self) -> bool {
        self.has_passphrase
    }

    fn is_unlocked(&mut self) -> bool {
        let now = self.runtime.queries.now();
        let is_recent = |given: &Time| now < given.plus_micros(TERMINAL_MICROS);
        if let Some(given) = self.given.filter(is_recent) {
            self.person.standing = Standing::Decides;
            self.person.authenticated = Some(given);
        } else if self.person.authenticated.take().is_some() {
            self.person.standing = Standing::Speaks;
        }
        self.person.standing == Standing::Decides
    }

    async fn unlock(&mut self, passphrase: &str) -> anyhow::Result<()> {
        if !self.has_passphrase {
            self.accounts.choose_first(&self.person.id, passphrase).await?;
            self.has_passphrase = true;
        }
        let known = self.accounts.authenticate(&self.person.id, passphrase).await?;
        let (person, surface) = (&self.person.id, &self.person.surface.0);
        self.accounts.unlock_terminal(person, surface, &known).await?;
        self.given = Some(self.runtime.queries.now());
        self.person.standing = known.standing;
        self.person.authenticated = self.given;
        Ok(())
    }

    fn person(&self) -> &str {
        &self.person.id.0
    }

    fn notice(&self) -> Option<String> {
        self.notice.clone()
    }

    async fn change_passphrase(&mut self, old: &str, new: &str) -> anyhow::Result<()> {
        self.accounts.change(&self.person.id, old, new).await?;
        self.given = None;
        Ok(())
    }

    async fn people(&mut self, act: PeopleAct) -> anyhow::Result<PeopleAnswer> {
        let by = self.runtime.commands.requester(&self.person);
        let accounts = &self.accounts;
        let link = match act {
            PeopleAct::List => {
                let installation = accounts.installation().await?;
                let now = self.runtime.queries.now();
                return Ok(PeopleAnswer::People(person_rows(&installation, &self.person.id, now)));
            }
            PeopleAct::SetRoles(name, roles) => {
                accounts.set_roles(by, PersonId(name), named_roles(roles)).await?;
                return Ok(PeopleAnswer::Done);
            }
            PeopleAct::Remove(name) => {
                accounts.remove(by, PersonId(name)).await?;
                return Ok(PeopleAnswer::Done);
            }
            PeopleAct::Add(name, roles) => {
                accounts.add(by, PersonId(name), named_roles(roles)).await?
            }
            PeopleAct::Invite(name) => accounts.invite(by, PersonId(name)).await?,
        };
        Ok(PeopleAnswer::Link(invitation(&self.url, link)))
    }

    fn work(&mut self, reach: Reach) {
        let scope = match reach {
            Reach::ThisSession => Scope::Only(self.session.clone()),
            Reach::Everything => Scope::Everything,
        };
        if let Some(worker) = self.worker.take() {
            let sequencer = self.sequencer.clone();
            self.sequencing = Some(tokio::spawn(sequencer.run(self.stopping.subscribe())));
            let housekeeping = self.runtime.housekeeping.clone();
            self.housekeeping = Some(tokio::spawn(housekeeping.run(self.stopping.subscribe())));
            let stopping = self.stopping.subscribe();
            self.working =
                Some(tokio::spawn(worker.run(self.runtime.engine.clone(), scope, stopping)));
        }
    }

    async fn rest(&mut self) {
        self.stopping.send_replace(true);
        if let Some(working) = self.working.take() {
            let _ = tokio::time::timeout(DRAIN_MAX, working).await;
        }
        if let Some(sequencing) = self.sequencing.take() {
            let _ = tokio::time::timeout(DRAIN_MAX, sequencing).await;
        }
        if let Some(housekeeping) = self.housekeeping.take() {
            let _ = tokio::time::timeout(DRAIN_MAX, housekeeping).await;
        }
        // What the last work brought about, and what was done without any.
        self.sequencer.work_once(true).await;
    }

    async fn sessions(&self, limit: usize) -> anyhow::Result<Vec<ListedSession>> {
        let rows = self.runtime.queries.sessions(self.person.owner, limit).await?;
        let row = |row: SessionRow| ListedSession {
            identity: row.session.identity,
            title: row.title,
            version: row.version,
            waiting: row.waiting,
            parked: row.parked,
            archived: row.archived,
            running: row.running,
        };
        Ok(rows.into_iter().map(row).collect())
    }

    async fn activate(&mut self, key: ConversationKey) -> anyhow::Result<()> {
        let bound = self.runtime.commands.bind(&self.person, &terminal_chat(), &key).await?;
        self.session = bound.map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
        Ok(())
    }

    async fn choose(&mut self) -> anyhow::Result<()> {
        self.session = self.runtime.commands.resolve(self.person.owner, &terminal_chat()).await?;
        Ok(())
    }

    async fn begin_in(&mut self, root: Root) -> anyhow::Result<()> {
        let key = self.runtime.commands.new_key()?;
        let identity = SessionIdentity::new(ChannelType::Cli, key.clone());
        let session = SessionKey::new(self.person.owner, identity);
        let open = PersonCommand::Life(LifeCommand::Open { root });
        let commands = &self.runtime.commands;
        match commands.dispatch(&session, commands.new_id().into(), &self.person, open).await? {
            Answer::Accepted { .. } => self.activate(key).await,
            Answer::Refused(refusal) => bail!("{refusal}"),
        }
    }

    async fn import_memory(&self, file: &Path) -> anyhow::Result<usize> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("{} cannot be read", file.display()))?;
        let mut many = 0;
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let legacy: LegacyItem = serde_json::from_str(line)
                .with_context(|| format!("line {number} is not an object with a text"))?;
            let item = Item {
                id: Uuid::new_v5(&Uuid::NAMESPACE_OID, legacy.text.as_bytes()).into(),
                kind: legacy.kind,
                scope: MemoryScope::Global,
                text: legacy.text,
                provenance: Provenance::Legacy,
                confidence: legacy.confidence.unwrap_or(50).min(100),
                at: self.runtime.queries.now(),
            };
            let import = OwnerCommand::Import { item: Box::new(item) };
            let stored = self.runtime.commands.own(self.person.owner, import).await?;
            stored.map_err(|refusal| anyhow::anyhow!("line {number}: {refusal}"))?;
            many += 1;
        }
        Ok(many)
    }

    async fn retry(&self) -> anyhow::Result<()> {
        Ok(self.runtime.commands.unpark(&self.session).await?)
    }
}

/// Something that was remembered before there were scopes.
#[derive(serde::Deserialize)]
struct LegacyItem {
    text: String,
    #[serde(default)]
    kind: ItemKind,
    confidence: Option<u8>,
}

/// The model of the conversation, and the agent profiles.
pub struct Agents {
    /// The model, which can be exchanged.
    pub model: Arc<SwitchModel>,
    /// The profiles.
    pub profiles: Profiles,
    /// The model, as it is told of.
    pub connected: Connected,
    /// How many tokens one request may hold.
    pub window_tokens: usize,
}

/// The model of the conversation, and the agent profiles.
pub fn agents(args: &Args, config: &Config) -> anyhow::Result<Agents> {
    let choice = chosen(&data_path(args)?)?;
    let settings = model_settings(args, &config.model, choice.as_ref())?;
    let (window_tokens, url) = (settings.window_tokens, settings.base_url.clone());
    let named = |name: Option<&String>| -> anyhow::Result<Arc<dyn Model>> {
        let known = name.and_then(|name| Some((name, config.models.get(name)?)));
        let mut settings = match known {
            Some((name, known)) => known.http(name)?,
            None => settings.clone(),
        };
        if let (Some(name), None) = (name, known) {
            settings.model.clone_from(name);
        }
        let model = HttpModel::new(settings);
        Ok(Arc::new(model.map_err(|failure| anyhow::anyhow!(failure.message))?))
    };
    let switch = Arc::new(SwitchModel::new(named(None)?));
    let model: Arc<dyn Model> = switch.clone();
    let mut profiles = (*default_profiles(&model)).clone();
    for (name, profile) in &config.profiles {
        let model =
            if profile.model.is_some() { named(profile.model.as_ref())? } else { model.clone() };
        let ProfileConfig { prompt, tools, rounds, .. } = profile;
        let agent = AgentProfile::new(name, prompt, model, tools.clone(), *rounds);
        profiles.insert(name.clone(), agent);
    }
    let is_chosen = choice.is_some() || is_said(args, &config.model);
    let connected = Connected { name: model.name(), url: Some(url), is_chosen, is_demo: false };
    Ok(Agents { model: switch, profiles: Arc::new(profiles), connected, window_tokens })
}

/// The passphrase on the first line of standard input, if the arguments say that it is there.
pub fn first_line(args: &Args) -> anyhow::Result<Option<String>> {
    if !args.passphrase_stdin {
        return Ok(None);
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
}

/// The passphrase that the owner chose in this data directory, by its hash's digest. Another process may have the directory.
pub async fn owners_passphrase(data: &Path) -> anyhow::Result<Option<Digest>> {
    let installation = read_installation(data).await?;
    let owner = installation.account(&PersonId(OWNER.into()));
    Ok(owner.and_then(|owner| owner.passphrase))
}

/// What belongs to the installation in this data directory. Another process may have the directory.
pub async fn read_installation(data: &Path) -> anyhow::Result<Arc<installation::Installation>> {
    let journal = data.join(JOURNAL);
    if !journal.exists() {
        return Ok(Arc::default());
    }
    Ok(SqliteJournal::open_read_only(&journal)?.installation().await?)
}
