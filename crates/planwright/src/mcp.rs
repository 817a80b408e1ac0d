//! `planwright mcp`: a thin shim between an agent's standard input and output and the server.
//!
//! It answers the handshake itself and asks the server for everything else, so that it outlives restarts: what it asked
//! is asked again, under the same id, until it is answered once.

use std::{
    borrow::Cow,
    io::IsTerminal as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use planwright_domain::{agent::PLAN_ASK, plan::Strategy};
use planwright_outbound::data_directory::belongs_to_node;
use planwright_surfaces::mcp::{self, AGENT, CALL, REVIEW, asking};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
        GetPromptResponse, GetPromptResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerConfig,
        SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    args::{Args, McpArgs, McpCommand},
    backend::Backend as _,
    config::Config,
    exit::Exit,
    installation::owners_passphrase,
    remote::Remote,
    server::{Server, start_advice},
    terminal::Terminal,
};

pub mod install;
pub mod link;

use link::{Link, Wish};

/// How long a person may look at a link that their client shows.
const LOOK_MAX: Duration = Duration::from_secs(600);

/// Does what the command line says for a foreign agent.
pub async fn act(
    args: &Args,
    mcp: &McpArgs,
    command: Option<&McpCommand>,
    terminal: &mut Terminal,
    data: &Path,
) -> anyhow::Result<Exit> {
    mcp.strategy()?;
    if let Some(McpCommand::Install { agent, file, undo, yes }) = command {
        let advertise = mcp.advertise.clone().or_else(|| agent.advertise().map(str::to_owned));
        let mut arguments = McpArgs { advertise, ..mcp.clone() }.words();
        arguments.extend(options_of(args));
        let (file, undo, yes) = (file.as_deref(), *undo, *yes);
        if !undo && !has_passphrase(args, data).await? {
            // Whoever can read the data directory chooses the first one, and the agent can.
            anyhow::bail!(
                "no passphrase was chosen yet, and an agent with a shell could choose it; choose it with planwright passphrase, then install"
            );
        }
        return install::run(
            terminal,
            &install::InstallRequest { agent: *agent, file, arguments, undo, yes },
        )
        .await;
    }
    let root = std::env::current_dir()?.canonicalize()?;
    let data = std::path::absolute(data)?;
    let mut up = options_of(args);
    if !up.iter().any(|word| word == "--workspace") {
        // Whoever starts it from a project does not mean the project: its files are the foreign agent's business.
        let mut beside = data.file_name().unwrap_or_default().to_owned();
        beside.push("-workspace");
        up.extend(["--workspace".to_owned(), data.with_file_name(beside).display().to_string()]);
    }
    up.push("up".to_owned());
    let wish = Wish {
        root: root.display().to_string(),
        key: mcp.key.clone(),
        plan: mcp.plan.clone(),
        read_only: mcp.read_only,
        always: mcp.advertise.as_deref() == Some("always"),
        starts: !mcp.no_start,
    };
    let config = Config::load(args.config.as_deref(), &data)?;
    let named = match Server::named(args, &config.cluster)? {
        Some(server) => Some((server.clone(), server.token(args, &data)?)),
        None => None,
    };
    let link = Arc::new(Link::new(&data, named, up, wish)?);
    match command {
        Some(McpCommand::Token) => {
            let place = link.take().await?;
            terminal.row(
                &format!(
                    "{}/mcp\nAuthorization: Bearer {}\nit works in {} and decides nothing",
                    place.url, place.token, place.session_id
                ),
                || json!({"type": "place", "url": format!("{}/mcp", place.url), "token": place.token,
                    "session": place.session_id}),
            );
            Ok(Exit::Fine)
        }
        Some(McpCommand::Install { .. }) | None => {
            if std::io::stdin().is_terminal() {
                terminal.error(&anyhow::anyhow!(
                    "an agent speaks here, not a person; planwright mcp install adds this to one"
                ));
            }
            run(link, mcp).await
        }
    }
}

/// Whether the passphrase was chosen: a cluster and a server elsewhere keep it themselves.
async fn has_passphrase(args: &Args, data: &Path) -> anyhow::Result<bool> {
    if args.server.is_none() && !belongs_to_node(data) {
        return Ok(owners_passphrase(data).await?.is_some());
    }
    let config = Config::load(args.config.as_deref(), data)?;
    let Some(server) = Server::find(args, &config.cluster, data)? else {
        anyhow::bail!("no server runs; {}", start_advice(data))
    };
    let token = server.token(args, data)?;
    Ok(Remote::connect(data, server, token, args.session.as_deref()).await?.has_passphrase())
}

