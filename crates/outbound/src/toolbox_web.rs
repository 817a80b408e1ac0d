//! Web pages, through one client that reaches public addresses of allowed hosts and nothing else.
//!
//! The host is held against the operator's list, and the address against the ranges that are nobody else's
//! business, where the connection is made: in the resolver, for every name and at every redirect. A name that
//! resolves to a private address beside a public one is refused whole.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use planwright_domain::{
    effect::{Aim, Effect, Repeat, Touched},
    identity::Root,
    tools::ToolSpec,
    turn::{CallResult, CallStatus},
};
use planwright_runtime::ports::toolbox::{Ran, Tool, ToolRun, Toolbox};
use reqwest::{
    Client, Response, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::CONTENT_TYPE,
    redirect,
};
use serde::Deserialize;
use serde_json::json;

/// The tool's name.
pub const WEB_FETCH: &str = "web_fetch";
/// How long a page may take.
const PAGE_MAX: Duration = Duration::from_secs(30);
/// How much of a page is read.
const PAGE_BYTES_MAX: usize = 512 * 1024;
/// How many redirects are followed.
const REDIRECTS_MAX: usize = 5;

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

/// The tool that fetches web pages.
pub struct WebToolbox {
    client: Client,
    rules: Arc<Rules>,
    tools: Arc<Vec<Tool>>,
}

struct Rules {
    hosts: Aim,
    addresses: Addresses,
}

impl WebToolbox {
    /// Pages of these hosts; `*.name` is all under a name.
    pub fn new(hosts: BTreeSet<String>, addresses: Addresses) -> Result<Self, reqwest::Error> {
        let hosts = Aim { hosts, ..Aim::default() };
        let rules = Arc::new(Rules { hosts, addresses });
        let at_redirects = rules.clone();
        let follow = redirect::Policy::custom(move |attempt| {
            if attempt.previous().len() > REDIRECTS_MAX {
                return attempt.error("it redirects too often");
            }
            match at_redirects.refuses(attempt.url()) {
                Some(why) => attempt.error(why),
                None => attempt.follow(),
            }
        });
        let client = Client::builder()
            .no_proxy()
            .dns_resolver(Arc::new(Guarded(rules.clone())))
            .redirect(follow)
            .timeout(PAGE_MAX)
            .build()?;
        let parameters = json!({"type": "object", "required": ["url"], "additionalProperties": false,
            "properties": {"url": {"type": "string"}}});
        let (name, description) = (WEB_FETCH.into(), "Fetch a web page.".into());
        let spec = ToolSpec { name, description, parameters, effect: Effect::External };
        // A page is asked for by GET, which changes nothing there.
        let tools = Arc::new(vec![Tool::new(spec, Repeat::Harmless)]);
        Ok(Self { client, rules, tools })
    }
}

impl Rules {
    /// Why a page is not fetched; nothing if it may be.
    fn refuses(&self, url: &Url) -> Option<String> {
        let Some(host) = url.host_str().map(str::to_owned) else {
            return Some(format!("{url} is not a plain web address"));
        };
        let port = url.port_or_known_default().unwrap_or(0);
        let is_web = matches!(url.scheme(), "http" | "https");
        if !is_web || !url.username().is_empty() || url.password().is_some() {
            return Some(format!("{url} is not a plain web address"));
        }
        let aim = Aim { hosts: [host.clone()].into(), ..Aim::default() };
        if !self.hosts.covers(&aim) {
            return Some(format!("{host} is not one of the hosts that may be reached (web.hosts)"));
        }
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        let also = self.addresses.also.iter().any(|also| also.port() == port);
        match literal {
            Some(address) if !self.admits(SocketAddr::new(address, port)) => {
                Some(format!("{host} is not a public address"))
            }
            Some(_) | None if !also && !matches!(port, 80 | 443) => {
                Some(format!("{url} is not at a port of the web"))
            }
            Some(_) | None => None,
        }
    }

    fn admits(&self, address: SocketAddr) -> bool {
        let also = |also: &SocketAddr| {
            also.ip() == address.ip() && (address.port() == 0 || also.port() == address.port())
        };
        is_public(address.ip()) || self.addresses.also.iter().any(also)
    }
}

/// Resolves names, and refuses those that lead where nothing may go.
struct Guarded(Arc<Rules>);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.0.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<_> = match &rules.addresses.lookup {
                Some(lookup) => lookup(&host),
                None => tokio::net::lookup_host((host.as_str(), 0)).await?.collect(),
            };
            if found.is_empty() || !found.iter().all(|address| rules.admits(*address)) {
                return Err(format!("{host} does not lead to a public address").into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[async_trait]
impl Toolbox for WebToolbox {
    fn tools(&self) -> Arc<Vec<Tool>> {
        self.tools.clone()
    }

    fn aim(&self, _: Option<&Root>, _: &str, arguments: &str) -> Aim {
        let host = address(arguments).ok().and_then(|url| url.host_str().map(str::to_owned));
        Aim { hosts: host.into_iter().collect(), ..Aim::default() }
    }

    fn check(&self, _: &str, arguments: &str) -> Result<(), String> {
        self.rules.refuses(&address(arguments)?).map_or(Ok(()), Err)
    }

    async fn run(&self, run: ToolRun) -> Ran {
        let fetched = match address(&run.arguments) {
            Ok(url) => self.fetch(url).await,
            Err(problem) => Err(problem),
        };
        let (status, output, touched) = match fetched {
            Ok((host, page)) => (CallStatus::Done, page, vec![Touched::Reached { host }]),
            Err(why) => (CallStatus::Failed, why, Vec::new()),
        };
        Ran::Ended(CallResult { status, output, touched })
    }
}

impl WebToolbox {
    async fn fetch(&self, url: Url) -> Result<(String, String), String> {
        if let Some(why) = self.rules.refuses(&url) {
            return Err(why);
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let response = self.client.get(url).send().await.map_err(|error| in_words(&error))?;
        if response.status().is_redirection() {
            return Err(format!("{} leads to what is no web address", response.url()));
        }
        Ok((host, page(response).await?))
    }
}

/// The page, as far as it is text and not too long.
async fn page(response: Response) -> Result<String, String> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or("text/plain").to_owned();
    let is_text = kind.starts_with("text/") || kind.contains("json") || kind.contains("xml");
    let head = format!("{} {} {kind}", response.url(), response.status());
    if !is_text {
        return Ok(format!("{head}\n[not text]"));
    }
    let (mut body, mut pieces) = (Vec::new(), response.bytes_stream());
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece.map_err(|error| in_words(&error))?);
        if body.len() > PAGE_BYTES_MAX {
            body.truncate(PAGE_BYTES_MAX);
            let text = String::from_utf8_lossy(&body);
            return Ok(format!("{head}\n\n{text}\n[cut off after {PAGE_BYTES_MAX} bytes]"));
        }
    }
    Ok(format!("{head}\n\n{}", String::from_utf8_lossy(&body)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    url: String,
}

fn address(arguments: &str) -> Result<Url, String> {
    let Arguments { url } = serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments of {WEB_FETCH} do not fit: {error}"))?;
    Url::parse(&url).map_err(|error| format!("{url:?} is not an address: {error}"))
}

/// An error with what lies behind it.
fn in_words(error: &reqwest::Error) -> String {
    let mut words = error.to_string();
    let mut behind = std::error::Error::source(error);
    while let Some(cause) = behind {
        words.push_str(&format!(": {cause}"));
        behind = cause.source();
    }
    words
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
