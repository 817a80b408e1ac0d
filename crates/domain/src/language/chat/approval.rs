//! The arguments of `/plan approve`, `/allow` and `/deny`.
//!
//! Must always hold: a deciding command ignores no word. A word that is neither an option nor the name of what is
//! decided refuses the whole line, so that a typing error never decides.

pub use super::command::RevisionName;
use super::{
    command::{Act, LineRefusal},
    words::{nearest_word, split, whole_number},
};
use crate::{
    model::{
        actor::Person,
        command::{Permit, Start},
        digest::Digest,
        effect::Declared,
        id::PlanId,
        plan::{Plan, refusal::PlanRefusal, step::OnFailure},
    },
    rules::plan::front_matter,
};

/// The fewest digits of a digest that name a revision.
const DIGEST_DIGITS_MIN: usize = 8;

/// The options of `/plan approve`, as they are suggested.
const OPTIONS: [&str; 10] = [
    "hold", "continue", "ask", "note", "tools=", "paths=", "hosts=", "spend=", "calls=", "expires=",
];

impl RevisionName {
    /// Reads digits, a plan id, or at least eight digits of a digest. Eight decimal digits are a number: a digest has
    /// a letter among them, or `sha256:` before them.
    fn parse(word: &str) -> Option<Self> {
        if let Some(number) = whole_number(word) {
            return Some(Self::Number(number));
        }
        // Without its hyphens, an id could as well be a part of a digest.
        if word.len() == 36
            && let Ok(plan) = word.parse()
        {
            return Some(Self::Plan(PlanId(plan)));
        }
        let word = word.to_ascii_lowercase();
        let digits = word.strip_prefix("sha256:").unwrap_or(&word);
        let is_hex = digits.len() >= DIGEST_DIGITS_MIN
            && digits.len() <= 64
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_marked =
            digits.len() < word.len() || digits.bytes().any(|b| b.is_ascii_alphabetic());
        (is_hex && is_marked).then(|| Self::Digest(digits.to_owned()))
    }

    /// The digest of the revision that it names in this plan, which `decide` judges. The folded plan knows the current
    /// revision and the one that this person was shown last; `numbered` is the one with the number that it names.
    pub fn digest(
        &self,
        plan: &Plan,
        person: &Person,
        numbered: Option<Digest>,
    ) -> Result<Digest, PlanRefusal> {
        let shown = plan.shown_to(person);
        let current = plan.current.as_ref();
        let (found, named) = match self {
            Self::Number(number) => (numbered, number.to_string()),
            Self::Plan(id) if *id == plan.id => return last_shown(plan, person),
            Self::Plan(id) => (None, id.to_string()),
            Self::Digest(digits) => (
                current
                    .map(|head| head.digest)
                    .into_iter()
                    .chain(shown)
                    .find(|digest| digest.to_string().starts_with(digits)),
                digits.clone(),
            ),
        };
        found.ok_or(PlanRefusal::NoSuchRevision { named })
    }
}

/// What this surface last showed this person in full.
pub fn last_shown(plan: &Plan, person: &Person) -> Result<Digest, PlanRefusal> {
    match (plan.shown_to(person), &plan.current) {
        (Some(digest), _) => Ok(digest),
        (None, Some(head)) => Err(PlanRefusal::NotShown { number: head.number }),
        (None, None) => Err(PlanRefusal::NothingToDecide { status: plan.status.label().into() }),
    }
}

fn refused(problem: String) -> LineRefusal {
    LineRefusal::BadWords { command: "/plan approve", problem }
}

/// `[rev] [hold] [continue] [ask] [tools=…] [paths=…] [hosts=…] [spend=…] [calls=…] [expires=…] [note …]`
pub(super) fn approve(words: &str) -> Result<Act, LineRefusal> {
    let (mut start, mut on_failure, mut named, mut note) =
        (Start::AtOnce, OnFailure::Stop, None, None);
    let mut grant: Option<Declared> = None;
    let mut parts = Vec::new();
    let mut rest = words;
    while !rest.is_empty() {
        let (word, after) = split(rest);
        rest = after;
        match (word, word.split_once('=')) {
            ("hold", _) => start = Start::Hold,
            ("continue", _) => on_failure = OnFailure::Continue,
            ("ask", _) => grant = Some(grant.unwrap_or_default()),
            ("note", _) if rest.is_empty() => {
                return Err(refused("needs the words of the note after note".into()));
            }
            ("note", _) => {
                note = Some(rest.to_owned());
                rest = "";
            }
            (_, Some((part, value))) => {
                if parts.contains(&part) {
                    return Err(refused(format!("has {part}= twice; nothing was approved")));
                }
                parts.push(part);
                front_matter::set(grant.get_or_insert_default(), part, value)
                    .map_err(|refusal| refused(refusal.to_string()))?;
            }
            (other, None) => match (RevisionName::parse(other), &named) {
                (Some(name), None) => named = Some(name),
                (Some(_), Some(_)) => {
                    return Err(refused(format!(
                        "names two revisions, the second {other:?}; nothing was approved"
                    )));
                }
                (None, _) => return Err(unknown(other)),
            },
        }
    }
    Ok(Act::Approve { named, start, on_failure, grant, note })
}

fn unknown(word: &str) -> LineRefusal {
    let meant = match nearest_word(word, &OPTIONS) {
        Some(option) => format!("did you mean {option}?"),
        None => "name the current revision by its number, its plan id or at least 8 digits of its digest".into(),
    };
    refused(format!("does not know {word:?}; {meant} (nothing was approved)"))
}

/// `/allow <id> [plan]`
pub(super) fn allow(words: &str) -> Result<Act, LineRefusal> {
    let (id, rest) = split(words);
    let permit = match rest {
        "" => Permit::Once,
        "plan" => Permit::UntilPlanEnds,
        other => {
            let problem = format!(
                "knows plan after the id, not {other:?}; did you mean plan? (nothing was allowed)"
            );
            return Err(LineRefusal::BadWords { command: "/allow", problem });
        }
    };
    Ok(permitting(id, permit))
}

/// `/deny <id>`
pub(super) fn deny(words: &str) -> Result<Act, LineRefusal> {
    let (id, rest) = split(words);
    if !rest.is_empty() {
        let problem = format!(
            "takes the id of a call and nothing more, not {rest:?}; to say what should change, send /plan replan <text>"
        );
        return Err(LineRefusal::BadWords { command: "/deny", problem });
    }
    Ok(permitting(id, Permit::Deny))
}

fn permitting(id: &str, permit: Permit) -> Act {
    Act::Permit { named: (!id.is_empty()).then(|| id.to_owned()), permit }
}