/// What was said about the installation, as words of a command line, with paths that hold anywhere.
fn options_of(args: &Args) -> Vec<String> {
    let path = |path: &Path| std::path::absolute(path).map(|path| path.display().to_string());
    let mut words = Vec::new();
    let mut option = |name: &str, value: Option<&PathBuf>| {
        if let Some(Ok(value)) = value.map(|value| path(value)) {
            words.extend([name.to_owned(), value]);
        }
    };
    option("--data", args.data.as_ref());
    option("--config", args.config.as_ref());
    option("--workspace", Some(&args.workspace).filter(|path| path.as_os_str() != "workspace"));
    words.extend(args.server.iter().flat_map(|url| ["--server".to_owned(), url.clone()]));
    words
}

/// Serves one agent until its standard input ends.
async fn run(link: Arc<Link>, args: &McpArgs) -> anyhow::Result<Exit> {
    let shim = Shim { link, plan: args.strategy()? };
    let running = shim.serve(rmcp::transport::stdio()).await;
    match running {
        Ok(running) => running.waiting().await.map(drop)?,
        // An input that ends before it began is no failure.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Exit::Fine)
}

#[derive(Clone)]
struct Shim {
    link: Arc<Link>,
    plan: Option<Strategy>,
}

impl Shim {
    async fn ask<T: DeserializeOwned>(
        &self,
        context: &RequestContext<RoleServer>,
        method: &str,
        params: Value,
    ) -> Result<T, ErrorData> {
        self.ask_under(context, method, params, Uuid::now_v7()).await
    }

    /// Asks the server, under an id that stays the same however often it has to be asked.
    async fn ask_under<T: DeserializeOwned>(
        &self,
        context: &RequestContext<RoleServer>,
        method: &str,
        mut params: Value,
        id: Uuid,
    ) -> Result<T, ErrorData> {
        let agent = mcp::asker(context).unwrap_or_else(|| "an agent".into());
        if !params.is_object() {
            params = json!({});
        }
        params["_meta"] = json!({AGENT: agent, CALL: id.to_string()});
        let mut answer = self.link.ask(&agent, method, params).await?;
        // The server is asked in an older version; the newest wants it said, and the others are not told.
        answer["resultType"] = "complete".into();
        serde_json::from_value(answer).map_err(|error| {
            ErrorData::internal_error(format!("the server's answer cannot be read: {error}"), None)
        })
    }

    /// Shows the link to the person at the client, where the client can. What they answer decides nothing.
    async fn show(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        let asks = request.name == PLAN_ASK && request.input_responses.is_none();
        if !asks || !asking::shows_links(context) {
            return Ok(None);
        }
        let params = json!({"name": PLAN_ASK, "arguments": {}});
        let now: CallToolResult = self.ask(context, "tools/call", params).await?;
        let review = now.meta.as_ref().and_then(|meta| meta.get(REVIEW)).cloned();
        let Some(review) = review else { return Ok(Some(now.into())) };
        let text = |name: &str| review[name].as_str().unwrap_or_default().to_owned();
        let (url, digest) = (text("url"), text("digest"));
        if let Some(first) = asking::first(request, context, || url.clone()) {
            return Ok(Some(first(&digest).into()));
        }
        let (peer, look) = (context.peer.clone(), asking::look(&url, &digest));
        tokio::spawn(async move {
            let shown = peer.create_elicitation_with_timeout(look, Some(LOOK_MAX)).await;
            if let Err(error) = shown {
                tracing::debug!(%error, event = "link_not_shown");
            }
        });
        Ok(None)
    }
}

impl ServerHandler for Shim {
    fn get_info(&self) -> ServerConfig {
        mcp::info(self.plan)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        mcp::versions()
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (link, peer) = (self.link.clone(), context.peer);
        tokio::spawn(async move {
            let mut moved = link.watch();
            while moved.changed().await.is_ok() {
                if peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.ask(&context, "tools/list", json!({})).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(first) = self.show(&request, &context).await? {
            return Ok(first);
        }
        let params =
            json!({"name": request.name, "arguments": request.arguments.unwrap_or_default()});
        let result: CallToolResult = self.ask(&context, "tools/call", params).await?;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.ask(&context, "resources/list", json!({})).await
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
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let params = json!({"uri": request.uri});
        let result: ReadResourceResult = self.ask(&context, "resources/read", params).await?;
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(mcp::prompts::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let result: GetPromptResult = mcp::prompts::get(&request)?;
        Ok(result.into())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut moved = self.link.watch();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = moved.changed() => if changed.is_err() { return Ok(()) },
            }
            if context.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }
}
