//! A PostgreSQL server of our own.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{Certificates, Daemon, answers, free_port, program, root, temporary};

const PLACES: [&str; 3] =
    ["/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/17/bin"];

/// A PostgreSQL server of our own.
#[derive(Debug)]
pub struct Postgres {
    daemon: Option<Daemon>,
    home: tempfile::TempDir,
    /// The certificate that it shows; none, if it speaks plain text.
    certificate: Option<PathBuf>,
    /// The port it listens at.
    pub port: u16,
}

impl Postgres {
    /// Starts one.
    #[must_use]
    pub fn start() -> Self {
        Self::with(None)
    }

    /// One that speaks TLS alone.
    #[must_use]
    pub fn start_secured(certificates: &Certificates) -> Self {
        Self::with(Some(certificates))
    }

    fn with(certificates: Option<&Certificates>) -> Self {
        let home = temporary("postgres");
        let data = home.path().join("data");
        run(Command::new("cp").arg("-r").arg(template()).arg(&data));
        if let Some(certificates) = certificates {
            certificates.give_key(&data.join("server.key"));
            let only = "hostssl all all 127.0.0.1/32 trust\n";
            std::fs::write(data.join("pg_hba.conf"), only).expect("a file");
        }
        if let Some((user, group)) = unprivileged() {
            run(Command::new("chown").arg("-R").arg(format!("{user}:{group}")).arg(home.path()));
        }
        run(Command::new("chmod").arg("700").arg(&data));
        let certificate = certificates.map(Certificates::certificate);
        let mut server = Self { daemon: None, home, certificate, port: free_port() };
        server.up();
        server
    }

    /// Starts it again after a kill.
    pub fn up(&mut self) {
        let (data, port) = (self.home.path().join("data"), self.port.to_string());
        let data = data.display().to_string();
        let mut settings = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".into(),
            "max_connections=120".into(),
            "shared_buffers=64MB".into(),
        ];
        if let Some(certificate) = &self.certificate {
            let (certificate, key) = (certificate.display(), format!("{data}/server.key"));
            settings.extend(["ssl=on".into(), format!("ssl_cert_file={certificate}")]);
            settings.push(format!("ssl_key_file={key}"));
        }
        let mut arguments = vec!["-D", &data, "-p", &port];
        arguments.extend(settings.iter().flat_map(|setting| ["-c", setting]));
        let log = self.home.path().join("log");
        let mut daemon =
            Daemon::start(&program("postgres", &PLACES), &arguments, &log, unprivileged(), &[]);
        let address = self.address();
        daemon.wait_until("PostgreSQL", || {
            answers(self.port)
                && Command::new("psql")
                    .args([&address, "-qtc", "SELECT 1"])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status()
                    .is_ok_and(|status| status.success())
        });
        self.daemon = Some(daemon);
    }

    /// Kills the whole server, children and all, as a power cut would.
    pub fn kill(&mut self) {
        let Some(mut daemon) = self.daemon.take() else { return };
        let children =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", daemon.pid()))
                .unwrap_or_default();
        daemon.kill();
        for child in children.split_whitespace() {
            let _ = Command::new("kill").args(["-9", child]).stderr(Stdio::null()).status();
        }
        // The next server refuses to start while one of these still holds the shared memory.
        std::thread::sleep(std::time::Duration::from_millis(100));
    }

    /// Its process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.daemon.as_ref().map(Daemon::pid)
    }

    /// Where its database is, for a client.
    #[must_use]
    pub fn address(&self) -> String {
        self.address_at(self.port)
    }

    /// The same, by way of another port.
    #[must_use]
    pub fn address_at(&self, port: u16) -> String {
        format!("postgresql://planwright@127.0.0.1:{port}/postgres")
    }

    /// Backs it up into a file, as the operator's page says.
    pub fn dump(&self, file: &Path) {
        let file = file.display().to_string();
        run(Command::new(program("pg_dump", &PLACES))
            .args(["--format=custom", "--file", &file])
            .arg(self.address()));
    }

    /// Restores a file that another one was backed up into.
    pub fn restore(&self, file: &Path) {
        let file = file.display().to_string();
        run(Command::new(program("pg_restore", &PLACES)).args([
            "--exit-on-error",
            "--dbname",
            &self.address(),
            &file,
        ]));
    }

    /// Says something to it.
    #[must_use]
    pub fn psql(&self, sql: &str) -> String {
        let said = Command::new("psql").args([&self.address(), "-qtAc", sql]).output();
        let said = said.expect("psql");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A fresh cluster, made once and copied from then on.
fn template() -> PathBuf {
    let place = root().join("target");
    std::fs::create_dir_all(&place).expect("a directory");
    let lock = std::fs::File::create(place.join("postgres-template.lock")).expect("a lock");
    lock.lock().expect("a lock");
    let made = place.join("postgres-template");
    if made.exists() {
        return made;
    }
    let home = temporary("initdb");
    let data = home.path().join("data");
    if let Some((user, group)) = unprivileged() {
        run(Command::new("chown").arg(format!("{user}:{group}")).arg(home.path()));
    }
    let initdb = program("initdb", &PLACES).display().to_string();
    let mut command = Command::new("setpriv");
    if let Some((user, group)) = unprivileged() {
        command.args([format!("--reuid={user}"), format!("--regid={group}")]);
        command.arg("--clear-groups");
    }
    run(command
        .arg("--")
        .arg(initdb)
        .args(["--auth=trust", "--username=planwright", "--no-sync", "--encoding=UTF8"])
        .args(["--locale=C", "-D"])
        .arg(&data));
    run(Command::new("cp").arg("-r").arg(&data).arg(made.with_extension("part")));
    std::fs::rename(made.with_extension("part"), &made).expect("a template");
    made
}

/// Who runs the server: PostgreSQL refuses to run as root.
fn unprivileged() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string(Path::new("/etc/passwd")).unwrap_or_default();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_one = fields.next().is_some_and(|name| name == "postgres" || name == "nobody");
        let user = fields.nth(1)?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        is_one.then_some((user, group))
    })
}

fn run(command: &mut Command) {
    let ran = command.output().expect("it runs");
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
}
