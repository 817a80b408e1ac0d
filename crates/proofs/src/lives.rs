//! Processes that are this program once more, and that a proof kills at named points.

use std::{
    ffi::OsString,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// How long a life may take that nobody ends.
const LIFE_MAX: Duration = Duration::from_secs(60);

/// Begins a life with these words and this environment; it dies at this point, if one is named.
pub(crate) fn start(
    words: impl IntoIterator<Item = OsString>,
    environment: Option<(&str, &str)>,
    dies: Option<&str>,
) -> anyhow::Result<Child> {
    let mut child = Command::new(std::env::current_exe()?);
    child.args(words).envs(environment).stdout(Stdio::null());
    Ok(child.envs(dies.map(|dies| ("PLANWRIGHT_FAILPOINT", dies))).spawn()?)
}

/// How a life ended.
pub(crate) async fn ended(child: &mut Child) -> anyhow::Result<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begun.elapsed() > LIFE_MAX {
            child.kill()?;
            child.wait()?;
            anyhow::bail!("a life still lasted after {} s", LIFE_MAX.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
