//! Web pages, through one client that reaches public addresses of allowed hosts and nothing else.
//!
//! Both are looked at where the connection is made: in the resolver, for every name and at every redirect.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use planwright_domain::{
    effect::{Aim, Effect, Repeat, Touched},
    identity::Root,
    tools::ToolSpec,
    turn::{CallResult, CallStatus},
};
use planwright_runtime::ports::{
    causes::with_causes,
    toolbox::{Ran, Tool, ToolRun, Toolbox},
};
use reqwest::{Client, Response, Url, header::CONTENT_TYPE, redirect};
use serde::Deserialize;
use serde_json::json;

use crate::egress::Egress;
pub use crate::egress::{Addresses, Lookup, is_public};

/// The tool's name.
pub const WEB_FETCH: &str = "web_fetch";
/// How long a page may take.
const PAGE_MAX: Duration = Duration::from_secs(30);
/// How much of a page is read.
const PAGE_BYTES_MAX: usize = 512 * 1024;
/// How many redirects are followed.
const REDIRECTS_MAX: usize = 5;

/// The tool that fetches web pages.
pub struct WebToolbox {
    client: Client,
    egress: Arc<Egress>,
    tools: Arc<Vec<Tool>>,
}

impl WebToolbox {
    /// Pages of these hosts; `*.name` is all under a name.
    pub fn new(hosts: BTreeSet<String>, addresses: Addresses) -> Result<Self, reqwest::Error> {
        let egress = Arc::new(Egress::to(hosts, "web.hosts", addresses));
        let at_redirects = egress.clone();
        let follow = redirect::Policy::custom(move |attempt| {
            if attempt.previous().len() > REDIRECTS_MAX {
                return attempt.error("it redirects too often");
            }
            match refuses(&at_redirects, attempt.url()) {
                Some(why) => attempt.error(why),
                None => attempt.follow(),
            }
        });
        let client = Client::builder()
            .no_proxy()
            .dns_resolver(egress.resolver())
            .redirect(follow)
            .timeout(PAGE_MAX)
            .build()?;
        let parameters = json!({"type": "object", "required": ["url"], "additionalProperties": false,
            "properties": {"url": {"type": "string"}}});
        let (name, description) = (WEB_FETCH.into(), "Fetch a web page.".into());
        let spec = ToolSpec { name, description, parameters, effect: Effect::External };
        // A page is asked for by GET, which changes nothing there.
        let tools = Arc::new(vec![Tool::new(spec, Repeat::Harmless)]);
        Ok(Self { client, egress, tools })
    }
}

/// Why a page is not fetched; nothing if it may be.
fn refuses(egress: &Egress, url: &Url) -> Option<String> {
    let is_web = matches!(url.scheme(), "http" | "https");
    let is_plain = is_web && url.username().is_empty() && url.password().is_none();
    match url.host_str() {
        Some(host) if is_plain => egress.refuses(host, url.port_or_known_default().unwrap_or(0)),
        Some(_) | None => Some(format!("{url} is not a plain web address")),
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
        refuses(&self.egress, &address(arguments)?).map_or(Ok(()), Err)
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
        Ran::Ended(CallResult { touched, ..CallResult::of(status, output) })
    }
}

impl WebToolbox {
    async fn fetch(&self, url: Url) -> Result<(String, String), String> {
        if let Some(why) = refuses(&self.egress, &url) {
            return Err(why);
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let response = self.client.get(url).send().await.map_err(|error| with_causes(&error))?;
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
        body.extend_from_slice(&piece.map_err(|error| with_causes(&error))?);
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
