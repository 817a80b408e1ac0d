//! Builds the request that a model is sent: the system text, the conversation, the tools.
//!
//! What comes before the conversation depends on configuration alone: the model, the profile, the tools that are configured,
//! plan work on or off and its strategy. A provider reads it once, and then what was added.

use planwright_domain::{
    digest::Digest,
    notebook::tool::NotebookTool,
    prompt,
    session::Session,
    tools::{self as own_tools, own::OwnTool},
};

use crate::{
    engine::{
        conversation::View,
        tool_call::{ToolRunner, read_result},
    },
    ports::{
        Ports,
        model::{AgentProfile, ModelRequest, Profiles},
    },
    settings::Settings,
};

/// Builds requests from sessions, with what the operator set.
pub(crate) struct RequestBuilder {
    pub(crate) profiles: Profiles,
    tools: ToolRunner,
    system_prompt: String,
    has_memory: bool,
}

impl RequestBuilder {
    pub(crate) fn new(ports: &Ports, settings: &Settings) -> Self {
        Self {
            profiles: ports.profiles.clone(),
            tools: ToolRunner::new(ports, settings),
            system_prompt: settings.system_prompt.clone(),
            has_memory: settings.memory.is_some(),
        }
    }

    /// What the model is told, and what it may call.
    pub(crate) fn request(
        &self,
        session: &Session,
        view: &View,
        profile: Option<&AgentProfile>,
    ) -> ModelRequest {
        let mut paragraphs = vec![self.system_prompt.clone(), prompt::OUTSIDE_PARAGRAPH.into()];
        paragraphs.extend(
            profile.filter(|profile| !profile.prompt.is_empty()).map(|named| named.prompt.clone()),
        );
        let mut tools: Vec<_> =
            self.tools.toolbox.tools().iter().map(|tool| tool.spec.clone()).collect();
        if let Some(turn) = &session.turn {
            tools.retain(|tool| turn.may_use(&tool.name));
            let plan = session.plan().map(|plan| prompt::plan_paragraph(plan.strategy).to_owned());
            paragraphs.extend(plan);
            paragraphs.extend(prompt::run_paragraph(session, turn));
            tools.extend(own_tools::of_run(session, turn).map(OwnTool::spec));
            if self.tools.has_notebook(session) {
                let usable = NotebookTool::ALL.into_iter().filter(|tool| turn.may_use(tool.name()));
                tools.extend(usable.map(NotebookTool::spec));
                paragraphs.push(prompt::NOTEBOOK_PARAGRAPH.into());
            }
            if self.has_memory {
                let usable = OwnTool::MEMORY.into_iter().filter(|tool| turn.may_use(tool.name()));
                tools.extend(usable.map(OwnTool::spec));
            }
            let listed = own_tools::listed(session);
            tools.extend(listed.iter().map(|tool| tool.spec()));
            tools.extend((!listed.is_empty()).then(read_result));
        }
        let cache_key = cache_key(session);
        let (system, messages) = (paragraphs.join("\n\n"), view.messages.clone());
        ModelRequest { system, messages, tools, cache_key: Some(cache_key) }
    }

    /// The profile that the open turn works under, as it stands now.
    pub(crate) fn profile(&self, session: &Session) -> Option<&AgentProfile> {
        let facts = session.turn.as_ref()?.profile.as_ref()?;
        self.profiles.get(&facts.name).filter(|profile| profile.facts.digest == facts.digest)
    }
}

/// What a provider finds its own copy of this conversation by: it says nothing of whose it is.
fn cache_key(session: &Session) -> String {
    Digest::of(session.key().to_string().as_bytes()).to_string()[..32].to_owned()
}
