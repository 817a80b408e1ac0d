//! Tokens and logins: what the bearer of a secret may do, listed and taken back.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use planwright_domain::{
    actor::{OWNER, PersonId, Standing},
    digest::Digest,
    id::GrantId,
    identity::ChannelType,
    installation::{AccountRefusal, named_well},
};
use planwright_runtime::{
    commands::grants::{Bearer, Given, Wanted},
    ports::access::Ticket,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::http::{
    app::App,
    auth::{
        self, COOKIE, Caller, Tries, decides, granted,
        people::{RoleName, notice, role_names},
    },
    body::Body,
    problem::{Problem, Problems},
    time::time,
};

/// How long a browser stays logged in.
const LOGIN_MICROS: i64 = 12 * 3_600 * 1_000_000;
/// How long a terminal may decide.
const DECIDING_MICROS: i64 = 15 * 60 * 1_000_000;

/// How long a ticket lasts.
const TICKET_MICROS: i64 = 30 * 1_000_000;

/// A login.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The person's passphrase: with it the login may do what their account may.
    #[serde(default)]
    pub passphrase: Option<String>,
    /// A token instead: the login may do what its bearer may, and ends when it ends.
    #[serde(default)]
    pub token: Option<String>,
    /// The account; the owner's, if none is named.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 80)]
    pub person: Option<String>,
}

/// Who asks, and what this installation is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Me {
    /// Who.
    pub person: String,
    /// Whether they may decide from here.
    pub decides: bool,
    /// Where they stand, as it is recorded with what they decide.
    pub surface: String,
    /// By which grant they are known.
    pub grant: Uuid,
    /// What their account may do.
    pub roles: BTreeSet<RoleName>,
    /// Whether the owner chose a passphrase; without one nobody can decide.
    pub passphrase_chosen: bool,
    /// What everyone should know: a passphrase was reset.
    pub notice: Option<String>,
    /// The directories that a new session may work in; the one that it has without a choice first.
    pub roots: Vec<String>,
    /// The version of the program.
    pub version: String,
}

/// A wish for a token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenWish {
    /// What its owner calls it.
    pub name: String,
    /// The account's passphrase: with it the token may do what the account may, for a quarter of an hour.
    pub passphrase: String,
    /// The account; the owner's, if none is named. Sessions belong to who opens them.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 80)]
    pub person: Option<String>,
    /// Whether the bearer may only speak; the token then lasts until it is taken back.
    #[serde(default)]
    pub speaks_only: bool,
}

/// A login that was made.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoggedIn {
    /// The page's key, told once. The page keeps it where only its own origin reads, and sends it as `Planwright-Page-Key`.
    pub page_key: String,
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

