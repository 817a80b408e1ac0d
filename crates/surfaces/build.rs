//! Takes the built dashboard into the program, if it was built.

use std::{env, fmt::Write as _, fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = here.join("../../web/dist/site");
    // The folder around it is always there: what is not there would be looked for at every build.
    println!("cargo::rerun-if-changed={}", here.join("../../web/dist").display());
    let mut list = String::from("&[\n");
    let mut files = Vec::new();
    for folder in [dist.clone(), dist.join("assets")] {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry?.path();
            if path.is_file() {
                files.push(path.canonicalize()?);
            }
        }
    }
    files.sort();
    let root = dist.canonicalize().unwrap_or(dist);
    for path in files {
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        let _ =
            writeln!(list, "    (\"/{name}\", include_bytes!({:?})),", path.display().to_string());
    }
    list.push(']');
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("dashboard.rs"), list)
}
