//! Serving the engine's calls: an accept loop of our own, because the SDK's does not set
//! `TCP_NODELAY` and ends on the wrong signal.
//!
//! A connection on which calls are under way is never told to go away: Restate 1.7 then drops it as soon
//! as it wants to begin another call there, and every call on it is delivered again. So a node that
//! ends closes each connection at the first moment at which nothing is under way on it.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http_body_util::BodyExt as _;
use hyper::{
    Request,
    body::Incoming,
    server::conn::http2,
    service::{Service as _, service_fn},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use restate_sdk::{hyper::HyperEndpoint, prelude::Endpoint};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::shutdown::requested;

/// How often a quiet connection is asked whether it still stands.
const ALIVE: Duration = Duration::from_secs(3);
/// How often a connection that should end is looked at.
const LOOK: Duration = Duration::from_millis(10);

pub(super) async fn serve(
    endpoint: Endpoint,
    listener: TcpListener,
    drain: Duration,
    mut stopping: watch::Receiver<bool>,
) {
    let endpoint = HyperEndpoint::new(endpoint);
    let mut connections = JoinSet::new();
    let ends_with_us = stopping.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve_one(endpoint.clone(), stream, ends_with_us.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, event = "engine_not_accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            () = requested(&mut stopping) => break,
        }
    }
    // Nothing new comes in; the engine goes to another node.
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(drain, ended).await;
}

async fn serve_one(
    endpoint: HyperEndpoint,
    stream: TcpStream,
    mut stopping: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let calls = Arc::<AtomicUsize>::default();
    let counted = calls.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let call = Call::begin(&counted);
        let answer = endpoint.call(request);
        async move {
            // The call lasts as long as its answer is written.
            let answer = answer.await?.map(|body| {
                body.map_frame(move |frame| {
                    let _ = &call;
                    frame
                })
            });
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let quiet = async {
        requested(&mut stopping).await;
        while calls.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(LOOK).await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = quiet => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, event = "engine_connection_ended");
    }
}

/// A call that is under way on a connection.
struct Call(Arc<AtomicUsize>);

impl Call {
    fn begin(calls: &Arc<AtomicUsize>) -> Self {
        calls.fetch_add(1, Ordering::SeqCst);
        Self(calls.clone())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
