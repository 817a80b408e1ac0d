//! An authority of our own, and what it signed.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use super::temporary;

/// An authority of our own, and a server's certificate that it signed.
#[derive(Debug)]
pub struct Certificates {
    home: tempfile::TempDir,
}

impl Certificates {
    /// An authority, and a certificate for a server of this name, at loopback if it is `localhost`.
    #[must_use]
    pub fn for_server(name: &str) -> Self {
        let made = Self { home: temporary("certificates") };
        let addresses = if name == "localhost" { ",IP:127.0.0.1" } else { "" };
        let names = format!("subjectAltName=DNS:{name}{addresses}\n");
        fs::write(made.file("names"), names).expect("a file");
        made.openssl(&[
            "req",
            "-x509",
            "-newkey",
            "ed25519",
            "-nodes",
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
            "-days",
            "2",
            "-subj",
            "/CN=an authority of our own",
        ]);
        made.openssl(&[
            "req",
            "-newkey",
            "ed25519",
            "-nodes",
            "-keyout",
            "server.key",
            "-out",
            "server.csr",
            "-subj",
            "/CN=server",
        ]);
        made.openssl(&[
            "x509",
            "-req",
            "-in",
            "server.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-out",
            "server.pem",
            "-days",
            "2",
            "-extfile",
            "names",
        ]);
        made
    }

    /// The certificate of the authority.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// The certificate of the server.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.file("server.pem")
    }

    /// Its key, copied to where its server alone reads it.
    pub(super) fn give_key(&self, to: &Path) {
        fs::copy(self.file("server.key"), to).expect("a key");
        fs::set_permissions(to, fs::Permissions::from_mode(0o600)).expect("permissions");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn openssl(&self, arguments: &[&str]) {
        let ran = Command::new("openssl").args(arguments).current_dir(self.home.path()).output();
        let ran = ran.expect("openssl runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}
