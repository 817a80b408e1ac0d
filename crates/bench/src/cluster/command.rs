//! A durable command in a cluster, against the statement that a node sends, by pgbench; and reads, against those of a table in
//! fewer parts.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use planwright_domain::{
    actor::Standing,
    command::{Issued, PersonCommand, SessionCommand},
    session::SessionEvent,
    time::Time,
};
use planwright_format::{body::Packer, event::EventPlace};
use planwright_outbound::journal_postgres::{PostgresJournal, append_statement};
use planwright_runtime::commands::dispatch::dispatch;
use planwright_testkit::{
    people::{ada_key, person},
    servers::{Nats, Postgres},
};

use super::runtime;
use crate::{
    arm::{Arm, BUS, DATABASE},
    command::median_time,
    http_client::ArmClient,
    measure::{Judged, close, median},
    payload::{COMMANDS, nth},
    plot,
};

/// How many commands a session of an arm gets.
const COMMANDS_OF_ONE: u64 = 20;
/// How many sessions the statement may move in one slice.
const STREAMS_OF_SLICE: u64 = 1_500;
/// Streams that the transaction of six statements moves.
const STREAMS_OF_SIX: u64 = 1_000;
/// How many different texts pgbench stores.
const SCRIPTS: usize = 16;
/// Of 100 updates of a session's row, so many touch no index.
const HOT_MIN: f64 = 90.0;
/// How much longer a read may take from a table of 64 parts than from one of 4.
const READ_MAX: f64 = 1.2;

/// What is taken in each round, in seconds.
const ARMS: [(&str, &str); 6] = [
    ("ours µs", "ours, over HTTP"),
    ("journal µs", "our journal alone"),
    ("one stmt µs", "pgbench, the statement that we send"),
    ("six stmts µs", "pgbench, lock, look and store"),
    ("read 64 µs", "pgbench, a read from 64 parts"),
    ("read 4 µs", "pgbench, a read from 4 parts"),
];

/// A durable command, one client, against the same statement by pgbench.
pub(crate) fn command(quick: bool) -> anyhow::Result<Judged> {
    let (rounds, slice) = if quick { (3, 1) } else { (7, 2) };
    let runtime = runtime()?;
    let (postgres, nats) = (Postgres::start(), Nats::start());
    let (database, bus) = (postgres.address(), nats.address());
    let ours = Arm::start_with("cluster", &[(DATABASE, &database), (BUS, &bus)])?;
    let mut client = ArmClient::new(&ours, true, 0)?;
    runtime.block_on(client.command())?;
    let journal = runtime.block_on(PostgresJournal::open(&database))?;
    let home = tempfile::tempdir()?;
    let bench = Pgbench::prepare(&postgres, home.path(), rounds as u64)?;
    ARMS.iter().for_each(|(head, _)| print_cell(head));
    println!();
    let mut all: [Vec<f64>; 6] = Default::default();
    for round in 0..rounds {
        let mut taken = [f64::NAN; 6];
        for arm in 0..6 {
            let which = (arm + round) % 6;
            taken[which] = match which {
                0 => runtime.block_on(median_time(&mut client, f64::from(slice)))?,
                1 => runtime.block_on(append_time(&journal, round, f64::from(slice)))?,
                2 => bench.statement(round as u64, slice)?,
                3 => bench.run(&bench.six, &[], slice)?,
                4 => bench.run(&bench.read, &[], slice)?,
                _ => bench.run(&bench.read_of_four, &[], slice)?,
            };
        }
        all.iter_mut().zip(taken).for_each(|(all, taken)| all.push(taken * 1e6));
        taken.iter().for_each(|taken| print_cell(&format!("{:.0}", taken * 1e6)));
        println!();
    }
    let hot = hot_share(&postgres, || runtime.block_on(median_time(&mut client, 2.0)))?;
    let drawn: Vec<_> =
        ARMS[..4].iter().zip(&all).map(|((_, name), taken)| (*name, median(taken))).collect();
    plot::bars("cluster-command", "A durable command of 4 KB in a cluster", "µs", &drawn)?;
    let ratio = |of: usize, to: usize| {
        median(&all[of].iter().zip(&all[to]).map(|(of, to)| of / to).collect::<Vec<_>>())
    };
    let (of_one, alone, of_six, reads) = (ratio(0, 2), ratio(1, 2), ratio(0, 3), ratio(4, 5));
    Ok(close(
        "cluster-command",
        &format!(
            "{of_one:.2} times the statement that we send by pgbench ({alone:.2} without HTTP), {of_six:.2} times the transaction of six; reads from 64 parts {reads:.2} times those from 4; {hot:.1} % of updates HOT"
        ),
        "1.5 times the statement, 1.2 times, 90 %",
        of_one <= 1.5 && reads <= READ_MAX && hot >= HOT_MIN,
    ))
}

