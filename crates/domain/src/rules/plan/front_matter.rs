//! The small front matter of a `document` plan: what it asks to be leased.
//!
//! ```text
//! ---
//! tools: write_file, web_fetch
//! paths: src/, README.md
//! hosts: example.com
//! spend: 2.50
//! calls: 40
//! expires: 2h
//! ---
//! ```

use std::collections::BTreeSet;

use crate::model::{effect::Declared, limits, plan::refusal::PlanRefusal};

/// What the front matter declares; none if the document begins without one.
pub fn declared(markdown: &str) -> Result<Option<Declared>, PlanRefusal> {
    let Some(lines) = block(markdown) else { return Ok(None) };
    let mut declared = Declared::default();
    for line in lines {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        set(&mut declared, key.trim(), value.trim())?;
    }
    Ok(Some(declared))
}

/// Sets one part from the words that a person or a model wrote.
pub(crate) fn set(declared: &mut Declared, key: &str, value: &str) -> Result<(), PlanRefusal> {
    let wrong = |problem: &str| PlanRefusal::BadEnvelope {
        part: key.to_owned(),
        problem: problem.to_owned(),
    };
    match key {
        "tools" => declared.tools = list(value),
        "paths" => declared.paths = list(value).into_iter().map(tidy).collect(),
        "hosts" => declared.hosts = list(&value.to_lowercase()),
        "spend" => {
            let dollars: f64 = value
                .trim_start_matches('$')
                .parse()
                .map_err(|_| wrong("needs dollars, as 2.50"))?;
            if !(0.0..=limits::SPEND_DOLLARS_MAX).contains(&dollars) {
                return Err(wrong("is not an amount that can be leased"));
            }
            declared.spend_micros_max = Some((dollars * 1e6).round() as u64);
        }
        "calls" => {
            declared.calls_max = Some(value.parse().map_err(|_| wrong("needs a number"))?);
        }
        "expires" => {
            declared.lasts_micros =
                Some(lasts(value).ok_or_else(|| wrong("needs a time, as 30m, 2h or 1d"))?);
        }
        _ => {
            return Err(wrong(
                "is not known; there are tools, paths, hosts, spend, calls and expires",
            ));
        }
    }
    Ok(())
}

/// The lines between the first line and the next `---`, if the first is one.
fn block(markdown: &str) -> Option<Vec<&str>> {
    let mut lines = markdown.lines().take(limits::FRONT_MATTER_LINES_MAX);
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let lines: Vec<_> = lines.collect();
    let end = lines.iter().position(|line| line.trim_end() == "---")?;
    Some(lines[..end].iter().copied().filter(|line| !line.trim().is_empty()).collect())
}

fn list(value: &str) -> BTreeSet<String> {
    let inside = value.trim_start_matches('[').trim_end_matches(']');
    let words = inside.split(',').map(|word| word.trim().trim_matches('"'));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A path without a leading `./`; the workspace itself stays `./`.
fn tidy(path: String) -> String {
    match path.as_str() {
        "." | "./" | "*" => "./".into(),
        path => path.trim_start_matches("./").to_owned(),
    }
}

fn lasts(value: &str) -> Option<i64> {
    let units = [("m", 60), ("h", 3_600), ("d", 86_400)];
    let (number, seconds) =
        units.into_iter().find_map(|(unit, seconds)| Some((value.strip_suffix(unit)?, seconds)))?;
    let number: u32 = number.trim().parse().ok().filter(|number| *number > 0)?;
    let micros = i64::from(number).checked_mul(seconds * 1_000_000)?;
    (micros <= limits::LEASE_MICROS_MAX).then_some(micros)
}
