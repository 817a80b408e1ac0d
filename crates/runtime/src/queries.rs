//! Reads: views, timelines, activity, logs. Nothing here changes a session.

use std::{collections::BTreeMap, sync::Arc};

use planwright_domain::{
    command::Terms, digest::Digest, identity::Root, notebook::NotebookTool, policy::Policy,
    time::Time,
};

use crate::{
    engine::{request::RequestBuilder, tool_call::ToolRunner},
    memories::Memories,
    model_health::ModelHealth,
    ports::{
        Clock, Ports,
        health::Part,
        journal::{Journal, JournalError},
        model::{Model, Profiles, Roles},
        notebook::Notebooks,
        signal::Broadcast,
        toolbox::schemas,
    },
    quotas::Quotas,
    settings::Settings,
};

pub mod activity;
pub mod autonomy;
pub mod comments;
pub mod memory;
pub mod model_request_log;
pub mod notebook;
pub mod reader;
pub mod receipt;
mod sessions;
pub mod timeline;
pub mod view;
pub mod waiting;

/// What people and surfaces read.
pub struct Queries {
    journal: Arc<dyn Journal>,
    /// How the parts are that others are reached through: all that a read may know of the lane.
    between: Box<dyn Fn() -> Vec<Part> + Send + Sync>,
    model_health: ModelHealth,
    broadcast: Arc<dyn Broadcast>,
    clock: Arc<dyn Clock>,
    policy: Arc<Policy>,
    model: Arc<dyn Model>,
    roles: Roles,
    profiles: Profiles,
    notebook: Arc<dyn Notebooks>,
    requests: RequestBuilder,
    tools: ToolRunner,
    memories: Memories,
    quotas: Quotas,
}

impl Queries {
    pub(crate) fn new(ports: &Ports, settings: &Settings, model_health: ModelHealth) -> Self {
        Self {
            journal: ports.journal.clone(),
            between: between(ports),
            model_health,
            broadcast: ports.broadcast.clone(),
            clock: ports.clock.clone(),
            policy: ports.policy.clone(),
            model: ports.model.clone(),
            roles: ports.roles.clone(),
            profiles: ports.profiles.clone(),
            notebook: ports.notebook.clone(),
            requests: RequestBuilder::new(ports, settings),
            tools: ToolRunner::new(ports, settings),
            memories: Memories::new(ports, settings),
            quotas: Quotas::new(ports, settings),
        }
    }

    /// What owners may use, and how they stand with it.
    #[must_use]
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Now, as everything that is recorded knows it.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The name of the model that answers where no role names another.
    #[must_use]
    pub fn model_name(&self) -> String {
        self.model.name()
    }

    /// The directories that a session may work in, as configured.
    #[must_use]
    pub fn roots(&self) -> &[Root] {
        &self.policy.roots
    }

    /// Tools and profiles as they stand now.
    #[must_use]
    pub fn terms(&self) -> Terms {
        let profiles = self.profiles.iter();
        Terms {
            schemas: self.schemas(),
            // An amount can be leased only if every model that may be asked has a price.
            priced: self.model.price().is_some()
                && self.roles.all().all(|model| model.price().is_some())
                && profiles.clone().all(|(_, profile)| profile.model.price().is_some()),
            profiles: profiles
                .map(|(name, profile)| (name.clone(), profile.facts.digest))
                .collect(),
        }
    }

    /// The schemas of all tools that can be leased, by name.
    fn schemas(&self) -> BTreeMap<String, Digest> {
        let export = NotebookTool::Export;
        let mut schemas = schemas(&*self.tools.toolbox);
        schemas.insert(export.name().into(), export.facts().schema);
        schemas
    }

    /// What does not get through at the moment, in sentences for people. Whose turn waits for a model is told so there.
    #[must_use]
    pub fn trouble(&self) -> Vec<String> {
        (self.between)().into_iter().filter_map(|part| part.trouble).collect()
    }

    /// Everything that this process depends on and how it is. Fails if the journal cannot be read, without which nothing is.
    pub async fn parts(&self) -> Result<Vec<Part>, JournalError> {
        self.journal.due(None, 1).await?;
        let mut parts = vec![Part::new("journal", None)];
        parts.extend((self.between)());
        parts.push(self.model_health.part(self.clock.now()));
        Ok(parts)
    }

    /// How many sessions have plan work.
    pub async fn planning(&self) -> Result<u64, JournalError> {
        self.journal.planning().await
    }
}

fn between(ports: &Ports) -> Box<dyn Fn() -> Vec<Part> + Send + Sync> {
    let (lane, broadcast) = (ports.lane.clone(), ports.broadcast.clone());
    Box::new(move || lane.parts().into_iter().chain(broadcast.parts()).collect())
}
