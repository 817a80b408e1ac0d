//! What the installation knows to be secret: its value is replaced before anything that a tool gave is stored or told.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
};

/// The shortest value that is replaced: a shorter one may be a word that stands anywhere.
const BYTES_MIN: usize = 12;

/// Values that are secret, and what each is called.
#[derive(Default)]
pub struct Secrets {
    names: RwLock<BTreeMap<String, String>>,
}

impl Secrets {
    /// These values, each with its name.
    pub fn new(named: impl IntoIterator<Item = (String, String)>) -> Self {
        let secrets = Self::default();
        for (name, value) in named {
            secrets.add(&name, &value);
        }
        secrets
    }

    /// One more. A value that is too short to tell it from a word is left out.
    pub fn add(&self, name: &str, value: &str) {
        let value = value.trim();
        if value.len() >= BYTES_MIN {
            let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
            names.insert(value.to_owned(), name.to_owned());
        }
    }

    /// The text with the name of each secret instead of its value. Longer ones first: one may be a part of another.
    #[must_use]
    pub fn hide(&self, text: String) -> String {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<_> = names.iter().filter(|(value, _)| text.contains(*value)).collect();
        found.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        let hide = |text: String, (value, name): &(&String, &String)| {
            text.replace(*value, &format!("⟨the value of {name} is not shown⟩"))
        };
        found.iter().fold(text, hide)
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let many = self.names.read().unwrap_or_else(PoisonError::into_inner).len();
        write!(f, "Secrets({many})")
    }
}

#[cfg(test)]
mod tests {
    use super::Secrets;

    #[test]
    fn a_secret_is_replaced_wherever_it_stands_and_a_short_value_nowhere() {
        let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let secrets = Secrets::new([
            named("KEY", "sk-0123456789ab"),
            named("LONGER", "sk-0123456789abcdef"),
            named("SHORT", "database"),
        ]);
        let text = "a=sk-0123456789abcdef b=sk-0123456789ab\nsk-0123456789ab database".to_owned();
        let hidden = secrets.hide(text);
        assert_eq!(
            hidden,
            "a=⟨the value of LONGER is not shown⟩ b=⟨the value of KEY is not shown⟩\n\
             ⟨the value of KEY is not shown⟩ database"
        );
        assert_eq!(secrets.hide(hidden.clone()), hidden);
        assert!(!format!("{secrets:?}").contains("sk-"));
        secrets.add("LATER", "  chosen-later-on\n");
        assert!(!secrets.hide("chosen-later-on".into()).contains("chosen-later"));
    }
}
