//! Generated documents, of which one section is replaced: every byte outside it stays. And spellings of paths, through
//! every file tool: the notebook stays invisible.
//!
//! The documents are put together from parts whose places are known, so nothing that is proved asks the parser that
//! does the replacing. A replacer that looks for lines with `#` must fail on the same documents.

use std::time::Instant;

use fastrand::Rng;
use planwright_domain::notebook::section::{SectionRefusal, replaced};

use crate::on_threads;

mod document;
mod paths;

use document::{Document, content};

/// What came of the documents of one thread.
#[derive(Default)]
struct Came {
    replaced: u64,
    refused: u64,
    wrong: Vec<String>,
    fooled: u64,
}

/// Proves it with so many documents.
pub(crate) fn prove(seed: u64, documents: u64) -> anyhow::Result<bool> {
    on_threads(2, all(seed, documents))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, documents: u64) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let half = |which: u64| {
        tokio::task::spawn_blocking(move || {
            let mut rng = Rng::with_seed(seed * 2 + which);
            let mut came = Came::default();
            (0..documents / 2).for_each(|_| one(&mut rng, &mut came));
            came
        })
    };
    let (first, second) = tokio::try_join!(half(0), half(1))?;
    let (replaced, refused) = (first.replaced + second.replaced, first.refused + second.refused);
    let fooled = first.fooled + second.fooled;
    let wrong: Vec<_> = first.wrong.into_iter().chain(second.wrong).collect();
    println!(
        "  {documents} documents: {replaced} replaced, {refused} refused in words, {} wrong; looking for lines with # went wrong in {fooled}",
        wrong.len()
    );
    wrong.iter().take(3).for_each(|words| println!("    {words}"));
    let (spellings, calls, through, control) = paths::tried(seed, 10_000).await?;
    println!(
        "  {spellings} spellings of paths, {calls} calls of file tools: {} saw or changed a page",
        through.len()
    );
    through.iter().take(3).for_each(|words| println!("    {words}"));
    let well =
        wrong.is_empty() && through.is_empty() && control && fooled > 0 && replaced > refused;
    println!(
        "sections: {} wrong of {documents}, {} of {spellings} spellings got through, {:.0} s (target 0, 0) {}",
        wrong.len(),
        through.len(),
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

fn one(rng: &mut Rng, came: &mut Came) {
    let document = Document::generate(rng);
    let at = rng.usize(0..document.sections.len());
    let (body, kind) = content(rng, document.sections[at].level);
    let (prefix, suffix) = document.around(at, kind.has_headings);
    let naming = document.name(at, rng);
    let text = &document.text;
    match replaced(text, &naming.words, &body) {
        Ok(result) => {
            came.replaced += 1;
            let fits = result.len() >= prefix.len() + suffix.len()
                && result.starts_with(prefix)
                && result.ends_with(suffix);
            let middle = result.get(prefix.len()..result.len().saturating_sub(suffix.len()));
            let holds = middle.is_some_and(|middle| {
                let lines = |text: &str| {
                    let all = text.replace("\r\n", "\n").replace('\r', "\n");
                    all.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
                };
                let (there, wanted): (Vec<String>, Vec<String>) = (lines(middle), lines(&body));
                there == wanted
            });
            if !fits || !holds || naming.is_ambiguous || kind.must_be_refused {
                came.wrong.push(format!("{text:?} · {:?} · {body:?} → {result:?}", naming.words));
            }
        }
        Err(refusal) => {
            came.refused += 1;
            let expected = match refusal {
                SectionRefusal::Ambiguous { .. } => naming.is_ambiguous,
                SectionRefusal::EndsSection { .. } | SectionRefusal::Leaks => kind.may_be_refused,
                SectionRefusal::Missing { .. } => false,
            };
            if !expected {
                came.wrong.push(format!("{text:?} · {:?} · {body:?}: {refusal}", naming.words));
            }
        }
    }
    came.fooled += u64::from(
        document::naive(text, &naming.words, &body)
            .is_some_and(|result| !result.starts_with(prefix) || !result.ends_with(suffix)),
    );
}
