//! The database and the bus over TLS: who is who they say is spoken to, and nobody else; who is not known is not heard.

#![cfg(feature = "cluster")]

use std::{fs, path::Path, time::Duration};

use planwright_outbound::{
    broadcast_nats::{NatsBroadcast, NatsSecurity},
    journal_postgres::PostgresJournal,
};
use planwright_runtime::ports::signal::{Broadcast as _, Signal, Subscription};
use planwright_testkit::{
    people::ada_key,
    servers::{Certificates, Nats, Postgres},
};

/// The address of a database with what it is to say of TLS.
fn with(server: &Postgres, settings: &str) -> String {
    format!("{}?{settings}", server.address())
}

async fn refusal(address: &str) -> String {
    match PostgresJournal::open(address).await {
        Ok(_) => panic!("{address} was opened"),
        Err(error) => format!("{:#}", anyhow::Error::from(error)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_who_it_says_is_spoken_to_and_no_other() {
    let (ours, others) =
        (Certificates::for_server("localhost"), Certificates::for_server("localhost"));
    let server = Postgres::start_secured(&ours);
    let trusting =
        |authority: &Path| format!("sslmode=verify-full&sslrootcert={}", authority.display());
    let opened = PostgresJournal::open(&with(&server, &trusting(&ours.authority()))).await;
    opened.unwrap();
    // Every mode that asks for TLS verifies.
    let require = format!("sslmode=require&sslrootcert={}", others.authority().display());
    for settings in [trusting(&others.authority()), require, "sslmode=verify-full".into()] {
        let words = refusal(&with(&server, &settings)).await;
        assert!(words.contains("certificate"), "{settings}: {words}");
    }
    let words = refusal(&server.address()).await;
    assert!(words.contains("database cannot be reached"), "in plain text: {words}");
    let words = refusal(&with(&server, "sslmode=verify-full&sslrootcert=/nowhere.pem")).await;
    assert!(words.contains("/nowhere.pem"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_is_none() {
    let certificates = Certificates::for_server("db.example");
    let server = Postgres::start_secured(&certificates);
    let authority = certificates.authority();
    let settings = format!("sslmode=verify-full&sslrootcert={}", authority.display());
    let words = refusal(&with(&server, &settings)).await;
    assert!(words.contains("not valid for name"), "{words}");
}

/// What the node at the other end hears within a moment.
async fn hears(subscription: &mut dyn Subscription, signal: &Signal) -> bool {
    let until = tokio::time::Instant::now() + Duration::from_secs(2);
    while let Ok(Some(heard)) = tokio::time::timeout_at(until, subscription.next()).await {
        if heard == *signal {
            return true;
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_the_bus_knows_is_heard_there() {
    let (ours, others) =
        (Certificates::for_server("localhost"), Certificates::for_server("localhost"));
    let (known, unknown) = (nkeys::KeyPair::new_user(), nkeys::KeyPair::new_user());
    let server = Nats::start_secured(&ours, &known.public_key());
    let home = tempfile::tempdir().unwrap();
    let seed = |name: &str, key: &nkeys::KeyPair| {
        let file = home.path().join(name);
        fs::write(&file, key.seed().unwrap()).unwrap();
        Some(file)
    };
    let (right, wrong) = (seed("right", &known), seed("wrong", &unknown));
    let security = |authority: &Certificates, credentials| NatsSecurity {
        authorities: Some(authority.authority()),
        credentials,
        ..NatsSecurity::default()
    };
    let connect = async |security: NatsSecurity| {
        NatsBroadcast::connect(&server.address(), "tls", &security).await.unwrap()
    };
    let session = ada_key("cli:tls-0001").unwrap();
    let node = connect(security(&ours, right.clone())).await;
    let mut listening = node.subscribe(&session);
    let other = connect(security(&ours, right.clone())).await;
    let signal = Signal::Moved(planwright_domain::id::Seq(7));
    let mut heard = false;
    for _ in 0..5 {
        other.publish(&session, signal.clone());
        heard = heard || hears(&mut *listening, &signal).await;
    }
    assert!(heard, "a node that the bus knows is heard");
    // Nobody of these is: not known, known by another key, or not sure that it is the bus.
    let forged = Signal::Moved(planwright_domain::id::Seq(4_711));
    for stranger in [
        security(&ours, None),
        security(&ours, wrong),
        security(&others, right),
        NatsSecurity::default(),
    ] {
        let words = format!("{stranger:?}");
        let stranger = connect(stranger).await;
        stranger.publish(&session, forged.clone());
        assert!(!hears(&mut *listening, &forged).await, "{words}");
        let [bus] = &stranger.parts()[..] else { panic!("one part") };
        assert!(bus.trouble.is_some(), "{words}: and says so");
    }
}
