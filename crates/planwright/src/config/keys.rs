//! Every setting by its name, from the schema of all of them.

/// Every setting that a schema describes.
pub(super) fn keys(schema: &serde_json::Value) -> Vec<String> {
    let mut keys = Vec::new();
    describe(schema, schema, "", &mut keys);
    keys
}

/// The settings under a part of the schema. What may have any name is called `NAME`.
fn describe(
    schema: &serde_json::Value,
    part: &serde_json::Value,
    path: &str,
    keys: &mut Vec<String>,
) {
    let named = part["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
    let part = named.map_or(part, |name| &schema["$defs"][name]);
    let inside = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    if let Some(settings) = part["properties"].as_object() {
        settings.iter().for_each(|(key, part)| describe(schema, part, &inside(key), keys));
    } else if part["additionalProperties"].is_object() {
        describe(schema, &part["additionalProperties"], &inside("NAME"), keys);
    } else {
        keys.push(path.to_owned());
    }
}

/// Whether a setting is one of these, where `NAME` stands for any name.
pub(super) fn is_known(key: &str, known: &[String]) -> bool {
    let fits = |known: &String| {
        known.split('.').count() == key.split('.').count()
            && known
                .split('.')
                .zip(key.split('.'))
                .all(|(known, part)| known == "NAME" || known == part)
    };
    known.iter().any(fits)
}

pub(super) fn written(table: &toml::Table, above: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => found.extend(written(inner, &format!("{above}{key}."))),
            toml::Value::String(_)
            | toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_) => found.push(format!("{above}{key}")),
        }
    }
    found
}

pub(super) fn nearest<'a>(key: &str, known: &'a [String]) -> &'a str {
    let likeness = |known: &&String| {
        (similar::TextDiff::from_chars(key, known.as_str()).ratio() * 1_000.0) as u32
    };
    known.iter().max_by_key(likeness).map_or("server.bind", String::as_str)
}
