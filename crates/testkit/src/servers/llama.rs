//! A real model server of our own: llama.cpp, with a tiny model of random weights.

use std::{fs, path::Path};

use super::{Daemon, temporary};

/// A real model server.
#[derive(Debug)]
pub struct Llama {
    _daemon: Daemon,
    _home: tempfile::TempDir,
    address: String,
}

impl Llama {
    /// Starts one.
    #[must_use]
    pub fn start() -> Self {
        let (home, root) =
            (temporary("llama"), Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        let (program, log) = (root.join("target/llama/bin/python"), home.path().join("log"));
        let script = root.join("tools/llama/serve.py").display().to_string();
        let model = home.path().join("model.gguf").display().to_string();
        let mut daemon = Daemon::start(&program, &[&script, &model], &log, None, &[]);
        let said = || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let address = text.split_once("<http://")?.1.split_once('>')?.0;
            Some(format!("http://{address}"))
        };
        daemon.wait_until("llama.cpp", || said().is_some());
        let address = said().expect("its address");
        Self { _daemon: daemon, _home: home, address }
    }

    /// Where it is, as Chat Completions.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.address)
    }
}
