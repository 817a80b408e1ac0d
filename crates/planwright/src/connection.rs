//! Which model this installation asks: chosen at the command line, in the configuration, or in the dashboard.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use async_trait::async_trait;
use planwright_outbound::{
    model_demo::{DemoModel, FILES},
    model_http::{HttpModel, HttpSettings, Wire, check_public},
    model_switch::SwitchModel,
};
use planwright_runtime::ports::{
    connection::{Connected, Connection, Found, ModelWish, Tried},
    model::{Message, Model, ModelRequest},
};
use planwright_runtime::secrets::Secrets;
use serde::{Deserialize, Serialize};

use crate::{config::model::dollars, durable_file::write_private};

/// Where models are whose keys the environment may hold: the place, its address, a model there, the variable.
const KEYED: [(&str, &str, &str, &str); 4] = [
    ("Anthropic", "https://api.anthropic.com", "claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
    (
        "Google",
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-2.5-flash",
        "GEMINI_API_KEY",
    ),
    ("OpenAI", "https://api.openai.com/v1", "gpt-5-mini", "OPENAI_API_KEY"),
    (
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        "anthropic/claude-sonnet-4.5",
        "OPENROUTER_API_KEY",
    ),
];
/// Servers of models beside Ollama, and where they usually listen.
const LOCAL: [(&str, &str); 3] =
    [("LM Studio", "127.0.0.1:1234"), ("llama.cpp", "127.0.0.1:8080"), ("vLLM", "127.0.0.1:8000")];
/// What somebody does whose model is at an address that is not tried for them.
const ELSEWHERE: &str = "only the operator names a model there: set url under [model] in config.toml, or start with --model-url";
/// How long a model on this machine may take to say that it is there.
const LOCAL_WAIT: Duration = Duration::from_millis(400);

/// How fast the demo speaks.
const PACE: Duration = Duration::from_millis(25);

/// The model that is asked, and where a choice is kept.
pub struct LiveConnection {
    switch: Arc<SwitchModel>,
    data: PathBuf,
    workspace: PathBuf,
    window_tokens: usize,
    connected: RwLock<Connected>,
    /// The address that the operator named, if they did.
    configured: Option<String>,
    secrets: Arc<Secrets>,
    choosing: tokio::sync::Mutex<()>,
}

impl LiveConnection {
    /// The connection to this model.
    #[must_use]
    pub fn new(
        switch: Arc<SwitchModel>,
        data: &Path,
        workspace: &Path,
        window_tokens: usize,
        connected: Connected,
    ) -> Self {
        let (data, workspace) = (data.to_owned(), workspace.to_owned());
        let (connected, configured, secrets) = (RwLock::new(connected), None, Arc::default());
        let choosing = tokio::sync::Mutex::default();
        Self { switch, data, workspace, window_tokens, connected, configured, secrets, choosing }
    }

    /// The same, whose operator named this address.
    #[must_use]
    pub fn configured(self, url: Option<String>) -> Self {
        Self { configured: url, ..self }
    }

    /// The same, which adds the keys that are chosen to these.
    #[must_use]
    pub fn hiding(self, secrets: Arc<Secrets>) -> Self {
        Self { secrets, ..self }
    }

    /// The model that somebody wishes for. The server asks nothing of its own machine and network for them, but what the
    /// operator configured and what answers as a model at a usual port.
    async fn model(&self, wish: &ModelWish) -> Result<(HttpModel, ModelChoice), String> {
        let is_known = self.is_known(&wish.url).await;
        if !is_known {
            check_public(&wish.url).await.map_err(|words| format!("{words}; {ELSEWHERE}"))?;
        }
        let choice = ModelChoice { wish: wish.clone(), is_public: !is_known };
        // What the operator set for the model of the conversation holds for the one that takes its place.
        let (window_tokens, soft_tokens) = (self.window_tokens, self.switch.soft_tokens());
        let settings = HttpSettings { window_tokens, soft_tokens, ..choice.settings()? };
        let model = HttpModel::new(settings).map_err(|failure| failure.message)?;
        Ok((model, choice))
    }

    async fn is_known(&self, url: &str) -> bool {
        let is_same = |known: &String| origin(known).is_some() && origin(known) == origin(url);
        // The name of one that was chosen may lead elsewhere by now; an address does not.
        let connected = self.connected().url.filter(|url| is_address(url));
        self.configured.iter().chain(&connected).any(is_same)
            || local().await.iter().any(|found| is_same(&found.url))
    }

    fn set(&self, model: Arc<dyn Model>, connected: Connected) {
        self.switch.switch(model);
        *self.connected.write().unwrap_or_else(PoisonError::into_inner) = connected;
    }
}

#[async_trait]
impl Connection for LiveConnection {
    fn connected(&self) -> Connected {
        self.connected.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn found(&self) -> Vec<Found> {
        let keyed = KEYED.iter().filter(|(.., variable)| is_set(variable));
        let keyed = keyed.map(|(place, url, name, variable)| Found {
            place: (*place).into(),
            url: (*url).into(),
            name: (*name).into(),
            key_from: Some((*variable).into()),
        });
        keyed.chain(local().await).collect()
    }

    async fn try_out(&self, wish: &ModelWish) -> Result<Tried, String> {
        ask(&self.model(wish).await?.0).await
    }

    async fn choose(&self, wish: ModelWish) -> Result<Tried, String> {
        let (model, choice) = self.model(&wish).await?;
        let tried = ask(&model).await?;
        if let Some(key) = &wish.api_key {
            self.secrets.add("the model's key", key);
        }
        // One after the other: what is kept is what is asked.
        let _choosing = self.choosing.lock().await;
        choice.keep(&self.data).map_err(|error| format!("{error:#}"))?;
        let connected =
            Connected { name: model.name(), url: Some(wish.url), is_chosen: true, is_demo: false };
        self.set(Arc::new(model), connected);
        Ok(tried)
    }

    async fn choose_demo(&self) -> Result<(), String> {
        stage(&self.workspace).map_err(|error| format!("{error:#}"))?;
        let model: Arc<dyn Model> = Arc::new(DemoModel::new(PACE));
        let connected = demo(&*model);
        self.set(model, connected);
        Ok(())
    }
}

/// A model that was chosen, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModelChoice {
    /// Which.
    #[serde(flatten)]
    pub wish: ModelWish,
    /// Whether its address must not lead to this machine or its network, now or later: the operator did not name it.
    pub is_public: bool,
}

impl ModelChoice {
    /// How it is asked; why it cannot be, in words.
    pub fn settings(&self) -> Result<HttpSettings, String> {
        Ok(HttpSettings { is_public: self.is_public, ..wished(&self.wish)? })
    }

    /// Keeps it in this data directory.
    pub fn keep(&self, data: &Path) -> anyhow::Result<()> {
        write_private(&path(data), &serde_json::to_string(self)?)
    }
}

fn wished(wish: &ModelWish) -> Result<HttpSettings, String> {
    let wire = match wish.wire.as_deref() {
        None | Some("") => Wire::of(&wish.url),
        Some(named) => Wire::named(named).ok_or_else(|| {
            format!("there is no wire {named}; there are {}", Wire::ALL.map(Wire::name).join(", "))
        })?,
    };
    let price = wish.price_in.zip(wish.price_out);
    Ok(HttpSettings {
        api_key: key_of(wish)?,
        price: price.map(|(input, output)| dollars(wire, input, output)),
        ..HttpSettings::new(wire, &wish.url, &wish.name)
    })
}

/// The key of a model that was chosen: as it was given, or as the environment holds it. No other variable than those that
/// hold keys is ever read for somebody, and each key goes to its maker's address alone.
pub fn key_of(wish: &ModelWish) -> Result<Option<String>, String> {
    if wish.api_key.is_some() {
        return Ok(wish.api_key.clone());
    }
    let known = KEYED.iter().find(|(.., variable)| Some(*variable) == wish.key_from.as_deref());
    let Some((_, maker, _, variable)) = known else { return Ok(None) };
    if origin(maker) != origin(&wish.url) {
        return Err(format!(
            "the key in {variable} is sent to {maker} and nowhere else; give the key that belongs to {}, or none",
            wish.url
        ));
    }
    Ok(std::env::var(variable).ok())
}

/// Whether a host is written as an address and not as a name.
fn is_address(url: &str) -> bool {
    let url = reqwest::Url::parse(url);
    url.is_ok_and(|url| url.domain().is_none_or(|name| name == "localhost"))
}

fn origin(url: &str) -> Option<reqwest::Url> {
    let url = reqwest::Url::parse(url).ok()?;
    reqwest::Url::parse(&url.origin().ascii_serialization()).ok()
}

fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|key| !key.trim().is_empty())
}

