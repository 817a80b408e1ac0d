//! What is kept beside the audit log, where every node can look it up: what passphrases are hashed to, and what is told of the
//! tokens that were given out.

use std::collections::BTreeSet;

use async_trait::async_trait;
use deadpool_postgres::Pool;
use planwright_domain::{digest::Digest, id::GrantId, time::Time};
use planwright_runtime::ports::access::{Access, AccessError, GrantDetails, TICKETS_MAX, Ticket};

use crate::{passphrase, postgres::connection};

/// Access kept in the database.
pub struct PostgresAccess {
    pool: Pool,
}

impl PostgresAccess {
    /// The access that is kept behind these connections.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { pool }
    }
}

#[async_trait]
impl Access for PostgresAccess {
    async fn keep(&self, details: GrantDetails, secret: Digest) -> Result<(), AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let body = serde_json::to_string(&details)
            .map_err(|error| AccessError::Refused(error.to_string()))?;
        let sql = "INSERT INTO grants (secret, id, created, body) VALUES ($1, $2, $3, $4)";
        let (secret, created) = (secret.to_string(), details.created.0);
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&secret, &details.id.0, &created, &body];
        client.execute(sql, &parameters).await.map_err(unreachable)?;
        Ok(())
    }

    async fn find(&self, secret: Digest) -> Result<Option<GrantDetails>, AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let sql = "SELECT body FROM grants WHERE secret = $1";
        let statement = client.prepare_cached(sql).await.map_err(unreachable)?;
        let row =
            client.query_opt(&statement, &[&secret.to_string()]).await.map_err(unreachable)?;
        row.map(|row| read(row.get(0))).transpose()
    }

    async fn list(&self) -> Result<Vec<GrantDetails>, AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let sql = "SELECT body FROM grants ORDER BY created, id";
        let rows = client.query(sql, &[]).await.map_err(unreachable)?;
        rows.iter().map(|row| read(row.get(0))).collect()
    }

    async fn keep_only(&self, good: &BTreeSet<GrantId>, before: Time) -> Result<(), AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let good: Vec<_> = good.iter().map(|id| id.0).collect();
        let sql = "DELETE FROM grants WHERE created < $1 AND NOT id = ANY ($2)";
        client.execute(sql, &[&before.0, &good]).await.map_err(unreachable)?;
        Ok(())
    }

    async fn keep_ticket(&self, ticket: Ticket) -> Result<(), AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let ended = "DELETE FROM tickets WHERE expires <= $1";
        client.execute(ended, &[&ticket.created.0]).await.map_err(unreachable)?;
        let most = TICKETS_MAX as i64 - 1;
        let older = "DELETE FROM tickets WHERE grant_id = $1 AND secret NOT IN
                     (SELECT secret FROM tickets WHERE grant_id = $1 ORDER BY expires DESC LIMIT $2)";
        client.execute(older, &[&ticket.grant.0, &most]).await.map_err(unreachable)?;
        let sql = "INSERT INTO tickets (secret, grant_id, expires) VALUES ($1, $2, $3)";
        let secret = ticket.secret.to_string();
        client
            .execute(sql, &[&secret, &ticket.grant.0, &ticket.expires.0])
            .await
            .map_err(unreachable)?;
        Ok(())
    }

    async fn take_ticket(&self, secret: Digest, now: Time) -> Result<Option<GrantId>, AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let sql = "DELETE FROM tickets WHERE secret = $1 RETURNING grant_id, expires";
        let row = client.query_opt(sql, &[&secret.to_string()]).await.map_err(unreachable)?;
        Ok(row.filter(|row| row.get::<_, i64>(1) > now.0).map(|row| GrantId(row.get(0))))
    }

    async fn keep_passphrase(&self, given: &str) -> Result<Digest, AccessError> {
        let hash = passphrase::hash(given).await?;
        let digest = Digest::of(hash.as_bytes());
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let sql = "INSERT INTO passphrases (digest, hash) VALUES ($1, $2)";
        client.execute(sql, &[&digest.to_string(), &hash]).await.map_err(unreachable)?;
        Ok(digest)
    }

    async fn fits(&self, hash: Option<Digest>, given: &str) -> Result<bool, AccessError> {
        let Some(digest) = hash else { return passphrase::fits_nothing(given).await };
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let sql = "SELECT hash FROM passphrases WHERE digest = $1";
        let row = client.query_opt(sql, &[&digest.to_string()]).await.map_err(unreachable)?;
        drop(client);
        let hash: String = row.ok_or_else(passphrase::missing)?.get(0);
        if Digest::of(hash.as_bytes()) != digest {
            return Err(passphrase::missing());
        }
        passphrase::fits(given, hash).await
    }

    async fn forget_passphrase(&self, hash: Digest) -> Result<(), AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let sql = "DELETE FROM passphrases WHERE digest = $1";
        client.execute(sql, &[&hash.to_string()]).await.map_err(unreachable)?;
        Ok(())
    }
}

fn read(body: &str) -> Result<GrantDetails, AccessError> {
    serde_json::from_str(body)
        .map_err(|error| AccessError::Refused(format!("a grant is damaged: {error}")))
}

fn unreachable(error: impl std::fmt::Display) -> AccessError {
    AccessError::Unreachable(error.to_string())
}
