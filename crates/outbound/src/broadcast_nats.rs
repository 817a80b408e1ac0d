//! Telling watchers on every node, over NATS core subjects.
//!
//! A message that is lost costs liveliness and nothing else: whoever listens is told to read the
//! journal again when its subscription stands, when the bus came back, every second while it is
//! gone, and now and then in any case.

use std::{
    future::ready,
    path::PathBuf,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, ConnectOptions, Event, Subscriber};
use async_trait::async_trait;
use futures_util::{Stream, StreamExt as _};
use planwright_domain::{digest::Digest, id::OwnerId, identity::SessionKey};
use planwright_runtime::ports::health::Part;
use planwright_runtime::ports::signal::{
    Broadcast, Hint, Hints, ListChange, OtherNodes, Signal, Subscription,
};
use serde::{Deserialize, Serialize};
use tokio::{sync::mpsc, time::MissedTickBehavior};

use crate::local_subscribers::LocalSubscribers;

/// How long the bus, or a node behind it, may take to answer whoever asks once.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How long another node may take to say that it acts for a session, when all are busy: whoever waits for it waits as long for a
/// node that is dead.
const ACTS_MAX: Duration = Duration::from_millis(700);
/// How many signals may wait to be sent before previews are dropped.
const WAITING_MAX: usize = 4_096;
/// How often a subscription looks whether it is deserted, or the bus gone.
const LOOK: Duration = Duration::from_secs(1);
/// After so many looks the journal is read in any case: who moved it may have lost the bus.
const LOOKS_MAX: u32 = 15;

/// Watchers on every node.
pub struct NatsBroadcast {
    subscribers: LocalSubscribers,
    client: Client,
    subjects: String,
    /// Where nodes tell each other what changes in lists, by owner.
    lists: String,
    /// Where nodes ask each other who acts for a session.
    drives: String,
    outgoing: mpsc::UnboundedSender<(String, Vec<u8>)>,
    waiting: Arc<AtomicUsize>,
    bus: Arc<Bus>,
}

/// Whether the bus is there, and how often it came.
#[derive(Debug, Default)]
struct Bus {
    is_there: AtomicBool,
    arrivals: AtomicU64,
}

/// Why the bus cannot be used. The operator reads this.
#[derive(Debug, thiserror::Error)]
#[error("the message bus at {address} cannot be used: {why}")]
pub struct NatsError {
    address: String,
    why: String,
}

/// How a node shows the bus who it is, and knows that it is the bus.
#[derive(Debug, Clone, Default)]
pub struct NatsSecurity {
    /// The certificates of the authorities that are believed; the system's if none are named.
    pub authorities: Option<PathBuf>,
    /// The certificate that is shown to the bus, and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// A file with an nkey's seed, or with a user's credentials as `nsc` writes them.
    pub credentials: Option<PathBuf>,
}

impl NatsSecurity {
    async fn options(&self, address: &str) -> Result<ConnectOptions, NatsError> {
        let mut options = match &self.credentials {
            None => ConnectOptions::new(),
            Some(file) => {
                let refused = |why: String| {
                    let why = format!("{}: {why}", file.display());
                    NatsError { address: shown(address), why }
                };
                let text = tokio::fs::read_to_string(file).await;
                let text = text.map_err(|error| refused(error.to_string()))?;
                if text.contains("BEGIN NATS USER JWT") {
                    ConnectOptions::with_credentials(&text)
                        .map_err(|error| refused(error.to_string()))?
                } else {
                    ConnectOptions::with_nkey(text.trim().to_owned())
                }
            }
        };
        options = if address.starts_with("tls://") {
            options.require_tls(true)
        } else {
            // What a bus in plain text names besides may lie beyond this machine.
            options.ignore_discovered_servers()
        };
        if let Some(file) = &self.authorities {
            options = options.add_root_certificates(file.clone());
        }
        if let Some((certificate, key)) = &self.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        Ok(options)
    }
}

/// An address without what stands before its host.
fn shown(address: &str) -> String {
    address.rsplit_once('@').map_or(address, |(_, host)| host).to_owned()
}

