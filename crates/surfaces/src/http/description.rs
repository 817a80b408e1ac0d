//! The description of the API: what the handlers say of themselves, and the form of everything that is streamed.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use planwright_runtime::{
    queries::autonomy::WorkView, queries::memory::MemoryView,
    queries::model_request_log::RequestView, queries::notebook::NotebookView,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};
use utoipa::openapi::{
    Info, OpenApi,
    security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
};

use crate::http::session_event::SessionEventDto;

/// What is shown has names of its own beside those of the API.
const VIEWS: &str = "core.";
/// And so has what is recorded.
const EVENTS: &str = "event.";

/// The description of the API, completed: what the handlers say of themselves, and the form of everything that is streamed.
pub(crate) fn openapi(mut api: OpenApi) -> Value {
    api.info = Info::new("Planwright", env!("CARGO_PKG_VERSION"));
    api.info.description = Some("Durable, reviewable plans: the API of one installation.".into());
    api.info.license = None;
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    api.components.get_or_insert_default().add_security_scheme("bearer", bearer);
    let nothing: [&str; 0] = [];
    api.security = Some(vec![SecurityRequirement::new("bearer", nothing)]);
    let mut api = serde_json::to_value(api).unwrap_or_default();
    add::<SessionEventDto>(&mut api, EVENTS);
    add::<WorkView>(&mut api, VIEWS);
    add::<MemoryView>(&mut api, VIEWS);
    add::<NotebookView>(&mut api, VIEWS);
    add::<RequestView>(&mut api, VIEWS);
    let schemas = &mut api["components"]["schemas"];
    schemas["Preview"] = json!({
        "type": "object",
        "description": "A piece of an answer that is not committed yet.",
        "required": ["type", "data"],
        "properties": {
            "type": {"type": "string", "const": "preview"},
            "data": {
                "type": "object",
                "required": ["turn", "round", "attempt", "offset", "text"],
                "properties": {
                    "turn": {"type": "string", "format": "uuid"},
                    "round": {"type": "integer"},
                    "attempt": {"type": "integer"},
                    "offset": {"type": "integer"},
                    "text": {"type": "string"},
                },
            },
        },
    });
    let events = format!("#/components/schemas/{EVENTS}SessionEvent");
    let event = json!({"anyOf": [{"$ref": events}, {"$ref": "#/components/schemas/Preview"}]});
    let mut fields = schemas["Envelope"].take();
    for name in ["type", "data"] {
        if let Some(properties) = fields["properties"].as_object_mut() {
            properties.remove(name);
        }
        if let Some(required) = fields["required"].as_array_mut() {
            required.retain(|one| one != name);
        }
    }
    fields["required"] = json!(["id", "source", "time", "subject", "sessionId", "seq", "schema"]);
    fields["properties"]["time"]["format"] = json!("date-time");
    schemas["EnvelopeFields"] = fields;
    schemas["Envelope"] = json!({
        "description": "Something that happened, or a preview of it.",
        "allOf": [{"$ref": "#/components/schemas/EnvelopeFields"}, event],
    });
    let counted = json!({"type": "integer", "minimum": 0, "description": "How many items the caller's other sessions remember: counted, never sent."});
    schemas[format!("{VIEWS}MemoryView")]["properties"]["elsewhere"] = counted;
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
    make_valid(&mut api);
    api
}

/// A parameter in a path is told twice, by the handler's arguments and by its description: the described one stays.
/// An answer that says nothing of itself is called what HTTP calls it; the standard wants a description.
fn make_valid(api: &mut Value) {
    let paths = api["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    let operations = paths.filter_map(Value::as_object_mut).flat_map(|path| path.values_mut());
    for operation in operations.filter(|operation| operation["responses"].is_object()) {
        if let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) {
            let mut known = BTreeSet::new();
            parameters.retain(|parameter| {
                known.insert((parameter["in"].to_string(), parameter["name"].to_string()))
            });
        }
        let answers = operation["responses"].as_object_mut();
        for (status, answer) in answers.into_iter().flatten() {
            if answer["description"].as_str().unwrap_or_default().is_empty() {
                let status = status.parse().ok().and_then(|code| StatusCode::from_u16(code).ok());
                let words = status.and_then(|status| status.canonical_reason());
                answer["description"] = words.unwrap_or("What became of it").into();
            }
        }
    }
}

fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{VIEWS}{name}")})
}

/// Adds the form of a type, and of every type in it.
fn add<T: JsonSchema>(api: &mut Value, prefix: &str) {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let text = serde_json::to_string(&schema).unwrap_or_default();
    let moved = text.replace("#/$defs/", &format!("#/components/schemas/{prefix}"));
    let Ok(Value::Object(mut whole)) = serde_json::from_str(&moved) else { return };
    whole.remove("$schema");
    let parts = whole.remove("$defs");
    let schemas = &mut api["components"]["schemas"];
    if let Some(Value::Object(parts)) = parts {
        for (name, part) in parts {
            schemas[format!("{prefix}{name}")] = part;
        }
    }
    schemas[format!("{prefix}{}", T::schema_name())] = Value::Object(whole);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::http::openapi;

    #[test]
    fn every_answer_is_described_and_no_parameter_is_told_twice() {
        let api = openapi();
        let (mut operations, mut answers, mut parameters) = (0, 0, 0);
        for (path, methods) in api["paths"].as_object().expect("there are paths") {
            for (method, operation) in methods.as_object().expect("there are methods") {
                operations += 1;
                for (status, answer) in operation["responses"].as_object().expect("it answers") {
                    let words = answer["description"].as_str().unwrap_or_default();
                    assert!(!words.is_empty(), "{method} {path} {status}");
                    answers += 1;
                }
                let listed = operation.get("parameters");
                assert!(listed.is_none_or(serde_json::Value::is_array), "{method} {path}");
                let told: Vec<_> =
                    operation["parameters"].as_array().into_iter().flatten().collect();
                let names: BTreeSet<_> =
                    told.iter().map(|one| (one["in"].as_str(), one["name"].as_str())).collect();
                assert_eq!(names.len(), told.len(), "{method} {path}");
                parameters += told.len();
            }
        }
        assert!(operations > 60 && answers > operations && parameters > 40);
    }
}
