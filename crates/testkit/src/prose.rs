//! English of any length, the same for the same number: what people and models write, for proofs and figures.
//!
//! A journal compresses what it stores. A repeated letter or a repeated sentence compresses to nothing, and a figure taken
//! with it says nothing about messages that people write; this compresses about as well as documentation does.

use std::sync::LazyLock;

use fastrand::Rng;

const OPENINGS: [&str; 20] = [
    "After that",
    "As far as we know",
    "At the end of the week",
    "Before anything else",
    "By tomorrow",
    "Even so",
    "For the time being",
    "In most cases",
    "In the second part",
    "Meanwhile",
    "On the other hand",
    "Once this is settled",
    "Since last month",
    "So far",
    "Then",
    "To be safe",
    "Under load",
    "Where it matters",
    "With two of them",
    "Without a copy",
];
static ADJECTIVES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    "available awkward bright broken careful cheerful clumsy common complete current daily \
    delicate difficult distant eager early empty expensive external final former fragile \
    frequent general gentle heavy hollow humble important independent internal jealous large \
    late local longer lucky missing modest narrow necessary obvious old open ordinary partial \
    patient polite possible previous private proper quiet rare recent regular reluctant rough \
    separate sharp shiny short single steady subtle tired ugly unexpected urgent vague visible \
    warm wooden yearly"
        .split(' ')
        .collect()
});
static NOUNS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    "account address afternoon agreement ambition answer archive author backup bakery balance \
    basement battery blanket border bottle boundary bridge budget cabinet calendar camera \
    carpenter ceiling century change chapter cheque client climate coffee column comment \
    committee compass conductor contract copy corridor cottage cupboard curtain customer \
    database deadline decision delivery dentist department detail diagram dictionary directory \
    document draft elevator engineer envelope estimate evening example exhibition factory \
    failure festival figure folder fountain function furniture garden glacier handbook harbour \
    highway history holiday hospital house index instruction insurance interface invoice island \
    jacket journal keyboard kitchen ladder landlord language lecture letter library limit \
    machine magazine mechanic medicine meeting message migration mirror morning museum neighbour \
    network newspaper number office operator orchard package paragraph passenger password \
    pavement photograph picture platform poster printer quarter question recipe record release \
    report request reservoir response review schedule screen sculpture server shoulder signature \
    staircase station summary supplier surface telescope theatre ticket traffic umbrella valley \
    version violin volunteer warehouse weather window workshop"
        .split(' ')
        .collect()
});
static VERBS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    "accepts adjusts admires attaches avoids becomes borrows breaks carries changes checks closes \
    collects compares confirms contains copies creates decides delays describes doubts examines \
    explains follows forgets gathers guards hides imagines improves includes inherits keeps \
    launches limits measures mentions moves needs notices obeys opens orders packs paints \
    polishes prevents produces protects publishes reaches receives recommends repairs replaces \
    requires rescues returns reviews rewards sends separates shows signs skips splits stores \
    supports tests trusts updates visits washes weighs"
        .split(' ')
        .collect()
});
const ENDINGS: [&str; 24] = [
    "as agreed on Tuesday",
    "at every restart",
    "because nobody has asked for more",
    "before it is printed",
    "behind the second door",
    "beyond what was promised",
    "by more than a tenth",
    "even if the link is slow",
    "for about three hours",
    "from the beginning",
    "if there is room for it",
    "in both places",
    "in the order of arrival",
    "inside the same building",
    "instead of the old one",
    "more than once a day",
    "on every second page",
    "unless someone objects",
    "until the end of the year",
    "when the light is on",
    "which is why it was written",
    "while the others wait",
    "with the names left out",
    "without further notice",
];

/// Sentences in paragraphs, of exactly so many bytes; another text for each number.
#[must_use]
pub fn prose(bytes: usize, number: u64) -> String {
    let mut rng = Rng::with_seed(number);
    let mut text = String::with_capacity(bytes + 256);
    while text.len() < bytes {
        for _ in 0..rng.usize(3..7) {
            text.push_str(&sentence(&mut rng));
            text.push(' ');
        }
        text.pop();
        text.push_str("\n\n");
    }
    text.truncate(bytes);
    if bytes > 0 {
        text.replace_range(bytes - 1.., ".");
    }
    text
}

/// One sentence, from a capital to a full stop.
#[must_use]
pub fn sentence(rng: &mut Rng) -> String {
    let mut text = String::new();
    if rng.u8(..6) == 0 {
        text.push_str(pick(rng, &OPENINGS));
        text.push_str(", ");
    }
    clause(rng, &mut text);
    match rng.u8(..8) {
        0 | 1 => {
            text.push_str(pick(rng, &[", and ", ", but ", "; ", ", so "]));
            clause(rng, &mut text);
        }
        2 => text.push_str(&format!(" ({} of {})", rng.u16(2..200), rng.u16(200..9_000))),
        3 => {
            text.push(' ');
            text.push_str(pick(rng, &ENDINGS));
        }
        _ => {}
    }
    let first = text.remove(0).to_ascii_uppercase();
    format!("{first}{text}.")
}

fn clause(rng: &mut Rng, text: &mut String) {
    noun_phrase(rng, text);
    text.push(' ');
    text.push_str(pick(rng, &VERBS));
    text.push(' ');
    noun_phrase(rng, text);
}

fn noun_phrase(rng: &mut Rng, text: &mut String) {
    text.push_str(pick(rng, &["the ", "the ", "every ", "this ", "our ", "another ", "one "]));
    if rng.bool() {
        text.push_str(pick(rng, &ADJECTIVES));
        text.push(' ');
    }
    text.push_str(pick(rng, &NOUNS));
    if rng.u8(..5) == 0 {
        text.push_str(pick(rng, &[" of the ", " in the ", " for the ", " from the "]));
        text.push_str(pick(rng, &NOUNS));
    }
}

fn pick<'a>(rng: &mut Rng, words: &[&'a str]) -> &'a str {
    words[rng.usize(..words.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_as_long_as_asked_the_same_for_the_same_number_and_another_for_another() {
        for bytes in [0, 1, 17, 512, 4_096, 200_000] {
            assert_eq!(prose(bytes, 1).len(), bytes);
        }
        assert_eq!(prose(4_096, 7), prose(4_096, 7));
        assert_ne!(prose(4_096, 7), prose(4_096, 8));
    }

    #[test]
    fn prose_compresses_about_as_well_as_documentation_does() {
        let page = include_str!("../../../docs/ARCHITECTURE.md").as_bytes();
        let of = |text: &[u8]| {
            zstd::bulk::compress(text, 3).map_or(f64::NAN, |small| small.len() as f64)
                / text.len() as f64
        };
        let documentation = of(&page[..4_096]);
        for number in 0..32 {
            let ratio = of(prose(4_096, number).as_bytes()) / documentation;
            assert!(
                (0.75..1.25).contains(&ratio),
                "{ratio:.2} of documentation's {documentation:.2}"
            );
        }
        assert!(of("x".repeat(4_096).as_bytes()) < 0.01, "what a repeated letter compresses to");
    }
}
