//! Web pages: fetched where they may be, and from nowhere else, however the address is written.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{collections::BTreeSet, net::SocketAddr};

use planwright_domain::{effect::Touched, turn::CallStatus};
use planwright_outbound::toolbox_web::{Addresses, WebToolbox, is_public};
use planwright_runtime::ports::toolbox::{Ran, Toolbox as _};
use planwright_testkit::tool_run::tool_run;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

/// A server on loopback that answers `/` with a page, and `/to?…` by sending elsewhere.
async fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = vec![0; 4_096];
                let read = stream.read(&mut asked).await.unwrap_or(0);
                let text = String::from_utf8_lossy(&asked[..read]).into_owned();
                let path = text.split(' ').nth(1).unwrap_or("/").to_owned();
                let answer = match path.strip_prefix("/to?") {
                    Some(there) => format!("HTTP/1.1 302 Found\r\nLocation: {there}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
                    None => "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello".to_owned(),
                };
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    address
}

fn web(hosts: &[&str], also: &[SocketAddr]) -> WebToolbox {
    let hosts: BTreeSet<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
    WebToolbox::new(hosts, Addresses { also: also.iter().copied().collect(), lookup: None })
        .unwrap()
}

async fn fetch(web: &WebToolbox, url: &str) -> (CallStatus, String, Vec<Touched>) {
    let run = tool_run("web_fetch", json!({"url": url}));
    match web.run(run).await {
        Ran::Ended(result) => (result.status, result.output, result.touched),
        Ran::Unknown { why } => panic!("{why}"),
    }
}

#[tokio::test]
async fn a_page_of_an_allowed_host_is_fetched_and_the_host_is_on_record() {
    let address = server().await;
    let web = web(&["127.0.0.1"], &[address]);
    let (status, page, touched) = fetch(&web, &format!("http://{address}/")).await;
    assert_eq!(status, CallStatus::Done, "{page}");
    assert!(page.ends_with("\n\nhello"), "{page}");
    assert_eq!(touched, [Touched::Reached { host: "127.0.0.1".into() }]);
    let (_, page, _) = fetch(&web, &format!("http://{address}/to?/again")).await;
    assert!(page.ends_with("\n\nhello"), "a redirect within is followed: {page}");
}

#[tokio::test]
async fn a_redirect_leads_nowhere_that_the_first_address_could_not() {
    let address = server().await;
    let web = web(&["127.0.0.1", "169.254.169.254", "localhost"], &[address]);
    for there in [
        "http://169.254.169.254/latest/meta-data/",
        "http://example.com/",
        "http://localhost/",
        "file:///etc/passwd",
        "http://127.0.0.1:1/",
        "http://[::1]/",
    ] {
        let (status, words, _) = fetch(&web, &format!("http://{address}/to?{there}")).await;
        assert_eq!(status, CallStatus::Failed, "{there}: {words}");
    }
    let endless = format!("http://{address}/to?http://{address}/to?/to?/to?/to?/to?/to?/to?/to?/x");
    let (status, words, _) = fetch(&web, &endless).await;
    assert_eq!(status, CallStatus::Failed, "{words}");
    assert!(words.contains("it redirects too often"), "{words}");
}

#[tokio::test]
async fn a_private_address_is_refused_however_it_is_written() {
    let hosts = ["127.0.0.1", "localhost", "0.0.0.0", "10.0.0.1", "192.168.0.1", "169.254.169.254"];
    let listed: Vec<_> =
        hosts.iter().copied().chain(["[::1]", "::1", "[::ffff:7f00:1]", "[fd00::1]"]).collect();
    let web = web(&listed, &[]);
    let forms = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "①②⑦.0.0.1",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "0",
        "0.0.0.0",
        "10.1",
        "10.0.0.1",
        "0xa000001",
        "192.168.1",
        "3232235521",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[fd00::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[::]",
    ];
    let paths = ["/", "/x?y=http://example.com", "//example.com", "/#@example.com"];
    let mut tried = 0;
    for form in forms {
        for path in paths {
            for scheme in ["http", "https", "HTTP"] {
                let (status, words, touched) =
                    fetch(&web, &format!("{scheme}://{form}{path}")).await;
                assert_eq!(
                    (status, touched.len()),
                    (CallStatus::Failed, 0),
                    "{form}{path}: {words}"
                );
                tried += 1;
            }
        }
    }
    assert!(tried >= 150, "{tried}");
}

#[tokio::test]
async fn only_plain_addresses_of_listed_hosts_are_taken() {
    let web = web(&["example.com", "*.example.org"], &[]);
    let takes = |url: &str| web.check("web_fetch", &json!({"url": url}).to_string());
    assert_eq!(takes("https://example.com/a"), Ok(()));
    assert_eq!(takes("https://a.example.org/"), Ok(()));
    for wrong in [
        "https://example.org/",
        "https://evilexample.org/",
        "https://example.com.evil.net/",
        "https://example.com@evil.net/",
        "https://user:secret@example.com/",
        "ftp://example.com/",
        "https://example.com:8443/",
        "example.com",
        "",
        "https://evil.net/?example.com",
        "https://evil.net#example.com",
        "javascript:alert(1)",
        "data:text/plain,x",
    ] {
        assert!(takes(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn public_addresses_are_those_of_nobody_in_particular() {
    for public in
        ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::101:101", "2002:101:101::"]
    {
        assert!(is_public(public.parse().unwrap()), "{public}");
    }
    for private in [
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.1.1",
        "172.16.0.1",
        "192.0.0.1",
        "192.0.2.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "fc00::1",
        "fd00::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "3fff::1",
        "5f00::1",
    ] {
        assert!(!is_public(private.parse().unwrap()), "{private}");
    }
}
