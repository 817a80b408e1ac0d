//! What the API says, in the form that is published: `camelCase`, with `sessionId` on everything.

use planwright_domain::{
    diff::{Change, DiffRow, Part, PartChange},
    digest::Digest,
    moved::{Fate, Place},
    next::Waiting,
    outcome::{PlanCard, StepRow},
    quota::LimitReached,
};
use planwright_runtime::{
    ports::journal::SessionRow,
    queries::comments::{CommentRow, ReplyRow},
    queries::reader::{BlockView, ReaderView},
    queries::receipt::{FileRow, ReceiptView},
    queries::view::{AskView, DiffView, PlanRow, StatusView},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::http::auth::Caller;
use crate::http::time::time;

/// A change that happened, and is durable.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The session, as the caller names it.
    pub session_id: String,
    /// How many events it has now.
    pub version: u64,
}

/// Where a session stands.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionDto {
    /// The session, as the caller names it.
    pub session_id: String,
    /// How many events it has.
    pub version: u64,
    /// The directory that it works in; none while it has not begun.
    pub root: Option<String>,
    /// Whether plan work is active.
    pub active: bool,
    /// The plan, or the one that ended last.
    pub plan: Option<PlanDto>,
    /// What it waits for: `decision`, `resume`, `doubt`, `permission`, `run` or `limit`.
    pub waiting: Option<String>,
    /// Whether nothing is under way.
    pub resting: bool,
    /// Whether a turn is open.
    pub turn_open: bool,
    /// How many causes wait for a turn.
    pub queued: u64,
    /// The calls whose outcome nobody knows.
    pub doubts: Vec<DoubtDto>,
    /// The call that waits for permission.
    #[serde(default)]
    pub ask: Option<AskDto>,
    /// The limit of its owner for which a turn waits: one that is under way, or one that has not begun.
    #[serde(default)]
    pub limit: Option<LimitDto>,
    /// Tokens that the model has read.
    pub input_tokens: u64,
    /// Tokens that the model has written.
    pub output_tokens: u64,
    /// What the model has cost, in millionths of a dollar, where the price is known.
    #[serde(default)]
    pub cost_micros: u64,
    /// How many tokens one request to the model may hold.
    #[serde(default)]
    pub window_tokens: u64,
    /// What the session is called.
    #[serde(default)]
    pub title: String,
    /// What does not work as it should, in sentences.
    #[serde(default)]
    pub degraded: Vec<String>,
}

/// A call that waits for permission, in full.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskDto {
    /// The call.
    pub call: Uuid,
    /// What `If-Match` must name.
    pub digest: String,
    /// The tool.
    pub tool: String,
    /// What it does to the world: `write` or `external`.
    pub effect: String,
    /// The arguments, byte for byte.
    pub arguments: String,
    /// Why it asks.
    pub why: String,
    /// What allowing it until the plan ends would cover; none if it can only be allowed once.
    pub pattern: Option<String>,
    /// When it is denied by itself.
    pub expires: String,
}

impl From<AskView> for AskDto {
    fn from(ask: AskView) -> Self {
        Self {
            call: ask.call.0,
            digest: ask.digest.to_string(),
            tool: ask.tool,
            effect: ask.effect,
            arguments: ask.arguments,
            why: ask.why,
            pattern: ask.pattern,
            expires: time(ask.expires),
        }
    }
}

/// A limit of an owner that is reached.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitDto {
    /// Which: `turns`, `tokens`, `money` or `bytes`.
    pub limit: String,
    /// What is the case, in words: which limit, whose, and until when.
    pub words: String,
    /// What a person can do about it.
    pub what_to_do: String,
    /// Whether it can be raised for today.
    pub raisable: bool,
}

impl From<LimitReached> for LimitDto {
    fn from(reached: LimitReached) -> Self {
        Self {
            limit: reached.limit.name().into(),
            words: reached.in_words(),
            what_to_do: reached.what_to_do().into(),
            raisable: reached.limit.is_raisable(),
        }
    }
}

/// A call whose outcome nobody knows.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DoubtDto {
    /// The call.
    pub call: Uuid,
    /// The tool.
    pub tool: String,
    /// Its arguments, cut for display.
    pub arguments: String,
}

