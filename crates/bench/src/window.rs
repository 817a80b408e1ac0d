//! What remains when a process is frozen: the time from the last look at the clock to the tool, as the runtime takes it.
//!
//! Turns are advanced by the runtime itself. It says that it looks at the clock (`LAST_CHECK`), a subscriber notes when
//! that was said, and the tool notes when it is called, both in the same task. The look itself is inside the window.

use std::{
    cell::Cell,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use async_trait::async_trait;
use planwright_domain::{
    actor::Standing,
    command::{PersonCommand, SessionCommand},
    effect::{Effect, Repeat},
    next::{Due, next},
    tools::ToolSpec,
    turn::{CallResult, ModelFailure},
};
use planwright_outbound::ids_random::fresh_id;
use planwright_runtime::{
    engine::advance::LAST_CHECK,
    ports::{
        model::{Message, Model, ModelAnswer, ModelRequest, OnPreview, WireCall},
        toolbox::{Ran, Tool, ToolRun, Toolbox},
    },
};
use planwright_testkit::people::{ada_key, person};
use serde_json::json;
use tracing::{Event, Metadata, Subscriber, span, subscriber::Interest};

use crate::{
    measure::{Judged, close, median, percentile},
    ours::Ours,
    payload::{TURNS, nth},
};

/// How wide the window may be.
const NANOS_MAX: f64 = 10_000.0;
/// How many calls one answer asks for; they run at the same time.
const CALLS: u64 = 8;
/// How many turns one session has.
const TURNS_EACH: u64 = 10;
const TOOL: &str = "look";

thread_local! {
    /// When the runtime last looked at the clock, on this thread. The tool is called in the same poll.
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    tracing::subscriber::set_global_default(Checks)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let turns = if quick { 200 } else { 2_500 };
    let (calls, nanos) = runtime.block_on(windows(turns))?;
    anyhow::ensure!(
        nanos.len() as u64 == calls && calls == turns * CALLS,
        "{} of {calls} calls came right after a look at the clock; {} were asked for",
        nanos.len(),
        turns * CALLS
    );
    let (middle, high) = (median(&nanos), percentile(&nanos, 0.999));
    let last = percentile(&nanos, 1.0);
    println!(
        "{calls} calls: median {middle:.0} ns, 99.9th percentile {high:.0} ns, longest {last:.0} ns"
    );
    let figure =
        format!("{middle:.0} ns in the median, {high:.0} ns at the 99.9th percentile of {calls}");
    Ok(close("window", &figure, "10,000 ns in the median", middle <= NANOS_MAX))
}

/// How often the tool was called, and how long after the last look, in nanoseconds.
async fn windows(turns: u64) -> anyhow::Result<(u64, Vec<f64>)> {
    let toolbox = Arc::new(Measurements::default());
    let ours = Ours::by_hand(Arc::new(Calls), toolbox.clone())?;
    let person = person("ada", "bench", Standing::Speaks);
    for turn in 0..turns {
        let identity = ada_key(&format!("cli:window-{:04}", turn / TURNS_EACH))?;
        let say = PersonCommand::Say { text: nth(&TURNS, turn).into() };
        let say = SessionCommand::Person(person.clone(), say);
        ours.runtime.engine.dispatch(&identity, fresh_id(), say).await?;
        while ours.runtime.engine.advance(&identity).await?.due == Due::Now {}
        let session = ours.runtime.queries.session(&identity).await?;
        anyhow::ensure!(next(&session).is_rest(), "{identity} does not come to rest");
    }
    let seen = std::mem::take(&mut *toolbox.0.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((seen.len() as u64, seen.into_iter().flatten().collect()))
}

/// Notes when the runtime says that it looks at the clock; hears nothing else.
struct Checks;

impl Subscriber for Checks {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.name() == LAST_CHECK { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.name() == LAST_CHECK
    }

    fn event(&self, _: &Event<'_>) {
        LOOKED.set(Some(Instant::now()));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// A tool that notes how long after the look it is called; none where there was no look.
#[derive(Default)]
struct Measurements(Mutex<Vec<Option<f64>>>);

#[async_trait]
impl Toolbox for Measurements {
    fn tools(&self) -> Arc<Vec<Tool>> {
        let spec = ToolSpec {
            name: TOOL.into(),
            description: "Looks, and changes nothing.".into(),
            parameters: json!({"type": "object"}),
            effect: Effect::Read,
        };
        Arc::new(vec![Tool::new(spec, Repeat::Harmless)])
    }

    fn check(&self, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn run(&self, _: ToolRun) -> Ran {
        let called = Instant::now();
        let window = LOOKED.take().map(|looked| called.duration_since(looked).as_nanos() as f64);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(window);
        Ran::Ended(CallResult::done("nothing to see"))
    }
}

/// A model that has the tool called several times at once, then ends the turn.
struct Calls;

#[async_trait]
impl Model for Calls {
    async fn answer(
        &self,
        request: &ModelRequest,
        _preview: OnPreview<'_>,
    ) -> Result<ModelAnswer, ModelFailure> {
        let is_answered = matches!(request.messages.last(), Some(Message::Tool { .. }));
        let call = |number| WireCall {
            wire_id: format!("call_{number}"),
            tool: TOOL.into(),
            arguments: json!({"number": number}).to_string(),
        };
        let calls = if is_answered { Vec::new() } else { (0..CALLS).map(call).collect() };
        let text = if is_answered { "I have looked.".into() } else { String::new() };
        Ok(ModelAnswer { text, calls, usage: None, kept: Vec::new() })
    }

    fn window_tokens(&self) -> usize {
        1_000_000
    }

    fn name(&self) -> String {
        "calls".into()
    }
}
