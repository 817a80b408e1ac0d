//! The model's context window: the token budget of a request, truncation, and where the conversation is cut for compaction.
//!
//! First the results of older calls are shortened, with a way to read them again; then what was said longest ago is
//! summed up. What opened the turn, comments that wait for a reply, and the last words stay as they are.

use std::sync::Arc;

use planwright_domain::{
    digest::Digest,
    id::Seq,
    turn::{Measure, Sent},
};

use crate::{
    engine::conversation::{View, bytes_of},
    engine::output::until,
    ports::model::{Message, ModelRequest, WireCall},
};

/// How many of the last messages are never shortened.
const LATEST: usize = 6;
/// A result that is shorter than this is not shortened.
const SHORTENED_FROM: usize = 1_200;
/// How much of a shortened result is left.
const SHORTENED_TO: usize = 400;
/// How much of one result a summary is made from.
const TRANSCRIBED_MAX: usize = 4_000;

/// How much a request may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// The most, in tokens.
    pub(crate) tokens: u64,
    /// Of these, what is used before room is made.
    used: u64,
    /// How the model counts.
    pub(crate) measure: Measure,
}

impl Room {
    /// What a window leaves beside the answer; half of it for each time that a server found it too large.
    pub(crate) fn of(window: usize, answer: usize, halved: u32, measure: Measure) -> Self {
        // An answer never takes more than half of a small window.
        let tokens = ((window - answer.min(window / 2)) as u64) >> halved.min(16);
        Self { tokens, used: tokens, measure }
    }

    /// The same, where room is made from so many tokens on, though more would fit.
    pub(crate) fn soft_from(self, tokens: usize) -> Self {
        Self { used: self.used.min((tokens as u64).saturating_mul(5) / 4), ..self }
    }

    /// From here on it is worth making room.
    pub(crate) fn soft(self) -> u64 {
        self.used / 5 * 4
    }

    /// How many bytes so many hundredths of it are.
    pub(crate) fn bytes(self, hundredths: u64) -> usize {
        let tokens = self.used * hundredths / 100;
        let per_token = match self.measure {
            Measure { bytes: 0, .. } | Measure { tokens: 0, .. } => 4,
            Measure { bytes, tokens } => (bytes / tokens).clamp(1, 16),
        };
        usize::try_from(tokens * per_token).unwrap_or(usize::MAX)
    }
}

/// The bytes of a request, by what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bytes {
    pub(crate) system: usize,
    pub(crate) tools: usize,
    pub(crate) messages: usize,
}

impl Bytes {
    pub(crate) fn of(request: &ModelRequest, messages: usize) -> Self {
        let tools = request.tools.iter().map(|tool| {
            32 + tool.name.len() + tool.description.len() + tool.parameters.to_string().len()
        });
        Self { system: request.system.len(), tools: tools.sum(), messages }
    }

    pub(crate) fn all(self) -> u64 {
        (self.system + self.tools + self.messages) as u64
    }
}

/// What was said, with the results of older calls shortened.
pub(crate) struct Shortened {
    pub(crate) messages: Arc<Vec<Message>>,
    pub(crate) bytes: usize,
    /// Up to here.
    pub(crate) upto: Option<Seq>,
    /// How many bytes that spared.
    pub(crate) spared: usize,
}

/// The results of older calls, shortened: all but the last few messages.
pub(crate) fn shortened(view: &View) -> Shortened {
    let last = view.places.len().saturating_sub(LATEST);
    let upto = last.checked_sub(1).map(|at| view.places[at].seq);
    upto.map_or_else(
        || Shortened { messages: view.messages.clone(), bytes: view.bytes, upto: None, spared: 0 },
        |upto| shortened_upto(view, upto),
    )
}

/// The same, up to this place.
pub(crate) fn shortened_upto(view: &View, upto: Seq) -> Shortened {
    let mut spared = 0;
    let messages = view.messages.iter().zip(&view.places).map(|(message, place)| match message {
        Message::Tool { wire_id, tool, text }
            if place.seq <= upto && text.len() > SHORTENED_FROM =>
        {
            let text = short(text, place.from);
            let message = Message::Tool { wire_id: wire_id.clone(), tool: tool.clone(), text };
            spared += place.bytes - bytes_of(&message);
            message
        }
        Message::Tool { .. } | Message::User(_) | Message::Assistant { .. } => message.clone(),
    });
    let messages: Vec<_> = messages.collect();
    let upto = (spared > 0).then_some(upto);
    Shortened { messages: Arc::new(messages), bytes: view.bytes - spared, upto, spared }
}

