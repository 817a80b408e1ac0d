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
    memory_of(pid, "VmRSS:")
}

/// The most bytes of memory that a process has held.
pub(crate) fn peak_of(pid: u32) -> anyhow::Result<f64> {
    memory_of(pid, "VmHWM:")
}

fn memory_of(pid: u32, which: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(which)).unwrap_or_default();
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kilobytes * 1_024.0)
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The percentile of this share, by the nearest rank: the least value that at least so many are not above.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// How far ahead of a peer a figure is, in words, and whether that is far enough. Not if the peer is missing.
pub(crate) fn ahead_of_peer(times: f64, least: f64) -> (String, bool) {
    if times.is_nan() {
        return (PEER_MISSING.into(), false);
    }
    (format!("{times:.1} times ahead of the peer"), times >= least)
}

/// What a closing line says where a peer is part of a figure and was not installed.
pub(crate) const PEER_MISSING: &str = "the peer is MISSING";

/// The closing line.
pub(crate) fn close(name: &str, figure: &str, target: &str, well: bool) -> Judged {
    let word = if well { "ok" } else { "short" };
    println!("{name}: {figure} (target {target}) {word}");
    if well { Judged::Ok } else { Judged::Short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_not_the_largest_value_where_there_are_enough() {
        let hundred: Vec<_> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 0.99), 99.0);
        assert_eq!(percentile(&hundred, 1.0), 100.0);
        assert_eq!(percentile(&hundred[..20], 0.99), 20.0);
        assert!(percentile(&[], 0.99).is_nan());
    }

    #[test]
    fn a_missing_peer_is_said_and_is_not_a_pass() {
        assert_eq!(ahead_of_peer(f64::NAN, 8.0), ("the peer is MISSING".into(), false));
        assert_eq!(ahead_of_peer(7.9, 8.0), ("7.9 times ahead of the peer".into(), false));
        assert_eq!(ahead_of_peer(8.0, 8.0), ("8.0 times ahead of the peer".into(), true));
    }
}
