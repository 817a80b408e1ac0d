//! What an operator tells the engine: where the nodes are, and which of the old ones may go.

use serde::Deserialize;
use serde_json::json;

use super::peer::{Peer, RestateError};

/// The engine's administration.
#[derive(Debug, Clone)]
pub struct RestateAdmin {
    peer: Peer,
}

/// A place where the engine calls the nodes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Deployment {
    /// Its name there.
    pub id: String,
    /// Where it is.
    #[serde(default)]
    pub uri: String,
    /// When it was registered.
    #[serde(default)]
    pub created_at: String,
}

impl RestateAdmin {
    /// The administration at this address.
    pub fn new(address: &str) -> Result<Self, RestateError> {
        Ok(Self { peer: Peer::new(address)? })
    }

    /// Tells the engine where the nodes are. New calls go there from now on.
    pub async fn register(&self, uri: &str) -> Result<Deployment, RestateError> {
        let request = self.peer.post("/deployments").json(&json!({"uri": uri, "force": true}));
        let answer = self.read::<Deployment>(request).await?;
        Ok(Deployment { uri: uri.to_owned(), ..answer })
    }

    /// Every place it knows.
    pub async fn deployments(&self) -> Result<Vec<Deployment>, RestateError> {
        #[derive(Deserialize)]
        struct All {
            deployments: Vec<Deployment>,
        }
        Ok(self.read::<All>(self.peer.get("/deployments")).await?.deployments)
    }

    /// Takes a place away. Refused while calls still run there, unless forced.
    pub async fn remove(&self, id: &str) -> Result<(), RestateError> {
        let path = format!("/deployments/{id}?force=true");
        self.peer.ask(self.peer.delete(&path)).await.map(drop)
    }

    /// How many calls are not done yet, by deployment.
    pub async fn unfinished(&self, id: &str) -> Result<u64, RestateError> {
        #[derive(Deserialize)]
        struct Counted {
            rows: Vec<Row>,
        }
        #[derive(Deserialize)]
        struct Row {
            unfinished: u64,
        }
        let query = format!(
            "SELECT COUNT(*) AS unfinished FROM sys_invocation WHERE status <> 'completed' AND pinned_deployment_id = '{id}'"
        );
        let request = self
            .peer
            .post("/query")
            .header("accept", "application/json")
            .json(&json!({"query": query}));
        let counted = self.read::<Counted>(request).await?;
        Ok(counted.rows.first().map_or(0, |row| row.unfinished))
    }

    async fn read<T: serde::de::DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<T, RestateError> {
        let answer = self.peer.ask(request).await?;
        answer.json().await.map_err(|error| RestateError {
            address: self.peer.address.clone(),
            what: format!("said what cannot be read: {error}"),
        })
    }
}
