//! A server that speaks S3, of our own: one that compares before it replaces, and one that does not.

use super::{Daemon, answers, free_port, temporary};

/// A server that speaks S3.
#[derive(Debug)]
pub struct S3 {
    _daemon: Daemon,
    _home: tempfile::TempDir,
    port: u16,
}

impl S3 {
    /// One that honours conditions.
    #[must_use]
    pub fn start() -> Self {
        Self::run("moto_server", |_, port| vec!["-H".into(), "127.0.0.1".into(), "-p".into(), port])
    }

    /// One that ignores them.
    #[must_use]
    pub fn start_careless() -> Self {
        Self::run("rclone", |home, port| {
            vec!["serve".into(), "s3".into(), home, "--addr".into(), format!("127.0.0.1:{port}")]
        })
    }

    fn run(program: &str, words: impl Fn(String, String) -> Vec<String>) -> Self {
        let (home, port) = (temporary("s3"), free_port());
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/s3/bin");
        let words = words(home.path().display().to_string(), port.to_string());
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let log = home.path().join("log");
        let program = root.join(program);
        let mut daemon = Daemon::start(&program, &words, &log, None, &[]);
        daemon.wait_until("S3", || answers(port));
        Self { _daemon: daemon, _home: home, port }
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Makes a bucket.
    pub fn make_bucket(&self, name: &str) {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(super::loopback(self.port)).expect("S3");
        let asked = format!(
            "PUT /{name} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(asked.as_bytes()).expect("it is asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
