//! Which hosts may be reached, and where: at public addresses, whatever a name leads to.
//!
//! The host is held against a list, and the address against the ranges that are nobody else's business, where the connection is
//! made. A name that leads to a private address beside a public one is refused whole.

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use planwright_domain::effect::Aim;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Tells where a name leads.
pub type Lookup = Arc<dyn Fn(&str) -> Vec<SocketAddr> + Send + Sync>;

/// Which addresses may be reached. Only proofs name any: no setting does.
#[derive(Clone, Default)]
pub struct Addresses {
    /// Beside the public ones.
    pub also: BTreeSet<SocketAddr>,
    /// Where names lead, if not where the system says.
    pub lookup: Option<Lookup>,
}

impl std::fmt::Debug for Addresses {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Addresses").field("also", &self.also).finish_non_exhaustive()
    }
}

impl Addresses {
    fn admits(&self, address: SocketAddr) -> bool {
        let also = |also: &SocketAddr| {
            also.ip() == address.ip() && (address.port() == 0 || also.port() == address.port())
        };
        is_public(address.ip()) || self.also.iter().any(also)
    }

    /// Where a name leads; refused if any of it may not be reached.
    async fn of(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found: Vec<_> = match &self.lookup {
            Some(lookup) => lookup(host),
            None => tokio::net::lookup_host((host, port)).await?.collect(),
        };
        if found.is_empty() || !found.iter().all(|address| self.admits(*address)) {
            return Err(io::Error::other(format!("{host} does not lead to a public address")));
        }
        Ok(found)
    }
}

/// The address that a host is, if it is written as one.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

/// What may be reached.
#[derive(Debug)]
pub(crate) struct Egress {
    hosts: Aim,
    /// Where the list of hosts is from.
    listed_in: &'static str,
    addresses: Addresses,
}

impl Egress {
    /// To these hosts; `*.name` is all under a name.
    pub(crate) fn to(
        hosts: BTreeSet<String>,
        listed_in: &'static str,
        addresses: Addresses,
    ) -> Self {
        Self { hosts: Aim { hosts, ..Aim::default() }, listed_in, addresses }
    }

    /// Why this host is not reached at this port; nothing if it may be.
    pub(crate) fn refuses(&self, host: &str, port: u16) -> Option<String> {
        let aim = Aim { hosts: [host.to_owned()].into(), ..Aim::default() };
        if !self.hosts.covers(&aim) {
            let listed_in = self.listed_in;
            return Some(format!(
                "{host} is not one of the hosts that may be reached ({listed_in})"
            ));
        }
        let also = self.addresses.also.iter().any(|also| also.port() == port);
        match literal(host) {
            Some(address) if !self.addresses.admits(SocketAddr::new(address, port)) => {
                Some(format!("{host} is not a public address"))
            }
            Some(_) | None if !also && !matches!(port, 80 | 443) => {
                Some(format!("{host}:{port} is not at a port of the web"))
            }
            Some(_) | None => None,
        }
    }

    /// Where a host leads.
    pub(crate) async fn addresses_of(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.addresses.of(host, port).await
    }

    /// A resolver for a client that reaches the same.
    pub(crate) fn resolver(&self) -> Arc<Guarded> {
        Arc::new(Guarded(self.addresses.clone()))
    }
}

/// Resolves names for a client, and refuses those that lead where nothing may go.
#[derive(Default)]
pub(crate) struct Guarded(Addresses);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.0.clone();
        Box::pin(async move {
            let found = addresses.of(name.as_str(), 0).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Why an address of the web is not public, in words: as it is written, or where its name leads now.
pub async fn check_public(url: &str) -> Result<(), String> {
    let parsed =
        reqwest::Url::parse(url).map_err(|error| format!("{url:?} is not an address: {error}"))?;
    let host = parsed.host_str().ok_or_else(|| format!("{url} names no host"))?;
    let is_private = match literal(host) {
        Some(address) => !is_public(address),
        None => {
            let port = parsed.port_or_known_default().unwrap_or(443);
            let found = tokio::net::lookup_host((host, port)).await;
            // What cannot be looked up is not reached either: the client says why.
            found.is_ok_and(|mut found| found.any(|address| !is_public(address.ip())))
        }
    };
    if is_private {
        return Err(format!("{url} leads to this machine or its network"));
    }
    Ok(())
}

/// Whether an address is out in the open: not this machine, not this network, not a range of its own.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let reserved = address.is_unspecified()
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation();
    let special = first == 0
        || first >= 240
        || (first == 100 && (64..128).contains(&second))
        || (first == 192 && second == 0 && third == 0)
        || (first == 192 && second == 88 && third == 99)
        || (first == 198 && (18..20).contains(&second));
    !reserved && !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // What carries an IPv4 address is that address.
    let segments = address.segments();
    let embedded = match segments {
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    };
    if let Some(embedded) = embedded {
        return is_public_v4(embedded);
    }
    // Global unicast, without documentation, Teredo, benchmarking and what is not yet given out.
    let first = segments[0];
    let special = first == 0x2001 && (segments[1] < 0x200 || segments[1] == 0xdb8);
    (0x2000..0x4000).contains(&first) && !special && first != 0x3fff
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}
