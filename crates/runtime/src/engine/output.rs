//! Truncates long outputs for the model; the journal keeps them whole.

use planwright_domain::{
    digest::Digest, effect::FileChange, identity::SessionKey, limits, turn::CallResult,
};

use crate::ports::journal::{Journal, JournalError};

/// The result as it is recorded. An output that is longer than that is kept beside it, under its digest; of a difference that is
/// longer than may be recorded, the digests are left.
pub(crate) async fn shortened(
    journal: &dyn Journal,
    identity: &SessionKey,
    mut result: CallResult,
) -> CallResult {
    drop_long_diffs(&mut result.changes);
    if result.output.len() <= limits::TOOL_OUTPUT_BYTES_MAX {
        return result;
    }
    let whole = until(&result.output, limits::KEPT_OUTPUT_BYTES_MAX);
    let kept = match journal.keep_output(identity, whole).await {
        Ok(digest) if whole.len() == result.output.len() => {
            format!("all of it: planwright session output {digest}")
        }
        Ok(digest) => format!(
            "the first {} bytes: planwright session output {digest}",
            limits::KEPT_OUTPUT_BYTES_MAX
        ),
        Err(error) => {
            tracing::warn!(session_identity = %identity, %error, event = "output_not_kept");
            "they could not be kept".into()
        }
    };
    result.output = ends(&result.output, &kept);
    result
}

fn drop_long_diffs(changes: &mut [FileChange]) {
    for change in changes {
        change.diff = change.diff.take().filter(|diff| diff.len() <= limits::DIFF_BYTES_MAX);
    }
}

/// An output that was kept, whole.
pub(crate) async fn whole_output(
    journal: &dyn Journal,
    identity: &SessionKey,
    digest: Digest,
) -> Result<Option<String>, JournalError> {
    let found = journal.output(identity, digest).await?;
    // What was changed at rest is not what was kept.
    Ok(found.filter(|text| Digest::of(text.as_bytes()) == digest))
}

/// The beginning and the end, and between them what is missing: what failed is said last.
fn ends(output: &str, kept: &str) -> String {
    let head = until(output, limits::TOOL_OUTPUT_BYTES_MAX / 4 * 3);
    let mut from = output.len() - limits::TOOL_OUTPUT_BYTES_MAX / 4;
    while !output.is_char_boundary(from) {
        from += 1;
    }
    let (tail, left_out) = (&output[from..], from - head.len());
    format!("{head}\n[{left_out} bytes are left out here; {kept}]\n{tail}")
}

/// The text up to so many bytes, and no half letter.
pub(crate) fn until(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::{drop_long_diffs, ends, until};
    use planwright_domain::{
        digest::Digest,
        effect::FileChange,
        limits::{DIFF_BYTES_MAX, TOOL_OUTPUT_BYTES_MAX as MAX},
    };

    #[test]
    fn a_difference_that_is_too_long_is_left_out_and_the_digests_stay() {
        let change = |bytes: usize| FileChange {
            path: "a".into(),
            before: None,
            after: Digest::of(b"a"),
            diff: Some("+".repeat(bytes)),
        };
        let mut changes = [change(DIFF_BYTES_MAX), change(DIFF_BYTES_MAX + 1)];
        drop_long_diffs(&mut changes);
        let long = FileChange { diff: None, ..change(0) };
        assert_eq!(changes, [change(DIFF_BYTES_MAX), long]);
    }

    #[test]
    fn a_long_output_keeps_both_ends_and_no_half_letter() {
        let long = "ä".repeat(MAX);
        let shown = ends(&long, "all of it: there");
        let (head, rest) = shown.split_once("\n[").expect("a gap");
        let (words, tail) = rest.split_once("]\n").expect("an end");
        assert_eq!(head.len() + tail.len(), MAX);
        assert_eq!(words, format!("{MAX} bytes are left out here; all of it: there"));
        assert_eq!((until("äb", 1), until("äb", 2), until("äb", 9)), ("", "ä", "äb"));
    }
}
