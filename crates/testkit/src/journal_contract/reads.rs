//! What is read again: events, conversations, revisions and outputs.

use super::{Place, ask, identity, ready, say};
use planwright_domain::{
    command::Issued, digest::Digest, id::Seq, plan::event::PlanEvent, session::SessionEvent,
    time::Time,
};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::journal::{KeptView, Since},
};
use uuid::Uuid;

/// What is kept of a conversation replaces what was kept of it, and is there for whoever opens the journal next.
pub async fn a_conversation_that_is_kept_is_read_until_another_is_kept(place: &dyn Place) {
    let journal = place.open().await;
    let (here, there) = (identity("talk-0001"), identity("talk-0002"));
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    let view = |upto, form, text: &str| KeptView { upto: Seq(upto), form, text: text.into() };
    let (first, second) = (view(1, 1, "said"), view(7, 2, &"more was said ".repeat(9_000)));
    assert_eq!(journal.kept_view(&here).await.expect("an answer"), None);
    for view in [first, second.clone()] {
        journal.keep_view(&here, view.clone()).await.expect("it is kept");
        assert_eq!(journal.kept_view(&here).await.expect("an answer"), Some(view));
    }
    journal.keep_view(&there, second.clone()).await.expect("there is no such session");
    drop(journal);
    let journal = place.open().await;
    assert_eq!(journal.kept_view(&here).await.expect("an answer"), Some(second));
    assert_eq!(journal.kept_view(&there).await.expect("an answer"), None);
}

/// Times need not rise from event to event: clocks differ. What was recorded since then is found all the same.
pub async fn what_happened_since_is_found_wherever_it_stands(place: &dyn Place) {
    let journal = place.open().await;
    for (id, at) in (1..).zip([10, 50, 20, 60, 30, 70]) {
        let asked = Issued::new(Uuid::from_u128(id), Time(at), say("hello"));
        dispatch(&*journal, &identity("talk-0001"), asked).await.expect("the journal answers");
    }
    let since = async |since, after, limit| -> Vec<u64> {
        let id = identity("talk-0001");
        let found = journal
            .events_since(&id, Since { time: Time(since), kinds: &[] }, Seq(after), limit)
            .await;
        found.expect("events").iter().map(|recorded| recorded.seq.0).collect()
    };
    assert_eq!(since(50, 0, 10).await, [2, 4, 6]);
    assert_eq!(since(50, 0, 2).await, [2, 4]);
    assert_eq!(since(50, 4, 2).await, [6]);
    assert_eq!(since(71, 0, 10).await, [0_u64; 0]);
}

/// A revision is read back, at the place that the session names, as it was written.
pub async fn a_revision_can_be_read_again_at_its_place(place: &dyn Place) {
    let journal = place.open().await;
    ready(&*journal, "talk-0001").await;
    let session = journal.session(&identity("talk-0001")).await.expect("a session");
    let plan = session.plan().expect("a plan");
    let seq = plan.revision_seq(1).expect("a revision");
    let found = journal.events(&identity("talk-0001"), Seq(seq.0 - 1), 1).await.expect("events");
    let SessionEvent::Plan(PlanEvent::RevisionAdded { revision, digest, .. }) = &found[0].event
    else {
        panic!("{found:?}")
    };
    assert_eq!(Some(*digest), plan.current.as_ref().map(|head| head.digest));
    assert_eq!(
        (revision.digest(&identity("talk-0001")), revision.markdown.as_str()),
        (*digest, "# A plan\n")
    );
}

/// A long output is there under its digest after a restart, and not in another session.
pub async fn an_output_is_kept_once_and_for_its_session_alone(place: &dyn Place) {
    let journal = place.open().await;
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    ask(&*journal, "talk-0002", 2, say("hello")).await;
    let text = "zeile ä\n".repeat(40_000);
    let digest = journal.keep_output(&identity("talk-0001"), &text).await.expect("it is kept");
    assert_eq!(digest, Digest::of(text.as_bytes()));
    let again = journal.keep_output(&identity("talk-0001"), &text).await.expect("it is there");
    assert_eq!(again, digest);
    drop(journal);
    let journal = place.open().await;
    let found = journal.output(&identity("talk-0001"), digest).await.expect("an answer");
    assert_eq!(found.as_deref(), Some(text.as_str()));
    let elsewhere = journal.output(&identity("talk-0002"), digest).await.expect("an answer");
    let unknown = journal.output(&identity("talk-0001"), Digest([7; 32])).await.expect("an answer");
    assert_eq!((elsewhere, unknown), (None, None));
}
