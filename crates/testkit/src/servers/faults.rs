//! A proxy between any two, that can delay, drop, hold and repeat what passes; and, with several
//! targets, a plain balancer.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, tcp::OwnedWriteHalf},
    sync::watch,
    task::JoinHandle,
};

/// What happens to what passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Every piece comes so much later.
    Delay(Duration),
    /// Connections are cut, and new ones closed at once.
    Cut,
    /// Connections stay open and nothing passes: half-open, as when a cable is pulled.
    Hold,
    /// Every request of HTTP/1 that a client sends is sent a second time, on a connection of its own.
    Repeat,
}

/// A proxy on a port of its own.
#[derive(Debug)]
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    fault: watch::Sender<Fault>,
    targets: Arc<Mutex<Vec<SocketAddr>>>,
    repeated: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A proxy in front of these, one connection here and the next there.
    pub async fn before(targets: Vec<SocketAddr>) -> Self {
        Self::at(0, targets).await
    }

    /// The same, at this port.
    pub async fn at(port: u16, targets: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let fault = watch::Sender::new(Fault::None);
        let targets = Arc::new(Mutex::new(targets));
        let repeated = Arc::<AtomicU64>::default();
        let accepting =
            tokio::spawn(accept(listener, targets.clone(), fault.clone(), repeated.clone()));
        Self { address, fault, targets, repeated, accepting }
    }

    /// How many requests were sent a second time, and answered.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::SeqCst)
    }

    /// From now on this happens to what passes.
    pub fn inflict(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// From now on connections go to these.
    pub fn retarget(&self, targets: Vec<SocketAddr>) {
        *self.targets.lock().unwrap_or_else(PoisonError::into_inner) = targets;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.fault.send_replace(Fault::Cut);
    }
}

async fn accept(
    listener: TcpListener,
    targets: Arc<Mutex<Vec<SocketAddr>>>,
    fault: watch::Sender<Fault>,
    repeated: Arc<AtomicU64>,
) {
    let turn = AtomicUsize::new(0);
    while let Ok((client, _)) = listener.accept().await {
        if *fault.borrow() == Fault::Cut {
            continue;
        }
        let targets = targets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let first = turn.fetch_add(1, Ordering::Relaxed);
        let (fault, repeated) = (fault.subscribe(), repeated.clone());
        tokio::spawn(async move {
            // The first that answers, beginning with whose turn it is.
            for at in 0..targets.len() {
                let target = targets[(first + at) % targets.len()];
                if let Ok(server) = TcpStream::connect(target).await {
                    let repeater = Repeater { target, repeated, copy: None };
                    pass(client, server, repeater, fault).await;
                    return;
                }
            }
        });
    }
}

async fn pass(
    client: TcpStream,
    server: TcpStream,
    repeater: Repeater,
    fault: watch::Receiver<Fault>,
) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut cut = fault.clone();
    tokio::select! {
        () = pump(from_client, to_server, Some(repeater), fault.clone()) => {}
        () = pump(from_server, to_client, None, fault) => {}
        () = async { while *cut.borrow() != Fault::Cut && cut.changed().await.is_ok() {} } => {}
    }
}

/// Sends the requests of one connection a second time.
struct Repeater {
    target: SocketAddr,
    repeated: Arc<AtomicU64>,
    /// Where the request that is being sent goes a second time.
    copy: Option<OwnedWriteHalf>,
}

impl Repeater {
    /// A piece of what a client sends. A request that began before it was to be repeated is not.
    async fn hear(&mut self, piece: &[u8], now: Fault) {
        let begins = [&b"GET "[..], b"POST ", b"PUT ", b"DELETE ", b"PATCH "];
        if begins.iter().any(|method| piece.starts_with(method)) {
            self.copy = match now {
                Fault::Repeat => self.connect().await,
                Fault::None | Fault::Delay(_) | Fault::Cut | Fault::Hold => None,
            };
        }
        if let Some(copy) = &mut self.copy {
            let _ = copy.write_all(piece).await;
        }
    }

    /// A connection of its own, on which an answer counts.
    async fn connect(&self) -> Option<OwnedWriteHalf> {
        let (mut answers, copy) = TcpStream::connect(self.target).await.ok()?.into_split();
        let repeated = self.repeated.clone();
        tokio::spawn(async move {
            let mut first = [0; 12];
            let answered = answers.read_exact(&mut first).await.is_ok();
            if answered && first.starts_with(b"HTTP/1.1 2") {
                repeated.fetch_add(1, Ordering::SeqCst);
            }
            let _ = tokio::io::copy(&mut answers, &mut tokio::io::sink()).await;
        });
        Some(copy)
    }
}

async fn pump(
    mut from: impl tokio::io::AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
    mut repeater: Option<Repeater>,
    mut fault: watch::Receiver<Fault>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let now = *fault.borrow();
        if let Fault::Delay(time) = now {
            tokio::time::sleep(time).await;
        }
        while *fault.borrow() == Fault::Hold {
            if fault.changed().await.is_err() {
                return;
            }
        }
        if let Some(repeater) = &mut repeater {
            repeater.hear(&buffer[..read], now).await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A server that answers every request with its number.
    async fn server() -> (SocketAddr, Arc<AtomicU64>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::<AtomicU64>::default();
        let counted = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let counted = counted.clone();
                tokio::spawn(async move {
                    let mut buffer = [0; 1024];
                    while let Ok(1..) = client.read(&mut buffer).await {
                        counted.fetch_add(1, Ordering::SeqCst);
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                        let _ = client.write_all(answer).await;
                    }
                });
            }
        });
        (address, requests)
    }

    #[tokio::test]
    async fn requests_on_a_connection_that_is_open_already_are_repeated() {
        let (address, requests) = server().await;
        let proxy = Proxy::before(vec![address]).await;
        let mut client = TcpStream::connect(proxy.address).await.expect("a connection");
        let mut ask = async || {
            client.write_all(b"POST /x HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("a request");
            let mut answer = [0; 38];
            client.read_exact(&mut answer).await.expect("an answer");
        };
        ask().await;
        proxy.inflict(Fault::Repeat);
        ask().await;
        let begun = Instant::now();
        while proxy.repeated() == 0 && begun.elapsed() < Duration::from_secs(20) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        proxy.inflict(Fault::None);
        ask().await;
        assert_eq!((proxy.repeated(), requests.load(Ordering::SeqCst)), (1, 4));
    }
}
