//! From a command to the last of many clients that listen, beside one that does not read.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use planwright_testkit::prose::prose;
use tokio::{net::TcpStream, sync::mpsc};
use tokio_tungstenite::{
    WebSocketStream, client_async, connect_async,
    tungstenite::{Message, client::IntoClientRequest as _, handshake::client::Request},
};

use crate::{
    arm::{Arm, TOKEN},
    measure::{Judged, PEER_MISSING, close, median, percentile},
    payload::{nth, texts},
    plot,
};

/// How large the text of a command is.
const BYTES: usize = 512;
/// What is said before anyone listens: more than the buffers of a connection hold, on any arm.
const BACKLOG: u64 = 24;
const BACKLOG_BYTES: usize = 200_000;
/// How much the client that does not read lets the system take for it.
const RECEIVE_BYTES: u32 = 4_096;

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    // A session queues at most 1,000 messages.
    let (clients, rounds, samples) = if quick { (250, 3, 100) } else { (1_000, 7, 130) };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async move {
        let (ours, bare, peer) = (Arm::start("ours")?, Arm::start("bare")?, Arm::node_ws());
        let mut arms = vec![
            Listeners::connect(&ours, Kind::Ours, clients).await?,
            Listeners::connect(&bare, Kind::Other, clients).await?,
        ];
        match &peer {
            Some(peer) => arms.push(Listeners::connect(peer, Kind::Other, clients).await?),
            None => println!("(Node and ws are not installed; the peer's arm is left out)"),
        }
        println!("{clients} clients, one of which does not read; from the command to the last of the others");
        println!(
            "{:<7}{:>14}{:>14}{:>14}{:>12}{:>12}",
            "round", "ours p99 ms", "bare p99 ms", "peer p99 ms", "ours/bare", "peer/ours"
        );
        let mut all = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..rounds {
            let mut p99 = [f64::NAN; 3];
            for arm in 0..arms.len() {
                let which = (arm + round) % arms.len();
                let taken = arms[which].slice(samples).await?;
                p99[which] = percentile(&taken, 0.99);
                all[which].extend(taken);
            }
            let [ours, bare, peer] = p99;
            println!(
                "{round:<7}{:>14.1}{:>14.1}{:>14.1}{:>12.2}{:>12.2}",
                ours * 1e3,
                bare * 1e3,
                peer * 1e3,
                ours / bare,
                peer / ours
            );
        }
        for (name, arm) in ["ours", "bare", "Node ws"].iter().zip(&arms) {
            println!("{name}: {}", arm.describe());
        }
        let [p99_ours, p99_bare, p99_peer] = [0, 1, 2].map(|arm| percentile(&all[arm], 0.99) * 1e3);
        println!(
            "p99 of all {} samples of each arm: ours {p99_ours:.1} ms, bare {p99_bare:.1} ms, peer {p99_peer:.1} ms; medians {:.1}, {:.1} and {:.1} ms",
            all[0].len(),
            median(&all[0]) * 1e3,
            median(&all[1]) * 1e3,
            median(&all[2]) * 1e3
        );
        let bars = [("ours", p99_ours), ("bare", p99_bare), ("Node ws", p99_peer)];
        plot::bars("fanout", "From a command to the last client, p99", "ms", &bars)?;
        let peer = if p99_peer.is_nan() {
            PEER_MISSING.into()
        } else {
            format!("Node ws takes {:.2} times ours", p99_peer / p99_ours)
        };
        let ratio = p99_ours / p99_bare;
        let figure = format!("p99 of {} {ratio:.2} times bare; {peer}", all[0].len());
        let well = ratio <= 2.0 && !p99_peer.is_nan();
        Ok(close("fanout", &figure, "2 times bare", well))
    })
}

/// How an arm is spoken to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ours,
    Other,
}

/// Many clients that listen to one session of one arm, and one that does not read.
struct Listeners {
    kind: Kind,
    port: u16,
    client: reqwest::Client,
    url: String,
    heard: mpsc::UnboundedReceiver<()>,
    count: usize,
    stalled: Stalled,
    /// How often the server cut it off.
    cut: u32,
    texts: Vec<String>,
    spoken: u64,
}

