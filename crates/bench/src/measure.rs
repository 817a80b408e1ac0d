//! CPU, medians and the closing line.

use rustix::time::{ClockId, clock_gettime};

/// Whether a figure reaches its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judged {
    Ok,
    Short,
}

/// CPU seconds that this process has used, all threads together.
pub(crate) fn cpu() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The closing line.
pub(crate) fn close(name: &str, figure: &str, target: &str, well: bool) -> Judged {
    let word = if well { "ok" } else { "short" };
    println!("{name}: {figure} (target {target}) {word}");
    if well { Judged::Ok } else { Judged::Short }
}
