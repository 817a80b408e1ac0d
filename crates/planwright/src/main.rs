//! Planwright: a plan is durable, reviewable state and not chat text.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    planwright::run(None).await.into()
}
