//! 52b and 82 to 84: what somebody writes into the files of a server that does not run.

use std::{fs, path::Path};

use anyhow::{Context as _, ensure};
use planwright_domain::digest::Digest;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    Report,
    callers::planned,
    target::{Target, answer_to, write_private},
};

const SESSION: &str = "recorded-0001";

pub(super) async fn attack(report: &mut Report) -> anyhow::Result<()> {
    let mut target = Target::start("", &[]).await?;
    let owner = target.token_of("owner", true).await?;
    planned(&target, &owner, SESSION).await?;
    let status = target.approves(&owner, SESSION, json!({})).await?;
    ensure!(status == 200, "{status}");
    target.rests(&owner, SESSION).await?;
    ensure!(target.stops().await?, "the server does not stop");
    // As it would lie on another machine.
    let elsewhere = target.home.path().join("heads-kept-elsewhere.jsonl");
    fs::copy(target.data().join("audit-heads.jsonl"), &elsewhere)?;
    report
        .control("82", "a log that nobody changed", async {
            let (ok, told) = verified(&target, &elsewhere).await?;
            ensure!(ok && told.contains("as they were written"), "{told}");
            Ok(())
        })
        .await;
    let journal = target.data().join("journal.sqlite");
    let whole = target.home.path().join("whole.sqlite");
    let connection = rusqlite::Connection::open(&journal)?;
    connection.execute("VACUUM INTO ?1", [whole.display().to_string()])?;
    drop(connection);
    let approval = "stream = (SELECT stream FROM events WHERE kind = 'plan_approved') AND seq";
    let first = "(SELECT seq FROM events WHERE kind = 'plan_approved')";
    let stream = "(SELECT stream FROM events WHERE kind = 'plan_approved')";
    let day = 86_400_000_000_i64;
    for (number, what, sql) in [
        (
            "82",
            "the time of an approval is moved by a day",
            format!("UPDATE events SET at = at - {day} WHERE {approval} = {first}"),
        ),
        (
            "83",
            "an approval and all after it is cut off",
            format!("DELETE FROM events WHERE {approval} >= {first}"),
        ),
        (
            "84",
            "a whole session is removed",
            // Its events go last: they say which stream it is.
            format!(
                "PRAGMA foreign_keys = OFF; DELETE FROM answers WHERE stream = {stream}; DELETE FROM snapshots WHERE stream = {stream}; \
                 DELETE FROM outputs WHERE stream = {stream}; DELETE FROM streams WHERE id = {stream}; \
                 DELETE FROM events WHERE stream = {stream}"
            ),
        ),
        (
            "84b",
            "the audit log is cut",
            "DELETE FROM installation_events WHERE seq > 3; DELETE FROM installation_state"
                .to_owned(),
        ),
    ] {
        report
            .attack(number, what, async {
                changes(&journal, &sql)?;
                let (ok, told) = verified(&target, &elsewhere).await?;
                put_back(&whole, &journal)?;
                ensure!(!ok, "nobody noticed: {told}");
                Ok(())
            })
            .await;
    }
    login(report, &mut target, &owner).await;
    Ok(())
}

async fn login(report: &mut Report, target: &mut Target, owner: &str) {
    report
        .attack("52b", "a login that somebody wrote into the files opens nothing", async {
            let file = target.data().join("tokens");
            let mut kept: Vec<(Digest, Value)> = serde_json::from_str(&fs::read_to_string(&file)?)?;
            let (_, like) = kept.first().context("a token was given")?.clone();
            // One of its own, and another secret for one that is known.
            let mut own = like.clone();
            own["id"] = json!("00000000-0000-7000-8000-000000000052");
            kept.push((Digest::of(b"a secret of the thief"), own));
            kept.push((Digest::of(b"another of the thief"), like));
            write_private(&file, &serde_json::to_string(&kept)?)?;
            target.up().await?;
            for secret in ["a secret of the thief", "another of the thief"] {
                let asked = target.by(secret, Method::GET, "/api/sessions");
                let (status, body) = answer_to(asked).await?;
                ensure!(status == 401, "{secret}: {status} {body}");
            }
            let asked = target.by(owner, Method::GET, "/api/sessions");
            ensure!(answer_to(asked).await?.0 == 200, "the owner is let in no more");
            Ok(())
        })
        .await;
}

/// Whether the program finds the journal as it was, and what it says.
async fn verified(target: &Target, elsewhere: &Path) -> anyhow::Result<(bool, String)> {
    let heads = elsewhere.display().to_string();
    let mut command = target.program(&["audit", "verify", "--heads", &heads]);
    let output = command.output().await?;
    let told = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&told).into_owned()))
}

fn changes(journal: &Path, sql: &str) -> anyhow::Result<()> {
    Ok(rusqlite::Connection::open(journal)?.execute_batch(sql)?)
}

/// The journal as it was, without what lies beside the changed one.
fn put_back(whole: &Path, journal: &Path) -> anyhow::Result<()> {
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", journal.display()));
    }
    fs::copy(whole, journal)?;
    Ok(())
}