impl NatsBroadcast {
    /// Connects to the bus at this address, now or as soon as it is there. Subjects begin with the
    /// prefix.
    pub async fn connect(
        address: &str,
        prefix: &str,
        security: &NatsSecurity,
    ) -> Result<Self, NatsError> {
        let bus = Arc::new(Bus::default());
        let seen = bus.clone();
        let options = security
            .options(address)
            .await?
            .name("planwright")
            .no_echo()
            .retry_on_initial_connect()
            .connection_timeout(Duration::from_secs(2))
            .ping_interval(Duration::from_secs(2))
            .reconnect_delay_callback(|attempts| {
                Duration::from_millis(50 * u64::try_from(attempts.min(20)).unwrap_or(20))
            })
            .event_callback(move |event| {
                let seen = seen.clone();
                async move { seen.observe(&event) }
            });
        let client = options
            .connect(address)
            .await
            .map_err(|error| NatsError { address: shown(address), why: error.to_string() })?;
        let waiting = Arc::<AtomicUsize>::default();
        let (outgoing, queue) = mpsc::unbounded_channel();
        tokio::spawn(send(client.clone(), queue, waiting.clone()));
        let subjects = format!("{prefix}.session.");
        Ok(Self {
            subscribers: LocalSubscribers::of_a_node(),
            client,
            subjects,
            lists: format!("{prefix}.lists."),
            drives: drives_subject(prefix),
            outgoing,
            waiting,
            bus,
        })
    }

