//! Which model is asked: looked at, tried out with one real call, and chosen.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use planwright_runtime::ports::connection::{Connection, ModelWish, Tried};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    App,
    body::Body,
    problem::{Problem, Problems},
    who::{Caller, decides},
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
    /// The address of an OpenAI-compatible server, up to and without `/chat/completions`.
    #[serde(default)]
    pub url: String,
    /// The name of the model there.
    #[serde(default)]
    pub name: String,
    /// The key; empty for servers that want none.
    #[serde(default)]
    pub api_key: String,
    /// What a million tokens cost that the model reads, in dollars.
    pub price_in: Option<f64>,
    /// What a million tokens cost that the model writes, in dollars.
    pub price_out: Option<f64>,
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
        let (price_in, price_out) = (new.price_in, new.price_out);
        Self { url: new.url, name: new.name, api_key, price_in, price_out }
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
            name: app.runtime.ports.model.name(),
            url: None,
            is_chosen: true,
            is_demo: false,
            is_changeable: false,
        },
    })
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
