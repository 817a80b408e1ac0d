//! Times as they are published.

use planwright_domain::time::Time;
use planwright_format::mapping::Form;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::time::time;

/// When something happened or will happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Timestamp(Time);

impl From<Timestamp> for String {
    fn from(at: Timestamp) -> Self {
        time(at.0)
    }
}

impl TryFrom<String> for Timestamp {
    type Error = jiff::Error;

    fn try_from(text: String) -> Result<Self, jiff::Error> {
        text.parse::<jiff::Timestamp>().map(|at| Self(Time(at.as_microsecond())))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

impl Form for Timestamp {
    type Domain = Time;

    fn of(at: &Time) -> Self {
        Self(*at)
    }

    fn domain(self) -> Time {
        self.0
    }
}
