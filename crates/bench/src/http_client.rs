//! A client of the arms: the same request to each, in the form that each takes.

use reqwest::{Client, RequestBuilder};
use serde_json::json;

use crate::{
    arm::{Arm, TOKEN},
    payload::{COMMANDS, nth},
};

/// How many messages go to one session.
const PER_SESSION: u64 = 20;

/// A client of one arm.
#[derive(Clone)]
pub(crate) struct ArmClient {
    client: Client,
    base: String,
    is_ours: bool,
    bodies: Vec<String>,
    worker: usize,
    sent: u64,
}

impl ArmClient {
    /// A client of an arm, by its number.
    pub(crate) fn new(arm: &Arm, is_ours: bool, worker: usize) -> anyhow::Result<Self> {
        let client = Client::builder().pool_max_idle_per_host(1).tcp_nodelay(true).build()?;
        let bodies = COMMANDS.iter().map(|text| json!({"text": text}).to_string()).collect();
        Ok(Self {
            client,
            base: format!("http://127.0.0.1:{}", arm.port),
            is_ours,
            bodies,
            worker,
            sent: 0,
        })
    }

    /// One durable command.
    pub(crate) async fn command(&mut self) -> anyhow::Result<()> {
        let request = self.request();
        // Each client begins elsewhere, so that many at once do not say the same.
        let body = nth(&self.bodies, self.sent + self.worker as u64).to_owned();
        self.sent += 1;
        let response = request.header("content-type", "application/json").body(body).send().await?;
        anyhow::ensure!(response.status() == 202, "{}", response.status());
        response.bytes().await?;
        Ok(())
    }

    fn request(&self) -> RequestBuilder {
        if self.is_ours {
            let session = format!("api:bench-{:04}-{:04}", self.worker, self.sent / PER_SESSION);
            self.client
                .post(format!("{}/api/sessions/{session}/messages", self.base))
                .bearer_auth(TOKEN)
        } else {
            self.client.post(format!("{}/messages", self.base))
        }
    }
}
