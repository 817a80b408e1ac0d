//! The checksum of an answer, which is stored in columns of its own.

use crate::{
    FormatError,
    body::{Place, checksum_of, feed_bytes},
};

/// An answer as its columns hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerColumns {
    /// The stream's version before.
    pub before: i64,
    /// The stream's version after.
    pub version: i64,
    /// The refusal: its code and its arguments as JSON.
    pub refusal: Option<String>,
}

impl AnswerColumns {
    /// The checksum that is stored beside them.
    #[must_use]
    pub fn checksum(&self, session: &str, command: &[u8]) -> i64 {
        let mut crc = checksum_of(&Place::Answer { session, command });
        crc.update(&self.before.to_le_bytes());
        crc.update(&self.version.to_le_bytes());
        match &self.refusal {
            None => crc.update(&[0]),
            Some(refusal) => {
                crc.update(&[1]);
                feed_bytes(&mut crc, refusal.as_bytes());
            }
        }
        crc.finalize().cast_signed()
    }

    /// Whether these are the columns that were stored.
    pub fn check(&self, session: &str, command: &[u8], checksum: i64) -> Result<(), FormatError> {
        if self.checksum(session, command) == checksum {
            return Ok(());
        }
        let what = Place::Answer { session, command }.to_string();
        Err(FormatError::Corrupt { what, why: "its checksum does not fit".into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_corrupt_if_anything_in_it_is_another() {
        let whole =
            AnswerColumns { before: 1, version: 2, refusal: Some("{\"plan\":\"none\"}".into()) };
        let sum = whole.checksum("cli:talk-01", b"0123456789abcdef");
        assert_eq!(whole.check("cli:talk-01", b"0123456789abcdef", sum), Ok(()));
        let changed = [
            AnswerColumns { before: 0, ..whole.clone() },
            AnswerColumns { version: 3, ..whole.clone() },
            AnswerColumns { refusal: None, ..whole.clone() },
            AnswerColumns { refusal: Some(String::new()), ..whole.clone() },
        ];
        for columns in changed {
            assert!(columns.check("cli:talk-01", b"0123456789abcdef", sum).is_err());
        }
        assert_eq!(sum, 1_466_101_811_629_548_435, "the form of an answer does not change");
        assert!(whole.check("cli:talk-02", b"0123456789abcdef", sum).is_err());
        assert!(whole.check("cli:talk-01", b"0123456789abcdeF", sum).is_err());
        assert!(whole.check("cli:talk-01", b"0123456789abcdef", sum ^ 1).is_err());
    }
}
