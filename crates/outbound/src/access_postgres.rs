//! Who may do what, where every node can look it up: what passphrases are hashed to, and the digests of
//! the tokens that were given out.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use deadpool_postgres::Pool;
use planwright_domain::{digest::Digest, time::Time};
use planwright_runtime::ports::access::{Access, AccessError, Grant, Room, TICKETS_MAX, Ticket};
use uuid::Uuid;

use crate::{passphrase, postgres::connection};

/// How long a node trusts what it looked up: a token that is revoked elsewhere lasts so long here.
const TRUSTED: Duration = Duration::from_millis(500);

/// Access kept in the database.
pub struct PostgresAccess {
    pool: Pool,
    seen: RwLock<HashMap<Digest, (Instant, Grant)>>,
}

impl PostgresAccess {
    /// The access that is kept behind these connections.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { pool, seen: RwLock::default() }
    }

    fn forget(&self, is_meant: impl Fn(&Grant) -> bool) {
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, (at, grant)| at.elapsed() < TRUSTED && !is_meant(grant));
    }
}

#[async_trait]
impl Access for PostgresAccess {
    async fn keep(&self, grant: Grant, secret: Digest) -> Result<(), AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let ended = "DELETE FROM grants WHERE (body::json ->> 'expires')::bigint <= $1";
        client.execute(ended, &[&grant.created.0]).await.map_err(unreachable)?;
        match Room::for_grant(&grant, self.list().await?.iter()) {
            Room::Free => {}
            Room::InPlaceOf(oldest) => drop(self.revoke(oldest).await?),
            Room::None => return Err(Room::refused(&grant)),
        }
        let body = serde_json::to_string(&grant)
            .map_err(|error| AccessError::Refused(error.to_string()))?;
        let sql = "INSERT INTO grants (secret, id, body) VALUES ($1, $2, $3)
                   ON CONFLICT (secret) DO UPDATE SET id = excluded.id, body = excluded.body";
        client.execute(sql, &[&secret.to_string(), &grant.id, &body]).await.map_err(unreachable)?;
        Ok(())
    }

    async fn find(&self, secret: Digest) -> Result<Option<Grant>, AccessError> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner).get(&secret).cloned();
        if let Some((at, grant)) = seen
            && at.elapsed() < TRUSTED
        {
            return Ok(Some(grant));
        }
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let sql = "SELECT body FROM grants WHERE secret = $1";
        let statement = client.prepare_cached(sql).await.map_err(unreachable)?;
        let row =
            client.query_opt(&statement, &[&secret.to_string()]).await.map_err(unreachable)?;
        let Some(row) = row else { return Ok(None) };
        let grant: Grant = read(row.get(0))?;
        self.forget(|_| false);
        self.seen
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(secret, (Instant::now(), grant.clone()));
        Ok(Some(grant))
    }

    async fn list(&self) -> Result<Vec<Grant>, AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let rows = client.query("SELECT body FROM grants", &[]).await.map_err(unreachable)?;
        let mut grants =
            rows.iter().map(|row| read(row.get(0))).collect::<Result<Vec<Grant>, _>>()?;
        grants.sort_by_key(|grant| grant.created);
        Ok(grants)
    }

    async fn revoke(&self, id: Uuid) -> Result<bool, AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let gone = client
            .execute(
                "DELETE FROM grants WHERE id = $1 OR body::json ->> 'token' = $1::text",
                &[&id],
            )
            .await
            .map_err(unreachable)?;
        self.forget(|grant| grant.id == id || grant.token == Some(id));
        Ok(gone > 0)
    }

    async fn keep_ticket(&self, ticket: Ticket) -> Result<(), AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let ended = "DELETE FROM tickets WHERE expires <= $1";
        client.execute(ended, &[&ticket.created.0]).await.map_err(unreachable)?;
        let most = TICKETS_MAX as i64 - 1;
        let older = "DELETE FROM tickets WHERE grant_id = $1 AND secret NOT IN
                     (SELECT secret FROM tickets WHERE grant_id = $1 ORDER BY expires DESC LIMIT $2)";
        client.execute(older, &[&ticket.grant, &most]).await.map_err(unreachable)?;
        let sql = "INSERT INTO tickets (secret, grant_id, expires) VALUES ($1, $2, $3)";
        let secret = ticket.secret.to_string();
        client
            .execute(sql, &[&secret, &ticket.grant, &ticket.expires.0])
            .await
            .map_err(unreachable)?;
        Ok(())
    }

    async fn take_ticket(&self, secret: Digest, now: Time) -> Result<Option<Uuid>, AccessError> {
        let client = connection(&self.pool).await.map_err(unreachable)?;
        let sql = "DELETE FROM tickets WHERE secret = $1 RETURNING grant_id, expires";
        let row = client.query_opt(sql, &[&secret.to_string()]).await.map_err(unreachable)?;
        Ok(row.filter(|row| row.get::<_, i64>(1) > now.0).map(|row| row.get(0)))
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

fn read(body: &str) -> Result<Grant, AccessError> {
    serde_json::from_str(body)
        .map_err(|error| AccessError::Refused(format!("a grant is damaged: {error}")))
}

fn unreachable(error: impl std::fmt::Display) -> AccessError {
    AccessError::Unreachable(error.to_string())
}
