//! Tokens that plan work adds to every request, counted on the requests that the runtime really makes.

use std::path::PathBuf;

use planwright_domain::{actor::Standing, plan::Strategy, tools::ToolSpec};
use planwright_runtime::{
    commands::agents::{AgentAsks, Seat},
    ports::model::{Message, ModelRequest},
};
use planwright_surfaces::mcp;
use planwright_testkit::{
    people::{ada_key, person},
    scripted_model::noted,
};
use serde_json::json;
use tiktoken_rs::o200k_base;

use crate::{
    measure::{Judged, PEER_MISSING, close},
    ours::Ours,
    peer::Peer,
    plot,
};

/// The most that each strategy may add while it is active.
const DOCUMENT_MAX: usize = 190;
const COLLECT_MAX: usize = 150;
const BUILD_MAX: usize = 450;
/// The most that the notebook may add while it is on.
const NOTEBOOK_MAX: usize = 330;
/// The most that a foreign agent may be told of: for a document, and with everything on.
const FOREIGN_MAX: usize = 150;
const EVERYTHING_MAX: usize = 900;

pub(crate) fn run(quick: bool, bless: bool) -> anyhow::Result<Judged> {
    let tokenizer = o200k_base()?;
    let count = |text: &str| tokenizer.encode_with_special_tokens(text).len();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let requests = runtime.block_on(requests())?;
    let collect = runtime.block_on(drafting("/plan on collect"))?;
    let build = runtime.block_on(drafting("/plan on build"))?;
    let notebook = runtime.block_on(drafting("/notebook on"))?;
    let agent = runtime.block_on(advertised())?;
    let [before, drafting, executing, after] = &requests[..] else {
        anyhow::bail!("{} turns instead of four", requests.len());
    };
    let figures = [
        ("inactive", count(&added(before, after))),
        ("document, drafting", count(&added(before, drafting))),
        ("document, executing", count(&added(before, executing))),
        ("collect", count(&added(&collect[0], &collect[1]))),
        ("build", count(&added(&build[0], &build[1]))),
        ("notebook", count(&added(&notebook[0], &notebook[1]))),
        ("agent, inactive", count(&agent[0])),
        ("agent, document", agent[1..4].iter().map(|told| count(told)).max().unwrap_or(0)),
        ("agent, document, told of always", count(&agent[6])),
        ("agent, everything on with document", count(&agent[4])),
        ("agent, everything on with build", count(&agent[5])),
    ];
    let text: String = figures.iter().map(|(what, tokens)| format!("{what}: {tokens}\n")).collect();
    print!("{text}");
    // At quick size our own figures are judged alone, and the closing line says so.
    let mut of_peer = f64::NAN;
    let peer = if quick { None } else { Peer::start() };
    let peer = match peer {
        Some(mut peer) => {
            let told = peer.ask("tokens")?;
            let tokens = count(told["text"].as_str().unwrap_or_default());
            of_peer = tokens as f64;
            format!("deepagents' planning {tokens}")
        }
        None if quick => "the peer is not asked at quick size".into(),
        None => PEER_MISSING.into(),
    };
    let is_golden = is_golden(&text, bless)?;
    let document = figures[1].1.max(figures[2].1);
    plot::bars(
        "tokens",
        "Tokens that planning adds to a request",
        "tokens",
        &[("ours", document as f64), ("deepagents", of_peer)],
    )?;
    let [inactive, _, _, collect, build, notebook, idle, foreign, _, all, built] =
        figures.map(|(_, tokens)| tokens);
    let everything = all.max(built);
    let within = document <= DOCUMENT_MAX
        && collect <= COLLECT_MAX
        && build <= BUILD_MAX
        && notebook <= NOTEBOOK_MAX
        && foreign <= FOREIGN_MAX
        && everything <= EVERYTHING_MAX;
    let well = inactive == 0 && idle == 0 && within && is_golden && (quick || !of_peer.is_nan());
    Ok(close(
        "tokens",
        &format!(
            "inactive {inactive}, document {document}, collect {collect}, build {build}, notebook {notebook}; over MCP inactive {idle}, document {foreign}, everything {everything}; {peer}"
        ),
        "inactive 0, document 190, collect 150, build 450, notebook 330; over MCP 0, 150, 900",
        well,
    ))
}