/// A plan as it is shown before anyone decides.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDto {
    /// The plan.
    pub plan_id: Uuid,
    /// How it is written: `document`, `collect` or `build`; none once it has ended.
    #[serde(default)]
    pub strategy: Option<String>,
    /// Its title.
    pub title: String,
    /// Where it stands, as people read it.
    pub status: String,
    /// The current revision.
    pub revision: Option<u32>,
    /// Its digest: what `If-Match` must name.
    pub digest: Option<String>,
    /// What approving it allows, or has allowed.
    pub allows: Vec<String>,
    /// What came from outside (pages, files, what other programs say) and was read before it was written, if anything.
    #[serde(default)]
    pub outside: Option<String>,
    /// Why it waits, if it does.
    pub waits: Option<String>,
    /// By whose word it ended, and what they say, if it ended.
    pub claimed: Option<String>,
    /// Who says that it is done, if it ended as done: `observed` by the record, `claimed` by a model or an agent,
    /// `declared` by a person.
    pub basis: Option<String>,
    /// What was observed of its work: calls that ran, files that changed, hosts that were reached.
    pub observed: Vec<String>,
    /// The steps for which no call was reported, once it ended as done.
    #[serde(default)]
    pub gaps: Vec<String>,
    /// Its steps, if it has any.
    #[serde(default)]
    pub steps: Vec<StepDto>,
    /// How many steps its draft has, if one is open.
    #[serde(default)]
    pub drafted: Option<u64>,
}

/// A step of a plan.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepDto {
    /// Its number.
    pub number: u32,
    /// In a few words.
    pub words: String,
    /// How it came out, as people read it; none while it has not.
    pub came_out: Option<String>,
}

/// A session in a list.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRowDto {
    /// The session, as the caller names it.
    pub session_id: String,
    /// How many events it has.
    pub version: u64,
    /// When something last happened.
    pub updated: String,
    /// What it waits for: `decision`, `resume`, `doubt`, `permission`, `run` or `limit`.
    pub waiting: Option<String>,
    /// Why nobody acts on it any more, if it was parked.
    pub parked: Option<String>,
    /// What people call it.
    #[serde(default)]
    pub title: String,
    /// Whether it was put away.
    #[serde(default)]
    pub archived: bool,
    /// Whether something is under way in it.
    pub running: bool,
    /// Where its plan stands, as people read it; none without one.
    pub plan: Option<String>,
    /// What the model has cost in it, in millionths of a dollar.
    pub cost_micros: u64,
}

/// A revision, in full.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionDto {
    /// The session, as the caller names it.
    pub session_id: String,
    /// The plan.
    pub plan_id: Uuid,
    /// Its number in its plan.
    pub number: u32,
    /// Its digest: what `If-Match` must name.
    pub digest: String,
    /// Its title.
    pub title: String,
    /// The document, exactly as written.
    pub markdown: String,
    /// Whether it is the current one.
    pub current: bool,
    /// What approving it would allow.
    pub allows: Vec<String>,
    /// What came from outside and was read before it was written, if it is the current one and anything did.
    #[serde(default)]
    pub outside: Option<String>,
    /// Its blocks, in order: every line that is not blank stands in one of them.
    pub blocks: Vec<BlockDto>,
    /// Whether it was shown to the caller in full where they stand, so that they can approve it there.
    pub shown: bool,
}

/// A part of a revision that is read as one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDto {
    /// Its place among the blocks, from 0.
    pub index: u32,
    /// The same for the same bytes, in any revision of the plan: 32 hexadecimal digits.
    pub id: String,
    /// Its first line, from 1.
    pub first_line: u32,
    /// Its last line.
    pub last_line: u32,
    /// Whether the caller has seen it, in this revision or an earlier one, on any surface.
    pub seen: bool,
}

/// What changed between two revisions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffDto {
    /// The session, as the caller names it.
    pub session_id: String,
    /// The earlier revision.
    pub from: u32,
    /// The later one.
    pub to: u32,
    /// What the earlier one is to the reader.
    pub since: String,
    /// The rows that lead from one to the other.
    pub rows: Vec<DiffRowDto>,
    /// What became of each step or section.
    pub parts: Vec<PartDto>,
}

/// What became of one step or section.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartDto {
    /// Its first line.
    pub title: String,
    /// `same`, `added`, `removed` or `changed`.
    pub change: String,
    /// The rows of it.
    pub rows: Vec<DiffRowDto>,
}

/// A comment with what followed on it: a thread.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommentRowDto {
    /// Its number.
    pub number: u32,
    /// The revision it speaks of.
    pub revision: u32,
    /// The line it speaks of.
    pub line: Option<u32>,
    /// The last line, where it speaks of several.
    pub last_line: Option<u32>,
    /// The step it speaks of.
    pub step: Option<u32>,
    /// What should change.
    pub text: String,
    /// Who made it.
    pub by: String,
    /// When.
    pub at: String,
    /// Whether its words were changed since.
    pub is_edited: bool,
    /// Whether the author was sent it: then its words stay as they are.
    pub is_sent: bool,
    /// `posted` (the next request takes it along), `open` (asked for), `addressed`, `declined` or `resolved`.
    pub status: String,
    /// The revision that answered it last.
    pub answered_in: Option<u32>,
    /// Why it was declined.
    pub declined: Option<String>,
    /// Who settled it.
    pub resolved: Option<String>,
    /// Where the lines that it speaks of stand in the newest revision; none if it speaks of no line.
    pub place: Option<PlaceDto>,
    /// What followed, oldest first.
    pub replies: Vec<ReplyRowDto>,
}

