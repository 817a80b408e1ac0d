//! Tokens and logins: what the bearer of a secret may do, listed and taken back.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use planwright_domain::{
    actor::{PersonId, Standing},
    digest::Digest,
};
use planwright_runtime::ports::access::{Grant, OWNER};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    App,
    body::Body,
    dto::time,
    problem::{Problem, Problems},
    who::{self, COOKIE, Caller, decides},
};

/// How long a browser stays logged in.
const LOGIN_MICROS: i64 = 12 * 3_600 * 1_000_000;
/// How long a terminal may decide.
const DECIDING_MICROS: i64 = 15 * 60 * 1_000_000;

/// The longest name of a person.
const PERSON_BYTES_MAX: usize = 80;

/// A login.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The passphrase that was chosen at the first run.
    pub passphrase: String,
}

/// A wish for a token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenWish {
    /// What its owner calls it.
    pub name: String,
    /// The passphrase: with it the token may decide, for a quarter of an hour.
    pub passphrase: String,
    /// Who the bearer is; the owner of the installation, if nobody is named. Sessions belong to who opens them.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 80)]
    pub person: Option<String>,
    /// Whether the bearer may only speak; the token then lasts until it is taken back.
    #[serde(default)]
    pub speaks_only: bool,
}

/// A token, told once.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct TokenGiven {
    /// Its name in lists.
    pub id: Uuid,
    /// The secret. It is not kept; it cannot be told again.
    pub token: String,
    /// When it ends by itself.
    pub expires: Option<String>,
}

/// A token in a list.
#[derive(Serialize, ToSchema)]
pub struct TokenRow {
    /// Its name in lists.
    pub id: Uuid,
    /// What its owner calls it.
    pub name: String,
    /// Who the bearer is.
    pub person: String,
    /// Whether the bearer may decide.
    pub decides: bool,
    /// When it was given.
    pub created: String,
    /// When it ends by itself.
    pub expires: Option<String>,
}

/// A browser logs in with the passphrase and gets a cookie that may decide.
#[utoipa::path(post, path = "/api/login", security(()), request_body = Login, responses((status = 204), Problems))]
pub(crate) async fn login(
    State(app): State<Arc<App>>,
    Body(login): Body<Login>,
) -> Result<Response, Problem> {
    let (secret, _) = {
        let (standing, micros) = (Standing::Decides, Some(LOGIN_MICROS));
        unlocked(&app, &login.passphrase, "browser", OWNER, standing, micros).await?
    };
    let secure = if app.settings.secure_cookies { "; Secure" } else { "" };
    let cookie = format!(
        "{COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}{secure}",
        LOGIN_MICROS / 1_000_000
    );
    let mut response = StatusCode::NO_CONTENT.into_response();
    let value = HeaderValue::from_str(&cookie).map_err(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "cookie", "no cookie could be made")
    })?;
    response.headers_mut().insert(header::SET_COOKIE, value);
    Ok(response)
}

/// A terminal gives the passphrase and gets a token that may decide for a while.
#[utoipa::path(post, path = "/api/tokens", security(()), request_body = TokenWish, responses((status = 201, body = TokenGiven), Problems))]
pub(crate) async fn give_token(
    State(app): State<Arc<App>>,
    Body(wish): Body<TokenWish>,
) -> Result<(StatusCode, Json<TokenGiven>), Problem> {
    let person = wish.person.as_deref().unwrap_or(OWNER);
    if !(1..=PERSON_BYTES_MAX).contains(&person.len()) {
        let words = format!("a person has a name of 1 to {PERSON_BYTES_MAX} bytes");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_person", words));
    }
    let (standing, micros) = if wish.speaks_only {
        (Standing::Speaks, None)
    } else {
        (Standing::Decides, Some(DECIDING_MICROS))
    };
    let (token, grant) =
        unlocked(&app, &wish.passphrase, &wish.name, person, standing, micros).await?;
    Ok((
        StatusCode::CREATED,
        Json(TokenGiven { id: grant.id, token, expires: grant.expires.map(time) }),
    ))
}

/// The tokens that were given out.
#[utoipa::path(get, path = "/api/tokens", responses((status = 200, body = [TokenRow]), Problems))]
pub(crate) async fn list_tokens(
    State(app): State<Arc<App>>,
    _: Caller,
) -> Result<Json<Vec<TokenRow>>, Problem> {
    let row = |grant: Grant| TokenRow {
        id: grant.id,
        name: grant.name,
        person: grant.person.0,
        decides: decides(grant.standing),
        created: time(grant.created),
        expires: grant.expires.map(time),
    };
    Ok(Json(app.access.list().await?.into_iter().map(row).collect()))
}

/// Takes a token back.
#[utoipa::path(delete, path = "/api/tokens/{id}", params(("id" = Uuid, Path, description = "The token")), responses((status = 204), Problems))]
pub(crate) async fn revoke_token(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let missing = || {
        Problem::new(
            StatusCode::NOT_FOUND,
            "no_such_token",
            "there is no such token; GET /api/tokens lists them",
        )
    };
    let id = Uuid::parse_str(&id).map_err(|_| missing())?;
    if id != caller.grant && !decides(caller.person.standing) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "may_not_decide",
            "taking back another token needs the passphrase",
        ));
    }
    if app.access.revoke(id).await? { Ok(StatusCode::NO_CONTENT) } else { Err(missing()) }
}

/// Ends a login.
#[utoipa::path(post, path = "/api/logout", responses((status = 204), Problems))]
pub(crate) async fn logout(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if who::cookie(&headers).is_some() {
        app.access.revoke(caller.grant).await?;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let gone =
        HeaderValue::from_static("planwright=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    response.headers_mut().insert(header::SET_COOKIE, gone);
    Ok(response)
}

async fn unlocked(
    app: &App,
    passphrase: &str,
    name: &str,
    person: &str,
    standing: Standing,
    micros: Option<i64>,
) -> Result<(String, Grant), Problem> {
    app.limits.login()?;
    if !app.access.is_passphrase(passphrase).await? {
        return Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "wrong_passphrase",
            "the passphrase is not the one that was chosen",
        ));
    }
    let now = app.runtime.ports.clock.now();
    let grant = Grant {
        id: Uuid::now_v7(),
        name: name.chars().take(80).collect(),
        person: PersonId(person.into()),
        standing,
        created: now,
        expires: micros.map(|micros| now.plus_micros(micros)),
    };
    let secret = new_secret();
    app.access.keep(grant.clone(), Digest::of(secret.as_bytes())).await?;
    Ok((secret, grant))
}

/// A secret of 244 random bits.
#[must_use]
pub fn new_secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
