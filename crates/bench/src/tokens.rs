//! Tokens that plan work adds to every request, counted on the requests that the runtime really makes.

use std::path::PathBuf;

use planwright_domain::{identity::SessionIdentity, tools::ToolSpec};
use planwright_runtime::ports::model::ModelRequest;
use serde_json::json;
use tiktoken_rs::o200k_base;

use crate::{
    measure::{Judged, close},
    ours::Ours,
    peer::Peer,
    plot,
};

/// The most that each strategy may add while it is active.
const DOCUMENT_MAX: usize = 150;
const COLLECT_MAX: usize = 150;
const BUILD_MAX: usize = 450;
/// The most that the notebook may add while it is on.
const NOTEBOOK_MAX: usize = 330;

pub(crate) fn run(bless: bool) -> anyhow::Result<Judged> {
    let tokenizer = o200k_base()?;
    let count = |text: &str| tokenizer.encode_with_special_tokens(text).len();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let requests = runtime.block_on(requests())?;
    let collect = runtime.block_on(drafting("/plan on collect"))?;
    let build = runtime.block_on(drafting("/plan on build"))?;
    let notebook = runtime.block_on(drafting("/notebook on"))?;
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
    ];
    let text: String = figures.iter().map(|(what, tokens)| format!("{what}: {tokens}\n")).collect();
    print!("{text}");
    let mut of_peer = f64::NAN;
    if let Some(mut peer) = Peer::start() {
        let told = peer.ask("tokens")?;
        let tokens = count(told["text"].as_str().unwrap_or_default());
        of_peer = tokens as f64;
        println!("peer (deepagents' planning): {tokens}");
    }
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/tokens.txt");
    if bless {
        std::fs::write(&golden, &text)?;
    }
    let is_golden = std::fs::read_to_string(&golden).unwrap_or_default() == text;
    if !is_golden {
        println!(
            "these are not the golden figures; if that is wanted, run: ./bench tokens --bless"
        );
    }
    let document = figures[1].1.max(figures[2].1);
    plot::bars(
        "tokens",
        "Tokens that planning adds to a request",
        "tokens",
        &[("ours", document as f64), ("deepagents", of_peer)],
    )?;
    let [inactive, _, _, collect, build, notebook] = figures.map(|(_, tokens)| tokens);
    let within = document <= DOCUMENT_MAX
        && collect <= COLLECT_MAX
        && build <= BUILD_MAX
        && notebook <= NOTEBOOK_MAX;
    let well = inactive == 0 && within && is_golden;
    Ok(close(
        "tokens",
        &format!(
            "inactive {inactive}, document {document}, collect {collect}, build {build}, notebook {notebook}"
        ),
        "inactive 0, document 150, collect 150, build 450, notebook 330",
        well,
    ))
}

/// The first request of four turns: before plan work, drafting, executing, and after it.
async fn requests() -> anyhow::Result<Vec<ModelRequest>> {
    let (ours, model) = Ours::keeping()?;
    let identity = SessionIdentity::parse("cli:tokens-0001")?;
    for line in ["just talk", "/plan on", "plan it", "/plan show", "/plan approve", "just talk"] {
        ours.does(&identity, line).await?;
    }
    Ok(model.openings())
}

/// The first requests of two turns: before and after this is turned on.
async fn drafting(on: &str) -> anyhow::Result<Vec<ModelRequest>> {
    let (ours, model) = Ours::keeping()?;
    let identity = SessionIdentity::parse("cli:tokens-0001")?;
    for line in ["just talk", on, "just talk"] {
        ours.does(&identity, line).await?;
    }
    let openings = model.openings();
    anyhow::ensure!(openings.len() == 2, "{} turns instead of two", openings.len());
    Ok(openings)
}

/// What a request has beyond another one, messages aside: the end of the prompt, and tools.
fn added(before: &ModelRequest, after: &ModelRequest) -> String {
    let prompt = after.system.strip_prefix(&before.system).unwrap_or(&after.system);
    let tools = after.tools.iter().filter(|tool| !before.tools.contains(tool));
    format!("{prompt}{}", tools.map(|tool| wire(tool)).collect::<String>())
}

fn wire(tool: &ToolSpec) -> String {
    json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
        .to_string()
}
