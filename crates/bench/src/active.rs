//! What a turn costs where many sessions are at work, where one has gone on for long, and what it takes to load one.

use std::time::{Duration, Instant};

use planwright_domain::identity::SessionKey;
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::ports::journal::Journal as _;
use planwright_testkit::people::ada_key;
use rusqlite::Connection;

use crate::{
    measure::{Judged, close, cpu, median},
    ours::Ours,
    payload::{TURNS, nth},
    plot,
};

/// How much more a turn may cost with many sessions at work, and late in a long one.
const MANY_MAX: f64 = 1.15;
const LONG_MAX: f64 = 1.1;
/// How long a session may take to load.
const LOAD_SECONDS_MAX: f64 = 5e-3;

/// How long a journal is left open after it was read.
const SETTLES: Duration = Duration::from_millis(300);

/// How large it is measured.
struct Scale {
    many: usize,
    few: usize,
    events: u64,
    /// How many turns a session has had when it is called long, and early.
    long: u64,
    early: u64,
    /// How many events the session has that is loaded.
    loaded: u64,
    rounds: usize,
}

const FULL: Scale =
    Scale { many: 500, few: 16, events: 750, long: 10_000, early: 100, loaded: 100_000, rounds: 9 };
const QUICK: Scale =
    Scale { many: 40, few: 4, events: 60, long: 400, early: 20, loaded: 2_500, rounds: 3 };

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let scale = if quick { QUICK } else { FULL };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let (of_few, of_many, many) = many_at_work(&scale).await?;
        println!(
            "{} sessions of {} events, in turn: {:.0} µs of CPU a turn; {} sessions: {:.0} µs; {many:.3} times",
            scale.many, scale.events, of_many * 1e6, scale.few, of_few * 1e6
        );
        let (long, path, identity) = long_session(&scale).await?;
        println!("turn {} of a session: {long:.3} times turn {}", scale.long, scale.early);
        let (load, cold, again) = loads(path.path(), &identity).await?;
        println!(
            "{} events: loaded in {:.2} ms from their snapshot; without one in {:.0} ms, and the next time in {:.2} ms",
            scale.loaded, load * 1e3, cold * 1e3, again * 1e3
        );
        let bars = [("few", of_few * 1e3), ("many", of_many * 1e3)];
        plot::bars("active", "CPU of a turn, with few and with many sessions at work", "ms", &bars)?;
        let figure = format!(
            "{many:.3} times with {} sessions; {long:.3} times at turn {}; {} events in {:.2} ms, {:.2} ms after a cold fold",
            scale.many, scale.long, scale.loaded, load * 1e3, again * 1e3
        );
        let well = many <= MANY_MAX
            && long <= LONG_MAX
            && load <= LOAD_SECONDS_MAX
            && again <= LOAD_SECONDS_MAX;
        Ok(close("active", &figure, "1.15, 1.1, 5 ms, 5 ms", well))
    })
}

/// A session, and how many turns it has had.
struct Talk {
    identity: SessionKey,
    turns: u64,
}

impl Talk {
    fn new(name: &str, number: usize) -> anyhow::Result<Self> {
        Ok(Self { identity: ada_key(&format!("cli:{name}-{number:05}"))?, turns: 0 })
    }

    async fn turn(&mut self, ours: &Ours) -> anyhow::Result<()> {
        let said = nth(&TURNS, self.turns);
        self.turns += 1;
        ours.does(&self.identity, said).await
    }

    async fn events(&self, ours: &Ours) -> anyhow::Result<u64> {
        Ok(ours.runtime.queries.session(&self.identity).await?.version.0)
    }
}

/// Sessions with so many events each.
async fn talks(ours: &Ours, count: usize, events: u64) -> anyhow::Result<Vec<Talk>> {
    let mut talks = Vec::new();
    for number in 0..count {
        let mut talk = Talk::new("active", number)?;
        while talk.events(ours).await? < events {
            talk.turn(ours).await?;
        }
        talks.push(talk);
    }
    Ok(talks)
}

/// CPU of a turn, of so many turns that go round.
async fn round(ours: &Ours, talks: &mut [Talk], turns: usize) -> anyhow::Result<f64> {
    let used = cpu();
    for at in 0..turns {
        let count = talks.len();
        talks[at % count].turn(ours).await?;
    }
    Ok((cpu() - used) / turns as f64)
}

/// CPU of a turn with few sessions and with many, and how many times the one the other is.
async fn many_at_work(scale: &Scale) -> anyhow::Result<(f64, f64, f64)> {
    let (few, many) = (Ours::start()?, Ours::start()?);
    let mut of_few = talks(&few, scale.few, scale.events).await?;
    let mut of_many = talks(&many, scale.many, scale.events).await?;
    let mut rounds = Vec::new();
    for number in 0..=scale.rounds {
        let (mut first, mut second) = (0.0, 0.0);
        for arm in [number % 2, 1 - number % 2] {
            if arm == 0 {
                first = round(&few, &mut of_few, scale.many).await?;
            } else {
                second = round(&many, &mut of_many, scale.many).await?;
            }
        }
        // The first round of each warms what is warm in the others.
        if number > 0 {
            rounds.push((first, second));
        }
    }
    let of = |what: fn(&(f64, f64)) -> f64| median(&rounds.iter().map(what).collect::<Vec<_>>());
    Ok((of(|pair| pair.0), of(|pair| pair.1), of(|pair| pair.1 / pair.0)))
}

/// CPU of late turns by that of early ones, and a journal with a session of so many events.
async fn long_session(scale: &Scale) -> anyhow::Result<(f64, tempfile::TempDir, SessionKey)> {
    let ours = Ours::start()?;
    let mut long = Talk::new("long", 0)?;
    while long.turns < scale.long {
        long.turn(&ours).await?;
    }
    let mut ratios = Vec::new();
    for number in 0..=scale.rounds {
        let mut early = Talk::new("early", number)?;
        while early.turns < scale.early {
            early.turn(&ours).await?;
        }
        let (mut of_early, mut of_long) = ([early], [long]);
        let first = round(&ours, &mut of_early, 50).await?;
        let second = round(&ours, &mut of_long, 50).await?;
        [long] = of_long;
        if number > 0 {
            ratios.push(second / first);
        }
    }
    while long.events(&ours).await? < scale.loaded {
        long.turn(&ours).await?;
    }
    let home = tempfile::Builder::new().prefix("planwright-active-").tempdir()?;
    let connection = Connection::open(ours.journal())?;
    let copy = home.path().join("journal.sqlite");
    connection.execute("VACUUM INTO ?1", [copy.display().to_string()])?;
    Ok((median(&ratios), home, long.identity))
}

/// How long it takes to load a session: from its snapshot, without one, and the next time after that.
async fn loads(home: &std::path::Path, identity: &SessionKey) -> anyhow::Result<(f64, f64, f64)> {
    let path = home.join("journal.sqlite");
    let load = async || {
        let journal = SqliteJournal::open(&path)?;
        let begun = Instant::now();
        journal.session(identity).await?;
        let taken = begun.elapsed().as_secs_f64();
        // What is to be kept of it is written meanwhile.
        tokio::time::sleep(SETTLES).await;
        anyhow::Ok(taken)
    };
    let mut warm = Vec::new();
    for _ in 0..7 {
        warm.push(load().await?);
    }
    Connection::open(&path)?.execute("UPDATE snapshots SET fold_version = 0", [])?;
    let cold = load().await?;
    let mut again = Vec::new();
    for _ in 0..7 {
        again.push(load().await?);
    }
    Ok((median(&warm), cold, median(&again)))
}
