//! Files of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process and what it starts have as many files open as the machine allows: each connection is one.
pub fn allow_many() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit { current: limit.maximum.or(Some(65_536)), maximum: limit.maximum },
    );
}
