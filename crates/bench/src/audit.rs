//! `planwright audit verify` on logs of several lengths: its time and its memory, which must grow no faster than the log.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use planwright_domain::{
    actor::Standing,
    command::{Ending, Issued, PersonCommand, SessionCommand},
    id::Seq,
    installation::{self, Installation, InstallationCommand},
    log::{SessionHead, beginning},
    next::Due,
    plan::{Reads, Strategy},
    session::{Session, SessionEvent, decide},
    time::Time,
};
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::ports::journal::{Append, Archive, Journal as _, Recorded, Stream};
use planwright_testkit::{
    people::{ada_key, introduce, person},
    scratch,
};
use uuid::Uuid;

use crate::measure::{Judged, close, peak_of};

/// How many decisions each session has.
const DECISIONS: usize = 200;
/// How many heads are taken up together.
const TOGETHER: usize = 256;
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// By how much an entry of a long log may cost more than one of a short log.
const GROWTH_MAX: f64 = 1.3;

/// What one log cost to verify.
struct Cost {
    seconds: f64,
    bytes: f64,
}

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let sizes: &[usize] = if quick { &[5_000, 20_000] } else { &[250_000, 500_000, 1_000_000] };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!(
        "{:>10}{:>12}{:>12}{:>14}{:>14}",
        "entries", "seconds", "peak MB", "µs an entry", "bytes an entry"
    );
    let mut costs = Vec::new();
    for entries in sizes {
        let home = scratch::directory("audit")?;
        let data = home.path().join("data");
        fs::create_dir(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        runtime.block_on(fill(&data.join("journal.sqlite"), *entries))?;
        let cost = verify(&data, *entries)?;
        let each = *entries as f64;
        println!(
            "{entries:>10}{:>12.2}{:>12.1}{:>14.2}{:>14.0}",
            cost.seconds,
            cost.bytes / 1e6,
            cost.seconds / each * 1e6,
            cost.bytes / each
        );
        costs.push((each, cost));
    }
    let (Some((few, first)), Some((many, last))) = (costs.first(), costs.last()) else {
        anyhow::bail!("nothing was measured")
    };
    let grows = |first: f64, last: f64| (last / many) / (first / few);
    let (time, memory) = (grows(first.seconds, last.seconds), grows(first.bytes, last.bytes));
    let figure = format!(
        "{many:.0} entries in {:.1} s with {:.0} MB; an entry of {many:.0} costs {time:.2} times the time and {memory:.2} times the memory of one of {few:.0}",
        last.seconds,
        last.bytes / 1e6
    );
    let well = time <= GROWTH_MAX && memory <= GROWTH_MAX;
    Ok(close("audit", &figure, "linear: 1.3 at most", well))
}

/// Fills a journal with sessions in which people decided, each decision taken up by an entry of the audit log.
async fn fill(path: &Path, entries: usize) -> anyhow::Result<()> {
    let journal = SqliteJournal::open(path)?;
    introduce(&journal, &["ada"]).await?;
    let mut heads = Vec::new();
    for number in 0..entries.div_ceil(DECISIONS) {
        heads.extend(session(&journal, number).await?);
    }
    heads.truncate(entries);
    for taken in heads.chunks(TOGETHER) {
        let command = InstallationCommand::TakeHeads(taken.to_vec());
        let decide = move |before: &Installation| installation::decide(before, &command);
        journal.append_installation(Time(2), Box::new(decide)).await??;
    }
    Ok(())
}

/// Stores a session in which plan work began and was ended again and again; what its chain came to each time.
async fn session(journal: &dyn Archive, number: usize) -> anyhow::Result<Vec<SessionHead>> {
    let key = ada_key(&format!("cli:decides-{number:06}"))?;
    let ada = person("ada", "bench", Standing::Decides);
    let mut session = Session::new(key.clone());
    let (mut events, mut heads) = (Vec::new(), Vec::new());
    for at in 0..DECISIONS as u128 {
        let id = (number as u128) << 32 | at << 1;
        let (plan, strategy, reads) =
            (Uuid::from_u128(id).into(), Strategy::Document, Reads::Record);
        let commands = [
            PersonCommand::StartPlan { plan, strategy, reads },
            PersonCommand::EndPlan(Ending::Off),
        ];
        for (half, command) in (0..).zip(commands) {
            let command = SessionCommand::Person(ada.clone(), command);
            let issued = Issued::new(Uuid::from_u128(id + half), Time(1), command);
            let news = decide(&session, &issued)?;
            session = session.fold(Time(1), &news)?;
            events.extend(news);
        }
        heads.push(SessionHead {
            session: beginning(&key),
            seq: session.version,
            head: session.log,
        });
    }
    let recorded = (1..).map(Seq).zip(&events);
    let recorded = recorded.map(|(seq, event): (_, &SessionEvent)| Recorded {
        seq,
        at: Time(1),
        event: event.clone(),
    });
    let stream = Stream {
        key: key.clone(),
        events: recorded.collect(),
        answers: Default::default(),
        outputs: Default::default(),
    };
    let append = Append { events, after: session, due: Due::Never, waiting: None, turns: None };
    anyhow::ensure!(journal.restore(stream, append).await?, "{key} is there already");
    Ok(heads)
}

/// Verifies it as a person would; it must be as it was written.
fn verify(data: &Path, entries: usize) -> anyhow::Result<Cost> {
    let begun = Instant::now();
    let mut child = Command::new(program()?)
        .args(["audit", "verify", "--data"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut bytes: f64 = 0.0;
    while child.try_wait()?.is_none() {
        bytes = bytes.max(peak_of(child.id()).unwrap_or(0.0));
        std::thread::sleep(LOOK);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let output = child.wait_with_output()?;
    let words = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(
        output.status.success() && words.contains(&format!("{entries} entries of the audit log")),
        "it does not verify: {words}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(Cost { seconds, bytes })
}

/// The program, beside this one.
fn program() -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("planwright"))
}
