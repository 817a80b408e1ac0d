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

/// CPU seconds that another process has used.
pub(crate) fn cpu_of(pid: u32) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN);
    Ok((ticks(11) + ticks(12)) / rustix::param::clock_ticks_per_second() as f64)
}

/// CPU seconds that another process and its children have used.
pub(crate) fn cpu_of_all(pid: u32) -> anyhow::Result<f64> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    let used: f64 = children.map(|child: u32| cpu_of(child).unwrap_or(0.0)).sum();
    Ok(cpu_of(pid)? + used)
}

/// Bytes of memory that this process holds.
pub(crate) fn resident() -> anyhow::Result<f64> {
    resident_of(std::process::id())
}

/// Bytes of memory that a process holds.
pub(crate) fn resident_of(pid: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kilobytes * 1_024.0)
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
