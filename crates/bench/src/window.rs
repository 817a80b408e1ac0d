//! What remains when a process is frozen: the time between the last look at the clock and the tool.

use std::{
    hint::black_box,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use planwright_domain::{
    identity::SessionIdentity,
    turn::{CallResult, CallStatus},
};
use planwright_runtime::ports::toolbox::{Ran, Tool, ToolRun, Toolbox};

use crate::measure::{Judged, close, median};

/// How wide the window may be.
const NANOS_MAX: f64 = 10_000.0;

/// A tool that notes when it begins.
#[derive(Default)]
struct Notes(Mutex<Option<Instant>>);

#[async_trait]
impl Toolbox for Notes {
    fn tools(&self) -> Arc<Vec<Tool>> {
        Arc::default()
    }

    fn check(&self, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn run(&self, _: ToolRun) -> Ran {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let (status, output) = (CallStatus::Done, String::new());
        Ran::Ended(CallResult { status, output, touched: Vec::new() })
    }
}

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let notes = Arc::new(Notes::default());
    let toolbox: Arc<dyn Toolbox> = notes.clone();
    let (begun, start_by) = (Instant::now(), Duration::from_secs(3_600));
    let mut nanos = Vec::new();
    for _ in 0..if quick { 10_000 } else { 200_000 } {
        let call = ToolRun {
            identity: SessionIdentity::parse("cli:window-0001")?,
            call: uuid::Uuid::now_v7().into(),
            attempt: 1,
            tool: "write_file".into(),
            arguments: "{}".into(),
            plan: None,
            context: None,
        };
        let began = runtime.block_on(async {
            // As the runtime does it: look, then act.
            let looked = Instant::now();
            if black_box(begun.elapsed() > start_by) {
                return None;
            }
            black_box(toolbox.run(call).await);
            let acted = *notes.0.lock().unwrap_or_else(PoisonError::into_inner);
            acted.map(|acted| acted.duration_since(looked).as_nanos() as f64)
        });
        nanos.extend(began);
    }
    nanos.sort_by(f64::total_cmp);
    let (middle, last) = (median(&nanos), nanos.last().copied().unwrap_or(f64::NAN));
    let high = nanos.get(nanos.len() * 999 / 1_000).copied().unwrap_or(f64::NAN);
    println!("median {middle:.0} ns, 99.9th percentile {high:.0} ns, longest {last:.0} ns");
    Ok(close("window", &format!("{middle:.0} ns"), "10,000 ns", middle <= NANOS_MAX))
}
