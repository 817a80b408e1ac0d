//! The real program with many sessions: how it starts and idles, and how it recovers from `kill -9` with turns in flight.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context as _;
use planwright_testkit::scripted_model::{ScriptedModel, ScriptedReply, SeenRequest};
use rusqlite::{Connection, OpenFlags};

use crate::{
    many,
    measure::{Judged, close, cpu_of, median, resident_of},
};

/// How many turns are in flight when the process is killed.
const IN_FLIGHT: usize = 1_000;
/// How long they may take to end after the restart.
const RESUMED_MAX: f64 = 30.0;
/// How long it may take until the process has taken them up, or ended them.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let (count, rounds, idle, kills) = if quick { (20_000, 3, 12, 1) } else { (100_000, 7, 10, 3) };
    let house = House::build(count)?;
    let (mut cpus, mut sizes) = (Vec::new(), Vec::new());
    let mut idle_share = f64::NAN;
    println!("{count} sessions in which a plan waits");
    println!("{:<7}{:>14}{:>16}{:>12}", "round", "ready ms CPU", "ready ms wall", "MB");
    for round in 0..rounds {
        let mut running = house.start(None)?;
        let (wall, pid) = (running.ready()?, running.child.id());
        let (cpu, size) = (cpu_of(pid)?, resident_of(pid)?);
        println!("{round:<7}{:>14.0}{:>16.0}{:>12.1}", cpu * 1e3, wall * 1e3, size / 1e6);
        cpus.push(cpu);
        sizes.push(size);
        if round == 0 {
            std::thread::sleep(Duration::from_secs(1));
            let before = cpu_of(pid)?;
            std::thread::sleep(Duration::from_secs(idle));
            idle_share = (cpu_of(pid)? - before) / idle as f64;
            println!("idle for {idle} s: {:.3} % of a core", idle_share * 100.0);
        }
    }
    let (mut readies, mut resumed) = (Vec::new(), Vec::new());
    println!("killed with {IN_FLIGHT} turns in flight");
    println!(
        "{:<7}{:>14}{:>16}{:>18}{:>16}",
        "round", "at the model", "ready ms wall", "all ended s wall", "asked again"
    );
    for round in 0..kills {
        let recovery = house.recover(round)?;
        println!(
            "{round:<7}{:>14}{:>16.0}{:>18.2}{:>16}",
            recovery.at_the_model,
            recovery.ready * 1e3,
            recovery.resumed,
            recovery.asked_again
        );
        readies.push(recovery.ready);
        resumed.push(recovery.resumed);
    }
    let (cpu, size) = (median(&cpus), median(&sizes));
    let (ready, resumed) = (median(&readies), median(&resumed));
    let starts = cpu <= 0.05 && size <= 25e6 && idle_share <= 1e-3;
    let figure = format!(
        "ready after {:.0} ms CPU, {:.1} MB, idle {:.3} %; after kill -9 with {IN_FLIGHT} turns in flight ready in {:.0} ms, all ended in {resumed:.1} s",
        cpu * 1e3,
        size / 1e6,
        idle_share * 100.0,
        ready * 1e3
    );
    let well = starts && ready <= 0.2 && resumed <= RESUMED_MAX;
    Ok(close("start", &figure, "50 ms CPU, 25 MB, 0.1 %; 200 ms, 30 s", well))
}

/// A data directory with many sessions, and the program that is started over it.
pub(crate) struct House {
    program: PathBuf,
    home: tempfile::TempDir,
    port: u16,
}

/// What came of one kill.
struct Recovery {
    /// How many turns had the model asked when the process was killed.
    at_the_model: usize,
    /// Seconds from the restart until the API answers.
    ready: f64,
    /// Seconds from the restart until the last turn has ended.
    resumed: f64,
    /// How often the model was asked after the restart.
    asked_again: usize,
}

