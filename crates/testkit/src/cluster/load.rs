//! People at work on a cluster, whatever happens to it: each keeps at one session, asks again with the
//! same key until someone answers, and remembers what was acknowledged.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use fastrand::Rng;
use planwright_surfaces::http::auth::command_id;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Cluster;
use crate::kill::{
    Acknowledged,
    person::{self, Whim},
};

/// Who works, and where.
#[derive(Clone)]
pub struct Load {
    client: Client,
    apis: Vec<u16>,
    login: Arc<Mutex<Login>>,
    /// Set when nobody begins anything new.
    ending: Arc<AtomicBool>,
}

/// What people ask with: a token that may decide, and its grant. A command that is asked again is the same one only under
/// the same grant, so what is under way stays with its own.
#[derive(Clone)]
struct Login {
    token: String,
    grant: Uuid,
}

impl Login {
    fn of(cluster: &Cluster) -> Self {
        Self { token: cluster.decider.clone(), grant: cluster.grant }
    }
}

/// What one person saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// What was acknowledged.
    pub acknowledged: Vec<Acknowledged>,
    /// What must not be seen.
    pub complaints: Vec<String>,
    /// The longest time without an answer of any node.
    pub longest_silence: Duration,
}

impl Load {
    /// People who work on this cluster.
    #[must_use]
    pub fn on(cluster: &Cluster) -> Self {
        let client = Client::builder().timeout(Duration::from_secs(7)).build();
        Self {
            client: client.expect("a client"),
            apis: cluster.nodes.iter().map(|node| node.api).collect(),
            login: Arc::new(Mutex::new(Login::of(cluster))),
            ending: Arc::default(),
        }
    }

    /// What begins from now on is asked with the login that the cluster has now.
    pub fn renew(&self, cluster: &Cluster) {
        *self.login.lock().unwrap_or_else(PoisonError::into_inner) = Login::of(cluster);
    }

    fn login(&self) -> Login {
        self.login.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The session of the person with this number.
    #[must_use]
    pub fn session(at: usize) -> String {
        format!("session-{at}")
    }

    /// Sets so many people to work.
    #[must_use]
    pub fn begin(&self, people: usize, seed: u64) -> JoinSet<Seen> {
        let mut working = JoinSet::new();
        for at in 0..people {
            let rng = Rng::with_seed(seed.wrapping_add(at as u64));
            working.spawn(self.clone().work(Self::session(at), rng));
        }
        working
    }

    /// Nobody begins anything new from now on; what is open comes to rest.
    pub fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    async fn work(self, session: String, mut rng: Rng) -> Seen {
        let mut seen = Seen::default();
        let mut heard = Instant::now();
        loop {
            let wants_peace = self.ending.load(Ordering::SeqCst);
            let answer = self.ask(&session, "/plan status", &mut rng).await;
            let Some((.., status)) = answer else {
                seen.longest_silence = seen.longest_silence.max(heard.elapsed());
                if heard.elapsed() > Duration::from_secs(60) {
                    seen.complaints.push(format!("{session}: nobody answers"));
                    return seen;
                }
                continue;
            };
            seen.longest_silence = seen.longest_silence.max(heard.elapsed());
            heard = Instant::now();
            let line = match person::next(&status["status"], &mut rng, wants_peace) {
                Whim::Rest => return seen,
                Whim::Wait => {
                    tokio::time::sleep(Duration::from_millis(60)).await;
                    continue;
                }
                Whim::Say(line) => line,
                Whim::ReadThen(line) => {
                    if let Some((.., shown)) = self.ask(&session, "/plan show", &mut rng).await
                        && let Some(digest) = shown["revision"]["digest"].as_str()
                        && self.shown(&session, digest, &mut rng).await
                    {
                        line
                    } else {
                        continue;
                    }
                }
            };
            if let Some((grant, key, reply)) = self.ask(&session, &line, &mut rng).await
                && let Some(version) = reply["accepted"]["version"].as_u64()
            {
                let asks = format!("POST /api/sessions/cli:{session}/lines");
                let id = command_id(grant.into(), &asks, &key);
                let session = session.clone();
                seen.acknowledged.push(Acknowledged { session, id, line, version });
            }
        }
    }

    /// Asks one node after another until one answers; the answer, and the grant and the key it was asked under.
    async fn ask(&self, session: &str, line: &str, rng: &mut Rng) -> Option<(Uuid, String, Value)> {
        let (key, login) = (Uuid::now_v7().to_string(), self.login());
        for _ in 0..12 {
            let request = self
                .post(session, "/lines", &login, rng)
                .header("idempotency-key", &key)
                .json(&json!({"line": line}));
            if let Ok(answer) = request.send().await
                && answer.status().is_success()
                && let Ok(reply) = answer.json().await
            {
                return Some((login.grant, key, reply));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        None
    }

    async fn shown(&self, session: &str, digest: &str, rng: &mut Rng) -> bool {
        let request = self
            .post(session, "/plan/shown", &self.login(), rng)
            .header("if-match", format!("\"{digest}\""));
        request.send().await.is_ok_and(|answer| answer.status().is_success())
    }

    fn post(
        &self,
        session: &str,
        path: &str,
        login: &Login,
        rng: &mut Rng,
    ) -> reqwest::RequestBuilder {
        let api = self.apis[rng.usize(0..self.apis.len())];
        let url = format!("http://127.0.0.1:{api}/api/sessions/cli:{session}{path}");
        self.client.post(url).bearer_auth(&login.token)
    }
}
