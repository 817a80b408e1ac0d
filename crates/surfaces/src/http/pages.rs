//! Pages of long lists: how many rows are asked for, and where the next page begins.

use std::{fmt::Display, str::FromStr};

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::http::problem::Problem;

/// How many rows one page has at most.
pub(crate) const ROWS_MAX: usize = 500;
/// How many rows one page has where nothing is said.
pub(crate) const ROWS: usize = 100;
/// The header that says where the next page of a list begins.
const NEXT_PAGE: HeaderName = HeaderName::from_static("x-next-page");

/// How many rows are asked for, and after which place.
pub(crate) fn page_asked<P: FromStr>(
    limit: usize,
    after: Option<&str>,
) -> Result<(usize, Option<P>), Problem> {
    let bad = |words: String| Problem::new(StatusCode::BAD_REQUEST, "bad_query", words);
    if !(1..=ROWS_MAX).contains(&limit) {
        return Err(bad(format!("limit is 1 to {ROWS_MAX}")));
    }
    let place = after.map(str::parse).transpose();
    let place = place.map_err(|_| {
        bad(format!(
            "after is what {NEXT_PAGE} of the page before said; leave it out for the first page"
        ))
    })?;
    Ok((limit, place))
}

/// The header that says where the next page begins, if there is one.
pub(crate) fn next_page(place: Option<impl Display>) -> HeaderMap {
    let value = place.and_then(|place| HeaderValue::from_str(&place.to_string()).ok());
    value.map(|value| (NEXT_PAGE, value)).into_iter().collect()
}
