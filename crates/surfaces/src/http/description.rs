//! The description of the API: what the handlers say of themselves, and the form of everything that is streamed.

use planwright_domain::session::SessionEvent;
use planwright_runtime::{
    memories::MemoryView, notebook::NotebookView, requests::RequestView, work::WorkView,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};
use utoipa::openapi::{
    Info,
    security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
};

use super::{guarded_routes, open_routes};

/// What is recorded and shown has names of its own beside those of the API.
const PREFIX: &str = "core.";

/// The description of the API, from the handlers themselves, as OpenAPI 3.1.
#[must_use]
pub fn openapi() -> Value {
    let (_, mut api) = open_routes().merge(guarded_routes()).split_for_parts();
    api.info = Info::new("Planwright", env!("CARGO_PKG_VERSION"));
    api.info.description = Some("Durable, reviewable plans: the API of one installation.".into());
    api.info.license = None;
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    api.components.get_or_insert_default().add_security_scheme("bearer", bearer);
    let nothing: [&str; 0] = [];
    api.security = Some(vec![SecurityRequirement::new("bearer", nothing)]);
    let mut api = serde_json::to_value(api).unwrap_or_default();
    add::<SessionEvent>(&mut api);
    add::<WorkView>(&mut api);
    add::<MemoryView>(&mut api);
    add::<NotebookView>(&mut api);
    add::<RequestView>(&mut api);
    let schemas = &mut api["components"]["schemas"];
    schemas["Preview"] = json!({
        "type": "object",
        "description": "A piece of an answer that is not committed yet.",
        "required": ["turn", "round", "attempt", "offset", "text"],
        "properties": {
            "turn": {"type": "string", "format": "uuid"},
            "round": {"type": "integer"},
            "attempt": {"type": "integer"},
            "offset": {"type": "integer"},
            "text": {"type": "string"},
        },
    });
    schemas["Envelope"]["properties"]["data"] =
        json!({"anyOf": [named("SessionEvent"), {"$ref": "#/components/schemas/Preview"}]});
    let counted = json!({"type": "integer", "minimum": 0, "description": "How many items the caller's other sessions remember: counted, never sent."});
    schemas[format!("{PREFIX}MemoryView")]["properties"]["elsewhere"] = counted;
    for (path, name) in
        [("work", "WorkView"), ("memory", "MemoryView"), ("notebook", "NotebookView")]
    {
        let answer =
            &mut api["paths"][format!("/api/sessions/{{id}}/{path}")]["get"]["responses"]["200"];
        answer["content"]["application/json"]["schema"] = named(name);
    }
    let requests = "/api/sessions/{id}/requests";
    let rows = &mut api["paths"][requests]["get"]["responses"]["200"];
    rows["content"]["application/json"]["schema"] =
        json!({"type": "array", "items": named("RequestRow")});
    let one = &mut api["paths"][format!("{requests}/{{number}}")]["get"]["responses"]["200"];
    one["content"]["application/json"]["schema"] = named("RequestView");
    api
}

fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{PREFIX}{name}")})
}

/// Adds the form of a type, and of every type in it.
fn add<T: JsonSchema>(api: &mut Value) {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let text = serde_json::to_string(&schema).unwrap_or_default();
    let moved = text.replace("#/$defs/", &format!("#/components/schemas/{PREFIX}"));
    let Ok(Value::Object(mut whole)) = serde_json::from_str(&moved) else { return };
    whole.remove("$schema");
    let parts = whole.remove("$defs");
    let schemas = &mut api["components"]["schemas"];
    if let Some(Value::Object(parts)) = parts {
        for (name, part) in parts {
            schemas[format!("{PREFIX}{name}")] = part;
        }
    }
    schemas[format!("{PREFIX}{}", T::schema_name())] = Value::Object(whole);
}
