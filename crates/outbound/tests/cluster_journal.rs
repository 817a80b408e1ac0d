//! The journal on PostgreSQL passes the contract, also where nodes get in each other's way.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::sync::Arc;

use async_trait::async_trait;
use planwright_outbound::journal_postgres::PostgresJournal;
use planwright_runtime::ports::Journal;
use planwright_testkit::{journal_contract, journal_contract::Place, servers::Postgres};

struct Server(Postgres);

#[async_trait]
impl Place for Server {
    async fn open(&self) -> Arc<dyn Journal> {
        Arc::new(PostgresJournal::open(&self.0.address()).await.unwrap())
    }
}

journal_contract!(Server(Postgres::start()));
