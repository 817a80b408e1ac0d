//! What earlier versions stored is read as it was meant.

use std::collections::BTreeSet;

use planwright_domain::session::SessionEvent;
use planwright_format::event::known_kinds;
use planwright_testkit::{event_samples, golden};

#[tokio::test]
async fn the_golden_journal_on_sqlite_folds_to_the_recorded_states() {
    assert_eq!(golden::sqlite().await.unwrap(), golden::recorded().unwrap());
}

#[tokio::test]
async fn the_golden_archive_folds_to_the_recorded_states() {
    assert_eq!(golden::archive().await.unwrap(), golden::recorded().unwrap());
}

#[tokio::test]
async fn an_event_of_every_kind_is_read_from_the_golden_files() {
    let lone = golden::lone_events().unwrap();
    assert_eq!(lone, event_samples::by_hand());
    let mut kinds: BTreeSet<_> = lone.iter().map(SessionEvent::kind).collect();
    kinds.extend(golden::events().await.unwrap().iter().map(SessionEvent::kind));
    assert_eq!(kinds, known_kinds().collect());
}

/// A snapshot has the form of the folded session: another form is another version of the fold.
#[test]
fn the_form_of_the_folded_session_is_the_one_recorded_for_its_version() {
    let file = golden::directory().join(golden::schema_file());
    let recorded = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        format!("{:#}\n", golden::schema()),
        recorded,
        "the form of a session changed: raise FOLD_VERSION, then run ./prove upgrade --bless"
    );
}
