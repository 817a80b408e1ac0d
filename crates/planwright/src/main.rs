//! Planwright: a plan is durable, reviewable state and not chat text.

fn main() -> std::process::ExitCode {
    planwright::main(None)
}
