//! The model, and the agents that it plays.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use planwright_domain::{
    tools::ToolSpec,
    turn::{Kept, ModelFailure, Usage, profile::Profile},
};
use serde::{Deserialize, Serialize};

/// What the model is given.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// What it is, and what plan work is active.
    pub system: String,
    /// What was said.
    pub messages: Arc<Vec<Message>>,
    /// What it may call.
    pub tools: Vec<Arc<ToolSpec>>,
    /// What requests share that begin alike, for providers that find what they have read by it.
    pub cache_key: Option<String>,
}

/// One message of the conversation, as the model is given it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// From outside.
    User(String),
    /// From the model.
    Assistant {
        /// Its words.
        text: String,
        /// The calls it asked for.
        calls: Vec<WireCall>,
        /// What the provider that answered wants back with it.
        kept: Option<Arc<KeptBy>>,
    },
    /// A call's result.
    Tool {
        /// The call, as the provider named it.
        wire_id: String,
        /// The tool.
        tool: String,
        /// What came of it.
        text: String,
    },
}

/// What a provider wants back with an answer of its own. It goes to the model that gave it, and to no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptBy {
    /// The model that gave it.
    pub by: String,
    /// The items.
    pub items: Vec<Kept>,
}

/// A call as the provider writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireCall {
    /// The provider's id.
    pub wire_id: String,
    /// The tool.
    pub tool: String,
    /// The arguments, byte for byte.
    pub arguments: String,
}

/// What the model said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelAnswer {
    /// Its words.
    pub text: String,
    /// The calls it asks for.
    pub calls: Vec<WireCall>,
    /// What it cost, if the provider says.
    pub usage: Option<Usage>,
    /// What the provider wants back with it.
    pub kept: Vec<Kept>,
}

/// What a model costs, in millionths of a dollar for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// For what it reads.
    pub input_micros: u64,
    /// For what it writes.
    pub output_micros: u64,
    /// For what it reads and the provider had kept.
    pub cached_micros: u64,
    /// For what it reads and the provider keeps from now on.
    pub cache_write_micros: u64,
}

impl Price {
    /// What so many tokens cost, in millionths of a dollar.
    #[must_use]
    pub fn of(self, usage: Usage) -> u64 {
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        let cost = u128::from(self.input_micros) * u128::from(usage.input - cached - written)
            + u128::from(self.cached_micros) * u128::from(cached)
            + u128::from(self.cache_write_micros) * u128::from(written)
            + u128::from(self.output_micros) * u128::from(usage.output);
        u64::try_from(cost.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// From how many tokens on what was said is summed up, unless something else is set: four fifths of a usual window. A window
/// of a million is not filled only because it is there.
pub const SOFT_TOKENS: usize = 160_000;

/// Hears pieces of text as they arrive.
pub type OnPreview<'a> = &'a (dyn for<'piece> Fn(&'piece str) + Send + Sync);

/// A model.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks it. Pieces of text go to `preview` as they arrive.
    async fn answer(
        &self,
        request: &ModelRequest,
        preview: OnPreview<'_>,
    ) -> Result<ModelAnswer, ModelFailure>;

    /// How many tokens one request may hold.
    fn window_tokens(&self) -> usize;

    /// From how many tokens on what was said is summed up, though more would fit.
    fn soft_tokens(&self) -> usize {
        SOFT_TOKENS
    }

    /// What it costs, if that is known.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Its name, for people.
    fn name(&self) -> String;

    /// How it is spoken to, and its name: what it wants back goes to nobody else.
    fn id(&self) -> String {
        self.name()
    }
}

/// Which models do what, beside the one of the conversation.
#[derive(Clone, Default)]
pub struct Roles {
    /// Who writes plans.
    pub plan: Option<Arc<dyn Model>>,
    /// Who executes them, and does the work of runs.
    pub execute: Option<Arc<dyn Model>>,
    /// Who sums up what no longer fits.
    pub summary: Option<Arc<dyn Model>>,
    /// Who is asked when the one that should answer cannot, in this order.
    pub fallbacks: Vec<Arc<dyn Model>>,
}

impl Roles {
    /// All models that are named.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Model>> {
        [&self.plan, &self.execute, &self.summary].into_iter().flatten().chain(&self.fallbacks)
    }
}

/// An agent profile: who does a step of a plan.
#[derive(Clone)]
pub struct AgentProfile {
    /// As the gate knows it.
    pub facts: Profile,
    /// What it is told besides.
    pub prompt: String,
    /// The model that it asks.
    pub model: Arc<dyn Model>,
}

impl AgentProfile {
    /// A profile, given all that it is.
    #[must_use]
    pub fn new(
        name: &str,
        prompt: &str,
        model: Arc<dyn Model>,
        tools: Option<BTreeSet<String>>,
        rounds_max: Option<u32>,
    ) -> Self {
        let facts = Profile::new(name, prompt, &model.name(), tools, rounds_max);
        Self { facts, prompt: prompt.into(), model }
    }
}

/// The profiles there are, by name.
pub type Profiles = Arc<BTreeMap<String, AgentProfile>>;

/// The profile that is there without any setting: every tool, and the model of the conversation.
pub const DEFAULT_PROFILE: &str = "default";

/// The profiles of an installation that names none: one, with this model.
#[must_use]
pub fn default_profiles(model: &Arc<dyn Model>) -> Profiles {
    let profile = AgentProfile::new(DEFAULT_PROFILE, "", model.clone(), None, None);
    Arc::new([(DEFAULT_PROFILE.to_owned(), profile)].into())
}

#[cfg(test)]
mod tests {
    use planwright_domain::turn::Usage;

    use super::Price;

    #[test]
    fn what_is_read_again_and_what_is_kept_have_prices_of_their_own() {
        let price = Price {
            input_micros: 3_000_000,
            output_micros: 15_000_000,
            cached_micros: 300_000,
            cache_write_micros: 3_750_000,
        };
        let usage =
            Usage { input: 1_000, output: 10, cached: 600, cache_written: 300, cost_micros: 0 };
        assert_eq!(price.of(usage), 300 + 180 + 1_125 + 150);
        let too_many = Usage { cached: 900, cache_written: 900, ..usage };
        assert_eq!(price.of(too_many), 270 + 375 + 150, "nothing is paid for twice");
    }
}
