//! What Tab completes in a chat: the commands as `/help` lists them, and the keys of sessions after `/switch`.

use planwright_domain::chat::HELP;

/// The command that takes the key of a session.
const SWITCH: &str = "/switch ";

/// The words that may stand at the end of this text, and where they begin in it.
#[must_use]
pub fn complete(text: &str, sessions: &[String]) -> (usize, Vec<String>) {
    let start = text.rfind(' ').map_or(0, |space| space + 1);
    if let Some(key) = text.strip_prefix(SWITCH) {
        let keys = sessions.iter().filter(|known| known.starts_with(key)).cloned();
        return (SWITCH.len(), keys.collect());
    }
    let mut words: Vec<String> = Vec::new();
    for phrase in HELP.iter().flat_map(|(usage, _)| phrases(usage)) {
        if phrase.starts_with(text) && text.starts_with('/') {
            let word = phrase[start..].split(' ').next().unwrap_or_default().to_owned();
            if !words.contains(&word) {
                words.push(word);
            }
        }
    }
    (start, words)
}

/// The commands that a line of the help stands for, word by word up to what a person fills in:
/// `/goal done|drop <n>` is `/goal done` and `/goal drop`.
fn phrases(usage: &str) -> Vec<String> {
    usage.split(" · ").flat_map(expanded).collect()
}

fn expanded(usage: &str) -> Vec<String> {
    let mut phrases = vec![String::new()];
    for word in usage.split(' ') {
        let choice = word.trim_matches(['[', ']']);
        let is_optional = choice.len() < word.len();
        // What stands alone in brackets is a place to fill in, as often as not; alternatives are words.
        let is_literal =
            !choice.contains(['<', '…', '=']) && (!is_optional || choice.contains('|'));
        if !is_literal {
            break;
        }
        let words: Vec<_> = choice.split('|').collect();
        phrases = phrases
            .iter()
            .flat_map(|phrase| words.iter().map(move |word| format!("{phrase} {word}")))
            .map(|phrase| phrase.trim_start().to_owned())
            .collect();
    }
    phrases.retain(|phrase| phrase.starts_with('/'));
    phrases
}

#[cfg(test)]
mod tests {
    use super::complete;

    fn words(text: &str) -> Vec<String> {
        complete(text, &["talk-0001".into(), "talk-0002".into(), "other-01".into()]).1
    }

    #[test]
    fn commands_are_completed_word_by_word_as_the_help_lists_them() {
        assert_eq!(words("/pl"), ["/plan"]);
        assert_eq!(words("/plan s"), ["status", "show", "stop", "skip", "settle"]);
        assert_eq!(words("/plan on "), ["document", "collect", "build"]);
        assert_eq!(words("/goal d"), ["done", "drop"]);
        assert_eq!(words("/all"), ["/allow"]);
        assert!(
            words("/").contains(&"/help".to_owned()) && words("/").contains(&"/new".to_owned())
        );
        assert_eq!(complete("/plan ap", &[]).0, "/plan ".len());
    }

    #[test]
    fn sessions_are_completed_by_their_keys_and_messages_are_not_completed() {
        assert_eq!(words("/switch talk"), ["talk-0001", "talk-0002"]);
        assert_eq!(words("/switch x"), [""; 0]);
        assert_eq!(words("please plan"), [""; 0]);
        assert_eq!(words(""), [""; 0]);
    }
}