/// The beginning of a result, and how the rest is read.
fn short(text: &str, from: Seq) -> String {
    let (head, key) = (until(text, SHORTENED_TO), result_key(from, text));
    format!("{head}\n[{} bytes in all; read_result {key} reads them]", text.len())
}

/// What a result is read again by: the event that has it, and a sign of how it ends, so that nobody reads by guessing what
/// they were not given.
pub(crate) fn result_key(from: Seq, text: &str) -> String {
    let end = &text.as_bytes()[text.len().saturating_sub(64)..];
    format!("{from}-{}", &Digest::of(end).to_string()[..4])
}

/// Where what was said is cut, so that about so many bytes stay: everything up to the place is summed up. None, if
/// there is too little to sum up.
pub(crate) fn cut(view: &View, keep_bytes: usize, most_bytes: usize) -> Option<Cut> {
    let places = &view.places;
    let is_clean = |at: usize| {
        !matches!(view.messages.get(at), Some(Message::Tool { .. }))
            && (at == places.len() || places[at - 1].seq < places[at].seq)
    };
    let (mut kept, mut summed, mut transcript) = (view.bytes, 0, 0);
    let mut last = None;
    // One pass: a long conversation has a hundred thousand messages.
    for (at, place) in (1..).zip(places) {
        kept = kept.saturating_sub(place.bytes);
        if !place.stays {
            summed += 1;
            transcript += place.bytes.min(TRANSCRIBED_MAX + 64);
        }
        if transcript > most_bytes {
            // What the one who sums up can take in is less than what should go: it takes several times.
            break;
        }
        if summed >= 2 && is_clean(at) {
            last = Some(Cut { upto: place.seq, messages: summed, at });
            if kept <= keep_bytes {
                break;
            }
        }
    }
    last
}

/// Where what was said is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) upto: Seq,
    pub(crate) messages: usize,
    at: usize,
}

impl Cut {
    /// What is summed up, as text.
    pub(crate) fn transcript(&self, view: &View) -> String {
        let parts = view.messages[..self.at].iter().zip(&view.places);
        let summed = parts.filter(|(_, place)| !place.stays);
        summed.map(|(message, _)| transcribed(message)).collect()
    }
}

fn transcribed(message: &Message) -> String {
    match message {
        Message::User(text) => format!("Person: {}\n\n", until(text, TRANSCRIBED_MAX)),
        Message::Tool { tool, text, .. } => {
            format!("Result of {tool}: {}\n\n", until(text, TRANSCRIBED_MAX))
        }
        Message::Assistant { text, calls, .. } => {
            let call = |call: &WireCall| {
                format!("Agent calls {} {}\n", call.tool, until(&call.arguments, 400))
            };
            let calls: String = calls.iter().map(call).collect();
            format!("Agent: {}\n{calls}\n", until(text, TRANSCRIBED_MAX))
        }
    }
}

/// What is recorded of a request.
pub(crate) fn sent(
    request: &ModelRequest,
    model: String,
    bytes: Bytes,
    estimate: u64,
    messages_digest: Digest,
    shortened: Option<&Shortened>,
) -> Sent {
    Sent {
        model,
        estimate,
        system_bytes: bytes.system as u64,
        tools_bytes: bytes.tools as u64,
        message_bytes: bytes.messages as u64,
        messages: u32::try_from(request.messages.len()).unwrap_or(u32::MAX),
        shortened: shortened.and_then(|shortened| shortened.upto),
        spared_bytes: shortened.map_or(0, |shortened| shortened.spared as u64),
        digest: digest(&request.system, messages_digest),
    }
}

