//! What is shown is what is digested: nothing is cut, and nothing hides.

use std::sync::Arc;

use fastrand::Rng;
use planwright::terminal::visible::visible;
use planwright_domain::{
    command::PersonCommand,
    limits::PLAN_MARKDOWN_BYTES_MAX,
    plan::{Reads, Strategy},
};
use planwright_outbound::ids_random::fresh_id;
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::commands::reply::{Reply, Spoken};
use planwright_testkit::scratch;

use crate::staged::{Counting, Staged, ada, runtime, talk};

/// What hides in text, or turns it round.
const HIDING: [&str; 24] = [
    "\u{200b}",
    "\u{200c}",
    "\u{200d}",
    "\u{200e}",
    "\u{200f}",
    "\u{202a}",
    "\u{202b}",
    "\u{202c}",
    "\u{202d}",
    "\u{202e}",
    "\u{2060}",
    "\u{2066}",
    "\u{2067}",
    "\u{2069}",
    "\u{feff}",
    "\u{ad}",
    "\u{61c}",
    "\u{180e}",
    "\u{3164}",
    "\u{e0041}",
    "\u{e0101}",
    "\u{2028}",
    "\u{1b}[8m",
    "\r",
];

/// Plans of any length; what of them is not shown as it is digested.
pub(super) async fn hidden(rng: &mut Rng, plans: u64) -> anyhow::Result<Vec<String>> {
    let home = scratch::directory("shown")?;
    let journal = Arc::new(SqliteJournal::open(&home.path().join("journal.sqlite"))?);
    let runtime = runtime(journal, Arc::new(Counting::default()));
    let mut wrong = Vec::new();
    for at in 0..plans {
        let identity = talk(&format!("shown-{at:06}"));
        let staged = Staged { runtime: &runtime, identity: &identity };
        let (plan, strategy) = (uuid::Uuid::now_v7().into(), Strategy::Document);
        staged.ask(PersonCommand::StartPlan { plan, strategy, reads: Reads::Record }).await?;
        let markdown = document(rng);
        let fresh = uuid::Uuid::now_v7().into();
        staged
            .ask(PersonCommand::EditPlan {
                base: None,
                markdown: markdown.clone(),
                fresh,
                suggested: false,
            })
            .await?;
        let (person, line) = (ada(), "/plan show".to_owned());
        let spoken =
            Spoken { identity: identity.clone(), transport: None, person, id: fresh_id(), line };
        let Reply::Revision(view) = runtime.commands.handle_line(spoken).await? else {
            anyhow::bail!("no revision is shown");
        };
        let lines = || view.revision.markdown.split('\n');
        let shown: Vec<_> = lines().map(visible).collect();
        let is_whole = view.revision.markdown == markdown
            && view.revision.digest(&identity) == view.digest
            && shown.iter().zip(lines()).all(|(shown, line)| plain(shown) == line);
        let hides = HIDING.iter().find(|mark| shown.iter().any(|line| line.contains(**mark)));
        if !is_whole || hides.is_some() {
            wrong.push(format!("plan {at}: {} bytes, {hides:?}", markdown.len()));
        }
    }
    Ok(wrong)
}

/// A document of up to the largest length, with marks anywhere.
fn document(rng: &mut Rng) -> String {
    let length = match rng.u8(0..10) {
        0 => PLAN_MARKDOWN_BYTES_MAX - 64,
        1..4 => rng.usize(10_000..200_000),
        _ => rng.usize(20..2_000),
    };
    let mut text = String::from("# A plan\n");
    while text.len() < length {
        match rng.u8(0..12) {
            0 => text.push_str(HIDING[rng.usize(0..HIDING.len())]),
            1 => text.push('\n'),
            2 => text.push('ä'),
            _ => (0..20).for_each(|_| text.push(rng.alphanumeric())),
        }
    }
    text
}

/// What was written out, as it was: `⟨U+200B⟩` is that letter.
fn plain(shown: &str) -> String {
    let mut parts = shown.split("⟨U+");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((code, rest)) = part.split_once('⟩') else { continue };
        let letter = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
        text.extend(letter);
        text.push_str(rest);
    }
    text
}
