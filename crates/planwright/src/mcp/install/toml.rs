//! One entry in a TOML file of another program.

use anyhow::Context as _;
use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::entry::{NAME, ServerCommand};

/// The table of the servers.
const SERVERS: &str = "mcp_servers";

/// The text with the entry; none if there is one already.
pub(super) fn with(text: &str, server: &ServerCommand<'_>) -> anyhow::Result<Option<String>> {
    let mut document = parsed(text)?;
    let servers = document.entry(SERVERS).or_insert_with(|| {
        let mut servers = Table::new();
        servers.set_implicit(true);
        Item::Table(servers)
    });
    let servers = servers.as_table_like_mut();
    let servers = servers.context("mcp_servers is not a table there; add the entry by hand")?;
    if servers.contains_key(NAME) {
        return Ok(None);
    }
    let mut entry = Table::new();
    entry.insert("command", value(server.program));
    entry.insert("args", value(server.arguments.iter().collect::<Array>()));
    servers.insert(NAME, Item::Table(entry));
    Ok(Some(document.to_string()))
}

/// The text without the entry; none if it is not there.
pub(super) fn without(text: &str) -> anyhow::Result<Option<String>> {
    let mut document = parsed(text)?;
    let servers = document.get_mut(SERVERS).and_then(Item::as_table_like_mut);
    let removed = servers.and_then(|servers| servers.remove(NAME));
    Ok(removed.map(|_| document.to_string()))
}

fn parsed(text: &str) -> anyhow::Result<DocumentMut> {
    text.parse().context("it is not TOML; fix it, or change the entry by hand")
}