/// The digest of what a model was told and what was said, given the chain of what was said.
pub(crate) fn digest(system: &str, messages_digest: Digest) -> Digest {
    Digest::of(format!("{messages_digest}\n{system}").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use planwright_domain::{id::Seq, turn::Measure};

    use super::{Room, cut, result_key, shortened};
    use crate::engine::message_digest::chain;
    use crate::{
        engine::conversation::{Place, View, bytes_of},
        ports::model::{Message, WireCall},
    };

    /// Turns of one call each, a result of so many bytes; what opened the last one stays.
    fn talk(turns: u64, bytes: usize) -> View {
        let mut messages = Vec::new();
        for turn in 0..turns {
            let id = format!("c{turn}");
            messages.push((turn * 4 + 1, Message::User(format!("do {turn}"))));
            let call =
                WireCall { wire_id: id.clone(), tool: "read".into(), arguments: "{}".into() };
            let asks = Message::Assistant { text: String::new(), calls: vec![call], kept: None };
            messages.push((turn * 4 + 2, asks));
            let text = "x".repeat(bytes);
            messages.push((turn * 4 + 3, Message::Tool { wire_id: id, tool: "read".into(), text }));
            let answer = Message::Assistant { text: "done".into(), calls: Vec::new(), kept: None };
            messages.push((turn * 4 + 4, answer));
        }
        let last = (turns - 1) * 4 + 1;
        let place = |(seq, message): &(u64, Message)| Place {
            seq: Seq(*seq),
            from: Seq(*seq),
            bytes: bytes_of(message),
            stays: *seq == last,
        };
        let places: Vec<_> = messages.iter().map(place).collect();
        let bytes = places.iter().map(|place| place.bytes).sum();
        let messages: Arc<Vec<_>> =
            Arc::new(messages.into_iter().map(|(_, message)| message).collect());
        let messages_digest = chain(&messages);
        View { messages, places, bytes, messages_digest, shortened: None }
    }

    #[test]
    fn older_results_are_shortened_and_say_how_they_are_read() {
        let view = talk(10, 5_000);
        let short = shortened(&view);
        assert!(short.bytes < view.bytes / 3, "{} of {}", short.bytes, view.bytes);
        let Message::Tool { text, .. } = &short.messages[2] else { panic!("a result") };
        let key = result_key(Seq(3), &"x".repeat(5_000));
        let told = format!("[5000 bytes in all; read_result {key} reads them]");
        assert!(text.ends_with(&told) && key.starts_with("3-"), "{text}");
        assert_eq!(short.messages[38], view.messages[38], "the last are as they were");
        assert_eq!(short.bytes, short.messages.iter().map(bytes_of).sum::<usize>());
    }

    #[test]
    fn a_cut_is_clean_and_leaves_what_must_stay() {
        for turns in 2..12 {
            let view = talk(turns, 300);
            for keep in [0, 100, 500, 1_000, 5_000] {
                let Some(cut) = cut(&view, keep, usize::MAX) else { continue };
                let at = cut.at;
                assert!(!matches!(view.messages.get(at), Some(Message::Tool { .. })), "{at}");
                assert_eq!(view.places[at - 1].seq, cut.upto);
                assert!(!cut.transcript(&view).contains(&format!("do {}\n", turns - 1)));
            }
        }
        assert_eq!(cut(&talk(1, 300), 0, 10), None, "nothing fits the one who sums up");
    }

    #[test]
    fn a_cut_looks_at_each_message_once() {
        let (view, begun) = (talk(50_000, 10), tokio::time::Instant::now());
        let all = cut(&view, 1_000, usize::MAX).unwrap();
        let some = cut(&view, 1_000, 40_000).unwrap();
        assert!(some.at < all.at, "{} of {}", some.at, all.at);
        assert!(begun.elapsed().as_secs() < 10, "{:?} for 200,000 messages", begun.elapsed());
    }

    #[test]
    fn a_room_is_halved_and_an_answer_takes_at_most_half_of_a_window() {
        let room = |window, answer, halved| Room::of(window, answer, halved, Measure::default());
        assert_eq!(room(8_000, 4_096, 0).tokens, 4_000);
        assert_eq!(room(128_000, 4_096, 1).tokens, 61_952);
        assert_eq!(room(1_000, 4_096, 0).bytes(50), 1_000);
    }

    #[test]
    fn a_large_window_is_not_filled_only_because_it_is_there() {
        let room = Room::of(1_000_000, 8_192, 0, Measure::default());
        let held = room.soft_from(160_000);
        assert_eq!((room.soft(), held.soft()), (793_444, 160_000));
        assert_eq!(held.tokens, room.tokens, "what is needed still fits");
        assert_eq!(held.bytes(100), 200_000 * 4);
        let small = Room::of(100_000, 8_192, 0, Measure::default());
        assert_eq!(small.soft_from(160_000), small);
    }
}