/// Where lines stand in the newest revision.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaceDto {
    /// The first of them; where they stood, if they are gone.
    pub line: u32,
    /// The last of them.
    pub last_line: u32,
    /// What became of them: `same`, `changed` or `removed`.
    pub fate: String,
    /// The number of that revision.
    pub revision: u32,
}

/// What was said after the first comment of a thread.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplyRowDto {
    /// Its number, if a person posted it.
    pub number: Option<u32>,
    /// Who; nobody, if the author of a revision did.
    pub by: Option<String>,
    /// The newest revision then.
    pub revision: u32,
    /// When.
    pub at: String,
    /// The words; none where it was addressed without any.
    pub text: String,
    /// Whether the words were changed since.
    pub is_edited: bool,
    /// Whether the author was sent it: then its words stay as they are.
    pub is_sent: bool,
}

impl From<CommentRow> for CommentRowDto {
    fn from(row: CommentRow) -> Self {
        let status = row.status().to_owned();
        Self {
            number: row.comment.number,
            revision: row.revision,
            line: row.comment.line,
            last_line: row.comment.last_line,
            step: row.comment.step,
            text: row.comment.text,
            by: row.by.0,
            at: time(row.at),
            is_edited: row.is_edited,
            is_sent: row.asked.is_some(),
            status,
            answered_in: row.answered_in,
            declined: row.declined,
            resolved: row.resolved.map(|by| by.0),
            place: row.place.map(|place| PlaceDto::of(place, row.placed_in)),
            replies: row.replies.into_iter().map(ReplyRowDto::from).collect(),
        }
    }
}

impl PlaceDto {
    fn of(Place { first, last, fate }: Place, revision: u32) -> Self {
        let fate = match fate {
            Fate::Same => "same",
            Fate::Changed => "changed",
            Fate::Removed => "removed",
        };
        Self { line: first, last_line: last, fate: fate.into(), revision }
    }
}

impl From<ReplyRow> for ReplyRowDto {
    fn from(row: ReplyRow) -> Self {
        let ReplyRow { number, by, revision, at, text, is_edited, is_asked: is_sent } = row;
        Self { number, by: by.map(|by| by.0), revision, at: time(at), text, is_edited, is_sent }
    }
}

/// What came of a plan's work, beside what its card says.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptDto {
    /// The plan.
    pub plan_id: Uuid,
    /// What the model cost while it executed the plan, in millionths of a dollar.
    pub cost_micros: u64,
    /// When its first execution began.
    pub begun: Option<String>,
    /// When it ended.
    pub ended: Option<String>,
    /// What it made of files, oldest first: what was observed, not what anybody says.
    pub files: Vec<FileRowDto>,
    /// How many more changes there were than are listed.
    pub files_more: u64,
}

/// What a call made of a file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileRowDto {
    /// The call.
    pub call: Uuid,
    /// When it ended.
    pub at: String,
    /// The path under the session's root.
    pub path: String,
    /// The digest of what it held before; none if there was no file.
    pub before: Option<String>,
    /// The digest of what it held then.
    pub after: String,
    /// The lines that differ, as a unified diff; none if that is too long, or what it held is no text.
    pub diff: Option<String>,
}

impl From<ReceiptView> for ReceiptDto {
    fn from(view: ReceiptView) -> Self {
        let ReceiptView { plan, cost_micros, begun, ended, files, files_more } = view;
        Self {
            plan_id: plan.0,
            cost_micros,
            begun: begun.map(time),
            ended: ended.map(time),
            files: files.into_iter().map(FileRowDto::from).collect(),
            files_more,
        }
    }
}

impl From<FileRow> for FileRowDto {
    fn from(FileRow { call, at, change }: FileRow) -> Self {
        Self {
            call: call.0,
            at: time(at),
            path: change.path,
            before: change.before.map(|digest| digest.to_string()),
            after: change.after.to_string(),
            diff: change.diff,
        }
    }
}

/// One row of a diff.
#[derive(Debug, Serialize, ToSchema)]
pub struct DiffRowDto {
    /// `same`, `added` or `removed`.
    pub change: String,
    /// The line.
    pub text: String,
}

