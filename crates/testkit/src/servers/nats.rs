//! A NATS server of our own.

use super::{Daemon, answers, free_port, program, temporary};

/// A NATS server of our own.
#[derive(Debug)]
pub struct Nats {
    daemon: Option<Daemon>,
    home: tempfile::TempDir,
    /// The port it listens at.
    pub port: u16,
}

impl Nats {
    /// Starts one.
    #[must_use]
    pub fn start() -> Self {
        let mut server = Self { daemon: None, home: temporary("nats"), port: free_port() };
        server.up();
        server
    }

    /// Starts it again after a kill.
    pub fn up(&mut self) {
        let port = self.port.to_string();
        let log = self.home.path().join("log");
        let program = program("nats-server", &["/usr/sbin"]);
        let mut daemon =
            Daemon::start(&program, &["-a", "127.0.0.1", "-p", &port], &log, None, &[]);
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
        format!("nats://127.0.0.1:{}", self.port)
    }
}
