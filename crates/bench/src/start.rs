//! The real program: how it starts, idles, and starts again after `kill -9`, with many sessions.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;

use crate::{
    many,
    measure::{Judged, close, cpu_of, median, resident_of},
};

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let (count, rounds, idle) = if quick { (20_000, 3, 12) } else { (100_000, 7, 10) };
    let program = std::env::current_exe()?.with_file_name("planwright");
    anyhow::ensure!(
        program.exists(),
        "{} is missing; run: cargo build --release",
        program.display()
    );
    let home = tempfile::Builder::new().prefix("planwright-start-").tempdir()?;
    let data = home.path().join("data");
    fs::create_dir(&data)?;
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
    many::fill(&data.join("journal.sqlite"), count)?;
    let config = data.join("config.toml");
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    fs::write(&config, format!("[server]\nbind = \"127.0.0.1:{port}\"\n"))?;
    fs::set_permissions(&config, fs::Permissions::from_mode(0o600))?;
    let (mut cpus, mut walls, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    let mut idle_share = f64::NAN;
    println!("{count} sessions in which a plan waits");
    println!("{:<7}{:>14}{:>16}{:>12}", "round", "ready ms CPU", "ready ms wall", "MB");
    for round in 0..rounds {
        let mut running = Running::start(&program, &data, home.path(), port)?;
        let (wall, pid) = (running.ready()?, running.child.id());
        let (cpu, size) = (cpu_of(pid)?, resident_of(pid)?);
        println!("{round:<7}{:>14.0}{:>16.0}{:>12.1}", cpu * 1e3, wall * 1e3, size / 1e6);
        cpus.push(cpu);
        walls.push(wall);
        sizes.push(size);
        if round == 0 {
            std::thread::sleep(Duration::from_secs(1));
            let before = cpu_of(pid)?;
            std::thread::sleep(Duration::from_secs(idle));
            idle_share = (cpu_of(pid)? - before) / idle as f64;
            println!("idle for {idle} s: {:.3} % of a core", idle_share * 100.0);
        }
        running.kill();
    }
    let (cpu, wall, size) = (median(&cpus), median(&walls[1..]), median(&sizes));
    let well = cpu <= 0.05 && size <= 25e6 && idle_share <= 1e-3 && wall <= 0.2;
    let figure = format!(
        "ready after {:.0} ms CPU, {:.1} MB, idle {:.3} %, ready {:.0} ms after kill -9",
        cpu * 1e3,
        size / 1e6,
        idle_share * 100.0,
        wall * 1e3
    );
    Ok(close("start", &figure, "50 ms CPU, 25 MB, 0.1 %, 200 ms", well))
}

struct Running {
    child: Child,
    begun: Instant,
    port: u16,
}

impl Running {
    fn start(program: &Path, data: &Path, home: &Path, port: u16) -> anyhow::Result<Self> {
        let workspace: PathBuf = home.join("workspace");
        let begun = Instant::now();
        let child = Command::new(program)
            .arg("up")
            .arg("--data")
            .arg(data)
            .arg("--workspace")
            .arg(workspace)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("planwright does not start")?;
        Ok(Self { child, begun, port })
    }

    /// Waits until it is ready, and says how long that took since it was started.
    fn ready(&mut self) -> anyhow::Result<f64> {
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
