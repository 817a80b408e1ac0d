//! A NATS server of our own.

use super::{Certificates, Daemon, answers, free_port, program, temporary};

/// A NATS server of our own.
#[derive(Debug)]
pub struct Nats {
    daemon: Option<Daemon>,
    home: tempfile::TempDir,
    configuration: Option<String>,
    /// The port it listens at.
    pub port: u16,
}

impl Nats {
    /// Starts one.
    #[must_use]
    pub fn start() -> Self {
        let (home, port) = (temporary("nats"), free_port());
        let mut server = Self { daemon: None, home, configuration: None, port };
        server.up();
        server
    }

    /// One that speaks TLS alone, and knows whoever has this nkey.
    #[must_use]
    pub fn start_secured(certificates: &Certificates, nkey: &str) -> Self {
        let (home, port) = (temporary("nats"), free_port());
        let key = home.path().join("server.key");
        certificates.give_key(&key);
        let configuration = format!(
            "tls {{ cert_file: {:?}, key_file: {key:?}, timeout: 5 }}\nauthorization {{ users: [ {{ nkey: {nkey} }} ] }}\n",
            certificates.certificate()
        );
        let mut server = Self { daemon: None, home, configuration: Some(configuration), port };
        server.up();
        server
    }

    /// Starts it again after a kill.
    pub fn up(&mut self) {
        let port = self.port.to_string();
        let log = self.home.path().join("log");
        let program = program("nats-server", &["/usr/sbin"]);
        let mut arguments = vec!["-a", "127.0.0.1", "-p", &port];
        let file = self.home.path().join("nats.conf").display().to_string();
        if let Some(configuration) = &self.configuration {
            std::fs::write(&file, configuration).expect("a file");
            arguments.extend(["-c", &file]);
        }
        let mut daemon = Daemon::start(&program, &arguments, &log, None, &[]);
        daemon.wait_until("NATS", || answers(self.port));
        self.daemon = Some(daemon);
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.daemon = None;
    }

    /// Where it is, for a client.
    #[must_use]
    pub fn address(&self) -> String {
        let scheme = if self.configuration.is_some() { "tls" } else { "nats" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }
}
