//! TLS to the database, as its address says.

use std::{path::Path, sync::Arc};

use planwright_runtime::ports::journal::JournalError;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

use crate::{database_address::Tls, journal::engine};

/// The client that speaks TLS with these files.
pub(super) fn config(tls: &Tls) -> Result<ClientConfig, JournalError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(engine)?
        .with_root_certificates(roots(tls)?);
    match (&tls.certificate, &tls.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unreadable("sslkey", key, &error))?;
            builder.with_client_auth_cert(chain, key).map_err(engine)
        }
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(_), None) | (None, Some(_)) => {
            let words = "the database's address names sslcert or sslkey alone; name both";
            Err(JournalError::Engine(words.into()))
        }
    }
}

fn roots(tls: &Tls) -> Result<RootCertStore, JournalError> {
    let mut roots = RootCertStore::empty();
    match &tls.authorities {
        Some(file) => {
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(engine)?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
    }
    Ok(roots)
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, JournalError> {
    let read = CertificateDer::pem_file_iter(Path::new(file)).and_then(Iterator::collect);
    read.map_err(|error| unreadable("sslrootcert or sslcert", file, &error))
}

fn unreadable(what: &str, file: &str, error: &dyn std::fmt::Display) -> JournalError {
    JournalError::Engine(format!("{what} of the database's address: {file}: {error}").into())
}
