//! What this installation knows to be secret: in its environment, its configuration and its data directory.

use std::{fs, path::Path};

use planwright_runtime::secrets::Secrets;

use crate::{
    config::{Config, secrets::is_secret},
    connection,
};

/// What the token of the data directory is called where its value would stand.
pub const TOKEN_NAME: &str = "the token of the data directory";

/// What this installation knows to be secret.
pub fn known_secrets(config: &Config, data: &Path) -> anyhow::Result<Secrets> {
    let variables = std::env::vars().filter(|(name, value)| is_secret(name, value));
    let secrets = Secrets::new(variables.chain(config.secrets.iter().cloned()));
    if let Ok(token) = fs::read_to_string(data.join("token")) {
        secrets.add(TOKEN_NAME, &token);
    }
    if let Some(key) = connection::chosen(data)?.and_then(|choice| choice.wish.api_key) {
        secrets.add("the model's key", &key);
    }
    Ok(secrets)
}
