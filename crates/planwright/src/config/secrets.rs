//! Which values of a configuration are secret.

/// The words by which the name of a variable or a setting says that its value is secret.
const WORDS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSPHRASE", "CREDENTIAL"];

/// Whether a variable or a setting of this name holds a secret, and not the place of one.
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut parts = name.split(|character: char| !character.is_ascii_alphanumeric());
    parts.any(|part| WORDS.contains(&part)) && !value.starts_with(['/', '.', '~'])
}

/// The secrets that a configuration holds, by the names of their settings: what is called so, what is sent to or set for a tool
/// server, and the password in an address.
pub(super) fn in_configuration(table: &toml::Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(table, "", false, &mut found);
    found
}

fn collect(table: &toml::Table, above: &str, all: bool, found: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = format!("{above}{key}");
        match value {
            toml::Value::Table(inner) => {
                let all = all || ["headers", "env"].contains(&key.as_str());
                collect(inner, &format!("{name}."), all, found);
            }
            toml::Value::String(text) => {
                if all || is_secret(key, text) {
                    found.push((name.clone(), text.clone()));
                }
                let address = reqwest::Url::parse(text).ok();
                let password = address.as_ref().and_then(|address| address.password());
                found.extend(password.map(|password| (name, password.to_owned())));
            }
            toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_configuration_keeps_secret_is_found_by_its_name_and_places_are_not() {
        let text = r#"
            [model]
            url = "https://example.org/v1"
            api_key = "sk-0123456789ab"
            [cluster]
            database = "postgres://planwright:long-password@db/planwright"
            nats_key = "/etc/planwright/nats.key"
            [mcp.servers.notes.env]
            NOTES_WORKSPACE = "everything-set-here"
            [workspace]
            keyboard = "not a key"
        "#;
        let found = in_configuration(&text.parse().expect("toml"));
        let names: Vec<_> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(
            names,
            [
                ("cluster.database", "long-password"),
                ("mcp.servers.notes.env.NOTES_WORKSPACE", "everything-set-here"),
                ("model.api_key", "sk-0123456789ab"),
            ]
        );
        assert!(is_secret("AWS_SECRET_ACCESS_KEY", "x") && is_secret("github.token", "x"));
        assert!(!is_secret("KEYBOARD", "x") && !is_secret("TLS_KEY", "/etc/key"));
    }
}