fn print_cell(text: &str) {
    print!("{text:>14}");
}

/// Seconds that one append takes, without HTTP and without anyone who is told.
async fn append_time(journal: &PostgresJournal, round: usize, seconds: f64) -> anyhow::Result<f64> {
    let person = person("ada", "bench", Standing::Speaks);
    let (begun, mut taken) = (Instant::now(), Vec::new());
    while begun.elapsed() < Duration::from_secs_f64(seconds) {
        let at = taken.len() as u64;
        let key = format!("api:alone-{round:04}-{:04}", at / COMMANDS_OF_ONE);
        let say = PersonCommand::Say { text: nth(&COMMANDS, at).into() };
        let command = SessionCommand::Person(person.clone(), say);
        let asked = Issued::new(uuid::Uuid::now_v7(), Time(1), command);
        let at = Instant::now();
        dispatch(journal, &ada_key(&key)?, asked).await?;
        taken.push(at.elapsed().as_secs_f64());
    }
    Ok(median(&taken))
}

/// Of 100 updates of sessions' rows during this work, how many touched no index.
fn hot_share(
    postgres: &Postgres,
    work: impl FnOnce() -> anyhow::Result<f64>,
) -> anyhow::Result<f64> {
    let updates = || -> anyhow::Result<[f64; 2]> {
        // A connection that was busy says what it did once it has nothing to do.
        std::thread::sleep(Duration::from_secs(12));
        let counted = postgres.psql(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'streams'",
        );
        let (all, hot) = counted.split_once('|').context("two numbers")?;
        Ok([all.trim().parse()?, hot.trim().parse()?])
    };
    let before = updates()?;
    work()?;
    let after = updates()?;
    let [all, hot] = [after[0] - before[0], after[1] - before[1]];
    anyhow::ensure!(all > 0.0, "nothing was updated");
    println!("{hot} of {all} updates of sessions' rows were HOT");
    Ok(hot / all * 100.0)
}

/// What pgbench runs, and where.
struct Pgbench {
    port: u16,
    first: u64,
    one: Vec<PathBuf>,
    six: Vec<PathBuf>,
    read: Vec<PathBuf>,
    read_of_four: Vec<PathBuf>,
}

impl Pgbench {
    /// Makes the rows that it moves and reads, and its scripts.
    fn prepare(postgres: &Postgres, home: &Path, rounds: u64) -> anyhow::Result<Self> {
        let many = rounds * STREAMS_OF_SLICE + STREAMS_OF_SIX;
        let _ = postgres.psql(&format!(
            "INSERT INTO streams (owner, identity, version, updated_at, listed_at)
             SELECT gen_random_uuid(), 'bare:' || at, 0, 0, 0 FROM generate_series(1, {many}) AS at"
        ));
        let first: u64 =
            postgres.psql("SELECT min(id) FROM streams WHERE identity LIKE 'bare:%'").parse()?;
        let of_six = first + rounds * STREAMS_OF_SLICE;
        let read_streams = (of_six, of_six + STREAMS_OF_SIX - 1);
        // What is read: twenty events of each of those, in a table of its own and in the same form in one of four parts.
        let (from, to) = read_streams;
        let _ = postgres.psql(&format!(
            "INSERT INTO events (stream, seq, at, kind, body)
             SELECT stream, seq, 1, 'message_queued', decode(repeat('ab', 600), 'hex')
             FROM generate_series({from}, {to}) AS stream, generate_series(1, {COMMANDS_OF_ONE}) AS seq;
             CREATE TABLE events_of_four (LIKE events INCLUDING ALL) PARTITION BY HASH (stream)"
        ));
        for part in 0..4 {
            let _ = postgres.psql(&format!(
                "CREATE TABLE events_of_four_{part} PARTITION OF events_of_four FOR VALUES WITH (MODULUS 4, REMAINDER {part})"
            ));
        }
        let _ = postgres.psql(&format!(
            "INSERT INTO events_of_four SELECT * FROM events WHERE stream BETWEEN {from} AND {to}; ANALYZE"
        ));
        let script = |name: &str, text: String| -> anyhow::Result<PathBuf> {
            let path = home.join(name).with_extension("sql");
            std::fs::write(&path, text)?;
            Ok(path)
        };
        let mut packer = Packer::new()?;
        let (mut one, mut six) = (Vec::new(), Vec::new());
        for (at, text) in COMMANDS.iter().take(SCRIPTS).enumerate() {
            let by = person("ada", "bench", Standing::Speaks);
            let event = SessionEvent::MessageQueued { text: text.clone(), by };
            let place = EventPlace { stream: "bare", seq: 1, at: 1 };
            let body = packer.seal_event(place, &event, 1)?.body;
            let digits: String = body.iter().map(|byte| format!("{byte:02x}")).collect();
            one.push(script(&format!("one-{at}"), sent(&digits))?);
            six.push(script(&format!("six-{at}"), six_statements(read_streams, &digits))?);
        }
        let read = |table| {
            format!(
                "\\set stream random({from}, {to})
SELECT seq, at, kind, body FROM {table} WHERE stream = :stream AND seq > 16 ORDER BY seq LIMIT 1000;
"
            )
        };
        Ok(Self {
            port: postgres.port,
            first,
            one,
            six,
            read: vec![script("read", read("events"))?],
            read_of_four: vec![script("read-of-four", read("events_of_four"))?],
        })
    }

