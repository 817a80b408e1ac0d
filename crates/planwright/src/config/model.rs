//! The settings of models: where each is, how it is spoken to, what it costs, and which of them does what.

use anyhow::bail;
use planwright_outbound::model_http::{Effort, HttpSettings, Wire};
use planwright_runtime::ports::model::Price;
use schemars::JsonSchema;
use serde::Deserialize;

/// A model.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// The format that its server speaks: `openai` (Chat Completions, as most do), `responses`, `anthropic`, `gemini` or
    /// `ollama`. Told by the address, if not set.
    pub wire: Option<WireConfig>,
    /// The address of its server, up to and without the path of the call; its maker's, if only `wire` is set.
    pub url: Option<String>,
    /// The name of the model there.
    pub name: Option<String>,
    /// The key, if the server wants one. For the model of the conversation, the environment variable
    /// `PLANWRIGHT_API_KEY` wins.
    pub api_key: Option<String>,
    /// How many tokens one request may hold.
    pub window_tokens: Option<usize>,
    /// From how many tokens on what was said is summed up, though the window could hold more (default: 160000, at
    /// least 4000).
    pub soft_tokens: Option<usize>,
    /// How many tokens an answer may have.
    pub answer_tokens: Option<u32>,
    /// How much it thinks before it answers: `low`, `medium` or `high`; as its maker set it, if not set.
    pub reasoning: Option<EffortConfig>,
    /// What a million tokens cost that the model reads, in dollars.
    pub price_in: Option<f64>,
    /// What a million tokens cost that the model writes, in dollars.
    pub price_out: Option<f64>,
    /// What a million tokens cost that the model reads and its maker had kept; as any other, if not set.
    pub price_cached: Option<f64>,
    /// What a million tokens cost that the model reads and its maker keeps from then on; if not set, a quarter more than any
    /// other with `anthropic`, and as any other elsewhere.
    pub price_cache_write: Option<f64>,
}

/// The format that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireConfig {
    /// Chat Completions.
    Openai,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl From<WireConfig> for Wire {
    fn from(wire: WireConfig) -> Self {
        match wire {
            WireConfig::Openai => Self::Chat,
            WireConfig::Responses => Self::Responses,
            WireConfig::Anthropic => Self::Anthropic,
            WireConfig::Gemini => Self::Gemini,
            WireConfig::Ollama => Self::Ollama,
        }
    }
}

/// How much a model thinks.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffortConfig {
    /// A little.
    Low,
    /// Some.
    Medium,
    /// A lot.
    High,
}

impl From<EffortConfig> for Effort {
    fn from(effort: EffortConfig) -> Self {
        match effort {
            EffortConfig::Low => Self::Low,
            EffortConfig::Medium => Self::Medium,
            EffortConfig::High => Self::High,
        }
    }
}

/// Which of the named models does what; the model of the conversation does what is not said.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RolesConfig {
    /// Who writes plans.
    pub plan: Option<String>,
    /// Who executes them, and does the work of runs.
    pub execute: Option<String>,
    /// Who sums up what no longer fits.
    pub summary: Option<String>,
    /// Who is asked when the one that should answer cannot, in this order.
    pub fallback: Vec<String>,
}

impl RolesConfig {
    /// All names that it holds.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        [&self.plan, &self.execute, &self.summary].into_iter().flatten().chain(&self.fallback)
    }
}

impl ModelConfig {
    /// How this model is asked.
    pub fn http(&self, called: &str) -> anyhow::Result<HttpSettings> {
        let Some(name) = &self.name else { bail!("models.{called}.name: name the model there") };
        let wire = self.wire.map(Wire::from);
        let url = match (&self.url, wire) {
            (Some(url), _) => url.clone(),
            (None, Some(wire)) => wire.home().to_owned(),
            (None, None) => bail!("models.{called}.url: say where it is, or set its wire"),
        };
        let wire = wire.unwrap_or_else(|| Wire::of(&url));
        Ok(self.with(HttpSettings::new(wire, &url, name)))
    }

    /// The same, with what is set here.
    #[must_use]
    pub fn with(&self, settings: HttpSettings) -> HttpSettings {
        let price = self.price_in.zip(self.price_out);
        HttpSettings {
            api_key: self.api_key.clone().filter(|key| !key.is_empty()).or(settings.api_key),
            window_tokens: self.window_tokens.unwrap_or(settings.window_tokens),
            // Less than this would have every request summed up before it is sent.
            soft_tokens: self.soft_tokens.map_or(settings.soft_tokens, |soft| soft.max(4_000)),
            answer_tokens: self.answer_tokens.unwrap_or(settings.answer_tokens),
            effort: self.reasoning.map(Effort::from).or(settings.effort),
            price: price
                .map(|(input, output)| Price {
                    cached_micros: micros(self.price_cached.unwrap_or(input)),
                    ..dollars(settings.wire, input, output)
                })
                .map(|price| Price {
                    cache_write_micros: self
                        .price_cache_write
                        .map_or(price.cache_write_micros, micros),
                    ..price
                })
                .or(settings.price),
            ..settings
        }
    }
}

/// A price of so many dollars for a million tokens that are read and written. What is read again costs as much; what is read
/// and kept costs a quarter more where the format's maker takes that.
#[must_use]
pub fn dollars(wire: Wire, input: f64, output: f64) -> Price {
    let kept = if wire == Wire::Anthropic { 1.25 } else { 1.0 };
    Price {
        input_micros: micros(input),
        output_micros: micros(output),
        cached_micros: micros(input),
        cache_write_micros: micros(input * kept),
    }
}

fn micros(dollars: f64) -> u64 {
    (dollars.max(0.0) * 1e6) as u64
}
