//! The pages of notebooks in an object store: a directory of this machine, or a bucket that speaks S3.
//!
//! A session's pages lie under `users/{its path-safe name}/plan/`. Every write is whole or not at all. In a
//! bucket the store itself compares before it replaces; a directory has one process, which does it under a lock.

use std::{path::Path as FilePath, sync::Arc};

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, UpdateVersion,
    aws::{AmazonS3Builder, S3ConditionalPut},
    local::LocalFileSystem,
    path::Path,
};
use planwright_domain::{digest::Digest, identity::SessionKey};
use planwright_runtime::ports::notebook::{Kept, NotebookError, Notebooks, Put};
use tokio::sync::{Mutex, OnceCell};

/// A bucket, and how it is reached. What is not said is taken from the environment, as usual for S3.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// The address of its server; Amazon's own, if not set.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The key's name.
    pub access_key: Option<String>,
    /// The key.
    pub secret_key: Option<String>,
}

impl Bucket {
    /// The bucket, for whatever is kept in it.
    pub fn open(self) -> Result<Arc<dyn ObjectStore>, NotebookError> {
        let Self { name, endpoint, region, access_key, secret_key } = self;
        let mut store = AmazonS3Builder::from_env()
            .with_bucket_name(name)
            .with_conditional_put(S3ConditionalPut::ETagMatch);
        if let Some(endpoint) = endpoint {
            store = store.with_allow_http(endpoint.starts_with("http://")).with_endpoint(endpoint);
        }
        store = region.into_iter().fold(store, AmazonS3Builder::with_region);
        store = access_key.into_iter().fold(store, AmazonS3Builder::with_access_key_id);
        store = secret_key.into_iter().fold(store, AmazonS3Builder::with_secret_access_key);
        Ok(Arc::new(store.build().map_err(failed)?))
    }
}

/// The pages of notebooks in an object store.
pub struct ObjectStoreNotebooks {
    store: Arc<dyn ObjectStore>,
    /// One writer at a time, where the store cannot compare.
    writing: Option<Mutex<()>>,
    /// Whether the store was seen to compare.
    compares: OnceCell<()>,
}

impl ObjectStoreNotebooks {
    /// The pages in this directory.
    pub fn in_directory(data: &FilePath) -> Result<Self, NotebookError> {
        let store = LocalFileSystem::new_with_prefix(data).map_err(failed)?.with_fsync(true);
        Ok(Self {
            store: Arc::new(store),
            writing: Some(Mutex::default()),
            compares: OnceCell::new_with(Some(())),
        })
    }

    /// The pages in this bucket.
    #[must_use]
    pub fn in_bucket(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, writing: None, compares: OnceCell::new() }
    }

    /// Looks once whether the store compares before it replaces: one that does not would let people lose each
    /// other's writes, silently.
    async fn look(&self) -> Result<(), NotebookError> {
        let looked = self.compares.get_or_try_init(async || {
            let path = Path::from_iter(["users", &format!("probe-{}", uuid::Uuid::now_v7())]);
            let first = self.put(&path, "1", PutMode::Create).await?;
            let second = self.put(&path, "2", PutMode::Create).await?;
            self.store.delete(&path).await.map_err(failed)?;
            match (first, second) {
                (Put::Done, Put::Changed) => Ok(()),
                (_, _) => Err(NotebookError(
                    "the bucket's server ignores conditions of writes (If-None-Match), so people would lose each other's; use one that honours them".into(),
                )),
            }
        });
        looked.await.copied()
    }

    async fn get(&self, path: &Path) -> Result<Option<Kept>, NotebookError> {
        let found = match self.store.get(path).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let tag = found.meta.e_tag.clone();
        let bytes = found.bytes().await.map_err(failed)?;
        let text = String::from_utf8(bytes.into()).map_err(failed)?;
        let mark = match (&self.writing, tag) {
            (None, Some(tag)) => tag,
            (None, None) => return Err(NotebookError("the store gives no ETag".into())),
            (Some(_), _) => Digest::of(text.as_bytes()).to_string(),
        };
        Ok(Some(Kept { text, mark }))
    }

    async fn put(&self, path: &Path, text: &str, mode: PutMode) -> Result<Put, NotebookError> {
        let payload = PutPayload::from(text.to_owned());
        let options = PutOptions { mode, ..PutOptions::default() };
        match self.store.put_opts(path, payload, options).await {
            Ok(_) => Ok(Put::Done),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(Put::Changed),
            // What was to be replaced is gone.
            Err(Error::NotFound { .. }) => Ok(Put::Changed),
            Err(error) => Err(failed(error)),
        }
    }
}

