//! What a person does next, given where a session stands.

use fastrand::Rng;
use serde_json::Value;

/// What a person does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whim {
    /// Waits until something happens.
    Wait,
    /// Nothing more.
    Rest,
    /// Says a line.
    Say(String),
    /// Reads the plan, then says a line.
    ReadThen(String),
}

/// What a person does next; one who wants peace begins nothing new and decides nothing.
pub fn next(status: &Value, rng: &mut Rng, wants_peace: bool) -> Whim {
    let doubts = status["doubts"].as_array().cloned().unwrap_or_default();
    let plan = status["plan"]["status"].as_str().unwrap_or_default();
    let is_active = status["plan_active"] == Value::Bool(true);
    let waiting = status["waiting"].as_str();
    let moving = status["turn_open"] == Value::Bool(true) || status["queued"].as_u64() > Some(0);
    let token = rng.u64(..);
    let chatter = rng.u8(0..10) == 0;
    match (is_active, plan, waiting) {
        _ if !doubts.is_empty() => {
            let call = doubts[0]["call"].as_str().unwrap_or_default();
            Whim::Say(format!("/plan settle {call} happened"))
        }
        _ if moving => Whim::Wait,
        _ if chatter && !wants_peace => Whim::Say(format!("just talk {token:x}")),
        (false, _, _) if wants_peace => Whim::Rest,
        // A conversation that only grows would be all that the model's server does.
        (false, _, _) if rng.u8(0..4) == 0 => Whim::Say("/reset".into()),
        (false, _, _) => Whim::Say("/plan on".into()),
        (true, "Drafting", _) if wants_peace => Whim::Rest,
        (true, "Drafting", _) => Whim::Say(format!("plan the work {token:x}")),
        (true, "Ready", Some("decision")) if wants_peace => Whim::Rest,
        (true, "Ready", Some("decision")) if rng.u8(0..4) == 0 => {
            Whim::ReadThen(format!("/plan changes please {token:x}"))
        }
        (true, "Ready", Some("decision")) => Whim::ReadThen("/plan approve".into()),
        (true, _, Some("resume")) => Whim::Say("/plan resume".into()),
        (true, _, _) => Whim::Wait,
    }
}
