//! Text in which nothing hides.

use planwright_domain::hidden::is_hidden;

/// Text in which nothing hides: control, zero-width, filling, tagging and direction marks are written out.
#[must_use]
pub fn visible(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\n' | '\t' => character.to_string(),
            hidden if is_hidden(hidden) => format!("⟨U+{:04X}⟩", hidden as u32),
            plain => plain.to_string(),
        })
        .collect()
}
