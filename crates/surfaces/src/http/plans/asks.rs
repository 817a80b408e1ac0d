//! What can be asked of a plan, as a caller writes it.

use planwright_domain::{
    effect::Declared,
    plan::{Strategy, review::Comment, step::OnFailure},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::http::dto::PlanDto;

/// How a plan is written.
#[derive(Debug, Default, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StrategyName {
    /// One Markdown document.
    #[default]
    Document,
    /// Recorded calls.
    Collect,
    /// Steps built through tools.
    Build,
}

impl From<StrategyName> for Strategy {
    fn from(name: StrategyName) -> Self {
        match name {
            StrategyName::Document => Self::Document,
            StrategyName::Collect => Self::Collect,
            StrategyName::Build => Self::Build,
        }
    }
}

/// Plan work that begins.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPlan {
    /// How it is written.
    #[serde(default)]
    pub strategy: StrategyName,
}

/// What was seen of a revision.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSeen {
    /// The ids of the blocks; none, to say that nothing is left to be seen.
    #[serde(default)]
    #[schema(max_items = 1024)]
    pub blocks: Vec<String>,
}

/// An approval.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApproval {
    /// What the execution must be told.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Whether the plan waits for a resume.
    #[serde(default)]
    pub hold: bool,
    /// What happens to the rest when a recorded call fails.
    #[serde(default)]
    pub on_failure: OnFailureName,
    /// What is leased instead of what the plan declares; empty leases nothing, and every change asks.
    #[serde(default)]
    pub grant: Option<GrantDto>,
}

/// What an approval leases.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct GrantDto {
    /// The tools.
    #[schema(max_items = 200)]
    pub tools: Vec<String>,
    /// The paths, and what lies in those that end with a slash; `./` is the whole workspace.
    #[schema(max_items = 200)]
    pub paths: Vec<String>,
    /// The hosts; `*.name` is all under a name.
    #[schema(max_items = 200)]
    pub hosts: Vec<String>,
    /// The most it may cost, in millionths of a dollar.
    pub spend_micros: Option<u64>,
    /// The most calls it may make that change something.
    pub calls: Option<u32>,
    /// How long the lease lasts, in seconds.
    pub seconds: Option<u32>,
}

impl From<GrantDto> for Declared {
    fn from(grant: GrantDto) -> Self {
        Self {
            tools: grant.tools.into_iter().collect(),
            paths: grant.paths.into_iter().collect(),
            hosts: grant.hosts.into_iter().collect(),
            spend_micros_max: grant.spend_micros,
            calls_max: grant.calls,
            lasts_micros: grant.seconds.map(|seconds| i64::from(seconds) * 1_000_000),
        }
    }
}

/// A decision on a call that waits for permission.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPermit {
    /// The decision.
    pub permit: PermitName,
    /// What should change, if the plan is to be revised.
    #[serde(default)]
    pub text: String,
}

/// What may be said to a call that waits for permission.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermitName {
    /// This call, once.
    Once,
    /// This tool, on what the call is aimed at, until the plan ends.
    UntilPlanEnds,
    /// Not this call.
    Deny,
    /// Not this call: the plan is to be revised.
    Replan,
}

/// What happens to the rest when a recorded call fails.
#[derive(Debug, Default, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailureName {
    /// Nothing more is run.
    #[default]
    Stop,
    /// The steps after it run all the same.
    Continue,
}

impl From<OnFailureName> for OnFailure {
    fn from(name: OnFailureName) -> Self {
        match name {
            OnFailureName::Stop => Self::Stop,
            OnFailureName::Continue => Self::Continue,
        }
    }
}

/// A step to be left out.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSkip {
    /// Its number.
    pub step: u32,
}

/// A request for changes.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewChanges {
    /// What should change, beside what was posted: at least one comment, there or here.
    #[schema(max_items = 200)]
    pub comments: Vec<CommentDto>,
}

/// A comment.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CommentDto {
    /// The line it speaks of, from 1.
    pub line: Option<u32>,
    /// The last line, where it speaks of several.
    pub last_line: Option<u32>,
    /// The step it speaks of; neither for the whole.
    pub step: Option<u32>,
    /// What should change.
    pub text: String,
}

impl From<CommentDto> for Comment {
    fn from(CommentDto { line, last_line, step, text }: CommentDto) -> Self {
        Self { number: 0, line, last_line, step, reply_to: None, text }
    }
}

/// A reply in a thread.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReply {
    /// The plan that is meant; the one there is, if none is named.
    #[serde(rename = "planId")]
    pub plan_id: Option<Uuid>,
    /// The words.
    pub text: String,
}

/// What changes about a comment: its words, or whether its thread is settled.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommentChange {
    /// The plan that is meant; the one there is, if none is named.
    #[serde(rename = "planId")]
    pub plan_id: Option<Uuid>,
    /// The new words, by its author, until it is sent.
    pub text: Option<String>,
    /// Whether its thread is settled.
    pub resolved: Option<bool>,
}

/// A document that a person wrote.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewContent {
    /// The whole document.
    pub markdown: String,
    /// Whether words that somebody suggested are taken over: the caller is then not taken to have read them.
    #[serde(default)]
    pub suggested: bool,
}

/// A rejection.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRejection {
    /// Why.
    pub why: Option<String>,
}

/// What became of a call in doubt.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewVerdict {
    /// The call.
    pub call: Uuid,
    /// Whether it took effect.
    pub happened: bool,
}

/// Which revisions to compare.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Between {
    /// The earlier one.
    pub from: Option<u32>,
    /// The later one.
    pub to: Option<u32>,
}

/// Which session.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct OfSession {
    /// `channel:key` or a key of the caller's channel for a session of their own, `owner.channel:key` for another's.
    pub session_id: String,
}

/// A session in which plan work begins.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PlanOn {
    /// `channel:key` or a key of the caller's channel for a session of their own, `owner.channel:key` for another's.
    pub session_id: String,
    /// How the plan is written.
    #[serde(default)]
    pub strategy: StrategyName,
}

/// A session that is named in a body.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct InSession {
    /// `channel:key` or a key of the caller's channel for a session of their own, `owner.channel:key` for another's.
    pub session_id: String,
}

/// Plan mode of one session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanState {
    /// The session, as the caller names it.
    pub session_id: String,
    /// Whether plan work is active in it.
    pub enabled: bool,
    /// The plan it works on.
    pub active_plan_id: Option<Uuid>,
    /// That plan.
    pub plan: Option<PlanDto>,
}
