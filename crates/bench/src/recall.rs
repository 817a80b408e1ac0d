//! Whether what is remembered is found again: questions with one known answer each, put in other words than it, among many
//! things that sound alike, in three languages, one of which puts no spaces between words.
//!
//! A thing and its place are asked for as they are remembered, or in another form, as often.
//! Every other thing that is asked about is held out: nothing was chosen by looking at those questions.

use std::collections::{BTreeMap, HashMap, HashSet};

use fastrand::Rng;
use futures_util::{StreamExt as _, stream};
use planwright_domain::{
    actor::{Person, Standing},
    command::{Issued, PersonCommand, SessionCommand},
    id::MemoryId,
    memory::{Chain, ItemKind, MemoryCommand, Question, select::select},
    time::Time,
};
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::{commands::dispatch::dispatch, ports::memory::Memory as _};
use planwright_testkit::people::{ada_key, person};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    measure::{Judged, close},
    plot,
};

/// What must be found of each half of each language, in percent, whatever plain BM25 finds.
const LEAST: f64 = 80.0;
/// How many are looked at.
const AT: usize = 10;
/// How many candidates a scope gives, as in the runtime.
const CANDIDATES_MAX: usize = 512;
/// How many things are said that nobody asks about.
const NOTES: usize = 700;
/// What is said is spread over so long.
const MICROS: i64 = 90 * 86_400_000_000;

/// What the things of one language are made of. Each thing and each place is named in two ways: as it is remembered, and
/// as it is asked for.
#[derive(Deserialize)]
struct Language {
    people: Vec<String>,
    days: Vec<String>,
    things: Vec<[String; 2]>,
    places: Vec<[String; 2]>,
    facts: Vec<(String, Vec<String>)>,
    notes: Vec<String>,
}

struct Asked {
    text: String,
    answer: usize,
    held_out: bool,
}

struct Set {
    said: Vec<String>,
    questions: Vec<Asked>,
}

/// Found and asked: of what could be looked at, and of what was held out.
#[derive(Default, Clone, Copy)]
struct Found {
    shown: (usize, usize),
    held_out: (usize, usize),
}

impl Found {
    fn count(&mut self, question: &Asked, is_found: bool) {
        let of = if question.held_out { &mut self.held_out } else { &mut self.shown };
        of.0 += usize::from(is_found);
        of.1 += 1;
    }

    fn add(&mut self, other: Self) {
        for (sum, more) in [(&mut self.shown, other.shown), (&mut self.held_out, other.held_out)] {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }

    fn shares(self) -> [f64; 2] {
        [self.shown, self.held_out].map(|(found, asked)| 100.0 * found as f64 / asked.max(1) as f64)
    }
}

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(all(quick))
}

async fn all(quick: bool) -> anyhow::Result<Judged> {
    let languages: BTreeMap<String, Language> =
        serde_json::from_str(include_str!("recall/set.json"))?;
    println!(
        "recall at {AT}, in percent            BM25        before        ours     (each: to look at, held out)"
    );
    let (mut ours, mut plain, mut before) = (Found::default(), Found::default(), Found::default());
    let mut below = Vec::new();
    for (name, language) in &languages {
        let mut set = Set::of(language);
        if quick {
            set.questions.truncate(100);
        }
        let (here, bare, old) =
            (remembered(&set).await?, bm25(&set, None), bm25(&set, Some(CANDIDATES_MAX)));
        let ([looked, held], [bare_looked, bare_held]) = (here.shares(), bare.shares());
        let [old_looked, old_held] = old.shares();
        println!(
            "  {name:<12}{:>5} of {:>5}  {bare_looked:>5.1} {bare_held:>5.1}   {old_looked:>5.1} {old_held:>5.1}   {looked:>5.1} {held:>5.1}",
            set.questions.len(),
            set.said.len()
        );
        if looked < bare_looked.max(LEAST) || held < bare_held.max(LEAST) {
            below.push(name.as_str());
        }
        ours.add(here);
        plain.add(bare);
        before.add(old);
    }
    let ([looked, held], [bare_looked, bare_held]) = (ours.shares(), plain.shares());
    let [_, old_held] = before.shares();
    plot::bars(
        "recall",
        "Recall at 10, held out",
        "percent",
        &[("Planwright", held), ("before", old_held), ("plain BM25", bare_held)],
    )?;
    let words =
        if below.is_empty() { String::new() } else { format!(", below in {}", below.join(", ")) };
    let figure = format!(
        "{held:.1} % of what was held out ({looked:.1} % of the other half), before {old_held:.1} %, plain BM25 {bare_held:.1} % ({bare_looked:.1} %){words}"
    );
    Ok(close(
        "recall",
        &figure,
        "never below plain BM25, and 80 % in each language",
        below.is_empty(),
    ))
}

