//! Times as the API writes them.

use planwright_domain::time::Time;

/// A time as it is published.
pub(crate) fn time(at: Time) -> String {
    at.to_string()
}
