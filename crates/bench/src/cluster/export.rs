//! Listing and exporting every session of a cluster: what a session costs where there are many, by what it costs where there
//! are few.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::Context as _;
use planwright_domain::{actor::Standing, identity::SessionKey, session::SessionEvent};
use planwright_format::{body::Packer, event::EventPlace};
use planwright_outbound::journal_postgres::PostgresJournal;
use planwright_runtime::ports::journal::{Journal as _, SessionQuery};
use planwright_testkit::{
    people::{introduce, key_in, person},
    servers::Postgres,
};

use super::runtime;
use crate::{
    measure::{Judged, close},
    payload::{TURNS, nth},
};

/// How much more a session may cost among the many.
const TIMES_MAX: f64 = 1.3;
/// How many sessions a page of a list has, and how many are stored by one statement.
const PAGE: usize = 500;
const CHUNK: u64 = 1_000;

pub(crate) fn export(quick: bool) -> anyhow::Result<Judged> {
    let counts: [u64; 3] =
        if quick { [5_000, 10_000, 20_000] } else { [250_000, 500_000, 1_000_000] };
    let runtime = runtime()?;
    let postgres = Postgres::start();
    let home = tempfile::tempdir()?;
    let journal = runtime.block_on(PostgresJournal::open(&postgres.address()))?;
    runtime.block_on(introduce(&journal, &["owner"]))?;
    println!(
        "{:>10}{:>14}{:>16}{:>14}{:>16}{:>12}",
        "sessions", "listed s", "each µs", "exported s", "each µs", "MB"
    );
    let (mut filled, mut lists, mut exports) = (0, Vec::new(), Vec::new());
    for count in counts {
        runtime.block_on(fill(&journal, filled, count))?;
        let _ = postgres.psql("VACUUM ANALYZE");
        filled = count;
        let each = |seconds: f64| seconds / count as f64 * 1e6;
        let listed = runtime.block_on(list_all(&journal, count))?;
        let (exported, bytes) = export_all(&postgres, home.path(), count)?;
        println!(
            "{count:>10}{listed:>14.1}{:>16.1}{exported:>14.1}{:>16.1}{:>12.0}",
            each(listed),
            each(exported),
            bytes as f64 / 1e6
        );
        lists.push(each(listed));
        exports.push(each(exported));
    }
    let (list, export) = (lists[2] / lists[0], exports[2] / exports[0]);
    let seconds = |each: f64| each * counts[2] as f64 / 1e6;
    let figure = format!(
        "{} sessions: listed in {:.0} s, a session {list:.2} times what it costs among a quarter of them; exported in {:.0} s, {export:.2} times",
        counts[2],
        seconds(lists[2]),
        seconds(exports[2])
    );
    Ok(close("cluster-export", &figure, "linear, 1.3", list <= TIMES_MAX && export <= TIMES_MAX))
}

/// Stores sessions from this number to that one, in each of which something was said.
async fn fill(journal: &PostgresJournal, from: u64, to: u64) -> anyhow::Result<()> {
    let (mut packer, client) = (Packer::new()?, journal.pool().get().await?);
    let owner = key_in(journal, "cli:nobody").await?.owner;
    let by = person("owner", "bench", Standing::Decides);
    for first in (from..to).step_by(CHUNK as usize) {
        let (mut names, mut bodies) = (Vec::new(), Vec::new());
        for number in first..to.min(first + CHUNK) {
            let name = format!("cli:export-{number:07}");
            let key = SessionKey::named(&name, owner)?.to_string();
            let text = nth(&TURNS, number).into();
            let event = SessionEvent::MessageQueued { text, by: by.clone() };
            let place = EventPlace { stream: &key, seq: 1, at: number.cast_signed() };
            bodies.push(packer.seal_event(place, &event, 1)?.body);
            names.push(name);
        }
        let sql = "WITH given AS (
                       SELECT name, body, $3::bigint + number - 1 AS at
                       FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS given (name, body, number)
                   ), made AS (
                       INSERT INTO streams (owner, identity, title, version, updated_at, listed_at, searched)
                       SELECT $4, name, name, 1, at, at, 1 FROM given RETURNING id, identity
                   )
                   INSERT INTO events (stream, seq, at, kind, body)
                   SELECT made.id, 1, at, 'message_queued', body
                   FROM made JOIN given ON given.name = made.identity";
        client.execute(sql, &[&names, &bodies, &first.cast_signed(), &owner.0]).await?;
    }
    Ok(())
}

/// Seconds that all pages of the list take, one after the other.
async fn list_all(journal: &PostgresJournal, count: u64) -> anyhow::Result<f64> {
    let (begun, mut listed) = (Instant::now(), 0);
    let mut query =
        SessionQuery { owner: None, waiting: false, text: String::new(), after: None, limit: PAGE };
    loop {
        let page = journal.session_page(&query).await?;
        listed += page.rows.len();
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    anyhow::ensure!(listed as u64 == count, "{listed} of {count} sessions are on the pages");
    Ok(begun.elapsed().as_secs_f64())
}

/// Seconds that an export by the program takes, and how large it is.
fn export_all(postgres: &Postgres, home: &Path, count: u64) -> anyhow::Result<(f64, u64)> {
    let program = std::env::current_exe()?.with_file_name("planwright");
    let file = home.join(format!("export-{count}.jsonl"));
    let begun = Instant::now();
    let done = Command::new(program)
        .args([Path::new("--data"), &home.join("operator")])
        .args(["export", "--database", &postgres.address()])
        .arg(&file)
        .stdin(Stdio::null())
        .output()
        .context("planwright does not start")?;
    let seconds = begun.elapsed().as_secs_f64();
    anyhow::ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let told = String::from_utf8_lossy(&done.stdout);
    anyhow::ensure!(told.contains(&count.to_string()), "not all were exported: {told}");
    let bytes = std::fs::metadata(&file)?.len();
    std::fs::remove_file(&file)?;
    Ok((seconds, bytes))
}
