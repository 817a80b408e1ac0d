//! Connections to PostgreSQL, and what all nodes agree on there.

use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime as PoolRuntime,
};
use planwright_runtime::ports::{causes::with_causes, journal::JournalError};
use tokio_postgres::{NoTls, config::SslMode};
use tokio_postgres_rustls_improved::MakeRustlsConnect;

use crate::{database_address, journal::engine};

mod tls;

/// How many connections one node keeps.
const CONNECTIONS_MAX: usize = 16;
/// How long one question may take before its connection is given up.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Connections to the database at this address.
pub(crate) fn pool(address: &str) -> Result<Pool, JournalError> {
    pool_with(address, "")
}

/// Connections to the tables in this schema of the database at this address.
pub(crate) fn pool_in(address: &str, schema: &str) -> Result<Pool, JournalError> {
    pool_with(address, &format!(" -c search_path={schema}"))
}

fn pool_with(address: &str, options: &str) -> Result<Pool, JournalError> {
    let (address, tls) = database_address::split(address);
    let mut config: tokio_postgres::Config = address.parse().map_err(engine)?;
    config.application_name("planwright");
    config.connect_timeout(ANSWER_MAX);
    config.tcp_user_timeout(ANSWER_MAX);
    // A lock that is never given and a statement that never ends must not hold a node. How statements are planned is left to the
    // server: one plan for all values would lock every partition each time.
    config.options(format!(
        "-c statement_timeout=5000 -c idle_in_transaction_session_timeout=10000{options}"
    ));
    let recycle = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match tls {
        Some(tls) => {
            // Never `Prefer`: that falls back to plain text.
            config.ssl_mode(SslMode::Require);
            Manager::from_config(config, MakeRustlsConnect::new(tls::config(&tls)?), recycle)
        }
        None => Manager::from_config(config, NoTls, recycle),
    };
    Pool::builder(manager)
        .max_size(CONNECTIONS_MAX)
        .runtime(PoolRuntime::Tokio1)
        .wait_timeout(Some(ANSWER_MAX))
        .create_timeout(Some(ANSWER_MAX))
        .build()
        .map_err(engine)
}

/// One connection.
pub(crate) async fn connection(pool: &Pool) -> Result<Object, JournalError> {
    pool.get().await.map_err(|error| {
        let words = match &error {
            PoolError::Timeout(_) => {
                "the database cannot be reached, or all connections to it are busy".to_owned()
            }
            PoolError::Backend(error) => {
                format!("the database cannot be reached: {}", with_causes(error))
            }
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                error.to_string()
            }
        };
        JournalError::Engine(words.into())
    })
}

/// What all nodes agreed on under this name.
pub(crate) async fn agreed(pool: &Pool, name: &str) -> Result<Option<String>, JournalError> {
    let sql = "SELECT value FROM agreed WHERE name = $1";
    let row = connection(pool).await?.query_opt(sql, &[&name]).await.map_err(engine)?;
    Ok(row.map(|row| row.get(0)))
}

/// Agrees on something for all nodes.
pub(crate) async fn agree(pool: &Pool, name: &str, value: &str) -> Result<(), JournalError> {
    let sql = "INSERT INTO agreed (name, value) VALUES ($1, $2)
               ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    connection(pool).await?.execute(sql, &[&name, &value]).await.map(drop).map_err(engine)
}
