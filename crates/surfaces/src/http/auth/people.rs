//! People: who uses the installation, what each may do, and the passphrase that each chose.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use planwright_domain::{
    actor::PersonId,
    installation::{Account, AccountRefusal, Installation, Role},
    time::Time,
};
use planwright_runtime::commands::accounts::{AccountError, Link};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::{
    app::App,
    auth::{Caller, Tries, granted},
    body::Body,
    problem::{Problem, Problems},
    time::time,
};

/// A passphrase to choose: with an invitation, or the first one with the token of the data directory.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassphrase {
    /// At least 8 characters.
    pub passphrase: String,
    /// The secret of the link that was given to the person: it works once.
    #[serde(default)]
    pub invitation: Option<String>,
    /// The token of the data directory: whoever can read it may choose the owner's first passphrase.
    #[serde(default)]
    pub token: Option<String>,
}

/// A passphrase instead of another one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OtherPassphrase {
    /// The current one.
    pub old: String,
    /// The new one, of at least 8 characters.
    pub passphrase: String,
}

/// Whose passphrase was chosen.
#[derive(Serialize, ToSchema)]
pub struct PassphraseOf {
    /// Who.
    pub person: String,
}

/// What somebody may do: `decide` on plans and calls, manage people as `admin`; everyone may `speak`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoleName {
    /// Read, talk and stop.
    Speak,
    /// Decide.
    Decide,
    /// Manage people.
    Admin,
}

impl From<Role> for RoleName {
    fn from(role: Role) -> Self {
        match role {
            Role::Speak => Self::Speak,
            Role::Decide => Self::Decide,
            Role::Admin => Self::Admin,
        }
    }
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Speak => Self::Speak,
            RoleName::Decide => Self::Decide,
            RoleName::Admin => Self::Admin,
        }
    }
}

/// A person to add.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPerson {
    /// Their name, which others read beside what they decide.
    #[schema(min_length = 1, max_length = 80)]
    pub name: String,
    /// What they may do.
    #[serde(default)]
    pub roles: BTreeSet<RoleName>,
}

/// What somebody may do from now on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRoles {
    /// All of it.
    pub roles: BTreeSet<RoleName>,
}

/// A person in a list.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonRow {
    /// Who.
    pub name: String,
    /// What they may do.
    pub roles: BTreeSet<RoleName>,
    /// Whether they chose a passphrase.
    pub has_passphrase: bool,
    /// Until when the link works that they were given.
    pub invited_until: Option<String>,
}

/// A link with which somebody chooses a passphrase, told once.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct InvitationGiven {
    /// The link. It works once.
    pub link: String,
    /// Until when.
    pub expires: String,
}

/// Chooses a passphrase with an invitation, or the first one by whoever can read the token of the data directory. 409: there
/// is one.
#[utoipa::path(post, path = "/api/passphrase", security(()), request_body = NewPassphrase, responses((status = 200, body = PassphraseOf), Problems))]
pub(crate) async fn choose_passphrase(
    State(app): State<Arc<App>>,
    tries: Tries,
    Body(new): Body<NewPassphrase>,
) -> Result<Json<PassphraseOf>, Problem> {
    let person = match (&new.invitation, &new.token) {
        (Some(invitation), None) => {
            let _hold = tries.may_try(&app, None)?;
            app.accounts.accept(invitation, &new.passphrase).await?
        }
        (None, Some(token)) => {
            let grant = granted(&app, &tries, token).await?;
            app.accounts.choose_first(&grant.person, &new.passphrase).await?;
            grant.person
        }
        (Some(_), Some(_)) | (None, None) => {
            let words = "choose a passphrase with an invitation or with the token";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_choice", words));
        }
    };
    Ok(Json(PassphraseOf { person: person.0 }))
}