impl Set {
    fn of(language: &Language) -> Self {
        let mut rng = Rng::with_seed(20);
        let mut said = Vec::new();
        for (number, thing) in language.things.iter().enumerate() {
            for place in &language.places {
                let (fact, asked) = pick(&mut rng, &language.facts);
                let text = fill(&mut rng, language, fact, &thing[0], &place[0]);
                let asked =
                    pick(&mut rng, asked).replace("{thing}", pick(&mut rng, thing).as_str());
                let asked = asked.replace("{place}", pick(&mut rng, place).as_str());
                said.push((text, Some((asked, number % 2 == 1))));
            }
        }
        for _ in 0..NOTES {
            let note = pick(&mut rng, &language.notes);
            said.push((fill(&mut rng, language, note, "", ""), None));
        }
        rng.shuffle(&mut said);
        let questions = said.iter().enumerate().filter_map(|(answer, (_, asked))| {
            let (text, held_out) = asked.clone()?;
            Some(Asked { text, answer, held_out })
        });
        Self {
            questions: questions.collect(),
            said: said.into_iter().map(|(text, _)| text).collect(),
        }
    }
}

fn pick<'a, T>(rng: &mut Rng, of: &'a [T]) -> &'a T {
    &of[rng.usize(..of.len())]
}

fn fill(rng: &mut Rng, language: &Language, text: &str, thing: &str, place: &str) -> String {
    let text = text.replace("{person}", pick(rng, &language.people).as_str());
    let text = text.replace("{day}", pick(rng, &language.days).as_str());
    text.replace("{thing}", thing).replace("{place}", place)
}

fn ada() -> Person {
    person("ada", "bench", Standing::Speaks)
}

/// What is found as the runtime finds it, in a session that remembers all of it.
async fn remembered(set: &Set) -> anyhow::Result<Found> {
    let home = tempfile::Builder::new().prefix("planwright-recall-").tempdir()?;
    let journal = SqliteJournal::open(&home.path().join("journal.sqlite"))?;
    let session = ada_key("web:recall-0001")?;
    let id = |at: usize| MemoryId::from(Uuid::from_u128(at as u128 + 1));
    let every = MICROS / set.said.len() as i64;
    let save = |(at, text): (usize, &String)| {
        let save = MemoryCommand::Save { id: id(at), kind: ItemKind::Fact, text: text.clone() };
        let command = SessionCommand::Person(ada(), PersonCommand::Memory(save));
        dispatch(&journal, &session, Issued::new(id(at).0, Time(every * at as i64), command))
    };
    let mut saving = stream::iter(set.said.iter().enumerate()).map(save).buffered(64);
    while let Some(answer) = saving.next().await {
        anyhow::ensure!(!answer?.is_refused(), "it is not remembered");
    }
    drop(saving);
    let chain = Chain::of(ada().owner, &session.identity, None);
    let mut found = Found::default();
    for asked in &set.questions {
        let question = Question::new(&asked.text);
        let candidates = journal.candidates(&chain, &question, CANDIDATES_MAX).await?;
        let recalled = select(&chain, question.words(), candidates, Time(MICROS), usize::MAX);
        let is_found =
            recalled.items.iter().take(AT).any(|found| found.item.id == id(asked.answer));
        found.count(asked, is_found);
    }
    Ok(found)
}

/// Plain BM25 by words as spaces part them: over everything, or over the newest so many that share any word, and of them the
/// newer rather than the older, as it was before words had stems.
fn bm25(set: &Set, newest: Option<usize>) -> Found {
    let words = |text: &str| -> Vec<String> {
        let lower = text.to_lowercase();
        let words = lower.split(|letter: char| !letter.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let said: Vec<_> = set.said.iter().map(|text| words(text)).collect();
    let count = said.len() as f64;
    let average = said.iter().map(Vec::len).sum::<usize>() as f64 / count;
    let mut holds: HashMap<&str, f64> = HashMap::new();
    for text in &said {
        for word in text.iter().collect::<HashSet<_>>() {
            *holds.entry(word).or_default() += 1.0;
        }
    }
    let mut found = Found::default();
    for question in &set.questions {
        let asked: HashSet<_> = words(&question.text).into_iter().collect();
        let score = |text: &Vec<String>| -> f64 {
            let of_word = |word: &String| {
                let times = text.iter().filter(|has| *has == word).count() as f64;
                let holds = holds.get(word.as_str()).copied().unwrap_or(0.0);
                let rare = (1.0 + (count - holds + 0.5) / (holds + 0.5)).ln();
                let length = 0.25 + 0.75 * text.len() as f64 / average;
                rare * times * 2.2 / (times + 1.2 * length)
            };
            asked.iter().map(of_word).sum()
        };
        let mut scored: Vec<_> = said.iter().map(score).enumerate().collect();
        scored.retain(|(_, score)| *score > 0.0);
        if let Some(newest) = newest {
            scored.drain(..scored.len().saturating_sub(newest));
            for (at, score) in &mut scored {
                let days = 90.0 * (1.0 - *at as f64 / count);
                *score *= 0.8 + 0.2 * 0.5_f64.powf(days / 30.0);
            }
        }
        scored.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
        found.count(question, scored.iter().take(AT).any(|(at, _)| *at == question.answer));
    }
    found
}
