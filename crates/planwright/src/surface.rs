//! What this terminal is called as a surface.

/// This terminal: its device and its session leader, so that another one is another surface.
pub fn surface() -> String {
    let device = rustix::termios::ttyname(std::io::stdin(), Vec::new()).ok();
    let device = device.map_or_else(|| "pipe".into(), |name| name.to_string_lossy().into_owned());
    format!("cli {device} {}", session_leader())
}

/// In a container the leader may live outside and then has no number here: 0, where `getsid` of the
/// library asserts.
#[cfg(target_os = "linux")]
fn session_leader() -> i32 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    leader_in(&stat).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
fn session_leader() -> i32 {
    rustix::process::getsid(None).map_or(0, |leader| leader.as_raw_nonzero().get())
}

/// The fourth field after the name, which may itself hold spaces and brackets.
#[cfg(target_os = "linux")]
fn leader_in(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn a_leader_outside_the_container_is_nobody_and_a_name_with_brackets_is_a_name() {
        assert_eq!(super::leader_in("7 (a) b) S 1 7 0 34816 7 4194304"), Some(0));
        assert_eq!(super::leader_in("7 (planwright) S 1 7 42 34816 7"), Some(42));
        assert_eq!(super::leader_in(""), None);
    }
}
