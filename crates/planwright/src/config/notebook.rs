//! The settings of the notebook.

use std::{path::Path, sync::Arc};

#[cfg(feature = "cluster")]
use planwright_outbound::journal_postgres::PostgresJournal;
use planwright_outbound::notebook_object_store::{Bucket, NoNotebooks, ObjectStoreNotebooks};
use planwright_runtime::{ports::notebook::Notebooks, settings::NotebookSettings};
use schemars::JsonSchema;
use serde::Deserialize;

/// The notebook: a session's planning files.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotebookConfig {
    /// Whether it is on where nobody said otherwise; a person says so with `/notebook on` and `/notebook off`.
    pub enabled: bool,
    /// One in this many calls that read is noted in `findings`, and every error in `progress`; 0 notes nothing.
    pub note_every: u64,
    /// The bucket that holds the pages, and on a cluster the long outputs of tools; a directory of this machine, if not set.
    /// A cluster needs one.
    pub bucket: Option<String>,
    /// The address of the bucket's server; Amazon's own, if not set.
    pub endpoint: Option<String>,
    /// The bucket's region.
    pub region: Option<String>,
    /// The name of the key; `AWS_ACCESS_KEY_ID`, if not set.
    pub access_key: Option<String>,
    /// The key; `AWS_SECRET_ACCESS_KEY`, if not set.
    pub secret_key: Option<String>,
}

impl Default for NotebookConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            note_every: 2,
            bucket: None,
            endpoint: None,
            region: None,
            access_key: None,
            secret_key: None,
        }
    }
}

impl NotebookConfig {
    /// The settings of the runtime.
    #[must_use]
    pub fn settings(&self) -> NotebookSettings {
        NotebookSettings { enabled: self.enabled, note_every: self.note_every }
    }

    /// The bucket that is named, if one is.
    fn named_bucket(&self) -> Option<Bucket> {
        Some(Bucket {
            name: self.bucket.clone()?,
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            access_key: self.access_key.clone(),
            secret_key: self.secret_key.clone(),
        })
    }

    fn bucket(&self) -> anyhow::Result<Option<Arc<dyn Notebooks>>> {
        let Some(bucket) = self.named_bucket() else { return Ok(None) };
        Ok(Some(Arc::new(ObjectStoreNotebooks::in_bucket(bucket.open()?))))
    }

    /// The journal of a cluster, whose long outputs lie in the bucket if one is named.
    #[cfg(feature = "cluster")]
    pub async fn cluster_journal(&self, database: &str) -> anyhow::Result<PostgresJournal> {
        let journal = PostgresJournal::open(database).await?;
        Ok(match self.named_bucket() {
            Some(bucket) => journal.with_outputs_in(bucket.open()?),
            None => journal,
        })
    }

    /// The pages of a local installation.
    pub fn local(&self, data: &Path) -> anyhow::Result<Arc<dyn Notebooks>> {
        match self.bucket()? {
            Some(bucket) => Ok(bucket),
            None => Ok(Arc::new(ObjectStoreNotebooks::in_directory(data)?)),
        }
    }

    /// The pages of a node of a cluster.
    pub fn shared(&self) -> anyhow::Result<Arc<dyn Notebooks>> {
        match self.bucket()? {
            Some(bucket) => Ok(bucket),
            None if self.enabled => anyhow::bail!(
                "notebook.enabled: the nodes of a cluster share no directory; set notebook.bucket"
            ),
            None => Ok(Arc::new(NoNotebooks)),
        }
    }
}
