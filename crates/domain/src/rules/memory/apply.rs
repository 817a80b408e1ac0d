//! Applies a call of a memory tool: its events, and the result that the model reads.

use serde::Deserialize;

use crate::{
    model::{
        given::Given,
        id::MemoryId,
        memory::{Chain, Item, ItemKind, MemoryEvent, Provenance, ScopeKind},
        plan::refusal::PlanRefusal,
        refusal::Refusal,
        session::Session,
        time::Time,
        tools::own::OwnTool,
        turn::{RequestedCall, ToolReply, Turn},
    },
    rules::memory::fitting,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Save {
    text: String,
    kind: Option<ItemKind>,
    scope: Option<String>,
    confidence: Option<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    query: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forget {
    id: uuid::Uuid,
}

/// What a call of a memory tool needs looked up, in the turn's own scopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wants {
    /// What fits these words.
    Search(String),
    /// The item of this id.
    Item(MemoryId),
}

/// What this call needs looked up, if it needs anything and can be read.
#[must_use]
pub fn wants(call: &RequestedCall) -> Option<Wants> {
    match OwnTool::named(&call.tool)? {
        OwnTool::MemorySearch => Some(Wants::Search(parse::<Search>(call).ok()?.query)),
        OwnTool::MemoryForget => Some(Wants::Item(parse::<Forget>(call).ok()?.id.into())),
        OwnTool::MemorySave | OwnTool::TaskReport => None,
    }
}

/// Answers a call of a memory tool. What was found or is to be forgotten was looked up in the turn's own chain.
pub(crate) fn use_memory_tool(
    session: &Session,
    turn: &Turn,
    at: Time,
    tool: OwnTool,
    call: &RequestedCall,
    given: &Given,
) -> Result<(Vec<MemoryEvent>, ToolReply), Refusal> {
    let Some(found) = &given.memory else {
        let state = "memory is turned off here";
        return Err(unavailable(call, state));
    };
    if !turn.may_use(tool.name()) {
        return Err(unavailable(call, "the profile of this turn may not use it"));
    }
    let text = |text: String| ToolReply::Text { text };
    match tool {
        OwnTool::MemorySave => save(session, turn, at, call, given.fresh.0.into()),
        OwnTool::MemorySearch => {
            parse::<Search>(call)?;
            let lines: Vec<_> = found.iter().map(line).collect();
            let reply =
                if lines.is_empty() { "Nothing fits.".to_owned() } else { lines.join("\n") };
            Ok((Vec::new(), text(reply)))
        }
        OwnTool::MemoryForget => {
            let Forget { id } = parse(call)?;
            let own = |item: &&Item| item.id.0 == id && item.scope.session().is_some();
            match found.iter().find(own) {
                Some(item) => Ok((
                    vec![MemoryEvent::Forgotten { id: item.id }],
                    text(format!("Forgotten: {}", item.text)),
                )),
                None => {
                    Err(unavailable(call, "nothing of that id is remembered in this conversation"))
                }
            }
        }
        OwnTool::TaskReport => Err(unavailable(call, "it is no memory tool")),
    }
}

/// Saves what a model wants remembered, in the scope that it names or in the home of its kind.
fn save(
    session: &Session,
    turn: &Turn,
    at: Time,
    call: &RequestedCall,
    id: MemoryId,
) -> Result<(Vec<MemoryEvent>, ToolReply), Refusal> {
    let Save { text: words, kind, scope, confidence } = parse(call)?;
    let context = session.auto.context(turn);
    let chain = Chain::in_session(session, context);
    // What a run does not call anything else is a detail of its task.
    let unnamed = if context.is_some() { ItemKind::Detail } else { ItemKind::Fact };
    let kind = kind.unwrap_or(unnamed);
    let named = match scope.as_deref() {
        None => None,
        Some("task") => Some(ScopeKind::Task),
        Some("goal") => Some(ScopeKind::Goal),
        Some("session") => Some(ScopeKind::Session),
        Some("global") => {
            let state = "only a person can make something known everywhere; ask them to send /memory promote";
            return Err(unavailable(call, state));
        }
        Some(_) => {
            return Err(unavailable(call, "a scope is task, goal or session of this conversation"));
        }
    };
    let scope = match named {
        Some(kind) => chain.named(kind),
        None => chain.named(kind.home()).or_else(|| chain.named(ScopeKind::Session)),
    };
    let scope = scope.ok_or_else(|| unavailable(call, "there is no such scope in this turn"))?;
    let item = Item {
        id,
        kind,
        scope: scope.clone(),
        text: fitting(&words)?,
        provenance: Provenance::Model { turn: turn.id },
        confidence: confidence.unwrap_or(80).min(100),
        at,
    };
    let reply = format!("Remembered as {} in {}.", item.id, item.scope.kind().name());
    Ok((vec![MemoryEvent::Saved { item: Box::new(item) }], ToolReply::Text { text: reply }))
}

/// An item in one line, as the model reads it.
#[must_use]
pub fn line(item: &Item) -> String {
    let text: Vec<_> = item.text.split_whitespace().collect();
    format!("- [{}] {} (id {})", item.scope.kind().name(), text.join(" "), item.id)
}

pub(crate) fn unavailable(call: &RequestedCall, state: &str) -> Refusal {
    Refusal::Plan(PlanRefusal::ToolUnavailable { tool: call.tool.clone(), state: state.into() })
}

pub(crate) fn parse<'a, T: Deserialize<'a>>(call: &'a RequestedCall) -> Result<T, Refusal> {
    serde_json::from_str(&call.arguments)
        .map_err(|error| unavailable(call, &format!("its arguments do not fit: {error}")))
}
