//! The scripted model as a server of its own, to chat against without a key.

use std::{net::SocketAddr, time::Duration};

use clap::Parser;
use planwright_testkit::scripted_model::{ScriptedModel, by_script, worker};

/// A scripted model on loopback that speaks the OpenAI-compatible wire format.
#[derive(Parser)]
struct Args {
    /// The port on 127.0.0.1.
    #[arg(long, default_value_t = 8_181)]
    port: u16,
    /// How long it serves before it stops by itself.
    #[arg(long, default_value_t = 3_600)]
    seconds: u64,
    /// Say what the messages ask for, line by line: script {…}.
    #[arg(long)]
    by_script: bool,
    /// What to say to messages that hold a phrase: an object of scripts by phrase.
    #[arg(long, value_name = "FILE")]
    scripts: Option<std::path::PathBuf>,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "it says where it listens")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let address = SocketAddr::from(([127, 0, 0, 1], args.port));
    let known = match &args.scripts {
        Some(file) => serde_json::from_str(&std::fs::read_to_string(file)?)?,
        None => std::collections::BTreeMap::new(),
    };
    let conduct = if args.by_script { by_script::by_script(known) } else { worker::worker(400, 2) };
    let server = ScriptedModel::start_at(address, None, conduct).await?;
    println!("listening at {}", server.base_url());
    tokio::time::sleep(Duration::from_secs(args.seconds)).await;
    Ok(())
}
