//! Blocks: the parts of a revision that a person reads one at a time.
//!
//! The parser says where blocks begin; every line that is not blank belongs to exactly one of them. A block is
//! known by its bytes, so that what a person read in an earlier revision need not be read again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
};

use pulldown_cmark::{Event, Options, Parser, Tag};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::model::{digest::Encoder, limits};

/// How many bytes of a digest make an id.
const ID_BYTES: usize = 16;
/// How many hexadecimal digits an id has.
const ID_DIGITS: usize = 2 * ID_BYTES;

/// The id of a block: the same for the same bytes, in any revision. Equal blocks of one document are told apart by
/// their order, so that reading one of them is not reading the others. Text form: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockId([u8; ID_BYTES]);

impl BlockId {
    /// The id of these bytes where they stand for the nth time in a document, from 0.
    fn of(text: &str, occurrence: u64) -> Self {
        let digest =
            Encoder::of("block", 1).field("text", text).number("occurrence", occurrence).digest();
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&digest.0[..ID_BYTES]);
        Self(id)
    }

    /// Reads the text form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != ID_DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut id = [0; ID_BYTES];
        for (at, byte) in id.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self(id))
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for BlockId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BlockId({self})")
    }
}

/// A block of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// By its bytes.
    pub id: BlockId,
    /// Its first line, from 1.
    pub first_line: u32,
    /// Its last line.
    pub last_line: u32,
}

/// A set of blocks. Stored as one string of ids, because there can be many.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transparent))]
pub struct BlockSet(
    #[cfg_attr(feature = "schema", schemars(with = "String"))] pub BTreeSet<BlockId>,
);

impl BlockSet {
    /// The blocks of a document.
    #[must_use]
    pub fn of(markdown: &str) -> Self {
        Self(blocks(markdown).into_iter().map(|block| block.id).collect())
    }
}

impl Serialize for BlockSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = self.0.iter().map(BlockId::to_string).collect();
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for BlockSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let ids = text.as_bytes().chunks(ID_DIGITS).map(|digits| {
            let digits = std::str::from_utf8(digits).ok();
            digits.and_then(BlockId::parse)
        });
        let ids: Option<BTreeSet<_>> = ids.collect();
        ids.map(Self)
            .ok_or_else(|| de::Error::custom("ids of blocks are 32 hexadecimal digits each"))
    }
}

/// The blocks of a document, in order: its outermost blocks, front matter included; of a list, each entry. What is
/// longer than [`limits::BLOCK_LINES_MAX`] is divided. A document of more than [`limits::BLOCKS_MAX`] has neighbours
/// joined.
#[must_use]
pub fn blocks(markdown: &str) -> Vec<Block> {
    let lines = Lines::of(markdown);
    let mut ranges = Vec::new();
    let starts = starts(markdown, &lines);
    let ends = starts.iter().skip(1).copied().chain([lines.count()]);
    for (start, end) in starts.iter().copied().zip(ends) {
        let whole = lines.trimmed(start..end);
        for from in whole.clone().step_by(limits::BLOCK_LINES_MAX) {
            let piece = lines.trimmed(from..whole.end.min(from + limits::BLOCK_LINES_MAX));
            if !piece.is_empty() {
                ranges.push(piece);
            }
        }
    }
    let joined = ranges.len().div_ceil(limits::BLOCKS_MAX).max(1);
    let mut occurrences: BTreeMap<&str, u64> = BTreeMap::new();
    ranges
        .chunks(joined)
        .filter_map(|neighbours| Some(neighbours.first()?.start..neighbours.last()?.end))
        .map(|range| {
            let text = lines.text(&range);
            let occurrence = occurrences.entry(text).or_default();
            let id = BlockId::of(text, *occurrence);
            *occurrence += 1;
            let number = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
            Block { id, first_line: number(range.start + 1), last_line: number(range.end) }
        })
        .collect()
}

/// The lines on which blocks begin, from 0; the first line is always one of them.
fn starts(markdown: &str, lines: &Lines<'_>) -> BTreeSet<usize> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut starts = BTreeSet::from([0]);
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(markdown, options).into_offset_iter() {
        if let Event::End(_) = event {
            depth = depth.saturating_sub(1);
            continue;
        }
        if depth == 0 || (depth == 1 && matches!(event, Event::Start(Tag::Item))) {
            starts.insert(lines.at(range.start));
        }
        if let Event::Start(_) = event {
            depth += 1;
        }
    }
    starts
}

/// A text and where its lines begin. Lines end with a line feed, as comments and diffs count them.
struct Lines<'a> {
    text: &'a str,
    begin: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let lengths = text.split_inclusive('\n').map(str::len);
        let begin = lengths.scan(0, |next, length| {
            let begin = *next;
            *next += length;
            Some(begin)
        });
        Self { text, begin: begin.collect() }
    }

    fn count(&self) -> usize {
        self.begin.len()
    }

    /// The line in which this byte stands.
    fn at(&self, byte: usize) -> usize {
        self.begin.partition_point(|begin| *begin <= byte).saturating_sub(1)
    }

    /// The bytes of these lines, without what ends the last.
    fn text(&self, lines: &Range<usize>) -> &'a str {
        let place = |line: usize| self.begin.get(line).copied().unwrap_or(self.text.len());
        let whole = &self.text[place(lines.start)..place(lines.end)];
        let whole = whole.strip_suffix('\n').unwrap_or(whole);
        whole.strip_suffix('\r').unwrap_or(whole)
    }

    /// These lines without the blank ones around them.
    fn trimmed(&self, lines: Range<usize>) -> Range<usize> {
        let is_blank = |line: usize| {
            self.text(&(line..line + 1)).bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
        };
        let first = lines.clone().find(|line| !is_blank(*line)).unwrap_or(lines.end);
        let last = lines.clone().rev().find(|line| !is_blank(*line));
        first..last.map_or(first, |last| last + 1)
    }
}
