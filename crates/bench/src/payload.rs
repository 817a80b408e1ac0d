//! What the arms are given to store: English, the same bytes for every arm.

use std::{path::Path, sync::LazyLock};

use planwright_testkit::{prose::prose, scripted_model::worker::plan};

/// How large the body of a command is.
pub(crate) const COMMAND_BYTES: usize = 4_096;
/// How large a message is that begins a turn, and what the model says to it.
pub(crate) const TURN_BYTES: usize = 400;
/// How large a plan is.
pub(crate) const PLAN_BYTES: usize = 4_096;
/// How many different texts of a size there are.
const TEXTS: u64 = 64;

/// The bodies of commands.
pub(crate) static COMMANDS: LazyLock<Vec<String>> = LazyLock::new(|| texts(COMMAND_BYTES));
/// Messages that begin turns, and answers to them.
pub(crate) static TURNS: LazyLock<Vec<String>> = LazyLock::new(|| texts(TURN_BYTES));
/// Plans: more than the longest session has turns.
pub(crate) static PLANS: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..256).map(|number| plan(PLAN_BYTES, number)).collect());

/// Different texts of so many bytes.
pub(crate) fn texts(bytes: usize) -> Vec<String> {
    (0..TEXTS).map(|number| prose(bytes, number)).collect()
}

/// The nth of them, from the beginning again after the last.
pub(crate) fn nth(texts: &[String], at: u64) -> &str {
    &texts[at as usize % texts.len()]
}

/// Writes them where another process reads them.
pub(crate) fn write(texts: &[String], path: &Path) -> anyhow::Result<()> {
    Ok(std::fs::write(path, serde_json::to_vec(texts)?)?)
}
