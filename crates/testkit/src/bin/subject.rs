//! Planwright as it is, with a ledger around its tools: what the proofs start and kill.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    planwright::run(Some(planwright_testkit::ledger::wrap)).await.into()
}