/// The first model of each server of models that runs at its usual port of this machine.
async fn local() -> Vec<Found> {
    let ollama = std::env::var("OLLAMA_HOST").unwrap_or_else(|_| "127.0.0.1:11434".into());
    let ollama = ollama.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let others = LOCAL.map(|(place, host)| (place, host.to_owned()));
    let all = [("Ollama", ollama)].into_iter().chain(others);
    let found = futures_util::future::join_all(all.map(|(place, host)| local_at(place, host)));
    found.await.into_iter().flatten().collect()
}

async fn local_at(place: &str, host: String) -> Option<Found> {
    let url = format!("http://{host}/v1");
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let client = client.timeout(LOCAL_WAIT).build().ok()?;
    let listed = client.get(format!("{url}/models")).send().await.ok()?;
    let listed: serde_json::Value = listed.json().await.ok()?;
    let name = listed["data"][0]["id"].as_str()?.to_owned();
    Some(Found { place: format!("{place}, on this machine"), url, name, key_from: None })
}

/// The demo, as it is told of.
#[must_use]
pub fn demo(model: &dyn Model) -> Connected {
    Connected { name: model.name(), url: None, is_chosen: true, is_demo: true }
}

/// Puts the files there that the demo's story is about, where there are none yet.
pub fn stage(workspace: &Path) -> anyhow::Result<()> {
    for (path, content) in FILES {
        let path = workspace.join(path);
        fs::create_dir_all(path.parent().unwrap_or(workspace))?;
        if !path.exists() {
            fs::write(&path, content).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// The model that was chosen in the dashboard or with `planwright models set`, if one was.
pub fn chosen(data: &Path) -> anyhow::Result<Option<ModelChoice>> {
    let path = path(data);
    let usable = "choose a model again, or remove the file";
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => anyhow::bail!("{} cannot be read: {error}; {usable}", path.display()),
    };
    let choice = serde_json::from_str(&text);
    choice.map(Some).with_context(|| format!("{} is damaged; {usable}", path.display()))
}

/// One real call.
pub async fn ask(model: &dyn Model) -> Result<Tried, String> {
    let request = ModelRequest {
        system: "Answer with one word.".into(),
        messages: Arc::new(vec![Message::User("Say: ready".into())]),
        tools: Vec::new(),
        cache_key: None,
    };
    let begun = Instant::now();
    let answer = model.answer(&request, &|_| {}).await.map_err(|failure| failure.message)?;
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let cost_micros = model.price().zip(answer.usage).map(|(price, usage)| price.of(usage));
    Ok(Tried { words: answer.text, took_ms, cost_micros })
}

/// Where the choice of a model is kept.
#[must_use]
pub fn path(data: &Path) -> PathBuf {
    data.join("model.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(url: &str, key_from: &str) -> ModelWish {
        ModelWish {
            wire: None,
            url: url.into(),
            name: "any".into(),
            api_key: None,
            key_from: Some(key_from.into()),
            price_in: None,
            price_out: None,
        }
    }

    #[test]
    fn a_key_of_the_environment_goes_to_its_maker_alone() {
        for url in [
            "http://127.0.0.1:17590/steal",
            "http://api.anthropic.com",
            "https://api.anthropic.com.evil.example",
            "https://api.anthropic.com:8443",
            "https://api.openai.com/v1",
            "not an address",
        ] {
            let refused = key_of(&wish(url, "ANTHROPIC_API_KEY"));
            assert!(refused.is_err_and(|words| words.contains("nowhere else")), "{url}");
        }
        assert!(key_of(&wish("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")).is_ok());
        assert_eq!(key_of(&wish("http://127.0.0.1:1", "PATH")), Ok(None), "no other variable");
    }
}