    /// Answers whoever asks which node acts for a session, under this name, for as long as this is polled: for how long it has,
    /// and whether what comes of it can be recorded.
    pub async fn answer_who_drives(
        &self,
        node: &str,
        drives: impl Fn(&SessionKey) -> Option<Duration>,
        records: impl Fn() -> bool,
    ) {
        loop {
            match self.client.subscribe(self.drives.clone()).await {
                Ok(mut questions) => {
                    while let Some(question) = questions.next().await {
                        let session = str::from_utf8(&question.payload).unwrap_or_default();
                        let session = SessionKey::parse(session).ok();
                        let seconds = session.and_then(|session| drives(&session));
                        let seconds = seconds.map(|time| time.as_secs_f64());
                        let answer = Drives { node: node.to_owned(), seconds, records: records() };
                        if let (Some(inbox), Ok(body)) =
                            (question.reply, serde_json::to_vec(&answer))
                        {
                            let _ = self.client.publish(inbox, body.into()).await;
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, event = "not_subscribed"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn listen(&self, subject: String, listeners: Listeners) {
        let (client, subscribers) = (self.client.clone(), self.subscribers.clone());
        tokio::spawn(listen(client, subject, listeners, subscribers, self.bus.clone()));
    }

    fn subject(&self, identity: &SessionKey) -> String {
        format!("{}{}", self.subjects, Digest::of(identity.to_string().as_bytes()))
    }
}

/// Fails if the bus at this address cannot be used now.
pub async fn check_bus(address: &str, security: &NatsSecurity) -> Result<(), NatsError> {
    connect_now(address, security).await.map(drop)
}

/// A connection for one question: it fails at once if the bus is not there.
async fn connect_now(address: &str, security: &NatsSecurity) -> Result<Client, NatsError> {
    let failed = |why: String| NatsError { address: shown(address), why };
    let options = security.options(address).await?.connection_timeout(ANSWER_MAX);
    let client = options.connect(address).await.map_err(|error| failed(error.to_string()))?;
    let flushed = tokio::time::timeout(ANSWER_MAX, client.flush()).await;
    match flushed {
        Ok(Ok(())) => Ok(client),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed("it does not answer".into())),
    }
}

/// What a node says when it is asked whether it acts for a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drives {
    /// Its name.
    pub node: String,
    /// For how many seconds an effect has been under way there; nothing, if none is.
    pub seconds: Option<f64>,
    /// Whether it reaches the database.
    pub records: bool,
}

#[async_trait]
impl OtherNodes for NatsBroadcast {
    async fn act_for(&self, session: &SessionKey) -> bool {
        let asking = async {
            let answers = ask_who_drives(&self.client, &self.drives, session).await.ok()?;
            let acts = |drives: Drives| ready(drives.seconds.is_some() && drives.records);
            Some(pin!(answers).any(acts).await)
        };
        matches!(tokio::time::timeout(ACTS_MAX, asking).await, Ok(Some(true)))
    }
}

/// Asks the nodes on this bus which of them acts for a session; those that answer in time, and no more than there are.
pub async fn who_drives(
    address: &str,
    prefix: &str,
    security: &NatsSecurity,
    session: &SessionKey,
    nodes: usize,
) -> Result<Vec<Drives>, NatsError> {
    let failed = |why: String| NatsError { address: shown(address), why };
    let client = connect_now(address, security).await?;
    let answers = ask_who_drives(&client, &drives_subject(prefix), session).await;
    let mut answers = pin!(answers.map_err(failed)?.take(nodes));
    let mut heard = Vec::new();
    let hearing = async {
        while let Some(answer) = answers.next().await {
            heard.push(answer);
        }
    };
    let _ = tokio::time::timeout(ANSWER_MAX, hearing).await;
    Ok(heard)
}

/// Asks everyone who listens at this subject, and gives what they answer, as it comes.
async fn ask_who_drives(
    client: &Client,
    subject: &str,
    session: &SessionKey,
) -> Result<impl Stream<Item = Drives> + use<>, String> {
    let inbox = client.new_inbox();
    let answers = client.subscribe(inbox.clone()).await.map_err(|error| error.to_string())?;
    let question = session.to_string().into();
    let asked = client.publish_with_reply(subject.to_owned(), inbox, question).await;
    asked.map_err(|error| error.to_string())?;
    Ok(answers.filter_map(|answer| ready(serde_json::from_slice(&answer.payload).ok())))
}

fn drives_subject(prefix: &str) -> String {
    format!("{prefix}.drives")
}

impl Bus {
    fn observe(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.arrivals.fetch_add(1, Ordering::SeqCst);
                self.is_there.store(true, Ordering::SeqCst);
            }
            Event::Disconnected | Event::Closed => self.is_there.store(false, Ordering::SeqCst),
            Event::LameDuckMode | Event::Draining | Event::SlowConsumer(_) => {}
            Event::ServerError(error) => tracing::warn!(%error, event = "bus_error"),
            Event::ClientError(error) => tracing::warn!(%error, event = "bus_error"),
        }
    }
}

async fn send(
    client: Client,
    mut queue: mpsc::UnboundedReceiver<(String, Vec<u8>)>,
    waiting: Arc<AtomicUsize>,
) {
    while let Some((subject, body)) = queue.recv().await {
        waiting.fetch_sub(1, Ordering::SeqCst);
        if let Err(error) = client.publish(subject, body.into()).await {
            tracing::warn!(%error, event = "signal_not_sent");
        }
    }
}

impl Broadcast for NatsBroadcast {
    fn publish(&self, identity: &SessionKey, signal: Signal) {
        let droppable = matches!(signal, Signal::Preview(_));
        if let Ok(body) = serde_json::to_vec(&signal)
            && !(droppable && self.waiting.load(Ordering::SeqCst) >= WAITING_MAX)
        {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let _ = self.outgoing.send((self.subject(identity), body));
        }
        self.subscribers.tell(identity, signal);
    }

    fn subscribe(&self, identity: &SessionKey) -> Box<dyn Subscription> {
        let (subscription, is_first) = self.subscribers.listen(identity);
        if is_first {
            self.listen(self.subject(identity), Listeners::OfSession(identity.clone()));
        }
        subscription
    }

    fn hint(&self, change: ListChange) {
        // While nothing gets through, hints are not piled up: who listens elsewhere reads everything again from time to time.
        if let Ok(body) = serde_json::to_vec(&change)
            && self.waiting.load(Ordering::SeqCst) < WAITING_MAX
        {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let _ =
                self.outgoing.send((format!("{}{}", self.lists, change.row.session.owner), body));
        }
        self.subscribers.hint(change);
    }

    fn hints(&self, owner: Option<OwnerId>) -> Box<dyn Hints> {
        let (subscription, is_first) = self.subscribers.subscribe_to_hints(owner);
        if is_first {
            let whose = owner.map_or_else(|| "*".to_owned(), |owner| owner.to_string());
            self.listen(format!("{}{whose}", self.lists), Listeners::OfLists(owner));
        }
        subscription
    }

    fn parts(&self) -> Vec<Part> {
        let words =
            "live updates come late: the message bus (NATS) cannot be reached; nothing is lost";
        let is_there = self.bus.is_there.load(Ordering::SeqCst);
        vec![Part::new("bus", (!is_there).then(|| words.to_owned()))]
    }
}

/// Those here who listen to one subject.
enum Listeners {
    /// To a session.
    OfSession(SessionKey),
    /// To the lists of an owner, or of everyone.
    OfLists(Option<OwnerId>),
}

impl Listeners {
    /// Tells them what another node sent. Who cannot read it, or is told nothing, reads the journal.
    fn tell(&self, subscribers: &LocalSubscribers, sent: Option<&[u8]>) {
        match self {
            Self::OfSession(identity) => {
                let signal = sent.and_then(|sent| serde_json::from_slice(sent).ok());
                subscribers.tell(identity, signal.unwrap_or(Signal::Missed));
            }
            Self::OfLists(owner) => {
                let change = sent.and_then(|sent| serde_json::from_slice(sent).ok());
                subscribers.hint_to(*owner, &change.map_or(Hint::Missed, Hint::Changed));
            }
        }
    }

    fn are_gone(&self, subscribers: &LocalSubscribers) -> bool {
        match self {
            Self::OfSession(identity) => subscribers.is_deserted(identity),
            Self::OfLists(owner) => subscribers.are_lists_deserted(*owner),
        }
    }
}

/// Hears one subject for everyone here who listens to it, until nobody does. A subscription that cannot be had or that
/// ended is asked for again; meanwhile those who listen read the journal.
async fn listen(
    client: Client,
    subject: String,
    listeners: Listeners,
    subscribers: LocalSubscribers,
    bus: Arc<Bus>,
) {
    loop {
        match client.subscribe(subject.clone()).await {
            Ok(subscriber) => {
                if forward(&client, subscriber, &listeners, &subscribers, &bus).await
                    == Heard::Deserted
                {
                    return;
                }
            }
            Err(error) => tracing::warn!(subject, %error, event = "not_subscribed"),
        }
        if listeners.are_gone(&subscribers) {
            return;
        }
        listeners.tell(&subscribers, None);
        tokio::time::sleep(LOOK).await;
    }
}

/// Why a subject is no longer heard.
#[derive(PartialEq, Eq)]
enum Heard {
    /// Nobody listens any more.
    Deserted,
    /// The subscription ended.
    Ended,
}

async fn forward(
    client: &Client,
    mut subscriber: Subscriber,
    listeners: &Listeners,
    subscribers: &LocalSubscribers,
    bus: &Bus,
) -> Heard {
    let mut arrivals = u64::MAX;
    let mut checks = 0;
    let mut flushed = std::pin::pin!(client.flush());
    let mut stands = false;
    // However much there is to hear.
    let mut looks = tokio::time::interval_at(tokio::time::Instant::now() + LOOK, LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // What was sent before the subscription stood was not heard.
            _ = &mut flushed, if !stands => {
                stands = true;
                listeners.tell(subscribers, None);
            }
            message = subscriber.next() => {
                let Some(message) = message else { return Heard::Ended };
                listeners.tell(subscribers, Some(&message.payload));
            }
            _ = looks.tick() => {
                if listeners.are_gone(subscribers) {
                    return Heard::Deserted;
                }
                checks += 1;
                let now = bus.arrivals.load(Ordering::SeqCst);
                let gone = !bus.is_there.load(Ordering::SeqCst);
                if gone || now != arrivals || checks >= LOOKS_MAX {
                    (arrivals, checks) = (now, 0);
                    listeners.tell(subscribers, None);
                }
            }
        }
    }
}
