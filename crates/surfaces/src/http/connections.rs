//! Connections: how many there are, from whom, and how long each may take to say what it wants.
//!
//! A connection is held while the request or the stream of a known caller lasts. Every other one may be closed: when there are
//! many of them, those that have asked for nothing first, and of these the one that has waited longest.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    net::{IpAddr, Ipv4Addr},
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http_body::{Frame, SizeHint};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

/// How long a caller may take for the head of a request, and how long a connection may wait for the next one.
const HEAD_MAX: Duration = Duration::from_secs(15);
/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long a piece of a body may take.
const PIECE_MAX: Duration = Duration::from_secs(10);
/// How long a whole body may take.
const BODY_MAX: Duration = Duration::from_secs(60);
/// How many connections may be open whose caller is not known.
const UNKNOWN_MAX: usize = 512;
/// How long to wait when no connection can be taken.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The connections of a server.
pub struct Connections {
    all_max: usize,
    peer_max: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Counts the connections, and the moments at which they began to wait.
    count: u64,
    open: HashMap<u64, Open>,
    /// The connections that may be closed, in the order in which they are: those that have asked for nothing first, and of
    /// each kind the one that has waited longest.
    waiting: BTreeMap<Turn, u64>,
    peers: HashMap<IpAddr, usize>,
}

/// When it is a connection's turn to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    /// Whether a whole head came, and its answer has not gone out.
    has_asked: bool,
    since: u64,
}

struct Open {
    peer: IpAddr,
    /// When it is its turn to be closed; nothing while it is held.
    turn: Option<Turn>,
    /// How many requests are under way on it.
    requests: usize,
    /// How many of its callers are known, and hold it.
    holds: usize,
    /// Dropped to close it.
    _closes: oneshot::Sender<()>,
}

impl Connections {
    /// None yet: at most so many in all, and so many of each peer.
    #[must_use]
    pub fn new(all_max: usize, peer_max: usize) -> Arc<Self> {
        Arc::new(Self { all_max, peer_max, table: Mutex::default() })
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection, closing one that waits if there are too many; nothing if all of them are kept.
    fn accept(self: &Arc<Self>, peer: IpAddr) -> Option<(PeerConnection, oneshot::Receiver<()>)> {
        let mut table = self.table();
        // On one machine everyone has the same address.
        let is_full = table.peers.get(&peer).is_some_and(|count| *count >= self.peer_max);
        if is_full && !peer.is_loopback() {
            table.close_oldest(|open| open.peer == peer)?;
        }
        if table.open.len() >= self.all_max {
            table.close_oldest(|_| true)?;
        }
        // Many may have begun to wait since the last one came.
        while table.waiting.len() >= UNKNOWN_MAX {
            table.close_oldest(|_| true)?;
        }
        let (closes, closed) = oneshot::channel();
        table.count += 1;
        let id = table.count;
        let open = Open { peer, turn: None, requests: 0, holds: 0, _closes: closes };
        table.open.insert(id, open);
        table.queue(id);
        *table.peers.entry(peer).or_default() += 1;
        Some((PeerConnection(Arc::new(Place { connections: self.clone(), id, peer })), closed))
    }
}

impl Table {
    /// Closes the connection that has waited longest among these.
    fn close_oldest(&mut self, is_one: impl Fn(&Open) -> bool) -> Option<()> {
        let fits = |id: &&u64| self.open.get(id).is_some_and(&is_one);
        let id = *self.waiting.values().find(fits)?;
        self.remove(id);
        Some(())
    }

    /// Gives a connection its turn, now that it changed.
    fn queue(&mut self, id: u64) {
        let Some(open) = self.open.get_mut(&id) else { return };
        self.count += 1;
        let turn = Turn { has_asked: open.requests > 0, since: self.count };
        let turn = (open.holds == 0).then_some(turn);
        if let Some(before) = std::mem::replace(&mut open.turn, turn) {
            self.waiting.remove(&before);
        }
        if let Some(turn) = turn {
            self.waiting.insert(turn, id);
        }
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.open.get_mut(&id) {
            change(open);
            self.queue(id);
        }
    }

    fn remove(&mut self, id: u64) {
        let Some(open) = self.open.remove(&id) else { return };
        if let Some(turn) = open.turn {
            self.waiting.remove(&turn);
        }
        if let Some(count) = self.peers.get_mut(&open.peer) {
            *count -= 1;
            if *count == 0 {
                self.peers.remove(&open.peer);
            }
        }
    }
}

/// A connection that was taken. Every request that comes over it has it among its extensions.
#[derive(Clone)]
pub struct PeerConnection(Arc<Place>);

struct Place {
    connections: Arc<Connections>,
    id: u64,
    peer: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.table().remove(self.id);
    }
}

