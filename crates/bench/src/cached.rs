//! How much of a request a provider has read before: over one conversation with memory, plans in every status, tools and
//! compaction, in the format of each provider.
//!
//! Each request is taken apart into blocks in the order that providers read them: tools, system text, messages. The share of
//! a request that begins the next one is counted in bytes, and every break has a cause that is named; one without a cause
//! fails. The same requests are written a second time as they were before (how the plan stands and what is remembered in
//! the system text, the report listed only while a plan runs), for what the change is worth.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use planwright_domain::{
    digest::Digest,
    turn::{ModelFailure, Usage},
};
use planwright_outbound::model_http::{HttpModel, HttpSettings, Wire};
use planwright_runtime::ports::model::{
    Message, Model, ModelAnswer, ModelRequest, OnPreview, WireCall,
};
use planwright_testkit::{people::ada_key, prose::prose, scripted_model::noted};
use serde_json::{Value, json};

use crate::{
    measure::{Judged, close, median},
    ours::Ours,
    plot,
};

/// How much of a request must begin the next one, in the median.
const SHARE_MIN: f64 = 0.97;
/// How many turns the conversation has.
const TURNS: usize = 60;
/// How many tokens the model takes: the conversation outgrows it several times.
const WINDOW_TOKENS: usize = 24_000;
/// How far back from a mark Anthropic looks for what it has read, in blocks.
const LOOKS_BACK: usize = 20;
/// What a token costs that was read before, and one that is kept from now on, where that is priced apart.
const READ_AGAIN: f64 = 0.1;
const KEPT_NEW: f64 = 1.25;

pub(crate) fn run() -> anyhow::Result<Judged> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (requests, turns) = runtime.block_on(conversation())?;
    anyhow::ensure!(turns >= TURNS, "{turns} turns instead of {TURNS}");
    let stages: BTreeSet<_> = requests.iter().filter_map(stage).collect();
    let all = ["Approved", "Drafting", "Failed", "Paused", "Ready", "Running"];
    anyhow::ensure!(stages.iter().eq(all.iter()), "plans were only {stages:?}");
    println!("{turns} turns, {} requests; plans were {stages:?}", requests.len());
    let before: Vec<_> = requests.iter().map(as_before).collect();
    let (mut least, mut costs, mut lines) = (f64::MAX, [0.0; 2], Vec::new());
    for wire in Wire::ALL {
        let model = speaks(wire)?;
        let now = Told::all(&model, &requests);
        let then = Told::all(&model, &before);
        let share = median(&shares(&now));
        least = least.min(share);
        let [cost, cost_before] = [&now, &then].map(|told| cost(wire, told));
        costs = [costs[0] + cost, costs[1] + cost_before];
        lines.push(format!(
            "{:<10} share {:.1} % in the median ({:.1} % before); {cost:.0} token equivalents ({cost_before:.0} before, {:.1} times as many)",
            wire.name(),
            share * 100.0,
            median(&shares(&then)) * 100.0,
            cost_before / cost,
        ));
    }
    lines.iter().for_each(|line| println!("{line}"));
    let breaks = breaks(&requests)?;
    println!("breaks, of {} that could be:", requests.len() - 1);
    breaks.iter().for_each(|(cause, times)| println!("  {cause}: {times}"));
    plot::bars(
        "cached",
        "Tokens of a conversation of 60 turns, priced as read before or not",
        "token equivalents, all formats",
        &[("now", costs[0]), ("before", costs[1])],
    )?;
    let figure = format!(
        "{:.1} % in the median, {} breaks, each with its cause; {:.2} times the cost before",
        least * 100.0,
        breaks.values().sum::<usize>(),
        costs[0] / costs[1]
    );
    Ok(close("cached", &figure, "97 % in the median, every break named", least >= SHARE_MIN))
}

