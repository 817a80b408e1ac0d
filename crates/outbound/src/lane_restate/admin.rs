//! What an operator tells the engine: where the nodes are, and which of the old ones may go.

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::{
    OBJECT,
    peer::{Peer, RestateError},
};

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

    /// Tells the engine where the nodes are. New calls go there from now on. What it knows of this address already it keeps,
    /// unless forced: then it asks again what is there, though calls may be under way.
    pub async fn register(&self, uri: &str, force: bool) -> Result<Deployment, RestateError> {
        let request = self.peer.post("/deployments").json(&json!({"uri": uri, "force": force}));
        let answer = self.peer.read::<Deployment>(request).await?;
        Ok(Deployment { uri: uri.to_owned(), ..answer })
    }

    /// Every place it knows.
    pub async fn deployments(&self) -> Result<Vec<Deployment>, RestateError> {
        #[derive(Deserialize)]
        struct All {
            deployments: Vec<Deployment>,
        }
        Ok(self.peer.read::<All>(self.peer.get("/deployments")).await?.deployments)
    }

    /// Where new calls for sessions go; nothing, if it was never told.
    pub async fn current(&self) -> Result<Option<Deployment>, RestateError> {
        #[derive(Deserialize)]
        struct Service {
            deployment_id: String,
        }
        let path = format!("/services/{OBJECT}");
        let service: Service = match self.peer.read(self.peer.get(&path)).await {
            Ok(service) => service,
            Err(RestateError { status: Some(StatusCode::NOT_FOUND), .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut all = self.deployments().await?.into_iter();
        Ok(all.find(|deployment| deployment.id == service.deployment_id))
    }

    /// How many servers the engine has.
    pub async fn servers(&self) -> Result<usize, RestateError> {
        #[derive(Deserialize)]
        struct Health {
            metadata_cluster_health: Option<Members>,
        }
        #[derive(Deserialize)]
        struct Members {
            members: Vec<serde_json::Value>,
        }
        let health: Health = self.peer.read(self.peer.get("/cluster-health")).await?;
        Ok(health.metadata_cluster_health.map_or(1, |health| health.members.len()))
    }

    /// Takes a place away at once, also where calls run: whoever asks has looked.
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
        let counted = self.peer.read::<Counted>(request).await?;
        Ok(counted.rows.first().map_or(0, |row| row.unfinished))
    }
}
