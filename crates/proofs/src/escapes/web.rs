//! A server that nobody may reach, under every spelling of its address, behind redirects, and behind names that
//! lead elsewhere the second time.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use planwright_domain::turn::CallStatus;
use planwright_outbound::toolbox_web::{Addresses, Lookup, WEB_FETCH, WebToolbox};
use planwright_runtime::ports::toolbox::{Ran, Toolbox as _};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::Found;
use planwright_testkit::tool_run::tool_run;

/// Where everyone may go, and where nobody may: two addresses of this machine, at one port.
const FRONT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const HIDDEN: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

pub(super) async fn addresses_in_disguise() -> anyhow::Result<Found> {
    let visitors = Arc::new(AtomicU64::new(0));
    let front = TcpListener::bind((FRONT, 0)).await?;
    let port = front.local_addr()?.port();
    serve(front, Arc::default());
    serve(TcpListener::bind((HIDDEN, port)).await?, visitors.clone());
    let spellings = spellings(port);
    // Every host is on the operator's list: only the address is between them and the hidden server.
    let hosts: BTreeSet<String> = spellings
        .iter()
        .filter_map(|url| reqwest::Url::parse(url).ok()?.host_str().map(str::to_owned))
        .chain(["127.0.0.1".into(), "*.test".into(), "127.0.0.2".into()])
        .collect();
    let also = [SocketAddr::new(FRONT, port)].into();
    let turns = Arc::new(AtomicU64::new(0));
    let web = WebToolbox::new(hosts, Addresses { also, lookup: Some(names(turns)) })?;

    let (mut through, mut tried) = (Vec::new(), 0_u32);
    for spelling in &spellings {
        for way in ways(port, spelling) {
            tried += 1;
            let (status, words) = fetch(&web, &way).await?;
            let reached = visitors.swap(0, Ordering::SeqCst);
            if reached > 0 || words.contains("the hidden page") {
                through.push(format!("{way}: {status:?} {words}"));
            }
        }
    }
    let plain = fetch(&web, &format!("http://front.test:{port}/")).await?;
    let plain = plain.0 == CallStatus::Done && plain.1.ends_with("a page");
    let open = unguarded(&spellings, port, &visitors).await?;
    let what = format!(
        "{} spellings of one address × {} ways ({tried} fetches; a client without the guard got there by {open} of the spellings)",
        spellings.len(),
        ways(port, "").len()
    );
    Ok(Found { what, through, control: plain && spellings.len() >= 150 && open >= 50 })
}

/// How many of the spellings lead a plain client there.
async fn unguarded(spellings: &[String], port: u16, visitors: &AtomicU64) -> anyhow::Result<u32> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .resolve("hidden.test", SocketAddr::new(HIDDEN, port))
        .resolve("rebinds.test", SocketAddr::new(HIDDEN, port))
        .resolve("mixed.test", SocketAddr::new(HIDDEN, port))
        .timeout(Duration::from_secs(2))
        .build()?;
    let mut open = 0;
    for spelling in spellings {
        let _ = client.get(spelling).send().await;
        open += u32::from(visitors.swap(0, Ordering::SeqCst) > 0);
    }
    Ok(open)
}

/// Where the names lead: one to the front, one to the hidden server, one to both, one to either in turn.
fn names(turns: Arc<AtomicU64>) -> Lookup {
    Arc::new(move |name| {
        let (front, hidden) = (SocketAddr::new(FRONT, 0), SocketAddr::new(HIDDEN, 0));
        match name.trim_end_matches('.') {
            "front.test" => vec![front],
            "hidden.test" => vec![hidden],
            "mixed.test" => vec![front, hidden],
            "rebinds.test" if turns.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) => vec![front],
            "rebinds.test" => vec![hidden],
            _ => Vec::new(),
        }
    })
}

/// The ways to an address: straight, by each kind of redirect, by two, and by way of a name that rebinds.
fn ways(port: u16, to: &str) -> Vec<String> {
    let front = format!("http://front.test:{port}");
    let by = |code: u16| format!("{front}/{code}?{to}");
    let twice = format!("{front}/302?{front}/307?{to}");
    let rebound = format!("http://rebinds.test:{port}/302?{to}");
    let mut ways = vec![to.to_owned()];
    ways.extend([301, 302, 303, 307, 308].map(by));
    ways.extend([twice, rebound]);
    ways
}

