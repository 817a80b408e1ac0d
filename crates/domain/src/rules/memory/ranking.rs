//! How well something that is remembered fits a question: BM25 over its own scope, how sure it is, how new it is.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    memory::{
        Provenance,
        rank::{Candidates, Ranked, Why},
        spelled,
    },
    time::Time,
};

/// How soon a word that is said often stops to count.
const SATURATION: f64 = 1.2;
/// How much a long text is held back.
const LENGTH: f64 = 0.75;
/// After so long something is half as new.
const HALF_LIFE_MICROS: f64 = 30.0 * 86_400e6;
/// The share of the score that being sure makes.
const SURE: f64 = 0.3;
/// The share of the score that being new makes.
const NEW: f64 = 0.2;

/// Which words of a question are looked up in a scope that has many items: the rarest, whose items are at most so many
/// together, and at least one. A word that most items have would crowd out those that the others are found by.
#[must_use]
pub fn rarest(frequency: &BTreeMap<String, u64>, limit: u64) -> Vec<String> {
    let mut words: Vec<_> = frequency.iter().filter(|(_, items)| **items > 0).collect();
    words.sort_by_key(|(_, items)| **items);
    let (mut together, mut taken) = (0, Vec::new());
    for (word, items) in words {
        together += items;
        if together > limit && !taken.is_empty() {
            break;
        }
        taken.push(word.clone());
    }
    taken
}

/// The candidates of one scope, best first.
#[must_use]
pub fn rank(question: &[String], found: Candidates, now: Time) -> Vec<Ranked> {
    let asked: BTreeSet<&String> = question.iter().collect();
    let texts: Vec<_> = found
        .items
        .into_iter()
        .map(|item| {
            let words = spelled(&item.text);
            (item, words)
        })
        .collect();
    let mut holds: BTreeMap<&String, u64> = BTreeMap::new();
    for (_, words) in &texts {
        let has: BTreeSet<_> = words.iter().filter_map(|(_, word)| asked.get(word)).collect();
        for word in has {
            *holds.entry(*word).or_default() += 1;
        }
    }
    let count = found.count.max(texts.len() as u64) as f64;
    let average = (found.words as f64 / count.max(1.0)).max(1.0);
    let mut ranked: Vec<Ranked> = texts
        .iter()
        .map(|(item, words)| {
            let mut fits = 0.0;
            let mut matched = Vec::new();
            for word in &asked {
                let spellings = words.iter().filter(|(_, has)| has == *word);
                let mut spellings = spellings.map(|(said, _)| said).peekable();
                let Some(said) = spellings.peek().copied() else { continue };
                let times = spellings.count() as f64;
                let among = holds.get(*word).copied().unwrap_or(0);
                let counted = found.frequency.get(*word).copied().unwrap_or(0);
                let frequency = among.max(counted) as f64;
                let weight = (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln();
                let length = 1.0 - LENGTH + LENGTH * words.len() as f64 / average;
                fits += weight * times * (SATURATION + 1.0) / (times + SATURATION * length);
                matched.push(said.clone());
            }
            let parts = matched.clone();
            // A character that is part of a pair is told with it.
            let is_part = |said: &String| {
                parts.iter().any(|part| part != said && part.contains(said.as_str()))
            };
            matched.retain(|said| said.is_ascii() || said.chars().count() > 1 || !is_part(said));
            let age = (now.0 - item.at.0).max(0) as f64;
            let fresh = 0.5_f64.powf(age / HALF_LIFE_MICROS);
            let sure = f64::from(item.confidence.min(100)) / 100.0;
            let score = fits * (1.0 - SURE + SURE * sure) * (1.0 - NEW + NEW * fresh);
            let why = Why {
                matched,
                fits: thousandths(fits),
                sure: item.confidence.min(100),
                fresh: thousandths(fresh),
                score: thousandths(score),
            };
            Ranked { item: item.clone(), why }
        })
        .filter(|ranked| !ranked.why.matched.is_empty())
        .collect();
    ranked.sort_by_key(|ranked| {
        let legacy = ranked.item.provenance == Provenance::Legacy;
        (legacy, -ranked.why.score, -ranked.item.at.0, ranked.item.id)
    });
    ranked
}

fn thousandths(value: f64) -> i64 {
    (value * 1_000.0).round() as i64
}
