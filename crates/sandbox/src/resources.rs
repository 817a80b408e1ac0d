//! What a confined process may use of the machine.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Resources;

/// What everyone is bound by: no core dumps, so many open files for each process, so many processes for the user. The kernel
/// counts all of a user's processes, not only these.
const ALWAYS: [(Resource, u64); 3] =
    [(Resource::Core, 0), (Resource::Nofile, 1_024), (Resource::Nproc, 4_096)];

pub(crate) fn limit(resources: &Resources) -> io::Result<()> {
    let Resources { cpu_seconds, memory_bytes, file_bytes } = *resources;
    let chosen = [
        (Resource::Cpu, cpu_seconds),
        (Resource::Data, memory_bytes),
        (Resource::Fsize, file_bytes),
    ];
    let chosen = chosen.into_iter().filter_map(|(resource, most)| Some((resource, most?)));
    for (resource, most) in ALWAYS.into_iter().chain(chosen) {
        let hard = getrlimit(resource).maximum;
        let most = hard.map_or(most, |hard| hard.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
