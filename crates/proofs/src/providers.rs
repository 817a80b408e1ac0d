//! What providers really do wrong, each against each: a person sees an outcome, and nothing hangs, loops, is lost or is
//! done twice.
//!
//! A whole runtime asks strict servers over the network. The clock is moved by hand, so that a turn that waits for hours
//! takes none.

use std::{sync::Arc, time::Instant};

use planwright_domain::{
    identity::SessionKey,
    next::{Due, next},
    outcome::TurnOutcome,
    session::SessionEvent,
    turn::{
        FailureKind,
        event::{TurnEnd, TurnEvent},
    },
};
use planwright_outbound::ids_random::fresh_id;
use planwright_outbound::{
    journal_sqlite::SqliteJournal,
    model_http::{HttpModel, HttpSettings, Wire},
    model_switch::SwitchModel,
};
use planwright_runtime::{
    commands::reply::{Reply as Heard, Spoken},
    ports::model::{Model, default_profiles},
    runtime::Runtime,
    settings::Settings,
};
use planwright_testkit::people::ada_key;
use planwright_testkit::{
    clock::ManualClock,
    house::ada,
    providers::{Ends, MODEL, Play, Provider, Refuses, Reply, SIGNED},
    scratch,
};

use crate::{on_threads, staged};

mod counting;

use counting::Counting;

/// More steps than any case needs.
const STEPS_MAX: u32 = 600;

/// What a case must come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comes {
    /// An answer.
    Answer,
    /// A failure of this kind, said to the person.
    Failure(FailureKind),
}

/// One thing that goes wrong.
struct Case {
    name: &'static str,
    plays: Vec<Play>,
    comes: Comes,
    /// How often the tool must have run.
    runs: usize,
    /// The most requests that may be made of it.
    requests_max: usize,
}