impl PeerConnection {
    /// Who is at the other end; nobody in particular, where a request came over no connection of ours.
    #[must_use]
    pub fn peer_of(request: &axum::http::Extensions) -> IpAddr {
        request.get::<Self>().map_or(Ipv4Addr::UNSPECIFIED.into(), |accepted| accepted.0.peer)
    }

    /// Keeps the connection open until what is returned is dropped.
    #[must_use]
    pub fn hold(&self) -> ConnectionHold {
        self.0.connections.table().change(self.0.id, |open| open.holds += 1);
        ConnectionHold(self.clone())
    }

    /// A whole head came, and is being answered until what is returned is dropped.
    fn asks(&self) -> Asking {
        self.0.connections.table().change(self.0.id, |open| open.requests += 1);
        Asking(self.clone())
    }
}

/// A connection is not closed while this is there.
pub struct ConnectionHold(PeerConnection);

impl Drop for ConnectionHold {
    fn drop(&mut self) {
        let Place { connections, id, .. } = &*self.0.0;
        connections.table().change(*id, |open| open.holds -= 1);
    }
}

/// A request is under way on a connection while this is there.
struct Asking(PeerConnection);

impl Drop for Asking {
    fn drop(&mut self) {
        let Place { connections, id, .. } = &*self.0.0;
        connections.table().change(*id, |open| open.requests -= 1);
    }
}

/// Serves at this listener until `stopped` ends, then lets open requests end.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    connections: Arc<Connections>,
    stopped: impl Future<Output = ()>,
) {
    let (stop, stopping) = watch::channel(false);
    // Whoever waits here is told when the last connection is gone.
    let (open, mut ended) = mpsc::channel::<()>(1);
    let service = TowerToHyperService::new(router);
    tokio::pin!(stopped);
    loop {
        let (stream, peer) = tokio::select! {
            () = &mut stopped => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, event = "not_accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let Some((accepted, closed)) = connections.accept(peer.ip().to_canonical()) else {
            metrics::counter!("connections.refused").increment(1);
            continue;
        };
        let service = service.clone();
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(accepted.clone());
            let (asking, answered) = (accepted.asks(), service.call(request));
            async move {
                let response = answered.await;
                drop(asking);
                response
            }
        });
        let (mut stopping, open) = (stopping.clone(), open.clone());
        tokio::spawn(async move {
            let stream = TokioIo::new(at_once(stream));
            let mut connection = pin!(http1().serve_connection(stream, service).with_upgrades());
            let mut closed = closed;
            let stops = pin!(stopping.wait_for(|is_stopping| *is_stopping));
            let mut stops = stops.fuse();
            loop {
                tokio::select! {
                    // What a client sends that is no HTTP concerns nobody else.
                    _ = connection.as_mut() => break,
                    _ = &mut closed => break,
                    _ = &mut stops => connection.as_mut().graceful_shutdown(),
                }
            }
            drop(open);
        });
    }
    stop.send_replace(true);
    drop(open);
    let _ = ended.recv().await;
}

fn http1() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX).max_buf_size(HEAD_BYTES_MAX);
    builder
}

/// Small answers leave at once: without `TCP_NODELAY` each would wait some 40 ms for a full packet.
fn at_once(stream: TcpStream) -> TcpStream {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::warn!(%error, event = "no_nodelay");
    }
    stream
}

