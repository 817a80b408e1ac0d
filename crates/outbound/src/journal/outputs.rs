//! Large outputs beside the rows that name them: in the data directory of one machine, or in a bucket.
//!
//! Must always hold: an output is there before the row that names it, and belongs to one session. What no row names is swept.

use std::{
    fs, io,
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use futures_util::{TryStreamExt as _, future::BoxFuture};
use object_store::{
    Error, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutPayload, local::LocalFileSystem,
    path::Path,
};
use planwright_domain::{digest::Digest, identity::SessionKey, limits, time::Time};
use planwright_format::{FormatError, body::Packer};
use planwright_runtime::ports::journal::JournalError;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use super::{
    engine,
    sealed::{read_output, seal_output},
};
use crate::durable_file::sync_directory;

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
    /// Shared by those who write an output and then its row; the sweep has it alone.
    writing: Arc<RwLock<()>>,
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
#[derive(Clone)]
pub(crate) struct Beside {
    pub(crate) session: SessionKey,
    pub(crate) digest: Digest,
}

impl OutputStore {
    /// Beside the journal in this directory.
    pub(crate) fn in_directory(data: &FilePath) -> Result<Self, JournalError> {
        let store = LocalFileSystem::new_with_prefix(data).map_err(engine)?.with_fsync(true);
        let directory = Some(data.join(FOLDER));
        Ok(Self { store: Arc::new(store), directory, writing: Arc::default() })
    }

    /// In a bucket that every node reaches.
    #[cfg(feature = "cluster")]
    pub(crate) fn in_bucket(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, directory: None, writing: Arc::default() }
    }

    /// Held from before an output is written until its row is: this process does not sweep meanwhile.
    pub(crate) async fn writing(&self) -> OwnedRwLockReadGuard<()> {
        self.writing.clone().read_owned().await
    }

    /// Removes what was written before then and has no row; how many.
    pub(crate) async fn sweep<'a>(
        &self,
        before: Time,
        is_named: impl Fn(Beside) -> BoxFuture<'a, Result<bool, JournalError>>,
    ) -> Result<usize, JournalError> {
        let mut swept = 0;
        for beside in self.written_before(before).await? {
            // Most are named: who writes one waits only for what is looked at twice.
            if is_named(beside.clone()).await? {
                continue;
            }
            let _sweeping = self.writing.write().await;
            if !is_named(beside.clone()).await? {
                swept += usize::from(self.remove_unnamed(&beside, before).await?);
            }
        }
        Ok(swept)
    }

    /// Writes an output here, if it is long; what is left is its row, with the output in it if it could not be written here.
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
            let (place, payload) = (path(session, output.digest), PutPayload::from(body));
            if let Err(error) = self.store.put(&place, payload.clone()).await {
                // It is kept all the same, where shorter ones are.
                tracing::warn!(%session, %error, event = "output_kept_in_the_journal");
                output.body = Some(payload.as_ref().concat());
            }
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

    /// Removes everything of a session, its folder and what was half written too.
    pub(crate) async fn remove_all(&self, session: &SessionKey) -> Result<(), JournalError> {
        let folder = folder_name(session);
        if folder.len() > NAME_CHARS_MAX {
            return Ok(());
        }
        if let Some(directory) = &self.directory {
            return remove_folder(directory, &folder).map_err(engine);
        }
        for found in self.list(Path::from_iter([FOLDER, &folder])).await? {
            self.delete(&found.location).await?;
        }
        Ok(())
    }

    /// The same after its rows are gone, for what was written meanwhile. They are gone, so an error is told and no more: nothing
    /// names what is left, and the sweep finds it.
    pub(crate) async fn remove_rest(&self, session: &SessionKey) {
        if let Err(error) = self.remove_all(session).await {
            tracing::warn!(%session, %error, event = "erased_outputs_left");
        }
    }

    /// What was written before then. What was half written before then is removed on the way: nobody goes on with it.
    async fn written_before(&self, before: Time) -> Result<Vec<Beside>, JournalError> {
        if let Some(directory) = self.directory.clone() {
            let removing =
                tokio::task::spawn_blocking(move || remove_unfinished(&directory, before));
            removing.await.map_err(engine)?.map_err(engine)?;
        }
        let found = self.list(Path::from(FOLDER)).await?.into_iter();
        let old = found.filter(|meta| is_before(meta, before));
        Ok(old.filter_map(|meta| beside(&meta.location)).collect())
    }

    /// Removes an output that no row names, unless it was written again since: whoever did names it next.
    async fn remove_unnamed(
        &self,
        Beside { session, digest }: &Beside,
        before: Time,
    ) -> Result<bool, JournalError> {
        let place = path(session, *digest);
        match self.store.head(&place).await {
            Ok(meta) if is_before(&meta, before) => self.delete(&place).await.map(|()| true),
            Ok(_) | Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(engine(error)),
        }
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

fn is_before(meta: &ObjectMeta, before: Time) -> bool {
    meta.last_modified.timestamp_micros() < before.0
}

/// Removes a folder with all that is in it, for good.
fn remove_folder(directory: &FilePath, folder: &str) -> io::Result<()> {
    match fs::remove_dir_all(directory.join(folder)) {
        Ok(()) => sync_directory(directory),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes files that were begun before then and never got their name, as after a kill, and folders with nothing in them. What is
/// gone meanwhile got its name, or was erased.
fn remove_unfinished(directory: &FilePath, before: Time) -> io::Result<()> {
    for folder in there(fs::read_dir(directory))?.into_iter().flatten() {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        let (folder, mut is_empty) = (folder.path(), true);
        for file in there(fs::read_dir(&folder))?.into_iter().flatten() {
            let file = file?;
            // As the store calls it until all of it is there.
            let name = file.file_name();
            let unfinished = name.to_str().and_then(|name| name.split_once('#'));
            let is_unfinished = unfinished.is_some_and(|(name, _)| Digest::parse(name).is_some());
            let Some(meta) = there(file.metadata())? else { continue };
            let written = meta.modified()?.duration_since(std::time::UNIX_EPOCH);
            let is_old = written.is_ok_and(|since| (since.as_micros() as i64) < before.0);
            if is_unfinished && is_old {
                there(fs::remove_file(file.path()))?;
            } else {
                is_empty = false;
            }
        }
        // Somebody may put something into it just now.
        if is_empty
            && let Err(error) = there(fs::remove_dir(&folder))
            && error.kind() != io::ErrorKind::DirectoryNotEmpty
        {
            return Err(error);
        }
    }
    Ok(())
}

/// What was found; nothing, if it is not there.
fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
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
