//! The steps of a plan's Markdown document, found by the parser's offsets.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// How many characters of a step are its title.
const TITLE_CHARS: usize = 200;

/// The steps of a document, in order, each by its first words: the items of its first numbered list, else of its first
/// list of boxes to tick. What is nested in an item belongs to it. None, if there is no such list.
#[must_use]
pub fn steps(markdown: &str) -> Vec<String> {
    let [mut numbered, mut ticked] = [Vec::new(), Vec::new()];
    let mut list = List::default();
    let options = Options::ENABLE_TASKLISTS | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Start(Tag::List(first)) => {
                list.depth += 1;
                if list.depth == 1 {
                    list = List { depth: 1, is_numbered: first.is_some(), ..List::default() };
                }
            }
            Event::End(TagEnd::List(_)) => {
                list.depth = list.depth.saturating_sub(1);
                let found = if list.is_numbered { &mut numbered } else { &mut ticked };
                if list.depth == 0 && found.is_empty() && (list.is_numbered || list.has_boxes) {
                    *found = std::mem::take(&mut list.items);
                }
            }
            Event::Start(Tag::Item) if list.depth == 1 => {
                list.items.push(String::new());
                list.is_titled = false;
            }
            Event::TaskListMarker(_) if list.depth == 1 => list.has_boxes = true,
            Event::Text(text) | Event::Code(text) => list.add(&text),
            Event::SoftBreak | Event::HardBreak => list.add(" "),
            // The title of an item ends with its first paragraph, or where something is nested in it.
            Event::End(TagEnd::Paragraph) => list.is_titled = true,
            Event::Start(_)
            | Event::End(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }
    if numbered.is_empty() { ticked } else { numbered }
}

/// A list that is being read.
#[derive(Default)]
struct List {
    depth: usize,
    is_numbered: bool,
    has_boxes: bool,
    items: Vec<String>,
    is_titled: bool,
}

impl List {
    fn add(&mut self, text: &str) {
        if self.depth != 1 || self.is_titled {
            return;
        }
        if let Some(item) = self.items.last_mut() {
            let room = TITLE_CHARS.saturating_sub(item.chars().count());
            item.extend(text.chars().take(room));
        }
    }
}
