//! A directory and a file that are links to the outside every other moment, while the file tools use them.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use fastrand::Rng;
use planwright_domain::turn::CallStatus;
use planwright_outbound::toolbox_files::FileToolbox;
use planwright_runtime::ports::toolbox::{Ran, Toolbox as _};
use planwright_testkit::scratch;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use super::Found;
use planwright_testkit::tool_run::tool_run;

const SECRET: &str = "what nobody may read";

pub(super) async fn swapped_links(seed: u64, swaps: u32) -> anyhow::Result<Found> {
    let home = scratch::directory("escapes")?;
    let (outside, workspace) = (home.path().join("outside"), home.path().join("workspace"));
    fs::create_dir(home.path().join("data"))?;
    fs::create_dir_all(outside.join("sub"))?;
    fs::write(outside.join("note.txt"), SECRET)?;
    fs::write(outside.join("sub/note.txt"), SECRET)?;
    let toolbox = FileToolbox::open(&workspace, &home.path().join("data"))?;
    fs::create_dir_all(workspace.join("d/sub"))?;
    fs::write(workspace.join("d/note.txt"), "inside")?;
    fs::write(workspace.join("f.txt"), "inside")?;
    symlink(&outside, workspace.join("d.other"))?;
    symlink(outside.join("note.txt"), workspace.join("f.other"))?;
    let before = tree(&outside)?;

    let (stop, swapped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let swapper = swap(&workspace, stop.clone(), swapped.clone());
    let mut rng = Rng::with_seed(seed);
    let (mut through, mut done, mut refused) = (Vec::new(), 0, 0);
    for _ in 0..swaps {
        let (tool, arguments) = any_call(&mut rng);
        match toolbox.run(tool_run(tool, &arguments)).await {
            Ran::Ended(result) => {
                let count = match result.status {
                    CallStatus::Done => &mut done,
                    CallStatus::Failed => &mut refused,
                };
                *count += 1_u32;
                if result.output.contains(SECRET) {
                    through.push(format!("{tool} {arguments} read it"));
                }
            }
            Ran::Unknown { why } => through.push(why),
        }
    }
    stop.store(true, Ordering::SeqCst);
    swapper.join().map_err(|_| anyhow::anyhow!("the swapper broke down"))??;
    if tree(&outside)? != before {
        through.push("something outside was changed".into());
    }
    let control = fs::read_to_string(workspace.join("d.other/note.txt"))
        .is_ok_and(|text| text == SECRET)
        || fs::read_to_string(workspace.join("d/note.txt")).is_ok_and(|text| text == SECRET);
    let what = format!(
        "{swaps} calls of file tools during {} swaps of links ({done} done inside, {refused} refused)",
        swapped.load(Ordering::SeqCst)
    );
    Ok(Found { what, through, control: control && done > 0 && refused > 0 })
}

/// A directory and a link change places, and a file and a link, as fast as the system lets them.
fn swap(
    workspace: &Path,
    stop: Arc<AtomicBool>,
    swapped: Arc<AtomicU64>,
) -> std::thread::JoinHandle<std::io::Result<()>> {
    let workspace = workspace.to_owned();
    std::thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            for (one, other) in [("d", "d.other"), ("f.txt", "f.other")] {
                let (one, other) = (workspace.join(one), workspace.join(other));
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE)?;
                swapped.fetch_add(1, Ordering::SeqCst);
            }
        }
        Ok(())
    })
}

fn any_call(rng: &mut Rng) -> (&'static str, Value) {
    let path = ["d/note.txt", "f.txt", "d/sub/note.txt", "d/sub/../note.txt"][rng.usize(0..4)];
    let new = ["d/new.txt", "d/sub/new.txt", "f.txt", "d/more/new.txt"][rng.usize(0..4)];
    match rng.u8(0..7) {
        0 | 1 => ("read_file", json!({"path": path})),
        2 => ("write_file", json!({"path": new, "content": "changed"})),
        3 => ("edit_file", json!({"path": path, "old": "i", "new": "i"})),
        4 => ("list_files", json!({"path": "d"})),
        5 => ("glob_files", json!({"path": "d", "pattern": "**"})),
        _ => ("grep_files", json!({"path": "d", "pattern": "nobody"})),
    }
}

/// Everything that lies there, by path.
fn tree(path: &Path) -> std::io::Result<BTreeMap<String, Option<String>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path)? {
        let inside = entry?.path();
        let name = inside.display().to_string();
        if inside.is_dir() {
            found.insert(name, None);
            found.extend(tree(&inside)?);
        } else {
            found.insert(name, Some(fs::read_to_string(&inside)?));
        }
    }
    Ok(found)
}
