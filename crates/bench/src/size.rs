//! The binary that people are given: how large it is, and what is in it where it is too large.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::Context as _;

use crate::measure::{Judged, close};

/// How large it may be.
const BYTES_MAX: u64 = 40_000_000;
/// How many parts are listed where it is larger.
const LISTED: usize = 10;

/// `./bench size` has built it, stripped, with the map of its linker beside it.
pub(crate) fn run() -> anyhow::Result<Judged> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join("target/dist/planwright");
    let bytes = fs::metadata(&program).context("target/dist/planwright; run: ./bench size")?.len();
    let version = Command::new(&program).arg("--version").output()?;
    anyhow::ensure!(version.status.success(), "the binary does not run");
    let has_dashboard = root.join("web/dist/site").exists();
    println!("{}: {bytes} bytes", String::from_utf8_lossy(&version.stdout).trim());
    if bytes > BYTES_MAX {
        let map = fs::read_to_string(root.join("target/dist/planwright.map"))
            .context("the linker's map is missing; run: ./bench size")?;
        let parts = largest(&map);
        anyhow::ensure!(!parts.is_empty(), "the linker's map is not in the format of lld");
        println!("its largest parts, by the crate that they were compiled in:");
        parts.iter().for_each(|(name, bytes)| println!("{bytes:>12}  {name}"));
    }
    let dashboard = if has_dashboard { "" } else { ", WITHOUT the dashboard" };
    let figure = format!("{:.1} MB{dashboard}", bytes as f64 / 1e6);
    Ok(close("size", &figure, "40 MB", bytes <= BYTES_MAX && has_dashboard))
}

/// The largest parts of a program, from a map of lld's: crate and bytes in the file.
fn largest(map: &str) -> Vec<(String, u64)> {
    let mut parts: BTreeMap<String, u64> = BTreeMap::new();
    let mut is_in_file = true;
    for line in map.lines().skip(1) {
        let mut fields = line.split_whitespace();
        let size = fields.nth(2).and_then(|size| u64::from_str_radix(size, 16).ok());
        let (Some(size), Some(_align), Some(what)) = (size, fields.next(), fields.next()) else {
            continue;
        };
        if let Some((file, _section)) = what.split_once(":(") {
            if is_in_file {
                *parts.entry(compiled_in(file).to_owned()).or_default() += size;
            }
        } else if what.starts_with('.') && line.trim_end().ends_with(what) {
            // What is all zeros at the start, and what is only for debuggers, takes no room.
            is_in_file = !matches!(what, ".bss" | ".tbss") && !what.starts_with(".debug");
        }
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    parts.truncate(LISTED);
    parts
}

/// The crate of an object: `program.CRATE-HASH.….rcgu.o`, or `libCRATE-HASH.rlib(object.o)`.
fn compiled_in(file: &str) -> &str {
    if let Some((library, _)) = file.split_once(".rlib(") {
        let name = library.rsplit('/').next().unwrap_or(library);
        let name = name.strip_prefix("lib").unwrap_or(name);
        return name.rsplit_once('-').map_or(name, |(name, _)| name);
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    if !name.ends_with(".rcgu.o") {
        return "the linker and the C library";
    }
    let name = name.split('.').nth(1).unwrap_or(name);
    name.split('-').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_added_up_by_crate_and_what_takes_no_room_is_left_out() {
        let map = "             VMA              LMA     Size Align Out     In      Symbol
             2e0              2e0       1c     1 .interp
             2e0              2e0       1c     1         <internal>:(.interp)
           12ac0            12ac0    411af    16 .text
           12ac0            12ac0       22    16         /usr/lib/gcc/x86_64-linux-gnu/12/crt1.o:(.text)
           12bb0            12bb0      100    16         planwright.planwright_domain-0b1c.planwright_domain.4c2f-cgu.0.rcgu.o.rcgu.o:(.text._ZN1a4main17h1E)
           12bb0            12bb0        0     1                 _ZN1a4main17h1E
           12cb0            12cb0       10    16         planwright.planwright_domain-0b1c.planwright_domain.4c2f-cgu.1.rcgu.o.rcgu.o:(.rodata.x)
           12cc0            12cc0      200    16         planwright.planwright.5d3f-cgu.0.rcgu.o:(.text._RNv)
           12ec0            12ec0      300    16         /src/target/dist/deps/libaws_lc_sys-77.rlib(bcm.o):(.text)
           20000            20000     4000    16 .bss
           20000            20000     4000    16         /src/target/dist/deps/libaws_lc_sys-77.rlib(bcm.o):(.bss)
";
        let expected = [
            ("aws_lc_sys", 0x300),
            ("planwright", 0x200),
            ("planwright_domain", 0x110),
            ("the linker and the C library", 0x3e),
        ];
        assert_eq!(largest(map), expected.map(|(name, bytes)| (name.to_owned(), bytes)));
    }
}