/// A plan in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanRowDto {
    /// The plan.
    pub plan_id: Uuid,
    /// Its last title.
    pub title: String,
    /// How many revisions it has.
    pub revisions: u32,
    /// Where it stands, as people read it.
    pub status: String,
}

fn waiting_name(waiting: Waiting) -> String {
    match waiting {
        Waiting::Decision => "decision",
        Waiting::Resume => "resume",
        Waiting::Doubt => "doubt",
        Waiting::Permission => "permission",
        Waiting::Run => "run",
        Waiting::Limit => "limit",
    }
    .into()
}

impl SessionDto {
    pub(crate) fn of(session_id: String, view: StatusView) -> Self {
        Self {
            session_id,
            version: view.version.0,
            root: view.root.map(|root| root.0),
            active: view.plan_active,
            plan: view.plan.map(PlanDto::from),
            waiting: view.waiting.map(waiting_name),
            resting: view.resting,
            turn_open: view.turn_open,
            queued: view.queued as u64,
            doubts: view
                .doubts
                .into_iter()
                .map(|doubt| DoubtDto {
                    call: doubt.call.0,
                    tool: doubt.tool,
                    arguments: doubt.arguments,
                })
                .collect(),
            ask: view.ask.map(AskDto::from),
            limit: view.limit.map(LimitDto::from),
            input_tokens: view.usage.input,
            output_tokens: view.usage.output,
            cost_micros: view.usage.cost_micros,
            window_tokens: view.window_tokens as u64,
            title: view.title,
            degraded: view.degraded,
        }
    }
}

impl From<PlanCard> for PlanDto {
    fn from(card: PlanCard) -> Self {
        Self {
            plan_id: card.plan_id.0,
            strategy: card.strategy.map(|strategy| strategy.name().to_owned()),
            title: card.title,
            status: card.status,
            revision: card.revision,
            digest: card.digest.map(|digest| digest.to_string()),
            allows: card.allows,
            outside: card.outside,
            waits: card.waits,
            claimed: card.claimed,
            basis: card.basis.map(|basis| basis.name().to_owned()),
            observed: card.observed,
            gaps: card.gaps,
            steps: card.steps.into_iter().map(StepDto::from).collect(),
            drafted: card.drafted.map(|steps| steps as u64),
        }
    }
}

impl From<StepRow> for StepDto {
    fn from(row: StepRow) -> Self {
        Self { number: row.number, words: row.words, came_out: row.came_out }
    }
}

impl SessionRowDto {
    pub(crate) fn of(caller: &Caller, row: SessionRow) -> Self {
        Self {
            session_id: caller.name_of(&row.session),
            version: row.version.0,
            updated: time(row.updated),
            waiting: row.waiting.map(waiting_name),
            parked: row.parked,
            title: row.title,
            archived: row.archived,
            running: row.running,
            plan: row.plan.map(|stage| stage.label().to_owned()),
            cost_micros: row.cost_micros,
        }
    }
}

impl RevisionDto {
    pub(crate) fn of(session_id: String, reader: ReaderView) -> Self {
        let view = reader.revision;
        let blocks = (0..).zip(reader.blocks).map(|(index, BlockView { block, seen })| BlockDto {
            index,
            id: block.id.to_string(),
            first_line: block.first_line,
            last_line: block.last_line,
            seen,
        });
        Self {
            blocks: blocks.collect(),
            shown: reader.shown,
            session_id,
            plan_id: view.revision.plan.0,
            number: view.revision.number,
            digest: Digest::to_string(&view.digest),
            title: view.revision.title,
            markdown: view.revision.markdown,
            current: view.current,
            allows: view.allows,
            outside: view.outside,
        }
    }
}

impl DiffDto {
    pub(crate) fn of(session_id: String, view: DiffView) -> Self {
        let row = |row: DiffRow| {
            let change = match row.change {
                Change::Same => "same",
                Change::Added => "added",
                Change::Removed => "removed",
            };
            DiffRowDto { change: change.into(), text: row.text }
        };
        let part = |part: Part| {
            let change = match part.change {
                PartChange::Same => "same",
                PartChange::Added => "added",
                PartChange::Removed => "removed",
                PartChange::Changed => "changed",
            };
            let rows = part.rows.into_iter().map(row).collect();
            PartDto { title: part.title, change: change.into(), rows }
        };
        Self {
            session_id,
            from: view.from,
            to: view.to,
            since: view.since,
            rows: view.rows.into_iter().map(row).collect(),
            parts: view.parts.into_iter().map(part).collect(),
        }
    }
}

impl From<PlanRow> for PlanRowDto {
    fn from(row: PlanRow) -> Self {
        Self { plan_id: row.plan.0, title: row.title, revisions: row.revisions, status: row.status }
    }
}
