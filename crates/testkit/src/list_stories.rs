//! Stories of those who keep lists and hear what changes in them, told once for every deployment.

use std::{sync::Arc, time::Duration};

use planwright_domain::{owner::DayUse, turn::Usage};
use planwright_runtime::ports::signal::{Hint, Hints, ListChange};
use serde_json::json;

use crate::{
    house::{House, session},
    scripted_model::{Conduct, ScriptedReply, SeenRequest},
};

/// Makes one test of each story, for houses that this function builds from a model's conduct.
#[macro_export]
macro_rules! list_stories {
    ($build:expr) => {
        $crate::list_stories!(@each $build;
            those_who_keep_lists_hear_what_happened_and_what_was_used
        );
    };
    (@each $build:expr; $($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $crate::list_stories::$name($build).await;
        }
    )*};
}

/// What is heard within a moment after the last thing was, as one change.
async fn heard(hints: &mut dyn Hints) -> ListChange {
    let mut all: Option<ListChange> = None;
    while let Ok(Some(hint)) = tokio::time::timeout(Duration::from_millis(500), hints.next()).await
    {
        // On a cluster everything is read again from time to time.
        let Hint::Changed(change) = hint else { continue };
        all = Some(match all {
            Some(before) => before.with(*change),
            None => *change,
        });
    }
    all.expect("something changed")
}

/// That a session began, that somebody decided in it, what its models were used for, and that it was deleted; each time with
/// its row as the journal has it.
pub async fn those_who_keep_lists_hear_what_happened_and_what_was_used(
    build: impl AsyncFn(Conduct) -> House,
) {
    let plan = ScriptedReply::call("plan_set_content", &json!({"plan_markdown": "# One\n"}));
    let conduct = move |seen: &SeenRequest| match seen.earlier {
        0 => plan.clone(),
        _ => ScriptedReply::text("one"),
    };
    let house = build(Arc::new(conduct)).await;
    let talk = session("listed-0001");
    let mut hints = house.ports.broadcast.hints(None);
    let row = async || house.ports.journal.row(&talk).await.expect("an answer");
    // Who has just subscribed on a cluster is not heard of yet.
    tokio::time::sleep(Duration::from_millis(300)).await;
    house.does(&talk, "/plan on").await;
    let change = heard(&mut *hints).await;
    assert_eq!((change.begun, change.decided, change.deleted), (true, false, false));
    assert_eq!((change.used, Some(change.row)), (DayUse::default(), row().await));
    let rested = house.does(&talk, "plan it").await;
    let change = heard(&mut *hints).await;
    let Usage { input, output, cost_micros, .. } = rested.usage;
    assert!(input + output > 0);
    assert_eq!(change.used, DayUse { tokens: input + output, cost_micros });
    assert_eq!((change.begun, Some(change.row)), (false, row().await));
    house.does(&talk, "/plan show").await;
    house.does(&talk, "/plan reject no").await;
    assert!(heard(&mut *hints).await.decided);
    house.does(&talk, "/delete yes").await;
    assert!(heard(&mut *hints).await.deleted);
}