/// While the process still serves though it was told to stop, whoever asks is told to ask over another connection next: a balancer
/// brings that one to another node, and no request comes over this one when it is closed.
pub(crate) async fn send_on_when_leaving(
    State(leaving): State<watch::Receiver<bool>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    if *leaving.borrow() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Every piece of a body comes in time, and the whole does; else reading it fails.
pub(crate) async fn limit_body_time(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let ends = Instant::now() + BODY_MAX;
    let pieces = stream::unfold(Some(body.into_data_stream()), move |body| async move {
        let mut body = body?;
        let due = ends.min(Instant::now() + PIECE_MAX);
        match tokio::time::timeout_at(due, body.next()).await {
            Ok(None) => None,
            Ok(Some(Ok(piece))) => Some((Ok(piece), Some(body))),
            Ok(Some(Err(error))) => Some((Err(io::Error::other(error)), None)),
            Err(_) => Some((Err(io::Error::from(io::ErrorKind::TimedOut)), None)),
        }
    });
    next.run(Request::from_parts(parts, Body::from_stream(pieces))).await
}

/// The same response, over a connection that is kept until the whole of it is sent.
pub(crate) fn hold_while_sent(response: Response, hold: ConnectionHold) -> Response {
    response.map(|body| Body::new(HoldingBody { body, _hold: hold }))
}

/// A body that keeps its connection.
struct HoldingBody {
    body: Body,
    _hold: ConnectionHold,
}

impl HttpBody for HoldingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn is_closed(closed: &mut oneshot::Receiver<()>) -> bool {
        matches!(closed.try_recv(), Err(oneshot::error::TryRecvError::Closed))
    }

    #[test]
    fn who_waits_longest_makes_room_and_who_is_kept_does_not() {
        let connections = Connections::new(2, 2);
        let (first, mut first_closed) = connections.accept(ONE).unwrap();
        let (_second, mut second_closed) = connections.accept(ONE).unwrap();
        let hold = first.hold();
        let (_third, mut third_closed) = connections.accept(OTHER).unwrap();
        assert!(is_closed(&mut second_closed) && !is_closed(&mut first_closed));
        drop(hold);
        // It waits again, and for less long than the third.
        let (_fourth, _fourth_closed) = connections.accept(OTHER).unwrap();
        assert!(is_closed(&mut third_closed) && !is_closed(&mut first_closed));
    }

    #[test]
    fn nobody_takes_the_place_of_those_who_are_kept() {
        let connections = Connections::new(2, 2);
        let taken: Vec<_> = (0..2).map(|_| connections.accept(ONE).unwrap()).collect();
        let kept: Vec<_> = taken.iter().map(|(accepted, _)| accepted.hold()).collect();
        assert!(connections.accept(OTHER).is_none());
        drop(kept);
        assert!(connections.accept(OTHER).is_some());
    }

    #[test]
    fn a_peer_with_many_makes_room_among_its_own() {
        let connections = Connections::new(100, 3);
        let (_other, mut other_closed) = connections.accept(OTHER).unwrap();
        let taken: Vec<_> = (0..10).map(|_| connections.accept(ONE).unwrap()).collect();
        assert!(!is_closed(&mut other_closed));
        let open =
            taken.into_iter().filter_map(|(_, mut closed)| (!is_closed(&mut closed)).then_some(()));
        assert_eq!(open.count(), 3);
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let connections = Connections::new(100, 100);
        let taken: Vec<_> = (0..10).map(|_| connections.accept(ONE).unwrap()).collect();
        let kept: Vec<_> = taken.iter().map(|(accepted, _)| accepted.hold()).collect();
        drop(taken);
        assert_eq!(connections.table().open.len(), 10, "a stream outlives its request");
        drop(kept);
        let table = connections.table();
        assert!(table.open.is_empty() && table.waiting.is_empty() && table.peers.is_empty());
    }

    #[test]
    fn only_so_many_unknown_ones_wait() {
        let connections = Connections::new(100_000, 100_000);
        let taken: Vec<_> = (0..5_000).map(|_| connections.accept(ONE).unwrap()).collect();
        assert_eq!(connections.table().open.len(), UNKNOWN_MAX);
        drop(taken);
    }
    #[test]
    fn those_who_were_held_and_wait_again_make_room_like_all_others() {
        let connections = Connections::new(100_000, 100_000);
        let taken: Vec<_> = (0..2_000)
            .map(|_| connections.accept(ONE).unwrap())
            .map(|(accepted, closed)| (accepted.hold(), accepted, closed))
            .collect();
        assert_eq!(connections.table().open.len(), 2_000, "who is known keeps their connection");
        let taken: Vec<_> =
            taken.into_iter().map(|(_, accepted, closed)| (accepted, closed)).collect();
        let _last = connections.accept(ONE).unwrap();
        assert_eq!(connections.table().open.len(), UNKNOWN_MAX);
        drop(taken);
    }

    #[test]
    fn on_one_machine_no_address_is_full() {
        let connections = Connections::new(100, 2);
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let taken: Vec<_> = (0..50).map(|_| connections.accept(here).unwrap()).collect();
        let held: Vec<_> = taken.iter().map(|(accepted, _)| accepted.hold()).collect();
        assert!(connections.accept(here).is_some());
        drop(held);
    }

    #[test]
    fn who_has_asked_is_closed_after_all_who_have_not() {
        let connections = Connections::new(100_000, 100_000);
        let (first, mut first_closed) = connections.accept(ONE).unwrap();
        let asking = first.asks();
        let taken: Vec<_> = (0..5_000).map(|_| connections.accept(ONE).unwrap()).collect();
        assert!(!is_closed(&mut first_closed), "the oldest, and it has asked");
        drop(asking);
        let more: Vec<_> = (0..UNKNOWN_MAX).map(|_| connections.accept(ONE).unwrap()).collect();
        assert!(is_closed(&mut first_closed), "it was answered");
        drop((taken, more));
    }
}
