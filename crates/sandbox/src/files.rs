//! Which files a confined process reaches, and which TCP ports.

use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
    path_beneath_rules,
};

use crate::Network;

/// The version of the kernel's interface that everything here needs: Linux 6.12.
const NEEDED: ABI = ABI::V6;
/// What everyone may read and execute: the system's programs, and what they need to start.
const SYSTEM: [&str; 22] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/gitconfig",
    "/dev/urandom",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/sys/devices/system/cpu",
];
/// What names on the network are looked up in.
const NAMES: [&str; 5] =
    ["/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf", "/etc/services", "/run/systemd/resolve"];
/// What everyone may write.
const SINKS: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

pub(crate) fn is_supported() -> Result<(), String> {
    ruleset(Network::None).map(drop)
}

fn ruleset(network: Network) -> Result<RulesetCreated, String> {
    let built = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .and_then(|rules| rules.scope(Scope::from_all(NEEDED)))
        .and_then(|rules| match network {
            Network::None | Network::Proxy(_) => rules.handle_access(AccessNet::from_all(NEEDED)),
            Network::Internet => Ok(rules),
        })
        .and_then(Ruleset::create);
    built.map_err(|error| {
        format!("commands need Linux 6.12 or newer with landlock turned on, and here: {error}")
    })
}

/// Leaves the system's programs, what may be read, what may be written, and the port of the proxy.
pub(crate) fn restrict(
    read: &[PathBuf],
    write: &[PathBuf],
    network: Network,
) -> Result<(), String> {
    let rules = ruleset(network)?;
    allow(rules, read, write, network)
        .and_then(RulesetCreated::restrict_self)
        .map(drop)
        .map_err(|error| error.to_string())
}

fn allow(
    rules: RulesetCreated,
    read: &[PathBuf],
    write: &[PathBuf],
    network: Network,
) -> Result<RulesetCreated, RulesetError> {
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    let own = AccessFs::from_all(NEEDED) & !(devices | AccessFs::MakeSock);
    let sink = AccessFs::ReadFile | AccessFs::WriteFile;
    let rules = rules
        .add_rules(path_beneath_rules(SYSTEM, AccessFs::from_read(NEEDED)))?
        .add_rules(path_beneath_rules(read, AccessFs::from_read(NEEDED)))?
        .add_rules(path_beneath_rules(SINKS, sink))?
        .add_rules(path_beneath_rules(write, own))?;
    match network {
        Network::None => Ok(rules),
        Network::Proxy(port) => rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp)),
        Network::Internet => {
            rules.add_rules(path_beneath_rules(NAMES, AccessFs::from_read(NEEDED)))
        }
    }
}
