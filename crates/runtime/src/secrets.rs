//! What the installation knows to be secret: its value is replaced before anything that a tool gave is stored or told.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
};

use planwright_domain::turn::CallResult;

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

    /// The text with the name of each secret instead of its value.
    #[must_use]
    pub fn hide(&self, text: String) -> String {
        self.replace(text, str::to_owned)
    }

    /// What a tool gave, without the values in what it says and in what it made of files.
    #[must_use]
    pub fn hide_in(&self, mut result: CallResult) -> CallResult {
        result.output = self.hide(result.output);
        for change in &mut result.changes {
            change.path = self.hide(std::mem::take(&mut change.path));
            change.diff = change.diff.take().map(|diff| self.hide_lines(diff));
        }
        result
    }

    /// A difference without the values. Of a value of several lines some may have changed: each of them that could not be any
    /// other line is replaced, wherever it stands.
    fn hide_lines(&self, diff: String) -> String {
        let mut diff = diff;
        for sign in ["\n ", "\n-", "\n+"] {
            diff = self.replace(diff, |value| value.replace('\n', sign));
        }
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let parts =
            names.iter().filter(|(value, _)| value.contains('\n')).flat_map(|(value, name)| {
                let lines = value.lines().map(str::trim);
                // What stands around a key is no secret, and stands around every key.
                let secret =
                    lines.filter(|line| line.len() >= BYTES_MIN && !line.starts_with("-----"));
                secret.map(move |line| (line, name))
            });
        parts.fold(diff, |diff, (line, name)| {
            diff.replace(line, &format!("⟨a part of the value of {name} is not shown⟩"))
        })
    }

    /// Replaces the values as they stand in this text. Longer ones first: one may be a part of another.
    fn replace(&self, text: String, written: impl Fn(&str) -> String) -> String {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let written = names.iter().map(|(value, name)| (written(value), name));
        let mut found: Vec<_> = written.filter(|(value, _)| text.contains(value)).collect();
        found.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        found.iter().fold(text, |text, (value, name)| {
            text.replace(value, &format!("⟨the value of {name} is not shown⟩"))
        })
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
    use planwright_domain::{digest::Digest, effect::FileChange, turn::CallResult};

    use super::Secrets;

    #[test]
    fn a_secret_is_replaced_in_what_became_of_a_file_also_where_it_has_several_lines() {
        let key = "-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----";
        let secrets = Secrets::new([("PEM".to_owned(), key.to_owned())]);
        let signed = |sign| key.replace('\n', &format!("\n{sign}"));
        let diff = format!("@@ -1,3 +1,3 @@\n-{}\n+{}\n", signed('-'), signed('+'));
        let change = FileChange {
            path: "a".into(),
            before: None,
            after: Digest::of(b"a"),
            diff: Some(diff),
        };
        let result = CallResult { changes: vec![change], ..CallResult::done(format!("is {key}")) };
        let hidden = secrets.hide_in(result);
        assert_eq!(hidden.output, "is ⟨the value of PEM is not shown⟩");
        let diff =
            "@@ -1,3 +1,3 @@\n-⟨the value of PEM is not shown⟩\n+⟨the value of PEM is not shown⟩\n";
        assert_eq!(hidden.changes[0].diff.as_deref(), Some(diff));
        // Only the middle of it was changed: what stands around it is there before and after.
        let key = "-----BEGIN KEY-----\nabcdefghijkl\nmnopqrstuvwx\n-----END KEY-----";
        let secrets = Secrets::new([("PEM".to_owned(), key.to_owned())]);
        let diff =
            "@@ -1,4 +1,3 @@\n -----BEGIN KEY-----\n-abcdefghijkl\n-mnopqrstuvwx\n+REDACTED\n";
        let hidden = secrets.hide_lines(diff.to_owned());
        assert!(!hidden.contains("abcdefghijkl") && !hidden.contains("mnopqrstuvwx"), "{hidden}");
        assert!(hidden.contains(" -----BEGIN KEY-----\n") && hidden.contains("\n+REDACTED\n"));
    }

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
