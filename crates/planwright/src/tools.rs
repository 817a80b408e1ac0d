//! The tools of an installation: files under the workspace root, web pages, commands, and those of MCP servers.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use planwright_domain::identity::Root;
#[cfg(target_os = "linux")]
use planwright_outbound::toolbox_command::{CommandLimits, CommandToolbox};
use planwright_outbound::{
    data_directory::DataDirectory,
    toolbox_files::FileToolbox,
    toolbox_mcp::{McpToolbox, Pins},
    toolbox_union::ToolboxUnion,
    toolbox_web::{Addresses, WebToolbox},
};
use planwright_runtime::ports::toolbox::Toolbox;
use serde_json::json;

use crate::{
    args::{Args, ToolsCommand},
    config::{Config, tools::CommandConfig},
    data_path::data_path,
    exit::Exit,
    terminal::Terminal,
};

/// The tools, and what is needed to speak of them.
pub struct Tools {
    /// All of them, as one.
    pub toolbox: Arc<dyn Toolbox>,
    /// The roots that a session may have, the configured workspace first.
    pub roots: Vec<Root>,
    servers: Vec<Arc<McpToolbox>>,
    pins: Arc<Pins>,
}

impl Tools {
    /// The tools that the configuration names, over this data directory.
    pub fn open(config: &Config, workspace: &Path, data: &Path) -> anyhow::Result<Self> {
        let mut files = FileToolbox::open(workspace, data)?;
        for root in &config.workspace.roots {
            files = files.and_under(root, data).context("workspace.roots")?;
        }
        let roots = files.roots();
        let pins = Arc::new(Pins::open(data.join("mcp-pins.json"))?);
        let workspace = workspace.canonicalize()?;
        let mut servers = Vec::new();
        for (name, mcp) in &config.mcp {
            let server = mcp.server(name, &workspace, &data.canonicalize()?)?;
            let longest = Duration::from_secs(u64::from(config.effects.tool_seconds));
            let mcp = McpToolbox::new(name, server, mcp.pinned(), pins.clone()).within(longest);
            servers.push(Arc::new(mcp));
        }
        let mut boxes: Vec<Arc<dyn Toolbox>> = vec![Arc::new(files)];
        if !config.web.hosts.is_empty() {
            let web = WebToolbox::new(config.web.hosts.clone(), Addresses::default())?;
            boxes.push(Arc::new(web));
        }
        if config.command.enabled {
            boxes.push(commands(config, roots.clone())?);
        }
        let others = servers.iter().map(|server| server.clone() as Arc<dyn Toolbox>);
        boxes.extend(others);
        let toolbox = ToolboxUnion::of(boxes);
        Ok(Self { toolbox: Arc::new(toolbox), roots, servers, pins })
    }
}

#[cfg(target_os = "linux")]
fn commands(config: &Config, roots: Vec<Root>) -> anyhow::Result<Arc<dyn Toolbox>> {
    let CommandConfig { seconds, memory_mib, file_mib, read, .. } = config.command.clone();
    let limits = CommandLimits { seconds, memory_mib, file_mib, read };
    let toolbox = CommandToolbox::open(&std::env::current_exe()?, roots, limits);
    Ok(Arc::new(toolbox.map_err(|why| anyhow::anyhow!("command.enabled: {why}"))?))
}

#[cfg(not(target_os = "linux"))]
fn commands(_: &Config, _: Vec<Root>) -> anyhow::Result<Arc<dyn Toolbox>> {
    bail!("command.enabled: commands run only on Linux, which can hold them")
}

/// `planwright tools`: what there is, what it does, and what is quarantined.
pub async fn run(
    args: &Args,
    config: &Config,
    command: Option<&ToolsCommand>,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let directory = DataDirectory::own(&data_path(args)?, "planwright tools")?;
    let tools = Tools::open(config, &args.workspace, directory.path())?;
    tools.toolbox.refresh().await;
    if let Some(ToolsCommand::Accept { tool }) = command {
        if !tools.pins.accept(tool)? {
            bail!("{tool} is not quarantined; planwright tools lists what is");
        }
        terminal.line(&format!(
            "{tool} is accepted as it is now; plans that leased it as it was pause"
        ));
        return Ok(Exit::Fine);
    }
    for tool in tools.toolbox.tools().iter() {
        let (name, effect) = (&tool.spec.name, tool.facts.effect.name());
        terminal.row(
            &format!(
                "{name:<40} {effect:<9} {}",
                tool.spec.description.lines().next().unwrap_or_default()
            ),
            || json!({"type": "tool", "name": name, "effect": effect, "schema": tool.facts.schema}),
        );
    }
    for tool in tools.pins.quarantined() {
        let words = format!(
            "{tool} is quarantined: its schema is not the one that was pinned; look at it, then: planwright tools accept {tool}"
        );
        terminal.refusal(&words);
    }
    if let Err(why) = planwright_sandbox::is_supported()
        && tools.servers.iter().any(|server| server.is_unconfined())
    {
        let words = "MCP servers on this machine run unconfined, and reach whatever your user does";
        terminal.refusal(&format!("{words}: {why}"));
    }
    let trouble: Vec<_> = tools.servers.iter().filter_map(|server| server.trouble()).collect();
    trouble.iter().for_each(|words| terminal.refusal(words));
    Ok(if trouble.is_empty() { Exit::Fine } else { Exit::Failed })
}
