//! Text in which nothing hides.

/// Text in which nothing hides: control, zero-width, filling, tagging and direction marks are written out.
#[must_use]
pub fn visible(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\n' | '\t' => character.to_string(),
            control if control.is_control() => format!("⟨U+{:04X}⟩", control as u32),
            '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{FEFF}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{00AD}'
            | '\u{061C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{180B}'..='\u{180F}'
            | '\u{3164}'
            | '\u{FFA0}'
            | '\u{E0000}'..='\u{E0FFF}' => {
                format!("⟨U+{:04X}⟩", character as u32)
            }
            plain => plain.to_string(),
        })
        .collect()
}
