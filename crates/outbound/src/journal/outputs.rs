//! Large outputs beside the rows that name them: in the data directory of one machine, or in a bucket.
//!
//! Must always hold: an output is there before the row that names it, and belongs to one session. What no row names is swept.

use std::{
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use futures_util::TryStreamExt as _;
use object_store::{
    Error, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutPayload, local::LocalFileSystem,
    path::Path,
};
use planwright_domain::{digest::Digest, identity::SessionKey, limits, time::Time};
use planwright_format::{FormatError, body::Packer};
use planwright_runtime::ports::journal::JournalError;

use super::{
    engine,
    sealed::{read_output, seal_output},
};

/// Where they lie.
const FOLDER: &str = "outputs";
/// The longest name of a folder that every file system takes.
const NAME_CHARS_MAX: usize = 240;

/// The outputs that lie beside a journal.
#[derive(Debug, Clone)]
pub(crate) struct OutputStore {
    store: Arc<dyn ObjectStore>,
    /// The directory, where it is one.
    directory: Option<PathBuf>,
}

/// An output as it is stored.
pub(crate) struct SealedOutput {
    pub(crate) digest: Digest,
    /// How many bytes it takes.
    pub(crate) bytes: i64,
    /// What its row holds; nothing, if it lies beside the rows.
    pub(crate) body: Option<Vec<u8>>,
    text_bytes: usize,
}

impl SealedOutput {
    pub(crate) fn of(session: &SessionKey, text: &str) -> Result<Self, JournalError> {
        let digest = Digest::of(text.as_bytes());
        let body = seal_output(&mut Packer::new().map_err(engine)?, session, digest, text)?;
        Ok(Self { digest, bytes: body.len() as i64, body: Some(body), text_bytes: text.len() })
    }
}

/// What a row says of an output.
pub(crate) enum OutputRow {
    /// Its text.
    Here(String),
    /// It lies beside the rows.
    Beside,
}

/// An output that lies beside a journal.
pub(crate) struct Beside {
    pub(crate) session: SessionKey,
    pub(crate) digest: Digest,
}

impl OutputStore {
    /// Beside the journal in this directory.
    pub(crate) fn in_directory(data: &FilePath) -> Result<Self, JournalError> {
        let store = LocalFileSystem::new_with_prefix(data).map_err(engine)?.with_fsync(true);
        Ok(Self { store: Arc::new(store), directory: Some(data.join(FOLDER)) })
    }

    /// In a bucket that every node reaches.
    #[cfg(feature = "cluster")]
    pub(crate) fn in_bucket(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, directory: None }
    }

    /// Writes an output here, if it is long; what is left is its row.
    pub(crate) async fn take(
        &self,
        session: &SessionKey,
        mut output: SealedOutput,
    ) -> Result<SealedOutput, JournalError> {
        let is_long = output.text_bytes > limits::TOOL_OUTPUT_BYTES_MAX;
        if is_long
            && folder_name(session).len() <= NAME_CHARS_MAX
            && let Some(body) = output.body.take()
        {
            let place = path(session, output.digest);
            self.store.put(&place, PutPayload::from(body)).await.map_err(engine)?;
        }
        Ok(output)
    }

    /// The text of an output whose row has no body.
    pub(crate) async fn read(
        &self,
        session: &SessionKey,
        digest: Digest,
    ) -> Result<String, JournalError> {
        match self.store.get(&path(session, digest)).await {
            Ok(found) => read_output(session, digest, &found.bytes().await.map_err(engine)?),
            Err(Error::NotFound { .. }) => {
                let (what, why) = (format!("an output of {session}"), "it is gone".into());
                Err(FormatError::Corrupt { what, why }.into())
            }
            Err(error) => Err(engine(error)),
        }
    }

    pub(crate) async fn remove(
        &self,
        session: &SessionKey,
        digest: Digest,
    ) -> Result<(), JournalError> {
        self.delete(&path(session, digest)).await
    }

    /// Removes everything of a session.
    pub(crate) async fn remove_all(&self, session: &SessionKey) -> Result<(), JournalError> {
        for found in self.list(Path::from_iter([FOLDER, &folder_name(session)])).await? {
            self.delete(&found.location).await?;
        }
        Ok(())
    }

    /// What was written before then.
    pub(crate) async fn written_before(&self, before: Time) -> Result<Vec<Beside>, JournalError> {
        let found = self.list(Path::from(FOLDER)).await?.into_iter();
        let old = found.filter(|meta| meta.last_modified.timestamp_micros() < before.0);
        Ok(old.filter_map(|meta| beside(&meta.location)).collect())
    }

    async fn list(&self, under: Path) -> Result<Vec<ObjectMeta>, JournalError> {
        // Nothing was ever kept here.
        if self.directory.as_ref().is_some_and(|directory| !directory.exists()) {
            return Ok(Vec::new());
        }
        self.store.list(Some(&under)).try_collect().await.map_err(engine)
    }

    async fn delete(&self, path: &Path) -> Result<(), JournalError> {
        match self.store.delete(path).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(engine(error)),
        }
    }
}

/// A session's key in digits and small letters, from which it can be read again.
fn folder_name(session: &SessionKey) -> String {
    session.to_string().bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn path(session: &SessionKey, digest: Digest) -> Path {
    Path::from_iter([FOLDER, &folder_name(session), &digest.to_string()])
}

/// What lies at this place; nothing, if nobody puts outputs there.
fn beside(place: &Path) -> Option<Beside> {
    let mut parts = place.parts().skip(1);
    let (folder, name) = (parts.next()?, parts.next()?);
    let digit = |at| u8::from_str_radix(folder.as_ref().get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<_>> = (0..folder.as_ref().len()).step_by(2).map(digit).collect();
    let session = SessionKey::parse(&String::from_utf8(bytes?).ok()?).ok()?;
    Some(Beside { session, digest: Digest::parse(name.as_ref())? })
}