/// Proves it.
pub(crate) fn prove() -> anyhow::Result<bool> {
    on_threads(2, all())
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all() -> anyhow::Result<bool> {
    let begun = Instant::now();
    let (cases, mut wrong, mut rows) = (cases().len(), Vec::new(), Vec::new());
    for number in 0..cases {
        let mut row = Vec::new();
        for wire in Wire::ALL {
            let case = cases_of(wire).swap_remove(number);
            match tried(wire, &case).await {
                Ok(words) => row.push(words.replace(MODEL, "it")),
                Err(error) => {
                    wrong.push(format!("{} · {}: {error:#}", wire.name(), case.name));
                    row.push("WRONG".into());
                }
            }
        }
        rows.push((cases_of(Wire::Chat).swap_remove(number).name, row));
    }
    println!("  {:<38} {}", "", Wire::ALL.map(|wire| format!("{:<22}", wire.name())).concat());
    for (name, row) in &rows {
        let cells: String = row.iter().map(|cell| format!("{:<22}", cut(cell, 21))).collect();
        println!("  {name:<38} {cells}");
    }
    let mut pairs = 0;
    for first in Wire::ALL {
        for second in Wire::ALL {
            pairs += 1;
            if let Err(error) = in_turn(first, second).await {
                wrong.push(format!("{} then {}: {error:#}", first.name(), second.name()));
            }
        }
    }
    println!("  {pairs} pairs of providers in turn, calls of one and the next words of the other");
    wrong.iter().take(12).for_each(|words| println!("    {words}"));
    let well = wrong.is_empty();
    println!(
        "providers: {} wrong of {} cases and {pairs} pairs, {:.0} s (target 0) {}",
        wrong.len(),
        cases * Wire::ALL.len(),
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

fn cases() -> Vec<Case> {
    cases_of(Wire::Chat)
}

fn case(name: &'static str, plays: Vec<Play>, comes: Comes, runs: usize, most: usize) -> Case {
    Case { name, plays, comes, runs, requests_max: most }
}

/// An answer comes, after so many runs of the tool.
fn answer(name: &'static str, plays: Vec<Play>, runs: usize) -> Case {
    let requests_max = plays.len() + 1;
    case(name, plays, Comes::Answer, runs, requests_max)
}

/// A failure of this kind comes, after so many requests at most.
fn failure(name: &'static str, plays: Vec<Play>, kind: FailureKind, most: usize) -> Case {
    case(name, plays, Comes::Failure(kind), 0, most)
}

fn refuses(why: Refuses, times: usize) -> Vec<Play> {
    vec![Play::Refuses(why); times]
}

fn says(reply: Reply) -> Vec<Play> {
    vec![Play::Answers(reply)]
}

fn good() -> Reply {
    Reply::text("all is well here")
}

fn looks() -> Reply {
    Reply::call("look", "{\"at\":\"it\"}")
}

/// The cases, as they are for this provider.
fn cases_of(wire: Wire) -> Vec<Case> {
    // What Ollama withholds, nobody has documented: it answers with words.
    let withheld = match wire {
        Wire::Ollama => answer("withholds its answer", says(good()), 0),
        Wire::Chat | Wire::Responses | Wire::Anthropic | Wire::Gemini => failure(
            "withholds its answer",
            says(good().ending(Ends::Withheld)),
            FailureKind::Withheld,
            1,
        ),
    };
    vec![
        failure("the key is wrong", refuses(Refuses::Key, 9), FailureKind::Permanent, 1),
        failure("the key may not", refuses(Refuses::Forbidden, 9), FailureKind::Permanent, 1),
        failure("no such model", refuses(Refuses::NoModel, 9), FailureKind::Permanent, 1),
        failure("nobody paid", refuses(Refuses::Unpaid, 9), FailureKind::Permanent, 1),
        failure("an invalid request", refuses(Refuses::Invalid, 9), FailureKind::Permanent, 1),
        failure("a redirect", vec![Play::Redirects; 9], FailureKind::Permanent, 1),
        answer("busy, says how long", refuses(Refuses::Busy(Some(7)), 1), 0),
        answer("busy, says nothing", refuses(Refuses::Busy(None), 2), 0),
        answer("out of order", refuses(Refuses::Broken, 1), 0),
        answer("overloaded three times", refuses(Refuses::Overloaded, 3), 0),
        answer("down, and back after a while", refuses(Refuses::Overloaded, 12), 0),
        failure("down for good", refuses(Refuses::Broken, 900), FailureKind::Transient, 200),
        answer("too large once", refuses(Refuses::TooLarge, 1), 0),
        failure("always too large", refuses(Refuses::TooLarge, 99), FailureKind::TooLarge, 4),
        answer("closes before it answers", vec![Play::Closes; 2], 0),
        answer("silent before the first byte", vec![Play::Hangs], 0),
        answer("silent in mid-stream", says(good().ending(Ends::Silent)), 0),
        answer("breaks off in mid-stream", says(good().ending(Ends::Cut)), 0),
        answer("ends without a reason", says(good().ending(Ends::WithoutReason)), 0),
        answer("an error in the stream", says(good().ending(Ends::WithError)), 0),
        answer("a piece that is no JSON", says(good().ending(Ends::Garbled)), 0),
        answer("a page instead of a stream", vec![Play::Page], 0),
        answer("says nothing once", says(Reply::default()), 0),
        failure(
            "never says anything",
            vec![Play::Answers(Reply::default()); 99],
            FailureKind::Empty,
            4,
        ),
        withheld,
        answer("cut off in its words", says(good().ending(Ends::TooLong)), 0),
        answer("cut off inside a call", says(looks().ending(Ends::TooLong)), 0),
        answer("breaks off inside a call", says(looks().ending(Ends::Cut)), 0),
        answer("arguments that are no JSON", says(Reply::call("look", "{\"at\": oh")), 0),
        answer("arguments that do not fit", says(Reply::call("look", "{\"away\":1}")), 0),
        answer("a tool that is not there", says(Reply::call("fly", "{}")), 0),
        answer("one call, with thoughts", says(looks().thinking()), 1),
        answer("two calls at once", says(looks().and("look", "{\"at\":\"that\"}").thinking()), 2),
        answer(
            "a call, then busy, then words",
            [says(looks().thinking()), refuses(Refuses::Busy(None), 2)].concat(),
            1,
        ),
        answer(
            "a call, then down for hours",
            [says(looks()), refuses(Refuses::Overloaded, 9)].concat(),
            1,
        ),
    ]
}

/// A runtime over models behind HTTP, driven by hand.
struct Stage {
    runtime: Runtime,
    clock: Arc<ManualClock>,
    tools: Arc<Counting>,
    model: Arc<SwitchModel>,
    _home: tempfile::TempDir,
}

impl Stage {
    fn new(settings: HttpSettings) -> anyhow::Result<Self> {
        let home = scratch::directory_in_memory("providers")?;
        let journal = Arc::new(SqliteJournal::open(&home.path().join("journal.sqlite"))?);
        let model = Arc::new(SwitchModel::new(model_at(settings)?));
        let tools = Arc::new(Counting::default());
        let dynamic: Arc<dyn Model> = model.clone();
        let profiles = default_profiles(&dynamic);
        let mut ports = staged::ports(journal, tools.clone(), dynamic, profiles);
        let clock = Arc::new(ManualClock::at(planwright_domain::time::Time(1_000_000)));
        ports.clock = clock.clone();
        let runtime = Runtime::new(&ports, &Settings::default());
        Ok(Self { runtime, clock, tools, model, _home: home })
    }

    async fn says(&self, words: &str) -> anyhow::Result<()> {
        let (identity, line) = (talk()?, words.to_owned());
        let spoken = Spoken { identity, transport: None, person: ada(), id: fresh_id(), line };
        let heard = self.runtime.commands.handle_line(spoken).await?;
        anyhow::ensure!(matches!(heard, Heard::Accepted { .. }), "{heard:?}");
        Ok(())
    }

    /// Does what is due, and lets time pass, until nothing is under way.
    async fn rests(&self) -> anyhow::Result<TurnEnd> {
        for _ in 0..STEPS_MAX {
            let session = self.runtime.queries.session(&talk()?).await?;
            if next(&session).is_rest() {
                let events = self
                    .runtime
                    .queries
                    .events(&talk()?, planwright_domain::id::Seq(0), usize::MAX)
                    .await?;
                let end = |event: &SessionEvent| {
                    let SessionEvent::Turn(TurnEvent::TurnFinished { end, .. }) = event else {
                        return None;
                    };
                    Some(end.clone())
                };
                let ends = events.iter().rev().find_map(|recorded| end(&recorded.event));
                return ends.ok_or_else(|| anyhow::anyhow!("no turn has ended"));
            }
            let identity = talk()?;
            let advance = self.runtime.engine.advance(&identity);
            let advanced = tokio::time::timeout(std::time::Duration::from_secs(10), advance).await;
            let advanced = advanced.map_err(|_| anyhow::anyhow!("it hangs"))??;
            if let Due::At(at) = advanced.due {
                self.clock.pass_micros(at.0 - self.runtime.queries.now().0);
            }
        }
        anyhow::bail!("it goes on for ever")
    }
}

fn model_at(settings: HttpSettings) -> anyhow::Result<Arc<dyn Model>> {
    let model = HttpModel::new(settings).map_err(|failure| anyhow::anyhow!(failure.message))?;
    Ok(Arc::new(model))
}

fn talk() -> anyhow::Result<SessionKey> {
    Ok(ada_key("cli:providers-01")?)
}

/// Plays one case, and says what a person sees.
async fn tried(wire: Wire, case: &Case) -> anyhow::Result<String> {
    let server = Provider::start(wire, case.plays.clone()).await?;
    let stage = Stage::new(server.settings())?;
    stage.says("please look at it").await?;
    let end = stage.rests().await?;
    let session = stage.runtime.queries.session(&talk()?).await?;
    let had = server.had();
    if let Some(wrong) = had.iter().find_map(|had| had.wrong.clone()) {
        anyhow::bail!("the server finds the request wrong: {wrong}");
    }
    let sees = match (&end, case.comes) {
        (TurnEnd::Answered, Comes::Answer) => "answered".to_owned(),
        (TurnEnd::Failed { failure }, Comes::Failure(kind)) if failure.kind == kind => {
            let TurnOutcome::Failure { message, .. } = TurnOutcome::of(&end, &session, "") else {
                anyhow::bail!("a failure that nobody is told of");
            };
            message
        }
        (end, comes) => anyhow::bail!("{comes:?} was to come, and it came to {end:?}"),
    };
    anyhow::ensure!(stage.tools.runs() == case.runs, "the tool ran {} times", stage.tools.runs());
    anyhow::ensure!(had.len() <= case.requests_max, "{} requests were made", had.len());
    let said = |had: &planwright_testkit::providers::Had| {
        had.body.to_string().contains("please look at it")
    };
    anyhow::ensure!(had.iter().all(said), "the person's words were not sent");
    // Whatever came before, the next message is answered, and nothing that was said is lost.
    server.plays(Vec::new());
    stage.says("and again, please").await?;
    let end = stage.rests().await?;
    anyhow::ensure!(end == TurnEnd::Answered, "afterwards: {end:?}");
    let last = server.had().pop().ok_or_else(|| anyhow::anyhow!("no request"))?;
    anyhow::ensure!(last.wrong.is_none(), "afterwards: {:?}", last.wrong);
    let both = said(&last) && last.body.to_string().contains("and again, please");
    anyhow::ensure!(both, "afterwards the words were not sent");
    anyhow::ensure!(stage.tools.runs() == case.runs, "afterwards the tool ran again");
    Ok(sees)
}

/// One provider calls tools, the other goes on, and the first comes back: both find every request valid.
async fn in_turn(first: Wire, second: Wire) -> anyhow::Result<()> {
    let looks =
        || Reply::call("look", "{\"at\":\"it\"}").and("look", "{\"at\":\"that\"}").thinking();
    let calls = || vec![Play::Answers(looks()), Play::Answers(Reply::text("I have looked"))];
    let one = Provider::start(first, calls()).await?;
    let other = Provider::start(second, calls()).await?;
    let stage = Stage::new(one.settings())?;
    for (words, server) in
        [("first", &one), ("second", &other), ("third", &one), ("fourth", &other)]
    {
        stage.model.switch(model_at(server.settings())?);
        if words == "third" {
            server.plays(calls());
        }
        stage.says(words).await?;
        let end = stage.rests().await?;
        anyhow::ensure!(end == TurnEnd::Answered, "{words}: {end:?}");
    }
    for (server, wire) in [(&one, first), (&other, second)] {
        let had = server.had();
        let wrong = had.iter().find_map(|had| had.wrong.clone());
        anyhow::ensure!(wrong.is_none(), "{} finds: {wrong:?}", wire.name());
        let foreign = if wire == first { second } else { first };
        let sent = had.iter().map(|had| had.body.to_string()).collect::<String>();
        let own = format!("{SIGNED}{}", signer(wire));
        anyhow::ensure!(
            wire == Wire::Ollama || sent.contains(&own),
            "{} misses its thoughts",
            wire.name()
        );
        let theirs = format!("{SIGNED}{}", signer(foreign));
        anyhow::ensure!(
            wire == foreign || !sent.contains(&theirs),
            "{} was given foreign thoughts",
            wire.name()
        );
    }
    anyhow::ensure!(stage.tools.runs() == 6, "the tool ran {} times", stage.tools.runs());
    Ok(())
}

fn signer(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "chat",
        Wire::Responses => "responses",
        Wire::Anthropic => "anthropic",
        Wire::Gemini => "gemini",
        Wire::Ollama => "ollama",
    }
}
