//! The commands with which an installation is backed up, as the documentation has them: run, restored, compared.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use planwright_domain::{
    actor::Standing,
    command::{Issued, PersonCommand, SessionCommand},
    digest::Digest,
    time::Time,
};
use planwright_outbound::{
    access_file::FileAccess,
    journal_postgres::PostgresJournal,
    journal_sqlite::SqliteJournal,
    notebook_object_store::{Bucket, ObjectStoreNotebooks},
};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::{
        access::{Access as _, GrantDetails},
        journal::{Archive, Journal},
        notebook::{Notebooks, Put},
    },
    transfer::archive,
};
use planwright_testkit::people::{ada_key, person};
use planwright_testkit::{
    prose::prose,
    servers::{Postgres, S3},
};
use uuid::Uuid;

const SECRET: &str = "a-token-0123456789abcdef0123456789abcdef";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The commands under a heading of the documentation, in order.
fn blocks(heading: &str) -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/DEPLOYMENT.md")).unwrap();
    let section = page.split(&format!("\n### {heading}\n")).nth(1).unwrap();
    let section = section.split("\n#").next().unwrap();
    let blocks = section.split("```sh\n").skip(1);
    blocks.map(|block| block.split("\n```").next().unwrap().to_owned()).collect()
}

/// Runs commands as a person would who has these programs and this environment.
fn run(commands: &str, place: &Path, environment: &[(&str, &str)]) {
    let programs = root().join("target/s3/bin");
    let path = std::env::var("PATH").unwrap();
    let path = format!("{path}:{}:/usr/lib/postgresql/15/bin", programs.display());
    let ran = Command::new("bash")
        .args(["-euc", commands])
        .current_dir(place)
        .env("PATH", path)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{commands}\n{}", String::from_utf8_lossy(&ran.stderr));
}

async fn talk(journal: &impl Journal) {
    let person = person("ada", "cli", Standing::Speaks);
    for number in 1..=60 {
        let identity = ada_key(&format!("cli:talk-{:04}", number % 7)).unwrap();
        let say = PersonCommand::Say { text: prose(600, number) };
        let say = SessionCommand::Person(person.clone(), say);
        let asked = Issued::new(Uuid::from_u128(number.into()), Time(1), say);
        assert!(!dispatch(journal, &identity, asked).await.unwrap().is_refused());
    }
    // So long that it lies beside the journal.
    journal.keep_output(&ada_key("cli:talk-0001").unwrap(), &prose(200_000, 1)).await.unwrap();
}

async fn write_pages(notebooks: &impl Notebooks) {
    for number in 0..3 {
        let identity = ada_key(&format!("cli:talk-{number:04}")).unwrap();
        let page = prose(2_000, number);
        let put = notebooks.write(&identity, "findings.md", &page, None).await.unwrap();
        assert_eq!(put, Put::Done);
    }
}

async fn everything(journal: &dyn Archive, notebooks: &dyn Notebooks) -> String {
    let mut text = Vec::new();
    archive::export(journal, notebooks, &mut text).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("findings.md") && text.contains("talk-0006"), "pages and sessions");
    assert!(text.len() > 200_000, "and an output");
    text
}

fn modes(directory: &Path, file: &str) -> u32 {
    fs::metadata(directory.join(file)).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn the_documented_backup_of_one_machine_has_pages_credentials_and_settings() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    // The journal stays open, with what was written last beside it.
    let journal = SqliteJournal::open(&data.join("journal.sqlite")).unwrap();
    talk(&journal).await;
    let notebooks = ObjectStoreNotebooks::in_directory(&data).unwrap();
    write_pages(&notebooks).await;
    let access = FileAccess::open(&data).unwrap();
    let hash = access.keep_passphrase("a long passphrase").await.unwrap();
    let (id, name, created) = (Uuid::from_u128(1).into(), "backup".into(), Time(1));
    let details = GrantDetails { id, name, created, page_key: None, agent: None };
    access.keep(details, Digest::of(SECRET.as_bytes())).await.unwrap();
    for file in ["config.toml", "model.json", "mcp-pins.json", "token"] {
        fs::write(data.join(file), format!("# {file}\n")).unwrap();
        fs::set_permissions(data.join(file), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let [back_up] = &blocks("One machine")[..] else { panic!("one block") };
    run(back_up, home.path(), &[("PLANWRIGHT_DATA", &data.display().to_string())]);
    let backup = home.path().join("backup");
    assert_eq!(modes(home.path(), "backup"), 0o700);
    for file in ["config.toml", "model.json", "mcp-pins.json", "token", "tokens", "passphrases"] {
        let read = |directory: &Path| fs::read(directory.join(file)).unwrap();
        assert_eq!((read(&backup), modes(&backup, file)), (read(&data), 0o600), "{file}");
    }
    let restored = FileAccess::open(&backup).unwrap();
    assert!(restored.fits(Some(hash), "a long passphrase").await.unwrap());
    assert!(restored.find(Digest::of(SECRET.as_bytes())).await.unwrap().is_some());
    let copy = SqliteJournal::open(&backup.join("journal.sqlite")).unwrap();
    let pages = ObjectStoreNotebooks::in_directory(&backup).unwrap();
    assert_eq!(everything(&copy, &pages).await, everything(&journal, &notebooks).await);
}

fn bucket(server: &S3) -> Bucket {
    let key = |name: &str| Some(name.to_owned());
    Bucket {
        name: "notes".into(),
        endpoint: Some(server.address()),
        region: key("us-east-1"),
        access_key: key("a-key"),
        secret_key: key("a-secret"),
    }
}

/// The pages in the bucket.
fn pages(server: &S3) -> ObjectStoreNotebooks {
    ObjectStoreNotebooks::in_bucket(bucket(server).open().unwrap())
}

/// The journal at this database, with its long outputs in the bucket.
async fn journal(database: &Postgres, server: &S3) -> PostgresJournal {
    let journal = PostgresJournal::open(&database.address()).await.unwrap();
    journal.with_outputs_in(bucket(server).open().unwrap())
}

#[tokio::test]
async fn the_documented_backup_of_a_cluster_has_the_database_and_the_bucket() {
    let home = tempfile::tempdir().unwrap();
    let (here, elsewhere) = (Postgres::start(), Postgres::start());
    let (pages_here, pages_elsewhere) = (S3::start(), S3::start());
    pages_here.make_bucket("notes");
    pages_elsewhere.make_bucket("notes");
    let original = journal(&here, &pages_here).await;
    talk(&original).await;
    write_pages(&pages(&pages_here)).await;
    let [back_up, restore] = &blocks("A cluster")[..] else { panic!("two blocks") };
    for (commands, database, store) in
        [(back_up, &here, &pages_here), (restore, &elsewhere, &pages_elsewhere)]
    {
        let (database, endpoint) = (database.address(), store.address());
        let environment = [
            ("PLANWRIGHT_DATABASE", database.as_str()),
            ("NOTEBOOK_ENDPOINT", &endpoint),
            ("NOTEBOOK_BUCKET", "notes"),
            ("AWS_ACCESS_KEY_ID", "a-key"),
            ("AWS_SECRET_ACCESS_KEY", "a-secret"),
        ];
        run(commands, home.path(), &environment);
    }
    let copy = journal(&elsewhere, &pages_elsewhere).await;
    let (there, original_pages) = (pages(&pages_elsewhere), pages(&pages_here));
    assert_eq!(everything(&copy, &there).await, everything(&original, &original_pages).await);
}
