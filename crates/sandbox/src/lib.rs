//! Confines the calling process and all that it starts, for good: which files it reaches (landlock), which system calls it may
//! make (a list of those that are allowed), what of the network, and how much of the machine.
//!
//! Call it before anything else has started a thread.

use std::path::PathBuf;

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod connect;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod listener;
#[cfg(target_os = "linux")]
mod resources;
#[cfg(target_os = "linux")]
mod tables;
#[cfg(target_os = "linux")]
pub use self::listener::Listener;

/// What a confined process may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// What it may read and execute, besides the system's programs.
    pub read: Vec<PathBuf>,
    /// What it may write.
    pub write: Vec<PathBuf>,
    /// What it may reach of the network.
    pub network: Network,
    /// What it may use of the machine.
    pub resources: Resources,
}

/// What each process may use of the machine. What is not said is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resources {
    /// Of the processor.
    pub cpu_seconds: Option<u64>,
    /// Of memory.
    pub memory_bytes: Option<u64>,
    /// How large a file it may write.
    pub file_bytes: Option<u64>,
}

/// What a confined process may reach of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Nothing.
    None,
    /// TCP at this port, where a proxy of this machine decides on hosts.
    Proxy(u16),
    /// Everything but the sockets of this machine's other programs.
    Internet,
}

/// Whether this machine can confine processes; in words if not.
#[cfg(target_os = "linux")]
pub fn is_supported() -> Result<(), String> {
    files::is_supported()
}

/// Whether a confined process may make the call of this number, at least with some arguments or on some network.
#[cfg(target_os = "linux")]
#[must_use]
pub fn allows(call: i64) -> bool {
    tables::is_allowed(call)
}

/// Whether this machine can confine processes; in words if not.
#[cfg(not(target_os = "linux"))]
pub fn is_supported() -> Result<(), String> {
    Err("programs are confined only on Linux".into())
}

#[cfg(target_os = "linux")]
impl Sandbox {
    /// Confines the calling process. What is refused fails, and nobody is told.
    pub fn enter(&self) -> Result<(), String> {
        drop_capabilities()?;
        self.restrict()?;
        calls::refuse(self.network)
    }

    /// Limits the calling process to its files, its part of the network and of the machine. Its calls are filtered by who starts
    /// it: [`filter_calls`].
    pub fn restrict(&self) -> Result<(), String> {
        resources::limit(&self.resources)
            .map_err(|error| format!("the limits cannot be set: {error}"))?;
        files::restrict(&self.read, &self.write, self.network)
    }
}

/// Gives up what a process may do beyond its user, for good. Threads that are there already keep it.
#[cfg(target_os = "linux")]
pub fn drop_capabilities() -> Result<(), String> {
    calls::drop_capabilities()
}

/// Filters the calls of the calling thread and of all that it starts. A thread that was there before must answer what the
/// listener hears of, or refused calls wait for ever.
#[cfg(target_os = "linux")]
pub fn filter_calls(network: Network) -> Result<Listener, String> {
    calls::report(network)
}
