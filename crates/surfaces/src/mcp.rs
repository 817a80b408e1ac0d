//! Planwright as an MCP server: what a foreign agent is told of, and what it may ask. No rule lives here.
//!
//! One session, one bearer token: what is listed and answered follows from the token of the request, so that the
//! newest protocol, which has no sessions, and the ones before it are served alike.

use std::{borrow::Cow, sync::Arc};

use planwright_domain::{
    agent::PLAN_ASK,
    id::{CommandId, GrantId},
    plan::Strategy,
    tools::ToolSpec,
};
use planwright_runtime::{
    commands::Commands,
    commands::agents::{AgentAsks, AgentReply, Seat},
    ports::journal::JournalError,
    queries::Queries,
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
        GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject,
        PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, Resource, ResourceContents, ServerCapabilities, ServerConfig,
        SubscriptionFilter, Tool,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use uuid::Uuid;

pub mod asking;
pub mod prompts;

/// In the metadata of a call: its id, so that asked again it is answered again and not done again.
pub const CALL: &str = "planwright/call";
/// In the metadata of a request: who asks, where someone asks for another.
pub const AGENT: &str = "planwright/agent";
/// In the metadata of a result: where a person reviews what waits, and its digest.
pub const REVIEW: &str = "planwright/review";
/// The plan as it stands.
const PLAN: &str = "planwright://plan";

const INSTRUCTIONS: &str = "Planwright keeps your plan where a person reviews it. For work of several steps: save the plan with \
     plan_set_content, call plan_ask, and begin only when it is approved. Then plan_get gives each step and plan_report \
     records it, with evidence.";
const INSTRUCTIONS_BUILD: &str = "Planwright keeps your plan where a person reviews it. For work of several steps: build the plan with \
     the plan tools, call plan_ask, and begin only when it is approved. Then plan_get gives each step and plan_report \
     records it, with evidence.";
const INSTRUCTIONS_NONE: &str =
    "Planwright: plan tools appear when a person begins plan work in its dashboard.";

/// What the server says of itself.
#[must_use]
pub fn info(plan: Option<Strategy>) -> ServerConfig {
    let capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_prompts()
        .build();
    let words = match plan {
        Some(Strategy::Build) => INSTRUCTIONS_BUILD,
        Some(Strategy::Document | Strategy::Collect) => INSTRUCTIONS,
        None => INSTRUCTIONS_NONE,
    };
    let mut info = ServerConfig::new(capabilities);
    info.server_info = Implementation::new("planwright", env!("CARGO_PKG_VERSION"));
    info.instructions = Some(words.into());
    info
}

/// The versions that are spoken: every one that is still in use.
#[must_use]
pub fn versions() -> Cow<'static, [ProtocolVersion]> {
    Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
}

/// Who asks, as it names itself, or as someone who asks for it says.
#[must_use]
pub fn asker(context: &RequestContext<RoleServer>) -> Option<String> {
    let named = context.meta.get(AGENT).and_then(Value::as_str).map(str::to_owned);
    named.or_else(|| context.client_info().map(|client| client.name))
}

/// The server for one request: the session of its token.
#[derive(Clone)]
pub struct Planner {
    commands: Arc<Commands>,
    queries: Arc<Queries>,
    seat: Seat,
    /// By which token it is known.
    grant: GrantId,
    /// Where people find the dashboard.
    url: String,
}

impl Planner {
    /// The server for whoever sits here.
    #[must_use]
    pub fn new(
        commands: Arc<Commands>,
        queries: Arc<Queries>,
        seat: Seat,
        grant: GrantId,
        url: String,
    ) -> Self {
        Self { commands, queries, seat, grant, url }
    }

    fn seat(&self, context: &RequestContext<RoleServer>) -> Seat {
        let agent = asker(context).unwrap_or_else(|| self.seat.agent.clone());
        Seat { agent, ..self.seat.clone() }
    }

    /// Where a person reviews the plan.
    fn review(&self) -> String {
        format!("{}/s/{}/plan", self.url, self.seat.identity.name_for(self.seat.person.owner))
    }

