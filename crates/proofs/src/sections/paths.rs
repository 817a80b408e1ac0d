//! Spellings of the path to a page, through every file tool of a workspace beside it.

use std::{fs, os::unix::fs::symlink, path::Path};

use fastrand::Rng;
use planwright_outbound::{
    notebook_object_store::ObjectStoreNotebooks, toolbox_files::FileToolbox,
};
use planwright_runtime::ports::{
    notebook::Notebooks as _,
    toolbox::{Ran, Toolbox as _},
};
use planwright_testkit::people::ada_key;
use planwright_testkit::scratch;
use serde_json::json;

use planwright_testkit::tool_run::tool_run;

const SECRET: &str = "what only the notebook holds";
const UNNAMED: &str = "findings.md";

/// Where the notebook of the session lies.
fn place() -> anyhow::Result<String> {
    Ok(format!("users/{}", ada_key("cli:talk-0001")?.path_segment()))
}

/// How many spellings and calls were tried, which of them saw or changed a page, and whether the control did.
pub(super) async fn tried(
    seed: u64,
    spellings: usize,
) -> anyhow::Result<(usize, usize, Vec<String>, bool)> {
    let home = scratch::directory("sections")?;
    let (data, workspace) = (home.path().join("data"), home.path().join("workspace"));
    fs::create_dir(&data)?;
    let identity = ada_key("cli:talk-0001")?;
    let notebooks = ObjectStoreNotebooks::in_directory(&data)?;
    notebooks.write(&identity, "task_plan.md", SECRET, None).await?;
    // No spelling names this one: where it is listed, the notebook was seen.
    notebooks.write(&identity, UNNAMED, SECRET, None).await?;
    let toolbox = FileToolbox::open(&workspace, &data)?;
    fs::write(workspace.join("mine.txt"), "mine")?;
    for (name, to) in [
        ("link", data.clone()),
        ("page", data.join(format!("{}/plan/task_plan.md", place()?))),
        ("up", home.path().to_owned()),
        ("relative", "../data".into()),
        ("chain", "up/data".into()),
        ("root", "/".into()),
    ] {
        symlink(to, workspace.join(name))?;
    }
    let control = fs::read_to_string(workspace.join("page"))? == SECRET;
    let (mut rng, place) = (Rng::with_seed(seed), place()?);
    let (mut through, mut calls) = (Vec::new(), 0);
    for _ in 0..spellings {
        let path = spelled(&mut rng, home.path(), &place);
        let new = format!("{path}.new");
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("list_files", json!({"path": path})),
            ("glob_files", json!({"path": path, "pattern": "**"})),
            ("glob_files", json!({"pattern": path})),
            ("grep_files", json!({"path": path, "pattern": "only the notebook"})),
            ("write_file", json!({"path": path, "content": "taken"})),
            ("write_file", json!({"path": new, "content": "taken"})),
            ("edit_file", json!({"path": path, "old": "only", "new": "not"})),
        ] {
            calls += 1;
            let Ran::Ended(result) = toolbox.run(tool_run(tool, &arguments)).await else {
                through.push(format!("{tool} {arguments}: nobody knows"));
                continue;
            };
            if result.output.contains(SECRET) || result.output.contains(UNNAMED) {
                through.push(format!("{tool} {arguments}: {}", result.output));
            }
        }
        tidy(&workspace)?;
        if notebooks.read(&identity, "task_plan.md").await?.is_none_or(|kept| kept.text != SECRET)
            || notebooks.list(&identity).await? != [UNNAMED, "task_plan.md"]
        {
            through.push(format!("{path:?} changed a page"));
            break;
        }
    }
    Ok((spellings, calls, through, control))
}

/// Removes what was written under odd names.
fn tidy(workspace: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(workspace)? {
        let (path, kind) =
            (entry.as_ref().map(fs::DirEntry::path), entry.as_ref().map(fs::DirEntry::file_type));
        match (path, kind) {
            (Ok(path), Ok(Ok(kind))) if kind.is_dir() => fs::remove_dir_all(path)?,
            (Ok(path), Ok(Ok(kind))) if kind.is_file() && !path.ends_with("mine.txt") => {
                fs::remove_file(path)?
            }
            (_, _) => {}
        }
    }
    Ok(())
}

/// The page, or something above it, spelled in some way.
fn spelled(rng: &mut Rng, home: &Path, place: &str) -> String {
    let up = [
        "..",
        "../",
        "./..",
        "x/../..",
        "/..",
        "..//",
        "mine.txt/..",
        "link",
        "up/data",
        "chain",
        "relative",
        "root",
    ];
    let begin = match rng.u8(0..6) {
        0 => home.join("data").display().to_string(),
        1 => format!("{}/data", up[rng.usize(0..up.len())]),
        2 => format!("/proc/self/root{}", home.join("data").display()),
        3 => format!("file://{}", home.join("data").display()),
        4 => up[rng.usize(0..up.len())].to_owned(),
        _ => "../data".into(),
    };
    let rest = match rng.u8(0..6) {
        0 => "users".to_owned(),
        1 => place.to_owned(),
        2 => format!("{place}/plan/"),
        3 => format!("{place}/plan/*.md"),
        4 => String::new(),
        _ => format!("{place}/plan/task_plan.md"),
    };
    let mut path = format!("{begin}/{rest}");
    for _ in 0..rng.usize(0..4) {
        path = match rng.u8(0..14) {
            0 => path.replace("..", "%2e%2e"),
            1 => path.replace('/', "%2F"),
            2 => path.replace("..", "%252e%252e"),
            3 => path.replace('/', "\\"),
            4 => path.replace('.', "\u{ff0e}"),
            5 => path.replace('/', "\u{2215}"),
            6 => path.replace('/', "//"),
            7 => path.replace('/', "/./"),
            8 => path.to_uppercase(),
            9 => path.replace("task", "TASK"),
            10 => format!("{path}\0.txt"),
            11 => format!("{path} "),
            12 => path.replace("plan", "pl\u{0061}\u{0308}n"),
            _ => format!("./{path}."),
        };
    }
    path
}
