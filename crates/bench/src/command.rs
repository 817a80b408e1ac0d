//! A plan command, durable: one client, its time; and 64 clients, the server's CPU.

use std::time::{Duration, Instant};

use crate::{
    arm::Arm,
    http_client::ArmClient,
    measure::{Judged, ahead_of_peer, close, median},
    payload::COMMANDS,
    peer::Peer,
    plot,
};

const CLIENTS: usize = 64;

/// One client: how long a command takes, against the bare server and the peer.
pub(crate) fn one_client(quick: bool) -> anyhow::Result<Judged> {
    let (rounds, slice) = if quick { (3, 1.0) } else { (7, 2.0) };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (ours, bare) = (Arm::start("ours")?, Arm::start("bare")?);
    let mut peer = Peer::start_with(&COMMANDS)?;
    let mut clients = [ArmClient::new(&ours, true, 0)?, ArmClient::new(&bare, false, 0)?];
    println!(
        "{:<7}{:>12}{:>12}{:>12}{:>12}{:>12}",
        "round", "ours µs", "bare µs", "peer µs", "ours/bare", "peer/ours"
    );
    let (mut of_bare, mut of_peer, mut all) =
        (Vec::new(), Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for round in 0..rounds {
        let mut taken = [f64::NAN; 3];
        for arm in 0..3 {
            let which = (arm + round) % 3;
            taken[which] = match which {
                2 => match &mut peer {
                    Some(peer) => peer.ask(&format!("command {slice}"))?["median"]
                        .as_f64()
                        .unwrap_or(f64::NAN),
                    None => f64::NAN,
                },
                which => runtime.block_on(median_time(&mut clients[which], slice))?,
            };
        }
        all.iter_mut().zip(taken).for_each(|(all, taken)| all.push(taken * 1e6));
        let [ours, bare, peer] = taken;
        of_bare.push(ours / bare);
        of_peer.push(peer / ours);
        println!(
            "{round:<7}{:>12.0}{:>12.0}{:>12.0}{:>12.2}{:>12.1}",
            ours * 1e6,
            bare * 1e6,
            peer * 1e6,
            ours / bare,
            peer / ours
        );
    }
    let arms =
        [("ours", median(&all[0])), ("bare", median(&all[1])), ("LangGraph", median(&all[2]))];
    plot::bars("command", "A durable command of 4 KB", "µs", &arms)?;
    let (of_bare, of_peer) = (median(&of_bare), median(&of_peer));
    let (ahead, is_ahead) = ahead_of_peer(of_peer, 8.0);
    Ok(close(
        "command",
        &format!("{of_bare:.2} times bare, {ahead}"),
        "1.4 times bare, 8 times ahead",
        of_bare <= 1.4 && is_ahead,
    ))
}

/// 64 clients: CPU of the server per command, against the bare server and the peer.
pub(crate) fn many_clients(quick: bool) -> anyhow::Result<Judged> {
    let (rounds, slice) = if quick { (3, 1.0) } else { (7, 2.0) };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (ours, bare) = (Arm::start("ours")?, Arm::start("bare")?);
    let mut peer = Peer::start_with(&COMMANDS)?;
    let clients = |arm: &Arm, is_ours| {
        (0..CLIENTS)
            .map(|worker| ArmClient::new(arm, is_ours, worker))
            .collect::<anyhow::Result<Vec<_>>>()
    };
    let mut clients = [clients(&ours, true)?, clients(&bare, false)?];
    println!(
        "{:<7}{:>14}{:>14}{:>14}{:>12}{:>12}{:>12}",
        "round", "ours µs CPU", "bare µs CPU", "peer µs CPU", "ours/s", "ours/bare", "peer/ours"
    );
    let (mut of_bare, mut of_peer, mut all) =
        (Vec::new(), Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for round in 0..rounds {
        let (mut cost, mut rate) = ([f64::NAN; 3], 0.0);
        for arm in 0..3 {
            let which = (arm + round) % 3;
            cost[which] = match which {
                2 => match &mut peer {
                    Some(peer) => {
                        let told = peer.ask(&format!("command {slice}"))?;
                        told["cpu"].as_f64().unwrap_or(f64::NAN)
                            / told["count"].as_f64().unwrap_or(f64::NAN)
                    }
                    None => f64::NAN,
                },
                which => {
                    let server = if which == 0 { &ours } else { &bare };
                    let before = server.cpu()?;
                    let count = runtime.block_on(all_at_once(&mut clients[which], slice))?;
                    if which == 0 {
                        rate = count as f64 / slice;
                    }
                    (server.cpu()? - before) / count as f64
                }
            };
        }
        all.iter_mut().zip(cost).for_each(|(all, cost)| all.push(cost * 1e6));
        let [ours, bare, peer] = cost;
        of_bare.push(ours / bare);
        of_peer.push(peer / ours);
        println!(
            "{round:<7}{:>14.0}{:>14.0}{:>14.0}{rate:>12.0}{:>12.2}{:>12.1}",
            ours * 1e6,
            bare * 1e6,
            peer * 1e6,
            ours / bare,
            peer / ours
        );
    }
    let arms =
        [("ours", median(&all[0])), ("bare", median(&all[1])), ("LangGraph", median(&all[2]))];
    plot::bars("throughput", "CPU of a command, 64 clients", "µs", &arms)?;
    let (of_bare, of_peer) = (median(&of_bare), median(&of_peer));
    let (ahead, is_ahead) = ahead_of_peer(of_peer, 10.0);
    Ok(close(
        "throughput",
        &format!("{of_bare:.2} times bare, {ahead}"),
        "1 time bare, 10 times ahead",
        of_bare <= 1.0 && is_ahead,
    ))
}

/// The median time of one client's commands.
pub(crate) async fn median_time(client: &mut ArmClient, seconds: f64) -> anyhow::Result<f64> {
    let (begun, mut taken) = (Instant::now(), Vec::new());
    while begun.elapsed() < Duration::from_secs_f64(seconds) {
        let at = Instant::now();
        client.command().await?;
        taken.push(at.elapsed().as_secs_f64());
    }
    Ok(median(&taken))
}

/// How many commands all clients together get through.
async fn all_at_once(clients: &mut Vec<ArmClient>, seconds: f64) -> anyhow::Result<usize> {
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let working: Vec<_> = std::mem::take(clients)
        .into_iter()
        .map(|mut client| {
            tokio::spawn(async move {
                let mut count = 0;
                while Instant::now() < until {
                    client.command().await?;
                    count += 1;
                }
                anyhow::Ok((client, count))
            })
        })
        .collect();
    let mut total = 0;
    for worker in working {
        let (client, count) = worker.await??;
        clients.push(client);
        total += count;
    }
    Ok(total)
}
