//! Planwright as it is, with a ledger around its tools: what the proofs start and kill.

fn main() -> std::process::ExitCode {
    planwright::main(Some(planwright_testkit::ledger::wrap))
}
