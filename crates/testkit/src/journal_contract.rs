//! The contract of a journal: every adapter passes this suite.
//!
//! A [`Place`] is somewhere a journal lives; opening it twice gives the same journal again, as a
//! restart would.

use std::sync::Arc;

use crate::people::{owner_id, person};
use async_trait::async_trait;
use planwright_domain::{
    actor::{Person, Standing},
    attempt::ModelAttempt,
    command::{Given, Issued, PersonCommand, SessionCommand, SystemCommand},
    effect::Bracket,
    id::{Incarnation, OwnerId, Seq},
    identity::SessionKey,
    next::{Next, next},
    session::SessionEvent,
    time::Time,
    turn::{Answer as ModelSaid, CallKind, RequestedCall, event::TurnEvent},
};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::{
        journal::{Answer, Journal, KeptView},
        memory::Store,
    },
};
use uuid::Uuid;

pub mod appends;
pub mod due;
pub mod erasure;
pub mod limits;
pub mod lists;
pub mod memories;
pub mod owners;
pub mod reads;

/// Somewhere a journal lives.
#[async_trait]
pub trait Place: Send + Sync {
    /// The journal that lives there, as a process that just started finds it.
    async fn open(&self) -> Arc<dyn Store>;
}

/// Makes one test of each part of the contract, for a place that this expression makes.
#[macro_export]
macro_rules! journal_contract {
    ($place:expr) => {
        $crate::journal_contract!(@each $place;
            appends:
                what_was_appended_is_there_after_a_restart
                the_same_command_gets_the_same_answer
                of_a_command_that_comes_twice_at_once_one_was_decided_last_as_it_is_stored
                answers_are_kept_for_their_time_and_only_where_they_can_be_asked_for
                a_refusal_is_kept_and_stores_no_event
                a_refusal_that_is_only_too_late_is_not_kept
                a_decision_that_finds_corruption_stores_nothing
                a_decision_that_breaks_down_harms_nobody_else
                a_decision_on_an_owner_that_panics_affects_nobody_else
                events_are_numbered_from_one_without_a_gap
                the_session_is_the_fold_of_its_events_across_snapshots
                a_session_that_was_read_is_not_folded_again
                appends_to_one_session_happen_one_after_the_other
                appends_to_many_sessions_do_not_mix;
            reads:
                what_happened_since_is_found_wherever_it_stands
                a_revision_can_be_read_again_at_its_place
                a_conversation_that_is_kept_is_read_until_another_is_kept
                an_output_is_kept_once_and_for_its_session_alone;
            due:
                what_is_due_is_stored_with_what_happened
                no_owner_fills_the_page_of_what_is_due
                a_session_that_fails_backs_off_and_is_parked
                failures_are_counted_in_a_row;
            lists:
                what_waits_for_a_person_is_listed
                what_waits_is_listed_for_its_owner_page_by_page
                a_session_that_moves_keeps_its_place_in_lists_for_a_minute
                an_owners_sessions_come_in_pages_and_are_found_by_title_and_key
                what_was_said_is_found_by_its_words
                what_people_decided_is_listed_for_its_owner_newest_first;
            owners:
                heads_are_taken_up_once_and_in_order
                what_belongs_to_an_owner_is_kept
                what_belongs_to_the_installation_is_kept
                sessions_belong_to_their_owner_and_two_owners_may_use_one_key;
            memories:
                what_is_remembered_is_found_in_its_own_scope_alone
                of_many_memories_those_with_rare_words_are_found;
            erasure:
                a_deleted_session_is_erased_once_and_its_key_is_not_used_again
                what_belongs_to_an_owner_is_erased;
            limits:
                no_more_turns_begin_than_an_owner_has_room_for
                what_models_were_used_is_counted_once_whoever_counts;
        );
    };
    (@each $place:expr; $($part:ident: $($name:ident)*;)*) => {$($(
        #[tokio::test]
        async fn $name() {
            let place = $place;
            $crate::journal_contract::$part::$name(&place).await;
        }
    )*)*};
}

fn identity(key: &str) -> SessionKey {
    key_of(owner_id("ada"), key)
}

async fn keep_canary(journal: &dyn Journal, session: &SessionKey) {
    let view = KeptView { upto: Seq(1), form: 1, text: "canary".into() };
    journal.keep_view(session, view).await.expect("an answer");
}

