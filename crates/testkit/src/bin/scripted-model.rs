//! The scripted model as a server of its own, to chat against without a key.

use std::{net::SocketAddr, time::Duration};

use clap::Parser;
use planwright_testkit::scripted_model::{ScriptedModel, asked, worker};

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
    asked: bool,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "it says where it listens")]
async fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let address = SocketAddr::from(([127, 0, 0, 1], args.port));
    let conduct = if args.asked { asked::asked() } else { worker::worker(400, 2) };
    let server = ScriptedModel::start_at(address, None, conduct).await?;
    println!("listening at {}", server.base_url());
    tokio::time::sleep(Duration::from_secs(args.seconds)).await;
    Ok(())
}