/// Whether these are the figures that are kept; they become so if they are blessed.
fn is_golden(text: &str, bless: bool) -> anyhow::Result<bool> {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/tokens.txt");
    if bless {
        std::fs::write(&golden, text)?;
    }
    let is_golden = std::fs::read_to_string(&golden).unwrap_or_default() == text;
    if !is_golden {
        println!(
            "these are not the golden figures; if that is wanted, run: ./bench tokens --bless"
        );
    }
    Ok(is_golden)
}

/// The first request of four turns: before plan work, drafting, executing, and after it.
async fn requests() -> anyhow::Result<Vec<ModelRequest>> {
    let (ours, model) = Ours::keeping()?;
    let identity = ada_key("cli:tokens-0001")?;
    for line in ["just talk", "/plan on", "plan it", "/plan show", "/plan approve", "just talk"] {
        ours.does(&identity, line).await?;
    }
    Ok(model.openings())
}

/// The first requests of two turns: before and after this is turned on.
async fn drafting(on: &str) -> anyhow::Result<Vec<ModelRequest>> {
    let (ours, model) = Ours::keeping()?;
    let identity = ada_key("cli:tokens-0001")?;
    for line in ["just talk", on, "just talk"] {
        ours.does(&identity, line).await?;
    }
    let openings = model.openings();
    anyhow::ensure!(openings.len() == 2, "{} turns instead of two", openings.len());
    Ok(openings)
}

/// What a request has beyond another one, words aside: the end of the prompt, tools, and how the plan stands.
fn added(before: &ModelRequest, after: &ModelRequest) -> String {
    let prompt = after.system.strip_prefix(&before.system).unwrap_or(&after.system);
    let tools = after.tools.iter().filter(|tool| !before.tools.contains(tool));
    let note = match after.messages.last() {
        Some(Message::User(text)) => noted(text).1,
        Some(Message::Assistant { .. } | Message::Tool { .. }) | None => "",
    };
    format!("{prompt}{}{note}", tools.map(|tool| wire(tool)).collect::<String>())
}

/// Which tools are meant.
type Fits = fn(&str) -> bool;

/// What a foreign agent is told, as its client gets it: plan tools while inactive, drafting, waiting and executing; then
/// everything that can be on, with the instructions, for either strategy.
async fn advertised() -> anyhow::Result<Vec<String>> {
    let (ours, _) = Ours::keeping()?;
    let runtime = &ours.runtime;
    let seat = |key: &str, plan, always| {
        anyhow::Ok(Seat {
            identity: ada_key(&format!("mcp:{key}"))?,
            person: person("ada", "mcp", Standing::Speaks),
            agent: "an agent".into(),
            project: None,
            plan,
            is_reader: false,
            always,
        })
    };
    let told = async |seat: &Seat, fits: Fits| {
        let tools = runtime.commands.agent_tools(seat).await?;
        let tools = tools.iter().filter(|tool| fits(&tool.name)).map(|spec| mcp::tool(spec));
        anyhow::Ok(tools.map(|tool| serde_json::to_string(&tool)).collect::<Result<String, _>>()?)
    };
    let plan: Fits = |name| name.starts_with("plan_");
    let any: Fits = |_| true;
    let working = seat("tokens-0001", Some(Strategy::Document), false)?;
    let mut all =
        vec![told(&seat("tokens-0002", None, false)?, plan).await?, told(&working, plan).await?];
    let saves = AgentAsks {
        id: uuid::Uuid::from_u128(1).into(),
        tool: "plan_set_content".into(),
        arguments: json!({"plan_markdown": "# Plan\n\n1. One\n"}).to_string(),
    };
    runtime.commands.agent_call(&working, saves).await?;
    all.push(told(&working, plan).await?);
    for line in ["/plan show", "/plan approve"] {
        ours.does(&working.identity, line).await?;
    }
    all.push(told(&working, plan).await?);
    for (key, strategy) in [("tokens-0003", Strategy::Document), ("tokens-0004", Strategy::Build)] {
        let seat = seat(key, Some(strategy), true)?;
        ours.does(&seat.identity, "/notebook on").await?;
        let words = mcp::info(Some(strategy)).instructions.unwrap_or_default();
        all.push(format!("{words}{}", told(&seat, any).await?));
    }
    all.push(told(&seat("tokens-0005", Some(Strategy::Document), true)?, plan).await?);
    Ok(all)
}

fn wire(tool: &ToolSpec) -> String {
    json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
        .to_string()
}
