//! The attacks of the security review, by their numbers there, against the program as people run it (PROOFS.md lists those
//! that are tried elsewhere). What must get through is
//! tried as well: a server that refuses everything holds nothing.

use std::{future::Future, time::Instant};

use crate::on_threads;

mod callers;
mod load;
mod records;
mod requests;
mod same_user;
mod target;
mod work;

/// What was tried so far.
#[derive(Default)]
struct Report {
    tried: u32,
    controls: u32,
    broken: Vec<String>,
}

impl Report {
    /// An attack: it holds if this is fine.
    async fn attack(
        &mut self,
        number: &str,
        what: &str,
        attack: impl Future<Output = anyhow::Result<()>>,
    ) {
        self.tried += 1;
        self.judge(number, what, attack.await);
    }

    /// What must get through, beside an attack.
    async fn control(
        &mut self,
        number: &str,
        what: &str,
        control: impl Future<Output = anyhow::Result<()>>,
    ) {
        self.controls += 1;
        self.judge(number, what, control.await);
    }

    #[expect(clippy::print_stdout, reason = "a proof prints its figures")]
    fn judge(&mut self, number: &str, what: &str, outcome: anyhow::Result<()>) {
        match outcome {
            Ok(()) => println!("  {number:>4} held    {what}"),
            Err(words) => {
                println!("  {number:>4} BROKEN  {what}: {words:#}");
                self.broken.push(number.to_owned());
            }
        }
    }
}

/// Tries all of them.
pub(crate) fn prove(quick: bool) -> anyhow::Result<bool> {
    on_threads(2, all(quick))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(quick: bool) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut report = Report::default();
    callers::attack(&mut report).await?;
    requests::attack(&mut report).await?;
    work::attack(&mut report).await?;
    same_user::attack(&mut report).await?;
    records::attack(&mut report).await?;
    load::attack(&mut report, quick).await?;
    let Report { tried, controls, broken } = report;
    let held = tried + controls - u32::try_from(broken.len())?;
    println!(
        "in a browser: ./prove dashboard; in the sandbox: ./prove escapes; between owners: ./prove isolation"
    );
    println!(
        "boundaries: {held} of {} held, {controls} of them controls that get through, {} s (target all) {}",
        tried + controls,
        begun.elapsed().as_secs(),
        if broken.is_empty() { "ok" } else { "short" }
    );
    Ok(broken.is_empty())
}
