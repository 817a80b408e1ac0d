//! A text in pieces, each with its tone.

/// How a piece of text is drawn, where there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// Less important.
    Dim,
    /// A heading, or a name.
    Bold,
    /// Something that was observed to be well.
    Good,
    /// Something that went wrong.
    Bad,
    /// Something that a person should look at.
    Warn,
    /// A frame.
    Calm,
}

/// A text in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// Its pieces, in order.
    pub spans: Vec<(Tone, String)>,
}

impl Text {
    /// Adds a piece.
    #[must_use]
    pub fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.spans.push((tone, text.into()));
        self
    }

    /// Adds another text.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        self.spans.extend(other.spans);
        self
    }

    /// Ends the line.
    #[must_use]
    pub fn line(self) -> Self {
        self.and(Tone::Plain, "\n")
    }

    /// The words alone.
    #[must_use]
    pub fn plain(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// A line in one tone.
    #[must_use]
    pub fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self::default().and(tone, text).line()
    }

    /// A mark, and a line of words behind it.
    #[must_use]
    pub fn marked(tone: Tone, mark: &str, words: &str) -> Self {
        Self::default().and(tone, mark).and(Tone::Plain, format!(" {words}")).line()
    }
}
