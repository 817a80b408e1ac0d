//! What the program depends on, and how each part of that is, as this process finds it.

/// A part that the program depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Which one: `journal`, `engine`, `registration`, `bus` or `model`.
    pub name: &'static str,
    /// What is wrong with it, in a sentence that says what that means; none while it is well.
    pub trouble: Option<String>,
}

impl Part {
    /// A part that is well, or in this trouble.
    #[must_use]
    pub fn new(name: &'static str, trouble: Option<String>) -> Self {
        Self { name, trouble }
    }
}