fn key_of(owner: OwnerId, key: &str) -> SessionKey {
    SessionKey::named(&format!("cli:{key}"), owner).expect("a key")
}

fn ada() -> Person {
    person("ada", "cli", Standing::Decides)
}

fn say(text: &str) -> SessionCommand {
    SessionCommand::Person(ada(), PersonCommand::Say { text: text.into() })
}

async fn ask(journal: &dyn Journal, key: &str, id: u128, command: SessionCommand) -> Answer {
    let owner = match &command {
        SessionCommand::Person(person, _) => person.owner,
        SessionCommand::Model(..) | SessionCommand::Agent(_) | SessionCommand::System(_) => {
            owner_id("ada")
        }
    };
    let asked = Issued::new(Uuid::from_u128(id), Time(1_000 + id as i64), command);
    dispatch(journal, &key_of(owner, key), asked).await.expect("the journal answers")
}

async fn kinds(journal: &dyn Journal, key: &str) -> Vec<&'static str> {
    let events = journal.events(&identity(key), Seq(0), usize::MAX).await.expect("events");
    events.iter().map(|recorded| recorded.event.kind()).collect()
}

/// Brings a session to a plan that waits for a decision.
async fn ready(journal: &dyn Journal, key: &str) {
    let plan = PersonCommand::StartPlan {
        plan: Uuid::from_u128(50).into(),
        strategy: planwright_domain::plan::Strategy::Document,
        reads: planwright_domain::plan::Reads::Record,
    };
    ask(journal, key, 10, SessionCommand::Person(ada(), plan)).await;
    ask(journal, key, 11, say("plan it")).await;
    let turn = Uuid::from_u128(51).into();
    let bracket = planwright_domain::effect::Bracket {
        incarnation: planwright_domain::id::Incarnation(Uuid::from_u128(52)),
        start_by: Time(5),
        deadline: Time(6),
    };
    let start = SystemCommand::StartTurn {
        turn,
        queued: Seq(2),
        profile: None,
        recalled: Default::default(),
        call: Some(bracket),
    };
    ask(journal, key, 12, SessionCommand::System(start)).await;
    let call = RequestedCall {
        id: Uuid::from_u128(53).into(),
        wire_id: "w".into(),
        tool: "plan_set_content".into(),
        arguments: "{\"plan_markdown\":\"# A plan\\n\"}".into(),
        kind: CallKind::Plan,
    };
    let answer = ModelSaid { text: String::new(), calls: vec![call], ..ModelSaid::default() };
    ask(
        journal,
        key,
        14,
        SessionCommand::System(SystemCommand::RecordAnswer {
            attempt: ModelAttempt { turn, round: 1, number: 1 },
            answer,
            others: 0,
        }),
    )
    .await;
    let tool = planwright_domain::command::ModelCommand::UsePlanTool {
        call: Uuid::from_u128(53).into(),
        given: Given {
            fresh: Uuid::from_u128(54).into(),
            profiles: [].into(),
            memory: None,
            markdown: None,
        },
    };
    ask(journal, key, 15, SessionCommand::Model(turn, tool)).await;
    let events = journal.events(&identity(key), Seq(0), 100).await.expect("events");
    assert!(events.iter().any(|recorded| matches!(
        &recorded.event,
        SessionEvent::Turn(TurnEvent::CallAnswered { .. })
    )));
}

fn by_ada(command: PersonCommand) -> SessionCommand {
    SessionCommand::Person(ada(), command)
}

/// Does what is due of a deleted session until it is erased.
/// Does what is due in a deleted session until it is to be erased.
pub async fn remove_pages(journal: &dyn Journal, gone: &SessionKey, key: &str) {
    let bracket = Bracket {
        incarnation: Incarnation(Uuid::from_u128(7)),
        start_by: Time(9_000),
        deadline: Time(9_000),
    };
    for id in 31.. {
        let session = journal.session(gone).await.expect("a session");
        let command = match next(&session) {
            Next::RemovePages { attempt, .. } => SystemCommand::StartRemoval { attempt, bracket },
            Next::AwaitRemoval { attempt, .. } => {
                SystemCommand::RecordPagesRemoved { attempt, pages: 0 }
            }
            due => return assert_eq!(due, Next::Erase { not_before: None }),
        };
        ask(journal, key, id, SessionCommand::System(command)).await;
    }
}