impl Listeners {
    async fn connect(arm: &Arm, kind: Kind, count: usize) -> anyhow::Result<Self> {
        let (sender, heard) = mpsc::unbounded_channel();
        let session = match kind {
            Kind::Ours => "/api/sessions/api:fanout-0001/messages",
            Kind::Other => "/messages",
        };
        let (client, url) =
            (reqwest::Client::new(), format!("http://127.0.0.1:{}{session}", arm.port));
        // An arm that keeps what was said gives it to whoever asks; the others give it to who is there.
        let early = match kind {
            Kind::Ours => None,
            Kind::Other => Some(Stalled::connect(arm.port, kind).await?),
        };
        for number in 0..BACKLOG {
            say(&client, &url, &prose(BACKLOG_BYTES, number)).await?;
        }
        let stalled = match early {
            Some(stalled) => stalled,
            None => Stalled::connect(arm.port, kind).await?,
        };
        for _ in 1..count {
            let (mut socket, _) = connect_async(request(arm.port, kind, None)?).await?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while let Some(Ok(Message::Text(_))) = socket.next().await {
                    let _ = sender.send(());
                }
            });
        }
        let (port, count, texts) = (arm.port, count - 1, texts(BYTES));
        Ok(Self { kind, port, client, url, heard, count, stalled, cut: 0, texts, spoken: 0 })
    }

    /// The times of so many commands, at each of which the server is held up by the client that does not read.
    async fn slice(&mut self, samples: usize) -> anyhow::Result<Vec<f64>> {
        let mut taken = Vec::new();
        for _ in 0..samples {
            self.hold_up().await?;
            taken.push(self.command().await?);
        }
        Ok(taken)
    }

    /// Sees to it that a client that does not read holds the server up.
    async fn hold_up(&mut self) -> anyhow::Result<()> {
        let now = self.stalled.queues()?;
        if now.is_some() && now == self.stalled.full {
            return Ok(());
        }
        // Our server cuts such a client off after a while; then there is another one.
        if now.is_none() {
            anyhow::ensure!(self.kind == Kind::Ours, "the client that does not read is gone");
            self.cut += 1;
            self.stalled = Stalled::connect(self.port, self.kind).await?;
        }
        self.stalled.wait_until_full().await
    }

    fn describe(&self) -> String {
        let cut = match self.cut {
            0 => String::new(),
            cut => format!("; the server cut it off {cut} times, and another one came"),
        };
        match self.stalled.full {
            Some(Queues { server, client }) => format!(
                "the client that does not read left {client} bytes unread, {server} waited at the server, and no more went through{cut}"
            ),
            None => "the client that does not read held nobody up".into(),
        }
    }

    /// The time from a command to the last client that hears it.
    async fn command(&mut self) -> anyhow::Result<f64> {
        let text = nth(&self.texts, self.spoken);
        self.spoken += 1;
        let begun = Instant::now();
        say(&self.client, &self.url, text).await?;
        for _ in 0..self.count {
            tokio::time::timeout(Duration::from_secs(20), self.heard.recv()).await?;
        }
        Ok(begun.elapsed().as_secs_f64())
    }
}

async fn say(client: &reqwest::Client, url: &str, text: &str) -> anyhow::Result<()> {
    let body = serde_json::json!({"text": text});
    let sent = client.post(url).bearer_auth(TOKEN).json(&body).send().await?;
    anyhow::ensure!(sent.status() == 202, "{}", sent.status());
    Ok(())
}

fn request(port: u16, kind: Kind, after: Option<u64>) -> anyhow::Result<Request> {
    let path = match (kind, after) {
        (Kind::Ours, Some(after)) => format!("/api/ws?sessionId=api:fanout-0001&after={after}"),
        (Kind::Ours, None) => "/api/ws?sessionId=api:fanout-0001".into(),
        (Kind::Other, _) => "/ws".into(),
    };
    let mut request = format!("ws://127.0.0.1:{port}{path}").into_client_request()?;
    request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse()?);
    Ok(request)
}

/// A client that has connected and does not read.
struct Stalled {
    server: u16,
    client: u16,
    _socket: WebSocketStream<TcpStream>,
    /// What waited when nothing more went through.
    full: Option<Queues>,
}

/// What the system holds for one connection.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Queues {
    /// Bytes that the server has written and the client's side has not taken.
    server: u64,
    /// Bytes that arrived and were not read.
    client: u64,
}

impl Stalled {
    /// Connects with a small buffer and asks for everything that was ever said.
    async fn connect(port: u16, kind: Kind) -> anyhow::Result<Self> {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(RECEIVE_BYTES)?;
        let stream = socket.connect(([127, 0, 0, 1], port).into()).await?;
        let client = stream.local_addr()?.port();
        let (socket, _) = client_async(request(port, kind, Some(0))?, stream).await?;
        Ok(Self { server: port, client, _socket: socket, full: None })
    }

    /// Waits until the server cannot write any more: its queue has been the same for a while, and is not empty.
    async fn wait_until_full(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let (mut before, mut same) = (None, 0);
        while begun.elapsed() < Duration::from_secs(10) {
            let now = self.queues()?;
            same = if now == before { same + 1 } else { 0 };
            before = now;
            match now {
                Some(queues) if same >= 10 && queues.server > 0 && queues.client > 0 => {
                    self.full = Some(queues);
                    return Ok(());
                }
                Some(_) | None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        anyhow::bail!("the buffers of the client that does not read do not fill")
    }

    /// What the system says of this connection while it is established.
    fn queues(&self) -> anyhow::Result<Option<Queues>> {
        const ESTABLISHED: &str = "01";
        let (mut server, mut client) = (None, None);
        for line in std::fs::read_to_string("/proc/net/tcp")?.lines().skip(1) {
            let fields: Vec<_> = line.split_whitespace().collect();
            let [_, local, remote, state, queues, ..] = fields[..] else { continue };
            let port = |address: &str| {
                let (_, port) = address.rsplit_once(':')?;
                u16::from_str_radix(port, 16).ok()
            };
            let ports = (port(local), port(remote));
            let Some((sent, received)) = queues.split_once(':') else { continue };
            if state == ESTABLISHED && ports == (Some(self.server), Some(self.client)) {
                server = Some(u64::from_str_radix(sent, 16)?);
            } else if state == ESTABLISHED && ports == (Some(self.client), Some(self.server)) {
                client = Some(u64::from_str_radix(received, 16)?);
            }
        }
        Ok(server.zip(client).map(|(server, client)| Queues { server, client }))
    }
}
