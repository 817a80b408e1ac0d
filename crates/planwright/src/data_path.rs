//! Where everything is kept.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::args::Args;

/// Where everything is kept.
pub fn data_path(args: &Args) -> anyhow::Result<PathBuf> {
    if let Some(path) = &args.data {
        return Ok(path.clone());
    }
    let home =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = home("XDG_DATA_HOME").or_else(|| home("HOME").map(|home| home.join(".local/share")));
    Ok(base
        .context("there is no home directory; name a data directory with --data")?
        .join("planwright"))
}
