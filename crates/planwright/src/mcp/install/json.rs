//! One entry in a JSON file of another program, which may have comments.
//!
//! The parser says where the object begins and where the entry stands; nothing else in the text is written anew, so that
//! taking the entry out gives back every byte.

use anyhow::Context as _;
use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use serde_json::json;

use super::entry::{NAME, ServerCommand};

/// What stands before an entry that was put in.
const BEFORE: &str = "\n    ";

/// Whether an entry says that the server is started here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It does.
    Said,
    /// The program knows by the command.
    Known,
}

/// The text with the entry at the beginning of this object of the outermost one; none if there is one already.
pub(super) fn with(
    text: &str,
    object: &str,
    kind: Kind,
    server: &ServerCommand<'_>,
) -> anyhow::Result<Option<String>> {
    let ServerCommand { program, arguments } = server;
    let value = match kind {
        Kind::Said => json!({"type": "stdio", "command": program, "args": arguments}),
        Kind::Known => json!({"command": program, "args": arguments}),
    };
    let entry = format!("{BEFORE}\"{NAME}\": {value}");
    if text.trim().is_empty() {
        return Ok(Some(format!("{{\n  \"{object}\": {{{entry}\n  }}\n}}\n")));
    }
    let root = parsed(text)?;
    let outer = root.as_ref().and_then(ast::Value::as_object);
    let outer = outer.context("it is not a JSON object; add the entry by hand")?;
    let Some(found) = outer.get(object) else {
        let comma = if outer.properties.is_empty() { "" } else { "," };
        let new = format!("\n  \"{object}\": {{{entry}\n  }}{comma}");
        return Ok(Some(inserted(text, outer, &new)));
    };
    let servers = found.value.as_object();
    let servers =
        servers.with_context(|| format!("{object} is not an object there; add it by hand"))?;
    if servers.get(NAME).is_some() {
        return Ok(None);
    }
    let comma = if servers.properties.is_empty() { "" } else { "," };
    Ok(Some(inserted(text, servers, &format!("{entry}{comma}"))))
}

/// The text without the entry; none if it is not there.
pub(super) fn without(text: &str, object: &str) -> anyhow::Result<Option<String>> {
    let root = parsed(text)?;
    let servers = root.as_ref().and_then(ast::Value::as_object);
    let servers = servers.and_then(|outer| outer.get_object(object));
    let Some(entry) = servers.and_then(|servers| servers.get(NAME)) else { return Ok(None) };
    let (before, after) = (&text[..entry.range.start], &text[entry.range.end..]);
    let kept = before.strip_suffix(BEFORE).unwrap_or(before);
    Ok(Some(match (after.strip_prefix(','), before.trim_end().strip_suffix(',')) {
        (Some(after), _) => format!("{kept}{after}"),
        // Someone moved it to the end: the comma before it goes with it.
        (None, Some(before)) => format!("{before}{after}"),
        (None, None) => format!("{kept}{after}"),
    }))
}

/// The text with something put in after the brace of this object.
fn inserted(text: &str, object: &ast::Object<'_>, new: &str) -> String {
    let (before, after) = text.split_at(object.range.start + 1);
    format!("{before}{new}{after}")
}

fn parsed(text: &str) -> anyhow::Result<Option<ast::Value<'_>>> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    Ok(parsed.context("it is not JSON; fix it, or change the entry by hand")?.value)
}
