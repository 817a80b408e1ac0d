//! Which model is asked: looked at, tried out with one real call, and chosen.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use planwright_runtime::ports::connection::{Connection, Found, ModelWish, Tried};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::{
    app::App,
    auth::{Caller, decides},
    body::Body,
    problem::{Problem, Problems},
};

/// The model that is asked now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelDto {
    /// Its name, for people.
    pub name: String,
    /// Where it is; none for the demo.
    pub url: Option<String>,
    /// Whether somebody chose it.
    pub is_chosen: bool,
    /// Whether it is the demo.
    pub is_demo: bool,
    /// Whether it can be changed here; a cluster's is set by its operator.
    pub is_changeable: bool,
}

/// A model to try or to choose.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewModel {
    /// Whether the demo is meant: a script, without a network.
    #[serde(default)]
    pub demo: bool,
    /// The format that its server speaks: `openai`, `responses`, `anthropic`, `gemini` or `ollama`; told by the address, if none is named.
    #[serde(default)]
    pub wire: Option<String>,
    /// The address of its server, up to and without the path of the call.
    #[serde(default)]
    pub url: String,
    /// The name of the model there.
    #[serde(default)]
    pub name: String,
    /// The key; empty for servers that want none.
    #[serde(default)]
    pub api_key: String,
    /// The environment variable of the server that holds the key, as `/api/model/found` names it.
    #[serde(default)]
    pub key_from: Option<String>,
    /// What a million tokens cost that the model reads, in dollars.
    pub price_in: Option<f64>,
    /// What a million tokens cost that the model writes, in dollars.
    pub price_out: Option<f64>,
}

/// A model that is likely to be there.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundDto {
    /// What people call where it is.
    pub place: String,
    /// Its address.
    pub url: String,
    /// Its name there.
    pub name: String,
    /// The environment variable of the server that holds its key; the key itself is never told.
    pub key_from: Option<String>,
}

impl From<Found> for FoundDto {
    fn from(found: Found) -> Self {
        Self { place: found.place, url: found.url, name: found.name, key_from: found.key_from }
    }
}

/// How a model answered.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriedDto {
    /// Its words.
    pub words: String,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// What that cost, in millionths of a dollar, if the price is known.
    pub cost_micros: Option<u64>,
}

impl From<Tried> for TriedDto {
    fn from(tried: Tried) -> Self {
        Self { words: tried.words, took_ms: tried.took_ms, cost_micros: tried.cost_micros }
    }
}

impl From<NewModel> for ModelWish {
    fn from(new: NewModel) -> Self {
        let api_key = Some(new.api_key).filter(|key| !key.trim().is_empty());
        let NewModel { wire, url, name, key_from, price_in, price_out, .. } = new;
        Self { wire, url, name, api_key, key_from, price_in, price_out }
    }
}

/// The model that is asked now. Its key is never told.
#[utoipa::path(get, path = "/api/model", responses((status = 200, body = ModelDto), Problems))]
pub(crate) async fn get_model(State(app): State<Arc<App>>, _: Caller) -> Json<ModelDto> {
    Json(match &app.connection {
        Some(connection) => {
            let connected = connection.connected();
            ModelDto {
                name: connected.name,
                url: connected.url,
                is_chosen: connected.is_chosen,
                is_demo: connected.is_demo,
                is_changeable: true,
            }
        }
        None => ModelDto {
            name: app.queries.model_name(),
            url: None,
            is_chosen: true,
            is_demo: false,
            is_changeable: false,
        },
    })
}

/// The models that are likely to be there: whose keys the server's environment holds, or that run beside it.
#[utoipa::path(get, path = "/api/model/found", responses((status = 200, body = [FoundDto]), Problems))]
pub(crate) async fn found_models(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Vec<FoundDto>>, Problem> {
    let found = changeable(&app, &caller)?.found().await;
    Ok(Json(found.into_iter().map(FoundDto::from).collect()))
}

/// Asks a model one thing, and says how it answered. Nothing is changed.
#[utoipa::path(post, path = "/api/model/try", request_body = NewModel, responses((status = 200, body = TriedDto), Problems))]
pub(crate) async fn try_model(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(new): Body<NewModel>,
) -> Result<Json<TriedDto>, Problem> {
    let connection = changeable(&app, &caller)?;
    Ok(Json(connection.try_out(&new.into()).await.map_err(not_answered)?.into()))
}

/// Asks a model one thing, and if it answers, it is the one from now on.
#[utoipa::path(put, path = "/api/model", request_body = NewModel, responses((status = 200, body = TriedDto), Problems))]
pub(crate) async fn choose_model(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(new): Body<NewModel>,
) -> Result<Json<TriedDto>, Problem> {
    let connection = changeable(&app, &caller)?;
    if new.demo {
        connection.choose_demo().await.map_err(not_answered)?;
        let words = connection.connected().name;
        return Ok(Json(TriedDto { words, took_ms: 0, cost_micros: Some(0) }));
    }
    Ok(Json(connection.choose(new.into()).await.map_err(not_answered)?.into()))
}

fn changeable<'a>(app: &'a App, caller: &Caller) -> Result<&'a dyn Connection, Problem> {
    if !decides(caller.person.standing) {
        let words = "which model is asked is a decision; log in with the passphrase";
        return Err(Problem::new(StatusCode::FORBIDDEN, "may_not_decide", words));
    }
    app.connection.as_deref().ok_or_else(|| {
        let words = "the model is set in the configuration here; ask who runs this installation";
        Problem::new(StatusCode::CONFLICT, "model_is_set", words)
    })
}

fn not_answered(words: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "model_did_not_answer", words)
}