/// 127.0.0.2 as a host that hides it.
const DISGUISED: [&str; 32] = [
    "127.0.0.2.",
    "%31%32%37.0.0.2",
    "127%2e0%2e0%2e2",
    "127.0.0.%32",
    "①②⑦.⓪.⓪.②",
    "１２７.０.０.２",
    "127。0。0。2",
    "127．0．0．2",
    "127｡0｡0｡2",
    "𝟭𝟮𝟳.𝟬.𝟬.𝟮",
    "[::ffff:127.0.0.2]",
    "[::ffff:7f00:2]",
    "[::FFFF:7F00:0002]",
    "[0:0:0:0:0:ffff:127.0.0.2]",
    "[0000:0000:0000:0000:0000:ffff:7f00:0002]",
    "[::127.0.0.2]",
    "[::7f00:2]",
    "[64:ff9b::127.0.0.2]",
    "[64:ff9b::7f00:2]",
    "[2002:7f00:2::]",
    "[2002:7f00:2::1]",
    "hidden.test",
    "HIDDEN.TEST",
    "hidden.test.",
    "h%69dden.test",
    "ｈｉｄｄｅｎ.ｔｅｓｔ",
    "mixed.test",
    "rebinds.test",
    "front.test@127.0.0.2",
    "front.test:80@127.0.0.2",
    "127.0.0.1@127.0.0.2",
    "front.test%40x@127.0.0.2",
];

/// 127.0.0.2 in addresses that are read differently by different programs.
const ODD: [&str; 20] = [
    "http:127.0.0.2:PORT/",
    "http:/127.0.0.2:PORT/",
    "http:///127.0.0.2:PORT/",
    "http:\\\\127.0.0.2:PORT\\",
    "http:/\\127.0.0.2:PORT/",
    "HtTp://127.0.0.2:PORT/",
    " http://127.0.0.2:PORT/ ",
    "ht\ttp://127.0.0.2:PORT/",
    "http://127.0\n.0.2:PORT/",
    "http://127.0.0.2:PORT\\@front.test/",
    "http://127.0.0.2:PORT#@front.test/",
    "http://127.0.0.2:PORT?@front.test/",
    "http://127.0.0.2:PORT/..;/",
    "http://127.0.0.2:0PORT/",
    "http://127.0.0.2:00000PORT/",
    "https://127.0.0.2:PORT/",
    "ws://127.0.0.2:PORT/",
    "ftp://127.0.0.2:PORT/",
    "gopher://127.0.0.2:PORT/",
    "file://127.0.0.2:PORT/etc/passwd",
];

/// 127.0.0.2, as many have written it before.
fn spellings(port: u16) -> Vec<String> {
    let octal = |octet: u8, width: usize| format!("0{octet:0width$o}");
    let part = |octet: u8| {
        [
            octet.to_string(),
            format!("0x{octet:x}"),
            format!("0X{octet:02X}"),
            format!("0x{octet:04x}"),
            octal(octet, 3),
            octal(octet, 6),
        ]
    };
    let mut hosts: Vec<String> = Vec::new();
    // Each octet in each notation, the others plain or alike.
    for (first, last) in part(127).into_iter().zip(part(2)) {
        for (a, b) in [("0", "0"), ("0x0", "0x0"), ("00", "00"), ("0x00", "0"), ("000", "0X0")] {
            hosts.push(format!("{first}.{a}.{b}.{last}"));
            hosts.push(format!("127.{a}.{b}.{last}"));
            hosts.push(format!("{first}.{a}.{b}.2"));
        }
        hosts.push(format!("{first}.0.{last}"));
        hosts.push(format!("{first}.0x0.{last}"));
        hosts.push(format!("{first}.{last}"));
    }
    let whole = ["2130706434", "0x7f000002", "0X7F000002", "017700000002", "0000017700000002"];
    hosts.extend(whole.map(str::to_owned));
    hosts.extend(DISGUISED.map(str::to_owned));
    let mut urls: Vec<_> = hosts.iter().map(|host| format!("http://{host}:{port}/")).collect();
    for odd in ODD {
        urls.push(odd.replace("PORT", &port.to_string()));
    }
    urls.sort();
    urls.dedup();
    urls
}

/// Answers with a page, or sends elsewhere: `/302?there`.
fn serve(listener: TcpListener, visitors: Arc<AtomicU64>) {
    let is_hidden = listener.local_addr().is_ok_and(|address| address.ip() == HIDDEN);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            visitors.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut asked = vec![0; 8_192];
                let read = stream.read(&mut asked).await.unwrap_or(0);
                let text = String::from_utf8_lossy(&asked[..read]).into_owned();
                let target = text.split(' ').nth(1).unwrap_or("/").to_owned();
                let page = if is_hidden { "the hidden page" } else { "a page" };
                let redirect = target.strip_prefix("/30").and_then(|rest| rest.split_once('?'));
                let answer = match redirect.filter(|_| !is_hidden) {
                    Some((digit, there)) => format!(
                        "HTTP/1.1 30{digit} Elsewhere\r\nLocation: {there}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    ),
                    None => format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                        page.len()
                    ),
                };
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
}

async fn fetch(web: &WebToolbox, url: &str) -> anyhow::Result<(CallStatus, String)> {
    match web.run(tool_run(WEB_FETCH, json!({"url": url}))).await {
        Ran::Ended(result) => Ok((result.status, result.output)),
        Ran::Unknown { why } => anyhow::bail!("{why}"),
    }
}
