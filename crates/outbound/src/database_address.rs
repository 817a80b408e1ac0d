//! The address of a database, and what it says of TLS in libpq's words: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`.
//!
//! Where TLS is spoken, the server's certificate and its name are verified: `require` and `verify-ca` are held to the rule of
//! `verify-full`, since a connection that anybody may answer keeps nothing from anybody.

use std::net::IpAddr;

/// How TLS is spoken: the files that an address names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The certificates of the authorities that are believed; the system's if none are named.
    pub authorities: Option<String>,
    /// The certificate that is shown to the server.
    pub certificate: Option<String>,
    /// Its key.
    pub key: Option<String>,
}

/// An address without what it says of TLS, and that; nothing, if TLS is not spoken.
#[must_use]
pub fn split(address: &str) -> (String, Option<Tls>) {
    let Some((plain, settings)) = address.split_once('?') else {
        return (address.to_owned(), None);
    };
    let (mut tls, mut is_spoken, mut rest) = (Tls::default(), false, Vec::new());
    for setting in settings.split('&') {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        match name {
            "sslmode" if matches!(value, "require" | "verify-ca" | "verify-full") => {
                is_spoken = true;
            }
            "sslrootcert" => tls.authorities = Some(decoded(value)),
            "sslcert" => tls.certificate = Some(decoded(value)),
            "sslkey" => tls.key = Some(decoded(value)),
            _ => rest.push(setting),
        }
    }
    let rest = rest.join("&");
    let plain = if rest.is_empty() { plain.to_owned() } else { format!("{plain}?{rest}") };
    (plain, is_spoken.then_some(tls))
}

/// Whether an address of a database says that TLS is spoken.
#[must_use]
pub fn speaks_tls(address: &str) -> bool {
    split(address).1.is_some()
}

/// Whether a database is reached by a unix socket or over loopback, whatever of its address a client takes for the host.
#[must_use]
pub fn is_here(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else { return false };
    let (plain, settings) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = plain.split('/').next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host
        .rsplit_once(':')
        .filter(|(_, port)| port.parse::<u16>().is_ok())
        .map_or(host, |(host, _)| host);
    let is_loopback = |host: &str| {
        let bare = host.trim_matches(['[', ']']);
        bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    let mut has_host = !host.is_empty();
    // A list of hosts is none of ours, however it ends.
    if (has_host && !is_loopback(host)) || authority.contains(',') {
        return false;
    }
    for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let (name, value) = (decoded(name), decoded(value));
        match name.as_str() {
            "host" if !value.starts_with('/') || value.contains(',') => return false,
            "hostaddr" if !is_loopback(&value) => return false,
            "host" | "hostaddr" => has_host = true,
            _ => {}
        }
    }
    has_host
}

/// A path as it was before it was written into an address.
fn decoded(value: &str) -> String {
    let bytes = value.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = value.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_here_only_if_every_host_in_it_is() {
        for here in [
            "postgresql://me:secret@127.0.0.1:5432/plans",
            "postgresql://localhost/plans",
            "postgresql://[::1]:5432/plans",
            "postgresql://[::1]/plans",
            "postgresql:///plans?host=/run/postgresql",
            "postgresql:///plans?host=%2Frun%2Fpostgresql&application_name=x",
            "postgresql://localhost/plans?hostaddr=127.0.0.1",
        ] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in [
            "postgresql://127.0.0.1@db.example:5432/plans",
            "postgresql://db.example/plans?host=/run/postgresql",
            "postgresql://localhost/plans?hostaddr=192.0.2.2",
            "postgresql://localhost/plans?%68ostaddr=192.0.2.2",
            "postgresql://localhost/plans?host=db.example",
            "postgresql:///plans?host=/run/postgresql,db.example",
            "postgresql://x@db.example,@localhost/plans",
            "postgresql://localhost,db.example/plans",
            "postgresql:///plans",
            "host=/run/postgresql user=me",
        ] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn what_an_address_says_of_tls_is_taken_out_of_it() {
        let of = |authorities: Option<&str>| Tls {
            authorities: authorities.map(str::to_owned),
            ..Tls::default()
        };
        let cases = [
            ("postgresql://a@b/c", "postgresql://a@b/c", None),
            ("postgresql://a@b/c?sslmode=verify-full", "postgresql://a@b/c", Some(of(None))),
            (
                "postgresql://a@b/c?connect_timeout=3&sslmode=require&sslrootcert=/etc/my%20ca.pem",
                "postgresql://a@b/c?connect_timeout=3",
                Some(of(Some("/etc/my ca.pem"))),
            ),
            ("postgresql://a@b/c?sslmode=disable", "postgresql://a@b/c?sslmode=disable", None),
            ("postgresql://a@b/c?sslmode=prefer", "postgresql://a@b/c?sslmode=prefer", None),
            (
                "postgresql://a@b/c?application_name=sslmode=verify-full",
                "postgresql://a@b/c?application_name=sslmode=verify-full",
                None,
            ),
        ];
        for (address, plain, tls) in cases {
            assert_eq!(split(address), (plain.to_owned(), tls), "{address}");
        }
    }
}
