//! What every store of notebooks must do, whatever it is made of.

use crate::people::ada_key;
use planwright_domain::identity::SessionKey;
use planwright_runtime::ports::notebook::{Notebooks, Put};

fn talk(key: &str) -> SessionKey {
    ada_key(&format!("cli:{key}")).expect("a session")
}

/// A page is made once, replaced only by who has seen it, and gone when it is removed.
pub async fn a_page_is_replaced_only_by_who_has_seen_it(store: &dyn Notebooks) {
    let here = talk("talk-0001");
    assert_eq!(store.read(&here, "progress.md").await.expect("it answers"), None);
    let write = async |text: &str, expected: Option<&str>| {
        store.write(&here, "progress.md", text, expected).await.expect("it answers")
    };
    assert_eq!(write("one\n", None).await, Put::Done);
    assert_eq!(write("two\n", None).await, Put::Changed, "something stands there");
    let first = store.read(&here, "progress.md").await.expect("it answers").expect("a page");
    assert_eq!(first.text, "one\n");
    assert_eq!(write("two\n", Some(&first.mark)).await, Put::Done);
    assert_eq!(write("three\n", Some(&first.mark)).await, Put::Changed, "that was replaced");
    let second = store.read(&here, "progress.md").await.expect("it answers").expect("a page");
    assert_eq!(second.text, "two\n");
    store.remove(&here, "progress.md").await.expect("it answers");
    store.remove(&here, "progress.md").await.expect("removed twice, it is gone once");
    assert_eq!(write("four\n", Some(&second.mark)).await, Put::Changed, "it is gone");
    assert_eq!(store.read(&here, "progress.md").await.expect("it answers"), None);
}

/// Names are listed in order, and a session has its own; also one whose key differs in capitals alone.
pub async fn each_session_has_its_own_pages(store: &dyn Notebooks) {
    let (here, there, odd) = (talk("Talk-0002"), talk("talk-0002"), talk("%2E%2E%2Ftalk"));
    for (session, name) in
        [(&here, "task_plan.md"), (&here, "archive/plan-1.md"), (&there, "findings.md")]
    {
        store.write(session, name, "x", None).await.expect("it answers");
    }
    let list = async |session| store.list(session).await.expect("it answers");
    assert_eq!(list(&here).await, ["archive/plan-1.md", "task_plan.md"]);
    assert_eq!(list(&there).await, ["findings.md"]);
    assert_eq!(list(&odd).await, Vec::<String>::new());
    for name in ["../talk-0002/plan/findings.md", "", "/etc/passwd", ".hidden", "a//b"] {
        assert!(store.read(&here, name).await.is_err(), "{name:?} is not a page");
    }
}

/// Many who add to one page at once lose nothing of each other.
pub async fn nobody_loses_what_another_wrote(store: &dyn Notebooks) {
    let here = talk("talk-0003");
    store.write(&here, "findings.md", "", None).await.expect("it answers");
    let add = async |line: usize| {
        loop {
            let kept = store.read(&here, "findings.md").await.expect("it answers").expect("a page");
            let new = format!("{}{line}\n", kept.text);
            let put = store.write(&here, "findings.md", &new, Some(&kept.mark)).await;
            if put.expect("it answers") == Put::Done {
                return;
            }
        }
    };
    futures_util::future::join_all((0..12).map(add)).await;
    let kept = store.read(&here, "findings.md").await.expect("it answers").expect("a page");
    let mut lines: Vec<usize> = kept.text.lines().filter_map(|line| line.parse().ok()).collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..12).collect::<Vec<_>>());
}
