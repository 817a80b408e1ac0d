//! Telling watchers on every node, over NATS core subjects.
//!
//! A message that is lost costs liveliness and nothing else: whoever listens is told to read the
//! journal again when its subscription stands, when the bus came back, every second while it is
//! gone, and now and then in any case.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, ConnectOptions, Event, Subscriber};
use futures_util::StreamExt as _;
use planwright_domain::{digest::Digest, identity::SessionKey};
use planwright_runtime::ports::signal::{Broadcast, Hint, Hints, Signal, Subscription};
use tokio::sync::mpsc;

use crate::local_subscribers::LocalSubscribers;

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
    /// Where nodes tell each other which sessions move.
    moved: String,
    hears_hints: AtomicBool,
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
            subscribers: LocalSubscribers::default(),
            client,
            subjects,
            moved: format!("{prefix}.moved"),
            hears_hints: AtomicBool::new(false),
            outgoing,
            waiting,
            bus,
        })
    }

    fn subject(&self, identity: &SessionKey) -> String {
        format!("{}{}", self.subjects, Digest::of(identity.to_string().as_bytes()))
    }
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
        if matches!(signal, Signal::Moved(_)) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let _ = self.outgoing.send((self.moved.clone(), identity.to_string().into()));
        }
        self.subscribers.tell(identity, signal);
    }

    fn subscribe(&self, identity: &SessionKey) -> Box<dyn Subscription> {
        let (subscription, is_first) = self.subscribers.listen(identity);
        if is_first {
            let subject = self.subject(identity);
            let (client, subscribers, bus) =
                (self.client.clone(), self.subscribers.clone(), self.bus.clone());
            tokio::spawn(listen(client, subject, identity.clone(), subscribers, bus));
        }
        subscription
    }

    fn hints(&self) -> Box<dyn Hints> {
        let subscription = self.subscribers.subscribe_to_hints();
        if !self.hears_hints.swap(true, Ordering::SeqCst) {
            let (client, subscribers, bus) =
                (self.client.clone(), self.subscribers.clone(), self.bus.clone());
            tokio::spawn(subscribe_to_hints(client, self.moved.clone(), subscribers, bus));
        }
        subscription
    }

    fn trouble(&self) -> Option<String> {
        (!self.bus.is_there.load(Ordering::SeqCst)).then(|| {
            "live updates come late: the message bus (NATS) cannot be reached; nothing is lost"
                .into()
        })
    }
}

/// Hears which sessions move at other nodes, for everyone here who keeps lists. A subscription that cannot be had or that
/// ended is asked for again; meanwhile those who keep lists read them.
async fn subscribe_to_hints(
    client: Client,
    subject: String,
    subscribers: LocalSubscribers,
    bus: Arc<Bus>,
) {
    loop {
        match client.subscribe(subject.clone()).await {
            Ok(subscriber) => forward_moves(&client, subscriber, &subscribers, &bus).await,
            Err(error) => tracing::warn!(%error, event = "not_subscribed"),
        }
        subscribers.hint(Hint::Missed);
        tokio::time::sleep(LOOK).await;
    }
}

/// Hears which sessions move until the subscription ends.
async fn forward_moves(
    client: &Client,
    mut subscriber: Subscriber,
    subscribers: &LocalSubscribers,
    bus: &Bus,
) {
    let (mut arrivals, mut checks) = (u64::MAX, 0);
    let mut flushed = std::pin::pin!(client.flush());
    let mut stands = false;
    loop {
        tokio::select! {
            // What moved before the subscription stood was not heard.
            _ = &mut flushed, if !stands => {
                stands = true;
                subscribers.hint(Hint::Missed);
            }
            message = subscriber.next() => {
                let Some(message) = message else { return };
                let named = std::str::from_utf8(&message.payload).ok();
                let named = named.and_then(|named| SessionKey::parse(named).ok());
                subscribers.hint(named.map_or(Hint::Missed, Hint::Moved));
            }
            () = tokio::time::sleep(LOOK) => {
                checks += 1;
                let now = bus.arrivals.load(Ordering::SeqCst);
                let gone = !bus.is_there.load(Ordering::SeqCst);
                if gone || now != arrivals || checks >= LOOKS_MAX {
                    (arrivals, checks) = (now, 0);
                    subscribers.hint(Hint::Missed);
                }
            }
        }
    }
}

/// Hears one session for everyone here who listens to it, until nobody does. A subscription that cannot be had or that
/// ended is asked for again; meanwhile those who listen read the journal.
async fn listen(
    client: Client,
    subject: String,
    identity: SessionKey,
    subscribers: LocalSubscribers,
    bus: Arc<Bus>,
) {
    loop {
        match client.subscribe(subject.clone()).await {
            Ok(subscriber) => {
                if forward(&client, subscriber, &identity, &subscribers, &bus).await
                    == Heard::Deserted
                {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(session_identity = %identity, %error, event = "not_subscribed");
            }
        }
        if subscribers.is_deserted(&identity) {
            return;
        }
        subscribers.tell(&identity, Signal::Missed);
        tokio::time::sleep(LOOK).await;
    }
}

/// Why one session is no longer heard.
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
    identity: &SessionKey,
    subscribers: &LocalSubscribers,
    bus: &Bus,
) -> Heard {
    let mut arrivals = u64::MAX;
    let mut checks = 0;
    let mut flushed = std::pin::pin!(client.flush());
    let mut stands = false;
    loop {
        tokio::select! {
            _ = &mut flushed, if !stands => {
                stands = true;
                subscribers.tell(identity, Signal::Missed);
            }
            message = subscriber.next() => {
                let Some(message) = message else { return Heard::Ended };
                let signal = serde_json::from_slice(&message.payload).unwrap_or(Signal::Missed);
                subscribers.tell(identity, signal);
            }
            () = tokio::time::sleep(LOOK) => {
                if subscribers.is_deserted(identity) {
                    return Heard::Deserted;
                }
                checks += 1;
                let now = bus.arrivals.load(Ordering::SeqCst);
                let gone = !bus.is_there.load(Ordering::SeqCst);
                if gone || now != arrivals || checks >= LOOKS_MAX {
                    (arrivals, checks) = (now, 0);
                    subscribers.tell(identity, Signal::Missed);
                }
            }
        }
    }
}