    fn result(&self, tool: &str, reply: AgentReply) -> CallToolResult {
        let AgentReply { mut text, is_refused, waits } = reply;
        let proposes = [PLAN_ASK, "plan_set_content", "plan_submit"].contains(&tool);
        let waits = waits.filter(|_| proposes && !is_refused);
        if waits.is_some() {
            text.push_str(&format!("\nA person reviews it at {}", self.review()));
        }
        let content = vec![ContentBlock::text(text)];
        let mut result = if is_refused {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        if let Some(digest) = waits {
            let mut meta = MetaObject::default();
            let review = json!({"url": self.review(), "digest": digest.to_string()});
            meta.insert(REVIEW.to_owned(), review);
            result.meta = Some(meta);
        }
        result
    }

    async fn revisions(&self) -> Result<Vec<u32>, JournalError> {
        let session = self.queries.session(&self.seat.identity).await?;
        let many = session.plan().map_or(0, |plan| plan.revisions.len() as u32);
        Ok((1..=many).collect())
    }
}

/// Serves one agent over a stream of lines until it ends.
pub async fn over<S>(planner: Planner, stream: S)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    if let Ok(running) = planner.serve(tokio::io::split(stream)).await {
        let _ = running.waiting().await;
    }
}

/// As a client is told of a tool.
#[must_use]
pub fn tool(spec: &ToolSpec) -> Tool {
    let schema = spec.parameters.as_object().cloned().unwrap_or_default();
    Tool::new(spec.name.clone(), spec.description.clone(), Arc::new(schema))
}

fn unavailable(error: JournalError) -> ErrorData {
    tracing::error!(%error, event = "agent_not_answered");
    if error.is_newer() || error.is_corrupt() {
        return ErrorData::internal_error(error.to_string(), None);
    }
    ErrorData::internal_error("the journal does not answer now; ask again in a moment", None)
}

impl ServerHandler for Planner {
    fn get_info(&self) -> ServerConfig {
        info(self.seat.plan)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        versions()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let specs = self.commands.agent_tools(&self.seat(&context)).await.map_err(unavailable)?;
        Ok(ListToolsResult::with_all_items(specs.iter().map(|spec| tool(spec)).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(first) = asking::first(&request, &context, || self.review()) {
            let session = self.queries.session(&self.seat.identity).await.map_err(unavailable)?;
            let plan = session.plan().filter(|plan| plan.awaits_decision());
            if let Some(head) = plan.and_then(|plan| plan.current.as_ref()) {
                return Ok(first(&head.digest.to_string()).into());
            }
        }
        let id = match context.meta.get(CALL).and_then(Value::as_str) {
            Some(key) => Uuid::new_v5(&self.grant.0, key.as_bytes()),
            None => self.commands.new_id(),
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default()).to_string();
        let tool = request.name.into_owned();
        let asks = AgentAsks { id: CommandId(id), tool: tool.clone(), arguments };
        let reply = self.commands.agent_call(&self.seat(&context), asks).await;
        Ok(self.result(&tool, reply.map_err(unavailable)?).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let revisions = self.revisions().await.map_err(unavailable)?;
        let markdown =
            |uri: String, name: String| Resource::new(uri, name).with_mime_type("text/markdown");
        let plan = (!revisions.is_empty()).then(|| markdown(PLAN.into(), "The plan".into()));
        let each = revisions.into_iter().map(|number| {
            markdown(format!("{PLAN}/revisions/{number}"), format!("Revision {number} of the plan"))
        });
        Ok(ListResourcesResult::with_all_items(plan.into_iter().chain(each).collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::default())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let missing = || {
            ErrorData::resource_not_found(
                format!("there is no {}; resources/list says what there is", request.uri),
                None,
            )
        };
        let number = match request.uri.strip_prefix(PLAN).ok_or_else(missing)? {
            "" => None,
            rest => {
                let number = rest.strip_prefix("/revisions/").and_then(|text| text.parse().ok());
                Some(number.ok_or_else(missing)?)
            }
        };
        let found =
            self.queries.revision(&self.seat.identity, number).await.map_err(unavailable)?;
        let markdown = found.ok_or_else(missing)?.revision.markdown;
        let contents =
            ResourceContents::text(markdown, request.uri.clone()).with_mime_type("text/markdown");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request).map(Into::into)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let seat = self.seat(context.request_context());
        let mut subscription = self.queries.subscribe(&seat.identity);
        let mut known = self.commands.agent_tools(&seat).await.map_err(unavailable)?;
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                signal = subscription.next() => if signal.is_none() { return Ok(()) },
            }
            let now = self.commands.agent_tools(&seat).await.map_err(unavailable)?;
            if now != known && context.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
            known = now;
        }
    }
}