/// One conversation: what the model was asked in it, and in how many turns.
async fn conversation() -> anyhow::Result<(Vec<ModelRequest>, usize)> {
    let model = Arc::new(Reads::default());
    let ours = Ours::over_files(model.clone())?;
    std::fs::write(ours.workspace().join("notes.txt"), prose(6_000, 7))?;
    let identity = ada_key("cli:cached-0001")?;
    let mut turns = 0;
    for (number, (line, answers)) in (0..).zip(script()) {
        model.will_say(answers);
        let line = if line.is_empty() { prose(400, number) } else { line.to_owned() };
        let asked = model.asked();
        ours.does(&identity, &line).await?;
        turns += usize::from(model.asked() > asked);
    }
    let requests =
        std::mem::take(&mut *model.requests.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((requests, turns))
}

/// Calls of tools that an answer asks for; none, if it only says something.
type Answer = Vec<(&'static str, Value)>;

/// What a person says, and the answers to it: a message of its own where nothing is said, and paragraphs where nothing is answered.
type Said = (&'static str, Vec<Answer>);

fn script() -> Vec<Said> {
    let talk = || ("", vec![]);
    let reads = || ("", vec![vec![("read_file", json!({"path": "notes.txt"}))]]);
    let saves = |text: &str| ("", vec![vec![("memory_save", json!({"text": text}))]]);
    let replies = json!([{"comment": 1, "reply": prose(80, 9)}]);
    let writes = |number| json!({"plan_markdown": prose(2_500, number)});
    let rewrites = json!({"plan_markdown": prose(2_500, 2), "replies": replies});
    let note = |name: &str| ("write_file", json!({"path": name, "content": prose(300, 4)}));
    let mut lines = vec![talk(), saves("The second part is built on Mondays."), reads(), talk()];
    lines.extend([saves("Without a copy nothing is moved."), reads(), talk(), talk()]);
    // A document, through every status that it can have.
    lines.push(("/plan on", vec![]));
    lines.extend([
        talk(),
        reads(),
        ("", vec![vec![("plan_set_content", writes(1))]]),
        talk(),
        reads(),
    ]);
    lines.push(("/plan show", vec![]));
    lines.push((
        "/plan changes be exact where it matters",
        vec![vec![("plan_set_content", rewrites)]],
    ));
    lines.extend([talk(), ("/plan show", vec![]), ("/plan approve hold", vec![])]);
    lines.extend([talk(), reads(), talk()]);
    lines.push(("/plan resume", vec![vec![("read_file", json!({"path": "notes.txt"}))]]));
    lines.extend([talk(), reads(), talk()]);
    lines.push(("/plan resume", vec![vec![report("failed")]]));
    lines.extend([talk(), reads(), talk()]);
    lines.push((
        "/plan resume",
        vec![vec![("read_file", json!({"path": "notes.txt"}))], vec![report("done")]],
    ));
    lines.extend([talk(), reads(), saves("By tomorrow the list is whole."), talk()]);
    // Another tool is switched on.
    lines.extend([("/notebook on", vec![]), talk(), reads(), talk(), talk()]);
    // Calls are collected, and then made.
    lines.push(("/plan on collect", vec![]));
    lines.extend([
        ("", vec![vec![note("one.txt"), note("two.txt")], vec![("plan_finalize", json!({}))]]),
        talk(),
        ("/plan show", vec![]),
        ("/plan approve", vec![]),
    ]);
    lines.extend([talk(), reads(), talk(), talk()]);
    lines.extend(built());
    for _ in 0..5 {
        lines.extend([talk(), reads(), talk()]);
    }
    lines
}

/// A report of an execution.
fn report(status: &str) -> (&'static str, Value) {
    ("plan_report", json!({"status": status, "summary": prose(200, 3)}))
}

/// A plan is built, and done step by step.
fn built() -> Vec<Said> {
    let list = || json!([prose(60, 6)]);
    let all = json!({
        "assumptions": list(), "risks": list(), "verification": list(), "files": ["notes.txt"]
    });
    let step =
        |title: &str| json!({"title": title, "instructions": prose(300, 5), "profile": "default"});
    let builds = vec![
        ("plan_create", json!({"goal": prose(120, 8)})),
        ("plan_set_metadata", all),
        ("plan_add_step", step("begin")),
        ("plan_add_step", step("end")),
    ];
    let done = || vec![report("done")];
    vec![
        ("/plan on build", vec![]),
        ("", vec![builds]),
        ("", vec![]),
        ("", vec![vec![("plan_submit", json!({}))]]),
        ("", vec![]),
        ("/plan show", vec![]),
        ("/plan approve", vec![done(), vec![], done(), vec![]]),
    ]
}

/// A model that says what it is told to, or a paragraph, and keeps what it was asked.
#[derive(Default)]
struct Reads {
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<ModelRequest>>,
}

impl Reads {
    fn will_say(&self, answers: Vec<Answer>) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = answers.into();
    }

    fn asked(&self) -> usize {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[async_trait]
impl Model for Reads {
    async fn answer(
        &self,
        request: &ModelRequest,
        _preview: OnPreview<'_>,
    ) -> Result<ModelAnswer, ModelFailure> {
        let size = |message: &Message| match message {
            Message::User(text) | Message::Tool { text, .. } => text.len(),
            Message::Assistant { text, .. } => text.len() + 100,
        };
        let bytes = request.system.len() + request.messages.iter().map(size).sum::<usize>();
        let usage = Some(Usage::tokens(bytes as u64 / 4, 100));
        // Who sums up is asked apart, about text that nobody has read before.
        if request.tools.is_empty() {
            let text = prose(600, bytes as u64);
            return Ok(ModelAnswer { text, usage, ..ModelAnswer::default() });
        }
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let number = requests.len();
        requests.push(request.clone());
        let calls = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let calls: Vec<_> = (0..)
            .zip(calls.unwrap_or_default())
            .map(|(at, (tool, arguments)): (usize, (&str, Value))| WireCall {
                wire_id: format!("call_{number}_{at}"),
                tool: tool.into(),
                arguments: arguments.to_string(),
            })
            .collect();
        let text = if calls.is_empty() { prose(700, number as u64) } else { String::new() };
        Ok(ModelAnswer { text, calls, usage, kept: Vec::new() })
    }

    fn window_tokens(&self) -> usize {
        WINDOW_TOKENS
    }

    fn name(&self) -> String {
        "a-model".into()
    }
}

/// A request as a provider reads it: blocks, and which of them are marked to be kept.
struct Told {
    blocks: Vec<(String, bool)>,
}

impl Told {
    fn all(model: &HttpModel, requests: &[ModelRequest]) -> Vec<Self> {
        requests.iter().map(|request| Self::of(model, request)).collect()
    }

    fn of(model: &HttpModel, request: &ModelRequest) -> Self {
        let body = model.body(request);
        let mut blocks = Vec::new();
        // The order in which providers read; each format has some of these.
        let parts = [
            "tools",
            "system",
            "systemInstruction",
            "instructions",
            "messages",
            "input",
            "contents",
        ];
        for part in parts {
            for item in listed(&body[part]) {
                let role = item["role"].as_str().unwrap_or(part);
                let inner =
                    [&item["content"], &item["parts"]].into_iter().find(|inner| inner.is_array());
                let pieces = inner.map_or_else(|| vec![item.clone()], listed);
                blocks.extend(pieces.into_iter().map(|piece| block(role, piece)));
            }
        }
        Self { blocks }
    }

    fn bytes(&self) -> usize {
        self.blocks.iter().map(|(text, _)| text.len()).sum()
    }

    /// The digests of all beginnings, with how many bytes each has.
    fn beginnings(&self) -> Vec<(Digest, usize)> {
        let mut begins = (Digest::of(b""), 0);
        let next = |(text, _): &(String, bool)| {
            let chained = format!("{}\n{text}", begins.0);
            begins = (Digest::of(chained.as_bytes()), begins.1 + text.len());
            begins
        };
        self.blocks.iter().map(next).collect()
    }
}

fn listed(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        Value::Null => Vec::new(),
        one @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            vec![one.clone()]
        }
    }
}

/// A piece as text, and whether it is marked; the mark is no part of what is read.
fn block(role: &str, mut piece: Value) -> (String, bool) {
    let mark = piece.as_object_mut().and_then(|fields| fields.remove("cache_control"));
    (format!("{role}: {piece}\n"), mark.is_some())
}

/// How much of each request begins the next one.
fn shares(told: &[Told]) -> Vec<f64> {
    let pairs = told.windows(2).map(|pair| {
        let (first, second) = (&pair[0].blocks, &pair[1].blocks);
        let same = first.iter().zip(second).take_while(|((one, _), (other, _))| one == other);
        let same: usize = same.map(|((text, _), _)| text.len()).sum();
        // The block that differs may begin alike, too: providers count tokens, not blocks.
        let at = first.iter().zip(second).position(|((one, _), (other, _))| one != other);
        let alike = at.map_or(0, |at| {
            let (one, other) = (first[at].0.bytes(), second[at].0.bytes());
            one.zip(other).take_while(|(one, other)| one == other).count()
        });
        (same + alike) as f64 / pair[0].bytes() as f64
    });
    pairs.collect()
}

/// What the requests cost, in tokens that are read for the first time. Four bytes are taken for a token, and the next turn
/// for soon enough: Anthropic keeps what was marked for five minutes.
fn cost(wire: Wire, told: &[Told]) -> f64 {
    let mut kept = HashSet::new();
    let mut cost = 0.0;
    for told in told {
        let (beginnings, last) = (told.beginnings(), told.blocks.len());
        let is_marked = |at: &usize| wire != Wire::Anthropic || told.blocks[*at].1;
        let marks: Vec<_> = (0..last).filter(is_marked).collect();
        let looked = |mark: &usize| (mark.saturating_sub(LOOKS_BACK)..=*mark).rev();
        let found = marks.iter().flat_map(looked).filter(|at| kept.contains(&beginnings[*at].0));
        let read_again = found.max().map_or(0, |at| beginnings[at].1);
        let upto = marks.last().map_or(0, |at| beginnings[*at].1);
        kept.extend(marks.iter().map(|at| beginnings[*at].0));
        let price = if wire == Wire::Anthropic { KEPT_NEW } else { 1.0 };
        let (new, rest) = (upto.saturating_sub(read_again), told.bytes() - upto);
        cost += (read_again as f64 * READ_AGAIN + new as f64 * price + rest as f64) / 4.0;
    }
    cost
}

/// A model that is spoken to in this format.
fn speaks(wire: Wire) -> anyhow::Result<HttpModel> {
    let model = HttpModel::new(HttpSettings::new(wire, wire.home(), "a-model"));
    model.map_err(|failure| anyhow::anyhow!(failure.message))
}

/// The breaks by their causes: where a request does not begin the next one.
fn breaks(requests: &[ModelRequest]) -> anyhow::Result<BTreeMap<String, usize>> {
    let model = speaks(Wire::Chat)?;
    let mut causes = BTreeMap::new();
    for pair in requests.windows(2) {
        let [first, second] = [&pair[0], &pair[1]].map(|request| Told::of(&model, request));
        let at = first.blocks.iter().zip(&second.blocks).position(|(one, other)| one.0 != other.0);
        let is_shorter = second.blocks.len() < first.blocks.len();
        let cause = match at {
            None if !is_shorter => continue,
            None => anyhow::bail!("a request is only the beginning of the one before"),
            Some(at) => cause(&pair[0], &pair[1]).ok_or_else(|| {
                anyhow::anyhow!("a break without a cause at {:?}", second.blocks[at])
            })?,
        };
        *causes.entry(cause).or_default() += 1;
    }
    Ok(causes)
}

/// Why a request does not begin the next one.
fn cause(first: &ModelRequest, second: &ModelRequest) -> Option<String> {
    let [was, is] = [first, second].map(strategy);
    let has =
        |request: &ModelRequest, name: &str| request.tools.iter().any(|tool| tool.name == name);
    let summed = |request: &ModelRequest| {
        request.messages.iter().find_map(|message| match message {
            Message::User(text) if text.starts_with("[What was said before, summed up") => {
                Some(text.clone())
            }
            Message::User(_) | Message::Assistant { .. } | Message::Tool { .. } => None,
        })
    };
    let short = |request: &ModelRequest| {
        let is_short = |message: &&Message| matches!(message, Message::Tool { text, .. } if text.contains(" bytes in all; read_result "));
        request.messages.iter().filter(is_short).count()
    };
    match (was, is) {
        (None, Some(now)) => Some(format!("plan work began ({now})")),
        (Some(then), None) => Some(format!("plan work ended ({then})")),
        (Some(then), Some(now)) if then != now => Some(format!("another strategy ({now})")),
        _ if has(first, "init_plan") != has(second, "init_plan") => {
            Some("the notebook was switched".into())
        }
        _ if summed(first) != summed(second) => Some("compaction".into()),
        _ if short(first) != short(second) => Some("older results were shortened".into()),
        _ => None,
    }
}

/// The strategy of the plan work that a request tells of.
fn strategy(request: &ModelRequest) -> Option<&'static str> {
    let signs =
        [("plan_set_content", "document"), ("plan_finalize", "collect"), ("plan_submit", "build")];
    let has = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    signs.into_iter().find(|(tool, _)| has(tool)).map(|(_, strategy)| strategy)
}

/// How the plan stands, by the note of the turn.
fn stage(request: &ModelRequest) -> Option<String> {
    Some(note(request).split_once("[The plan is ")?.1.split_once(".]")?.0.to_owned())
}

/// The note after the words that opened the turn.
fn note(request: &ModelRequest) -> &str {
    let opening = request.messages.iter().rev().find_map(|message| match message {
        Message::User(text) => Some(text),
        Message::Assistant { .. } | Message::Tool { .. } => None,
    });
    opening.map_or("", |text| noted(text).1)
}

/// The same request as it was before: the note in the system text, the report only while a plan runs.
fn as_before(request: &ModelRequest) -> ModelRequest {
    let runs = stage(request).is_some_and(|stage| stage == "Running");
    let system = format!("{}{}", request.system, note(request));
    let tools = request.tools.iter().filter(|tool| runs || tool.name != "plan_report").cloned();
    let messages = request.messages.iter().map(|message| match message {
        Message::User(text) => Message::User(noted(text).0.to_owned()),
        Message::Assistant { .. } | Message::Tool { .. } => message.clone(),
    });
    ModelRequest {
        system,
        messages: Arc::new(messages.collect()),
        tools: tools.collect(),
        cache_key: None,
    }
}
