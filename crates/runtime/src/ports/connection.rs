//! Which model is asked: looked at, tried out and changed while the program runs.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Where a model is, and how it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelWish {
    /// The format that its server speaks; told by the address, if none is named.
    #[serde(default)]
    pub wire: Option<String>,
    /// The address of its server, up to and without the path of the call.
    pub url: String,
    /// The name of the model there.
    pub name: String,
    /// The key; none for servers that want none.
    pub api_key: Option<String>,
    /// The environment variable that holds the key, where it was found there: it is never copied.
    #[serde(default)]
    pub key_from: Option<String>,
    /// What a million tokens cost that the model reads, in dollars.
    pub price_in: Option<f64>,
    /// What a million tokens cost that the model writes, in dollars.
    pub price_out: Option<f64>,
}

/// The model that is asked now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connected {
    /// Its name, for people.
    pub name: String,
    /// Where it is; none for the demo.
    pub url: Option<String>,
    /// Whether somebody chose it: in the configuration, at the command line, or here.
    pub is_chosen: bool,
    /// Whether it is the demo.
    pub is_demo: bool,
}

/// A model that is likely to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What people call where it is.
    pub place: String,
    /// Its address.
    pub url: String,
    /// Its name there.
    pub name: String,
    /// The environment variable that holds its key.
    pub key_from: Option<String>,
}

/// How a model answered when it was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Its words.
    pub words: String,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// What that cost, in millionths of a dollar, if the price is known.
    pub cost_micros: Option<u64>,
}

/// Which model is asked.
#[async_trait]
pub trait Connection: Send + Sync {
    /// The model that is asked now.
    fn connected(&self) -> Connected;

    /// The models that are likely to be there: whose keys the environment holds, or that run on this machine.
    async fn found(&self) -> Vec<Found>;

    /// One real call to this model; why not, in words.
    async fn try_out(&self, wish: &ModelWish) -> Result<Tried, String>;

    /// One real call, and from then on this model is asked; why not, in words.
    async fn choose(&self, wish: ModelWish) -> Result<Tried, String>;

    /// The demo is asked from now on: a script, without a network.
    async fn choose_demo(&self) -> Result<(), String>;
}
