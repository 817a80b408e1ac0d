//! One entry in the YAML file of goose: a block of lines between two marks, under `extensions`.

use anyhow::bail;
use serde_json::json;

use super::entry::ServerCommand;

/// What stands around what was added.
const MARKS: [&str; 2] = ["# planwright mcp install: begin", "# planwright mcp install: end"];

/// The text with the entry; none if there is one already.
pub(super) fn with(text: &str, server: &ServerCommand<'_>) -> anyhow::Result<Option<String>> {
    if text.lines().any(|line| line.trim_end() == "  planwright:") {
        return Ok(None);
    }
    let entry = format!(
        "  {}\n  planwright:\n    name: planwright\n    type: stdio\n    enabled: true\n    timeout: 300\n    cmd: {}\n    args: {}\n  {}\n",
        MARKS[0],
        json!(server.program),
        json!(server.arguments),
        MARKS[1]
    );
    let place = text.lines().position(|line| line.trim_end() == "extensions:");
    let Some(place) = place else {
        if text.lines().any(|line| line.starts_with("extensions:")) {
            bail!("extensions is not written as a block there; add the entry by hand");
        }
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return Ok(Some(format!("{text}{gap}extensions:\n{entry}")));
    };
    let head: String = text.split_inclusive('\n').take(place + 1).collect();
    let gap = if head.ends_with('\n') { "" } else { "\n" };
    Ok(Some(format!("{head}{gap}{entry}{}", &text[head.len()..])))
}

/// The text without what stands between the marks; none if they are not there.
pub(super) fn without(text: &str) -> Option<String> {
    let begin = text.find(MARKS[0])?;
    let begin = text[..begin].rfind('\n').map_or(0, |line| line + 1);
    let end = begin + text[begin..].find(MARKS[1])? + MARKS[1].len();
    let end = if text[end..].starts_with('\n') { end + 1 } else { end };
    Some(format!("{}{}", &text[..begin], &text[end..]))
}