/// Who asks, and what this installation is.
#[utoipa::path(get, path = "/api/me", responses((status = 200, body = Me), Problems))]
pub(crate) async fn who_am_i(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Me>, Problem> {
    let installation = app.accounts.installation().await?;
    let account = installation.account(&caller.person.id);
    Ok(Json(Me {
        decides: decides(caller.person.standing),
        roles: account.map(role_names).unwrap_or_default(),
        person: caller.person.id.0,
        surface: caller.person.surface.0,
        grant: caller.grant.0,
        passphrase_chosen: installation.is_chosen(),
        notice: notice(&installation, app.queries.now()),
        roots: app.queries.roots().iter().map(|root| root.0.clone()).collect(),
        version: env!("CARGO_PKG_VERSION").into(),
    }))
}

/// A browser logs in and gets a cookie, and a key for its page: with the passphrase it may decide, with a token it may what
/// the token may.
#[utoipa::path(post, path = "/api/login", security(()), request_body = Login, responses((status = 200, body = LoggedIn), Problems))]
pub(crate) async fn login(
    State(app): State<Arc<App>>,
    tries: Tries,
    Body(login): Body<Login>,
) -> Result<Response, Problem> {
    let person = PersonId(login.person.unwrap_or_else(|| OWNER.into()));
    named_well(&person)?;
    let wanted = match (&login.passphrase, &login.token) {
        (Some(passphrase), None) => {
            let wanted = Wanted::new("browser", person, Standing::Decides, ChannelType::Web);
            unlocked(&app, &tries, passphrase, wanted, Some(LOGIN_MICROS)).await?
        }
        (None, Some(token)) => {
            let bearer = granted(&app, &tries, token).await?;
            let day = app.queries.now().plus_micros(LOGIN_MICROS);
            Wanted {
                expires: Some(bearer.expires.map_or(day, |end| end.min(day))),
                authenticated: bearer
                    .authenticated
                    .zip(Some(app.accounts.installation().await?.version)),
                token: Some(bearer.id),
                ..Wanted::new("browser", bearer.person, bearer.standing, ChannelType::Web)
            }
        }
        (Some(_), Some(_)) | (None, None) => {
            let words = "log in with the passphrase or with a token";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_login", words));
        }
    };
    let page_key = app.commands.new_secret();
    let digest = Some(Digest::of(page_key.as_bytes()));
    let Given { secret, .. } = app.accounts.give(Wanted { page_key: digest, ..wanted }).await?;
    let secure = if app.settings.secure_cookies { "; Secure" } else { "" };
    let cookie = format!(
        "{COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}{secure}",
        LOGIN_MICROS / 1_000_000
    );
    let mut response = Json(LoggedIn { page_key }).into_response();
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
    tries: Tries,
    Body(wish): Body<TokenWish>,
) -> Result<(StatusCode, Json<TokenGiven>), Problem> {
    let person = PersonId(wish.person.unwrap_or_else(|| OWNER.into()));
    named_well(&person)?;
    let (standing, micros) = if wish.speaks_only {
        (Standing::Speaks, None)
    } else {
        (Standing::Decides, Some(DECIDING_MICROS))
    };
    let surface = if wish.speaks_only { ChannelType::Api } else { ChannelType::Cli };
    let wanted = Wanted::new(&wish.name, person, standing, surface);
    let wanted = unlocked(&app, &tries, &wish.passphrase, wanted, micros).await?;
    let expires = wanted.expires.map(time);
    let Given { id, secret: token } = app.accounts.give(wanted).await?;
    Ok((StatusCode::CREATED, Json(TokenGiven { id: id.0, token, expires })))
}

/// A ticket for one stream.
#[derive(Debug, Serialize, ToSchema)]
pub struct TicketGiven {
    /// To be sent as `ticket` in the query of a stream, within half a minute, once.
    pub ticket: String,
}

/// A page asks for a ticket: a browser sends no header with a WebSocket or with server-sent events.
#[utoipa::path(post, path = "/api/tickets", responses((status = 201, body = TicketGiven), Problems))]
pub(crate) async fn give_ticket(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<(StatusCode, Json<TicketGiven>), Problem> {
    if caller.channel != ChannelType::Web {
        let words = "a ticket is for a page; open the stream with your token";
        return Err(Problem::new(StatusCode::FORBIDDEN, "not_a_page", words));
    }
    let (ticket, created) = (app.commands.new_secret(), app.queries.now());
    let secret = Digest::of(ticket.as_bytes());
    let expires = created.plus_micros(TICKET_MICROS);
    app.access.keep_ticket(Ticket { secret, grant: caller.grant, created, expires }).await?;
    Ok((StatusCode::CREATED, Json(TicketGiven { ticket })))
}

/// The caller's own tokens and logins; everyone's, if the caller manages people.
#[utoipa::path(get, path = "/api/tokens", responses((status = 200, body = [TokenRow]), Problems))]
pub(crate) async fn list_tokens(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Vec<TokenRow>>, Problem> {
    let row = |grant: Bearer| TokenRow {
        id: grant.id.0,
        name: grant.name,
        person: grant.person.0,
        decides: decides(grant.standing),
        created: time(grant.created),
        expires: grant.expires.map(time),
    };
    let installation = app.accounts.installation().await?;
    let seen: BTreeSet<_> = installation.seen_by(&caller.person.id).map(|(seen, _)| seen).collect();
    let grants = app.accounts.bearers().await?.into_iter();
    Ok(Json(grants.filter(|grant| seen.contains(&grant.person)).map(row).collect()))
}

/// Takes a token back.
#[utoipa::path(delete, path = "/api/tokens/{id}", params(("id" = Uuid, Path, description = "The token")), responses((status = 204), Problems))]
pub(crate) async fn revoke_token(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let id = Uuid::parse_str(&id).map_err(|_| AccountRefusal::NoSuchGrant)?;
    app.accounts.revoke(GrantId(id), caller.grant).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a login.
#[utoipa::path(post, path = "/api/logout", responses((status = 204), Problems))]
pub(crate) async fn logout(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !auth::cookies(&headers).is_empty() {
        app.accounts.revoke(caller.grant, caller.grant).await?;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let gone =
        HeaderValue::from_static("planwright=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    response.headers_mut().insert(header::SET_COOKIE, gone);
    Ok(response)
}

/// The same, for whoever knows the passphrase of its account; good for so long.
async fn unlocked(
    app: &App,
    tries: &Tries,
    passphrase: &str,
    wanted: Wanted,
    micros: Option<i64>,
) -> Result<Wanted, Problem> {
    let _hold = tries.may_try(app, Some(&wanted.person))?;
    let known = app.accounts.authenticate(&wanted.person, passphrase).await?;
    let now = app.queries.now();
    Ok(Wanted {
        expires: micros.map(|micros| now.plus_micros(micros)),
        authenticated: micros.map(|_| (now, known.installation.version)),
        standing: wanted.standing.min(known.standing),
        ..wanted
    })
}