impl House {
    pub(crate) fn build(count: usize) -> anyhow::Result<Self> {
        let program = std::env::current_exe()?.with_file_name("planwright");
        let missing = format!("{} is missing; run: cargo build --release", program.display());
        anyhow::ensure!(program.exists(), missing);
        let home = tempfile::Builder::new().prefix("planwright-start-").tempdir()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let house = Self { program, home, port };
        let data = house.data();
        fs::create_dir(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        many::fill(&house.journal(), count)?;
        let config = data.join("config.toml");
        let limits = "requests_per_second = 100000";
        fs::write(&config, format!("[server]\nbind = \"127.0.0.1:{port}\"\n{limits}\n"))?;
        fs::set_permissions(&config, fs::Permissions::from_mode(0o600))?;
        Ok(house)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.data().join("journal.sqlite")
    }

    pub(crate) fn start(&self, model: Option<&str>) -> anyhow::Result<Running> {
        let begun = Instant::now();
        let child = Command::new(&self.program)
            .envs(model.map(|url| ("PLANWRIGHT_MODEL_URL", url)))
            .envs(model.map(|_| ("PLANWRIGHT_MODEL", "scripted")))
            .arg("up")
            .arg("--data")
            .arg(self.data())
            .arg("--workspace")
            .arg(self.home.path().join("workspace"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("planwright does not start")?;
        Ok(Running { child, begun, port: self.port })
    }

    /// Kills the process with turns in flight, starts it again, and waits until all of them have ended.
    fn recover(&self, round: usize) -> anyhow::Result<Recovery> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let holds = Arc::new(AtomicBool::new(true));
        let held = holds.clone();
        let conduct = Arc::new(move |_: &SeenRequest| {
            let thinks = if held.load(Ordering::SeqCst) { PATIENCE * 2 } else { Duration::ZERO };
            ScriptedReply { thinks, ..ScriptedReply::text("Here is what you asked for.") }
        });
        let model = runtime.block_on(ScriptedModel::start(conduct))?;
        let flights = Flights::begin(&runtime, &self.journal(), round)?;
        let mut before = self.start(Some(&model.base_url()))?;
        before.ready()?;
        // Until the number no longer changes.
        let (mut at_the_model, mut same, begun) = (0, 0, Instant::now());
        while at_the_model == 0 || same < 10 {
            anyhow::ensure!(begun.elapsed() < PATIENCE, "no turn was taken up");
            std::thread::sleep(Duration::from_millis(100));
            let now = model.thinking();
            same = if now == at_the_model { same + 1 } else { 0 };
            at_the_model = now;
        }
        before.kill();
        anyhow::ensure!(flights.ended()? == 0, "turns ended before the kill");
        holds.store(false, Ordering::SeqCst);
        let asked = model.request_count();
        let mut after = self.start(Some(&model.base_url()))?;
        let ready = after.ready()?;
        while flights.ended()? < IN_FLIGHT {
            let (ended, late) = (flights.ended()?, after.begun.elapsed() > PATIENCE);
            anyhow::ensure!(!late, "{ended} of {IN_FLIGHT} turns ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        let resumed = after.begun.elapsed().as_secs_f64();
        flights.check()?;
        Ok(Recovery { at_the_model, ready, resumed, asked_again: model.request_count() - asked })
    }
}

/// The turns that are in flight, as the journal has them.
struct Flights {
    connection: Connection,
    /// They are the streams after this one.
    after: i64,
}

impl Flights {
    fn begin(
        runtime: &tokio::runtime::Runtime,
        journal: &Path,
        round: usize,
    ) -> anyhow::Result<Self> {
        let connection = Connection::open_with_flags(journal, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let after = connection.query_row("SELECT max(id) FROM streams", [], |row| row.get(0))?;
        runtime.block_on(many::begin_turns(journal, round, IN_FLIGHT))?;
        Ok(Self { connection, after })
    }

    fn count(&self, kinds: &str) -> anyhow::Result<usize> {
        let query = format!(
            "SELECT count(*) FROM events WHERE id > ?1 << 32 | 0xFFFFFFFF AND kind IN ({kinds})"
        );
        let count: i64 = self.connection.query_row(&query, [self.after], |row| row.get(0))?;
        Ok(usize::try_from(count)?)
    }

    fn ended(&self) -> anyhow::Result<usize> {
        self.count("'turn_finished', 'turn_failed'")
    }

    /// Every turn was answered once and ended well, and no session is parked.
    fn check(&self) -> anyhow::Result<()> {
        let query = "SELECT count(*) FROM streams WHERE id > ?1 AND parked IS NOT NULL";
        let parked: i64 = self.connection.query_row(query, [self.after], |row| row.get(0))?;
        let (answered, finished) =
            (self.count("'model_answered'")?, self.count("'turn_finished'")?);
        anyhow::ensure!(
            (answered, finished, parked) == (IN_FLIGHT, IN_FLIGHT, 0),
            "{answered} answers, {finished} turns that ended well, {parked} sessions parked"
        );
        Ok(())
    }
}

pub(crate) struct Running {
    child: Child,
    begun: Instant,
    pub(crate) port: u16,
}

impl Running {
    /// Waits until it is ready, and says how long that took since it was started.
    pub(crate) fn ready(&mut self) -> anyhow::Result<f64> {
        use std::io::{Read as _, Write as _};
        while self.begun.elapsed() < Duration::from_secs(20) {
            if let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", self.port)) {
                let request = format!(
                    "GET /ready HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
                    self.port
                );
                let mut answer = String::new();
                if stream.write_all(request.as_bytes()).is_ok()
                    && stream.read_to_string(&mut answer).is_ok()
                    && answer.starts_with("HTTP/1.1 200")
                {
                    return Ok(self.begun.elapsed().as_secs_f64());
                }
            }
            anyhow::ensure!(self.child.try_wait()?.is_none(), "planwright ended");
            std::thread::sleep(Duration::from_millis(2));
        }
        anyhow::bail!("not ready within 20 s")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
