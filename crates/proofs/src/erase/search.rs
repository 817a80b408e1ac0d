//! Looks for words, and for pieces of what was stored, in every byte of every file and in every row of every table.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use planwright_runtime::ports::journal::Archive;
use rusqlite::types::ValueRef;
use tokio_postgres::{Client, NoTls};

/// How long a piece of something stored is.
pub(super) const PIECE: usize = 16;

/// What is looked for.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The beginnings of words, as they were written.
    pub(super) words: HashSet<[u8; PIECE]>,
    /// Pieces of what was stored of them, which is packed.
    pub(super) pieces: HashSet<[u8; PIECE]>,
    /// With which two bytes any of them begins.
    begins: Vec<bool>,
}

/// What was looked at, and what was found there.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) places: u64,
    pub(super) bytes: u64,
    pub(super) words: HashSet<[u8; PIECE]>,
    pub(super) pieces: HashSet<[u8; PIECE]>,
    /// Where the first were.
    pub(super) at: Vec<String>,
    /// How often something was found, by place.
    pub(super) hits: BTreeMap<String, u64>,
}

impl Wanted {
    pub(super) fn new(words: HashSet<[u8; PIECE]>, pieces: HashSet<[u8; PIECE]>) -> Self {
        let mut begins = vec![false; 1 << 16];
        for piece in words.iter().chain(&pieces) {
            begins[usize::from(piece[0]) << 8 | usize::from(piece[1])] = true;
        }
        Self { words, pieces, begins }
    }

    /// Looks in these bytes, which lie here.
    pub(super) fn look(&self, place: &str, bytes: &[u8], found: &mut Found) {
        found.places += 1;
        found.bytes += bytes.len() as u64;
        for window in bytes.windows(PIECE) {
            if !self.begins[usize::from(window[0]) << 8 | usize::from(window[1])] {
                continue;
            }
            let Ok(piece) = <[u8; PIECE]>::try_from(window) else { continue };
            let (is_word, is_piece) = (self.words.contains(&piece), self.pieces.contains(&piece));
            if is_word || is_piece {
                *found.hits.entry(place.to_owned()).or_default() += 1;
            }
            if is_word && found.words.insert(piece) {
                found.at.push(format!("{} in {place}", String::from_utf8_lossy(&piece)));
            }
            if is_piece && found.pieces.insert(piece) {
                found.at.push(format!("a piece in {place}"));
            }
        }
    }

    /// Looks in every file under this directory, and in its name. A place is what lies right under the directory.
    pub(super) fn look_in_files(&self, directory: &Path, found: &mut Found) -> anyhow::Result<()> {
        for file in files(directory)? {
            let name = file.strip_prefix(directory)?;
            let place = name.iter().next().unwrap_or_default().to_string_lossy().into_owned();
            self.look(&place, name.as_os_str().as_encoded_bytes(), found);
            self.look(&place, &fs::read(&file)?, found);
        }
        Ok(())
    }

    /// Looks in every row of every table, those that an index keeps for itself too.
    pub(super) fn look_in_sqlite(&self, journal: &Path, found: &mut Found) -> anyhow::Result<()> {
        let connection = rusqlite::Connection::open_with_flags(
            journal,
            rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
        )?;
        let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %'";
        let mut names = connection.prepare(names)?;
        let tables: Vec<String> =
            names.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for table in tables {
            let mut statement = connection.prepare(&format!("SELECT * FROM {table}"))?;
            let columns = statement.column_count();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                for column in 0..columns {
                    if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = row.get_ref(column)? {
                        self.look(&table, bytes, found);
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks in every row of every table, index and sequence aside: what a query can give.
    pub(super) async fn look_in_tables(
        &self,
        client: &Client,
        found: &mut Found,
    ) -> anyhow::Result<()> {
        let sql = "SELECT quote_ident(relname) FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace";
        for table in client.query(sql, &[]).await? {
            let table: String = table.get(0);
            let rows = client.query(&format!("SELECT {table}::text FROM {table}"), &[]).await?;
            for row in rows {
                let text: &str = row.get(0);
                self.look(&table, text.as_bytes(), found);
                // Bytes are written as hexadecimal digits.
                for part in text.split("\\x").skip(1) {
                    let digits: String = part.chars().take_while(char::is_ascii_hexdigit).collect();
                    self.look(&table, &unhex(&digits), found);
                }
            }
        }
        Ok(())
    }

    /// Looks in what is exported.
    pub(super) async fn look_in_export(
        &self,
        journal: &dyn Archive,
        found: &mut Found,
    ) -> anyhow::Result<()> {
        let mut out = Vec::new();
        let pages = planwright_outbound::notebook_object_store::NoNotebooks;
        planwright_runtime::transfer::archive::export(journal, &pages, &mut out).await?;
        self.look("an export", &out, found);
        Ok(())
    }
}

/// Bytes that were written as hexadecimal digits.
pub(super) fn unhex(digits: &str) -> Vec<u8> {
    let bytes = digits.as_bytes().chunks_exact(2);
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    bytes.map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Every file under this directory; none, if it is not there.
pub(super) fn files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if !directory.exists() {
        return Ok(files);
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files.extend(self::files(&entry.path())?);
        } else {
            files.push(entry.path());
        }
    }
    Ok(files)
}

/// What is stored of the sessions whose key holds this, as it lies there.
pub(super) async fn bodies(place: &str, key: &str) -> anyhow::Result<Vec<Vec<u8>>> {
    let events = "kind IN ('message_queued', 'memory_saved', 'session_renamed')";
    let of = format!("(SELECT id FROM streams WHERE identity LIKE '%{key}%')");
    let scopes = format!("(SELECT id FROM memory_scopes WHERE session LIKE '%{key}%')");
    let queries = [
        format!("SELECT body FROM events WHERE stream IN {of} AND {events}"),
        format!("SELECT body FROM outputs WHERE stream IN {of} AND body IS NOT NULL"),
        format!("SELECT body FROM memory WHERE scope IN {scopes}"),
        format!("SELECT body FROM views WHERE stream IN {of}"),
        format!("SELECT body FROM snapshots WHERE stream IN {of}"),
    ];
    if place.starts_with("postgresql:") {
        let (client, connection) = tokio_postgres::connect(place, NoTls).await?;
        let reading = tokio::spawn(connection);
        let mut bodies = Vec::new();
        for sql in &queries {
            bodies.extend(client.query(sql, &[]).await?.iter().map(|row| row.get(0)));
        }
        drop(client);
        reading.await??;
        return Ok(bodies);
    }
    let connection =
        rusqlite::Connection::open_with_flags(place, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut bodies = Vec::new();
    for sql in &queries {
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        bodies.extend(rows.collect::<Result<Vec<Vec<u8>>, _>>()?);
    }
    Ok(bodies)
}