#[async_trait]
impl Notebooks for ObjectStoreNotebooks {
    async fn read(&self, identity: &SessionKey, name: &str) -> Result<Option<Kept>, NotebookError> {
        self.get(&path(identity, name)?).await
    }

    async fn write(
        &self,
        identity: &SessionKey,
        name: &str,
        text: &str,
        expected: Option<&str>,
    ) -> Result<Put, NotebookError> {
        let path = path(identity, name)?;
        self.look().await?;
        let Some(expected) = expected else { return self.put(&path, text, PutMode::Create).await };
        match &self.writing {
            None => {
                let version = UpdateVersion { e_tag: Some(expected.to_owned()), version: None };
                self.put(&path, text, PutMode::Update(version)).await
            }
            Some(writing) => {
                let _alone = writing.lock().await;
                match self.get(&path).await? {
                    Some(kept) if kept.mark == expected => {
                        self.put(&path, text, PutMode::Overwrite).await
                    }
                    Some(_) | None => Ok(Put::Changed),
                }
            }
        }
    }

    async fn list(&self, identity: &SessionKey) -> Result<Vec<String>, NotebookError> {
        let home = home(identity);
        let found: Vec<_> = self.store.list(Some(&home)).try_collect().await.map_err(failed)?;
        let name = |meta: &object_store::ObjectMeta| {
            let parts: Vec<_> = meta.location.prefix_match(&home)?.collect();
            Some(parts.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("/"))
        };
        let mut names: Vec<_> = found.iter().filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    async fn remove(&self, identity: &SessionKey, name: &str) -> Result<(), NotebookError> {
        match self.store.delete(&path(identity, name)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}

/// The notebooks of a node that was given no store: there are none, and every use says so.
pub struct NoNotebooks;

#[async_trait]
impl Notebooks for NoNotebooks {
    async fn read(&self, _: &SessionKey, _: &str) -> Result<Option<Kept>, NotebookError> {
        Err(no_store())
    }

    async fn write(
        &self,
        _: &SessionKey,
        _: &str,
        _: &str,
        _: Option<&str>,
    ) -> Result<Put, NotebookError> {
        Err(no_store())
    }

    async fn list(&self, _: &SessionKey) -> Result<Vec<String>, NotebookError> {
        Ok(Vec::new())
    }

    async fn remove(&self, _: &SessionKey, _: &str) -> Result<(), NotebookError> {
        Ok(())
    }
}

fn no_store() -> NotebookError {
    NotebookError(
        "the nodes of a cluster share no directory; an operator sets notebook.bucket".into(),
    )
}

fn home(identity: &SessionKey) -> Path {
    Path::from_iter(["users", &identity.path_segment(), "plan"])
}

/// The place of a page. Only names that the notebook itself makes have one.
fn path(identity: &SessionKey, name: &str) -> Result<Path, NotebookError> {
    let plain = |part: &str| {
        let safe = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(safe)
    };
    if !name.split('/').all(plain) {
        return Err(NotebookError(format!("{name:?} is not a page")));
    }
    Ok(name.split('/').fold(home(identity), |path, part| path.join(part)))
}

fn failed(error: impl std::fmt::Display) -> NotebookError {
    NotebookError(error.to_string())
}