    /// The statement that we send, on sessions of which each gets twenty, as ours do.
    fn statement(&self, round: u64, seconds: u32) -> anyhow::Result<f64> {
        let done = round * STREAMS_OF_SLICE * COMMANDS_OF_ONE;
        let defined = [format!("first={}", self.first), format!("done={done}")];
        self.run(&self.one, &defined, seconds)
    }

    /// Seconds that one transaction takes, one client.
    fn run(&self, scripts: &[PathBuf], defined: &[String], seconds: u32) -> anyhow::Result<f64> {
        let path =
            format!("{}:/usr/lib/postgresql/15/bin", std::env::var("PATH").unwrap_or_default());
        let done = Command::new("pgbench")
            .env("PATH", path)
            .args(["-n", "-M", "prepared", "-c", "1", "-h", "127.0.0.1", "-U", "planwright"])
            .args(["-p", &self.port.to_string(), "-T", &seconds.to_string()])
            .args(defined.iter().flat_map(|defined| ["-D", defined]))
            .args(scripts.iter().flat_map(|script| ["-f".as_ref(), script.as_os_str()]))
            .arg("postgres")
            .output()
            .context("pgbench does not start; it comes with PostgreSQL")?;
        let told = String::from_utf8_lossy(&done.stdout);
        let line = told.lines().find_map(|line| line.strip_prefix("latency average = "));
        let millis: f64 =
            line.and_then(|line| line.trim_end_matches(" ms").parse().ok()).with_context(|| {
                format!("pgbench said {told}{}", String::from_utf8_lossy(&done.stderr))
            })?;
        Ok(millis / 1e3)
    }
}

/// The statement that a node sends for a message with this body, with a value in the place of each parameter.
fn sent(body: &str) -> String {
    let arrays = [
        "ARRAY[:next]::bigint[]".to_owned(),
        "ARRAY[1]::bigint[]".into(),
        "ARRAY['message_queued']::text[]".into(),
        format!("ARRAY['\\x{body}']::bytea[]"),
        "ARRAY[]::bigint[]".into(),
        "ARRAY[gen_random_uuid()]::uuid[]".into(),
        "ARRAY[:version]::bigint[]".into(),
        "ARRAY[:next]::bigint[]".into(),
        "ARRAY[NULL]::text[]".into(),
        "ARRAY[1]::bigint[]".into(),
        "ARRAY[1]::bigint[]".into(),
    ];
    // When it is due, its version, its snapshot and the form of that, that it has words, when it moved, that it takes no
    // room; then what lists show; then which session it is.
    let scalars = [
        "0::bigint",
        ":next::bigint",
        "NULL::bytea",
        "1::int",
        "true",
        "1::bigint",
        "false",
        "NULL::text",
        "'title'",
        "'open'",
        "NULL::text",
        "NULL::bigint",
        "true",
        "0::bigint",
        "0::bigint",
        "2000::bigint",
        ":stream::bigint",
        ":version::bigint",
        "false",
        "60000000::bigint",
    ];
    let values: Vec<_> = arrays.iter().map(String::as_str).chain(scalars).collect();
    let mut statement = append_statement().replace('\n', " ");
    for (at, value) in values.iter().enumerate().rev() {
        statement = statement.replace(&format!("${}", at + 1), value);
    }
    format!(
        "\\set stream :first + :done / {COMMANDS_OF_ONE}
\\set version :done % {COMMANDS_OF_ONE}
\\set next :version + 1
\\set done :done + 1
{statement};
"
    )
}

/// The same as it is usually written: lock, look, store.
fn six_statements((from, to): (u64, u64), body: &str) -> String {
    format!(
        "\\set stream random({from}, {to})
BEGIN;
SELECT version FROM streams WHERE id = :stream FOR UPDATE \\gset
INSERT INTO events (stream, seq, at, kind, body) VALUES (:stream, :version + 1000, 1, 'message_queued', '\\x{body}'::bytea);
INSERT INTO answers (stream, command, before, version, checksum, at) VALUES (:stream, gen_random_uuid(), :version, :version + 1, 1, 1);
UPDATE streams SET version = :version + 1, updated_at = 1 WHERE id = :stream;
COMMIT;
"
    )
}
