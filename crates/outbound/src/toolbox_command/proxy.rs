//! The way out of a command whose lease names hosts: a proxy on this machine that connects to exactly those.
//!
//! The sandbox leaves the command TCP to this proxy's port and nothing else. It tunnels (`CONNECT`) and passes on plain requests. It
//! lives as long as the call.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http_body_util::{BodyExt as _, Empty, Full, combinators::BoxBody};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::{Bytes, Incoming},
    header::HOST,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use crate::egress::Egress;

/// How many connections a command may have open.
const CONNECTIONS_MAX: usize = 128;
/// How many hosts that were reached, and how many that were not, are named.
const SEEN_MAX: usize = 100;
/// How long the name of a host may be.
const HOST_BYTES_MAX: usize = 253;
/// How long a host may take to answer a connection.
const CONNECT_MAX: Duration = Duration::from_secs(20);
/// How long it waits before it accepts again, where that failed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// What holds between a client and a proxy, and for nobody behind it.
const HOP_BY_HOP: [&str; 7] = [
    "proxy-authorization",
    "proxy-connection",
    "connection",
    "keep-alive",
    "te",
    "transfer-encoding",
    "upgrade",
];

type Body = BoxBody<Bytes, hyper::Error>;

/// A proxy for one call. It ends with this value, and all its connections with it.
#[derive(Debug)]
pub(super) struct Proxy {
    port: u16,
    seen: Arc<Mutex<Seen>>,
    serves: JoinHandle<()>,
}

/// What a command wanted of its proxy.
#[derive(Debug, Default, Clone)]
pub(super) struct Seen {
    /// The hosts that were reached.
    pub(super) reached: BTreeSet<String>,
    /// Why others were not, in words.
    pub(super) refused: BTreeSet<String>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serves.abort();
    }
}

impl Proxy {
    /// Opens one that reaches what it may.
    pub(super) async fn open(egress: Egress) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let state =
            Arc::new(ProxyState { egress, seen: seen.clone(), background: Mutex::default() });
        let serves = tokio::spawn(serve(listener, state));
        Ok(Self { port, seen, serves })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What was wanted of it so far.
    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How programs are told of it.
    pub(super) fn environment(&self) -> Vec<(String, String)> {
        let address = format!("http://127.0.0.1:{}", self.port);
        let names = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
        let mut named: Vec<_> =
            names.map(|name| (name.to_owned(), address.clone())).into_iter().collect();
        // Node looks at these only if it is told to.
        named.push(("NODE_USE_ENV_PROXY".into(), "1".into()));
        named
    }
}

/// What all connections of a proxy share.
struct ProxyState {
    egress: Egress,
    seen: Arc<Mutex<Seen>>,
    /// Tunnels, and connections to hosts. They end with the last who shares this.
    background: Mutex<JoinSet<()>>,
}

async fn serve(listener: TcpListener, state: Arc<ProxyState>) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    while let Ok(seat) = seats.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let (state, seat) = (state.clone(), Arc::new(seat));
        connections.spawn(async move {
            let answer = service_fn(|request| {
                let (state, seat) = (state.clone(), seat.clone());
                async move { Ok::<_, Infallible>(state.answer(request, seat).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), answer);
            // A client that breaks off has ended its connection.
            let _ = connection.with_upgrades().await;
        });
    }
}

impl ProxyState {
    async fn answer(
        &self,
        request: Request<Incoming>,
        seat: Arc<OwnedSemaphorePermit>,
    ) -> Response<Body> {
        let is_tunnel = request.method() == Method::CONNECT;
        let Some((host, port)) = host_of(request.uri(), is_tunnel) else {
            return words(StatusCode::BAD_REQUEST, "this is a proxy, and that names no host");
        };
        if host.len() > HOST_BYTES_MAX {
            return self.refuse("a name that is too long for a host".into());
        }
        if let Some(why) = self.egress.refuses(&host, port) {
            return self.refuse(why);
        }
        let stream = match self.connect(&host, port).await {
            Ok(stream) => stream,
            Err(error) => return self.refuse(format!("{host}: {error}")),
        };
        self.note_reached(&host);
        if is_tunnel {
            self.tunnel(request, stream, seat);
            return Response::new(empty());
        }
        match self.pass_on(request, stream).await {
            Ok(response) => response,
            Err(error) => words(StatusCode::BAD_GATEWAY, &format!("{host}: {error}")),
        }
    }

    fn note_reached(&self, host: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.reached.len() < SEEN_MAX {
            seen.reached.insert(host.to_owned());
        }
    }

    fn refuse(&self, why: String) -> Response<Body> {
        let answer = words(StatusCode::FORBIDDEN, &why);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.refused.len() < SEEN_MAX {
            seen.refused.insert(why);
        }
        answer
    }

    async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let addresses = self.egress.addresses_of(host, port).await?;
        let addresses: Vec<_> =
            addresses.iter().map(|address| SocketAddr::new(address.ip(), port)).collect();
        let connected = timeout(CONNECT_MAX, TcpStream::connect(addresses.as_slice())).await;
        connected.map_err(|_| io::Error::other("it did not answer in time"))?
    }

    /// Sends a request to its host, and gives back what it answers.
    async fn pass_on(
        &self,
        request: Request<Incoming>,
        stream: TcpStream,
    ) -> Result<Response<Body>, hyper::Error> {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        self.in_background(async move {
            let _ = connection.await;
        });
        let mut answer = sender.send_request(as_sent(request)).await?;
        remove_hop_by_hop(answer.headers_mut());
        Ok(answer.map(http_body_util::BodyExt::boxed))
    }

    fn in_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        while background.try_join_next().is_some() {}
        background.spawn(work);
    }

    fn tunnel(
        &self,
        request: Request<Incoming>,
        mut stream: TcpStream,
        seat: Arc<OwnedSemaphorePermit>,
    ) {
        self.in_background(async move {
            if let Ok(client) = hyper::upgrade::on(request).await {
                // Who breaks off has ended the tunnel.
                let _ = copy_bidirectional(&mut TokioIo::new(client), &mut stream).await;
            }
            drop(seat);
        });
    }
}

/// Which host a request is for, and at which port.
fn host_of(uri: &Uri, is_tunnel: bool) -> Option<(String, u16)> {
    let usual = match uri.scheme_str() {
        None if is_tunnel => 443,
        Some("http") if !is_tunnel => 80,
        None | Some(_) => return None,
    };
    Some((uri.host()?.to_lowercase(), uri.port_u16().unwrap_or(usual)))
}

/// A request as the host is sent it.
fn as_sent(request: Request<Incoming>) -> Request<Incoming> {
    let (mut head, body) = request.into_parts();
    // The host is the one that was admitted, whatever the header said.
    let host = head.uri.authority().map(|host| host.as_str().rsplit('@').next());
    if let Some(host) = host.flatten().and_then(|host| host.parse().ok()) {
        head.headers.insert(HOST, host);
    }
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = path.parse().unwrap_or_default();
    remove_hop_by_hop(&mut head.headers);
    Request::from_parts(head, body)
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed()
}

fn words(status: StatusCode, words: &str) -> Response<Body> {
    let body = Full::from(format!("planwright: {words}\n")).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
