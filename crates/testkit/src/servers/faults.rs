//! A proxy between any two, that can delay, drop, hold and repeat what passes; and, with several
//! targets, a plain balancer.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
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
    /// What a client sends is sent a second time, on a connection of its own.
    Repeat,
}

/// A proxy on a port of its own.
#[derive(Debug)]
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    fault: watch::Sender<Fault>,
    targets: Arc<Mutex<Vec<SocketAddr>>>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A proxy in front of these, one connection here and the next there.
    pub async fn before(targets: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let fault = watch::Sender::new(Fault::None);
        let targets = Arc::new(Mutex::new(targets));
        let accepting = tokio::spawn(accept(listener, targets.clone(), fault.clone()));
        Self { address, fault, targets, accepting }
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
) {
    let turn = AtomicUsize::new(0);
    while let Ok((client, _)) = listener.accept().await {
        let now = *fault.borrow();
        if now == Fault::Cut {
            continue;
        }
        let targets = targets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let first = turn.fetch_add(1, Ordering::Relaxed);
        let fault = fault.subscribe();
        tokio::spawn(async move {
            // The first that answers, beginning with whose turn it is.
            for at in 0..targets.len() {
                let target = targets[(first + at) % targets.len()];
                if let Ok(server) = TcpStream::connect(target).await {
                    let again = match now {
                        Fault::Repeat => TcpStream::connect(target).await.ok(),
                        _ => None,
                    };
                    pass(client, server, again, fault).await;
                    return;
                }
            }
        });
    }
}

async fn pass(
    client: TcpStream,
    server: TcpStream,
    again: Option<TcpStream>,
    fault: watch::Receiver<Fault>,
) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (again_in, again_out) = match again.map(TcpStream::into_split) {
        Some((read, write)) => (Some(read), Some(write)),
        None => (None, None),
    };
    let mut cut = fault.clone();
    tokio::select! {
        () = pump(from_client, to_server, again_out, fault.clone()) => {}
        () = pump(from_server, to_client, None::<OwnedWriteHalf>, fault) => {}
        () = async {
            if let Some(mut heard) = again_in {
                let _ = tokio::io::copy(&mut heard, &mut tokio::io::sink()).await;
            }
            std::future::pending::<()>().await;
        } => {}
        () = async { while *cut.borrow() != Fault::Cut && cut.changed().await.is_ok() {} } => {}
    }
}

async fn pump(
    mut from: impl tokio::io::AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
    mut again: Option<impl tokio::io::AsyncWrite + Unpin>,
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
        if let Some(again) = &mut again {
            let _ = again.write_all(&buffer[..read]).await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