/// Changes the caller's passphrase. Every login of theirs ends.
#[utoipa::path(put, path = "/api/passphrase", request_body = OtherPassphrase, responses((status = 204), Problems))]
pub(crate) async fn change_passphrase(
    State(app): State<Arc<App>>,
    caller: Caller,
    tries: Tries,
    Body(other): Body<OtherPassphrase>,
) -> Result<StatusCode, Problem> {
    let _hold = tries.may_try(&app, Some(&caller.person.id))?;
    app.accounts.change(&caller.person.id, &other.old, &other.passphrase).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A passphrase.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenPassphrase {
    /// The caller's.
    pub passphrase: String,
}

/// A login gives its passphrase again, as decisions with more risk ask for. A token does not become a login by it.
#[utoipa::path(post, path = "/api/authenticate", request_body = GivenPassphrase, responses((status = 204), Problems))]
pub(crate) async fn authenticate_again(
    State(app): State<Arc<App>>,
    caller: Caller,
    tries: Tries,
    Body(given): Body<GivenPassphrase>,
) -> Result<StatusCode, Problem> {
    let person = &caller.person.id;
    let _hold = tries.may_try(&app, Some(person))?;
    let known = app.accounts.authenticate(person, &given.passphrase).await?;
    app.accounts.renew(caller.grant, &known).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Who uses the installation; only the caller, for who may not say who does.
#[utoipa::path(get, path = "/api/people", responses((status = 200, body = [PersonRow]), Problems))]
pub(crate) async fn list_people(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Vec<PersonRow>>, Problem> {
    let installation = app.accounts.installation().await?;
    Ok(Json(person_rows(&installation, &caller.person.id, app.queries.now())))
}

/// The people whom this one sees, as a list shows them.
#[must_use]
pub fn person_rows(installation: &Installation, by: &PersonId, now: Time) -> Vec<PersonRow> {
    let row = |(person, account): (&PersonId, &Account)| {
        let invitation = account.invitation.filter(|invitation| now < invitation.until);
        PersonRow {
            name: person.0.clone(),
            roles: role_names(account),
            has_passphrase: account.passphrase.is_some(),
            invited_until: invitation.map(|invitation| time(invitation.until)),
        }
    };
    installation.seen_by(by).map(row).collect()
}

/// Adds somebody, who chooses a passphrase with the link.
#[utoipa::path(post, path = "/api/people", request_body = NewPerson, responses((status = 201, body = InvitationGiven), Problems))]
pub(crate) async fn add_person(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(new): Body<NewPerson>,
) -> Result<(StatusCode, Json<InvitationGiven>), Problem> {
    let (person, roles) = (PersonId(new.name), named_roles(new.roles));
    let link = app.accounts.add(app.commands.requester(&caller.person), person, roles).await?;
    Ok((StatusCode::CREATED, Json(invitation(&app.settings.url, link))))
}

/// Says what somebody may do.
#[utoipa::path(patch, path = "/api/people/{name}", params(("name" = String, Path, description = "Who")), request_body = NewRoles, responses((status = 204), Problems))]
pub(crate) async fn change_person(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Body(new): Body<NewRoles>,
) -> Result<StatusCode, Problem> {
    app.accounts
        .set_roles(app.commands.requester(&caller.person), PersonId(name), named_roles(new.roles))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives somebody a new link. Their passphrase stands until they choose another with it.
#[utoipa::path(post, path = "/api/people/{name}/invitation", params(("name" = String, Path, description = "Who")), responses((status = 201, body = InvitationGiven), Problems))]
pub(crate) async fn invite_person(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<(StatusCode, Json<InvitationGiven>), Problem> {
    let link = app.accounts.invite(app.commands.requester(&caller.person), PersonId(name)).await?;
    Ok((StatusCode::CREATED, Json(invitation(&app.settings.url, link))))
}

/// Lets somebody use the installation no more: their logins and tokens end, their sessions stay.
#[utoipa::path(delete, path = "/api/people/{name}", params(("name" = String, Path, description = "Who")), responses((status = 204), Problems))]
pub(crate) async fn remove_person(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    app.accounts.remove(app.commands.requester(&caller.person), PersonId(name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What is meant by these names.
#[must_use]
pub fn named_roles(names: BTreeSet<RoleName>) -> BTreeSet<Role> {
    names.into_iter().map(Role::from).collect()
}

/// The names of what an account may do.
pub(crate) fn role_names(account: &Account) -> BTreeSet<RoleName> {
    account.roles.iter().map(|role| RoleName::from(*role)).collect()
}

/// A link to the server at this address. The secret stands behind the #, which is never sent to a server.
#[must_use]
pub fn invitation(url: &str, Link { secret, until }: Link) -> InvitationGiven {
    InvitationGiven { link: format!("{url}/login#invitation={secret}"), expires: time(until) }
}

/// What everyone should know: that somebody who did not know a passphrase gave a person another one.
#[must_use]
pub fn notice(installation: &Installation, now: Time) -> Option<String> {
    let reset = installation.recent_reset(now)?;
    let (person, day) = (&reset.person.0, time(reset.at));
    Some(format!(
        "the passphrase of {person} was reset at this machine on {day}; what had been approved before waits for a new decision. If nobody you know did that, someone else has access to this machine"
    ))
}

impl From<AccountError> for Problem {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Refused(refusal) => {
                Self::new(status(&refusal), refusal.kind(), refusal.to_string())
            }
            AccountError::WrongPassphrase => {
                Self::new(StatusCode::UNAUTHORIZED, "wrong_passphrase", error.to_string())
            }
            AccountError::Access(error) => error.into(),
            AccountError::Journal(error) => error.into(),
        }
    }
}

impl From<AccountRefusal> for Problem {
    fn from(refusal: AccountRefusal) -> Self {
        AccountError::from(refusal).into()
    }
}

fn status(refusal: &AccountRefusal) -> StatusCode {
    match refusal {
        AccountRefusal::NotAnAdmin { .. }
        | AccountRefusal::AskAgain { .. }
        | AccountRefusal::NotTheOwner
        | AccountRefusal::NotALogin
        | AccountRefusal::NeedsPassphrase
        | AccountRefusal::BadLink => StatusCode::FORBIDDEN,
        AccountRefusal::BadName => StatusCode::UNPROCESSABLE_ENTITY,
        AccountRefusal::NoSuchPerson { .. } | AccountRefusal::NoSuchGrant => StatusCode::NOT_FOUND,
        AccountRefusal::AlreadyThere { .. }
        | AccountRefusal::TooMany
        | AccountRefusal::TooManyGrants { .. }
        | AccountRefusal::AlreadyChosen
        | AccountRefusal::NoneChosen { .. }
        | AccountRefusal::Outdated
        | AccountRefusal::OwnerNotInvited
        | AccountRefusal::OwnerStays => StatusCode::CONFLICT,
    }
}
