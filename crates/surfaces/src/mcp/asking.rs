//! Asking the person at the client to look: a link and a digest, never a decision. What they answer there decides
//! nothing; it is not even read.

use planwright_domain::agent::PLAN_ASK;
use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, ElicitRequest, ElicitRequestParams, InputRequest,
        InputRequiredResult, ProtocolVersion,
    },
    service::RequestContext,
};

/// The name of what is asked for, in an answer that asks first.
const LOOK: &str = "look";

/// The request that a client shows to its person.
#[must_use]
pub fn look(url: &str, digest: &str) -> ElicitRequestParams {
    ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: format!(
            "A plan waits for your decision (digest {digest}). Open it to read and decide; answering here decides nothing."
        ),
        url: url.into(),
        elicitation_id: digest.into(),
    }
}

/// Whether the client can show a link to its person.
#[must_use]
pub fn shows_links(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities().and_then(|client| client.elicitation);
    capabilities.is_some_and(|elicitation| elicitation.url.is_some())
}

/// In the newest protocol a call that asks a person is answered with what to show first, and asked again.
pub fn first<'a>(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    url: impl Fn() -> String + 'a,
) -> Option<impl FnOnce(&str) -> InputRequiredResult + 'a> {
    let newest = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    let asks = request.name == PLAN_ASK && request.input_responses.is_none();
    (newest && asks && shows_links(context)).then_some(move |digest: &str| {
        let request = ElicitRequest::new(look(&url(), digest));
        let requests = [(LOOK.to_owned(), InputRequest::Elicitation(request))].into();
        InputRequiredResult::from_input_requests(requests)
    })
}
