//! Serving the engine's calls: an accept loop of our own, because the SDK's does not set
//! `TCP_NODELAY` and ends on the wrong signal.

use std::time::Duration;

use crate::stopping::told;
use hyper::server::conn::http2;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use restate_sdk::{hyper::HyperEndpoint, prelude::Endpoint};
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

/// How often a quiet connection is asked whether it still stands.
const ALIVE: Duration = Duration::from_secs(3);

pub(super) async fn serve(
    endpoint: Endpoint,
    listener: TcpListener,
    drain: Duration,
    mut stopping: watch::Receiver<bool>,
) {
    let endpoint = HyperEndpoint::new(endpoint);
    let connections = GracefulShutdown::new();
    let mut serving = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let stream = match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!(%error, event = "engine_not_accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                let _ = stream.set_nodelay(true);
                let connection = http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .keep_alive_interval(ALIVE)
                    .keep_alive_timeout(ALIVE)
                    .serve_connection(TokioIo::new(stream), endpoint.clone());
                let connection = connections.watch(connection);
                serving.spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, event = "engine_connection_ended");
                    }
                });
            }
            Some(_) = serving.join_next(), if !serving.is_empty() => {}
            () = told(&mut stopping) => break,
        }
    }
    // Nothing new comes in; the engine goes to another node.
    drop(listener);
    let _ = tokio::time::timeout(drain, connections.shutdown()).await;
}
