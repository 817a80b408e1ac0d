//! Characters that nobody sees, and that change what others look like.

/// Whether a character is a control, zero-width, filling, tagging or direction mark.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
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
                | '\u{E0000}'..='\u{E0FFF}'
        )
}
