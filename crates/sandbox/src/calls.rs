//! Which system calls a confined process may make.
//!
//! They are in tables. What is in none is newer than they are: it is answered as if the kernel did not know it, so that programs
//! take the older call.

use std::collections::BTreeMap;

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::{
    Network,
    listener::Listener,
    tables::{
        ALLOWED, ALLOWED_NEWER, ALLOWED_OLDER, ATTRIBUTES, CONDITIONAL, NEWER, REFUSED,
        REFUSED_NEWER, is_known,
    },
};

/// How a refused call is answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// What it is called.
    pub(crate) name: String,
    /// The error that the program sees.
    pub(crate) errno: i32,
}

impl Verdict {
    /// On the call with this number and this first argument, which the filter did not let through.
    pub(crate) fn on(number: i64, first: u64) -> Self {
        let known = [REFUSED, REFUSED_NEWER, CONDITIONAL].into_iter().flatten();
        match known.copied().find(|(_, known)| *known == number) {
            Some((_, libc::SYS_socket)) => {
                Self { name: socket_of(first).into(), errno: libc::EPERM }
            }
            Some((name, _)) => Self { name: name.replace("SYS_", ""), errno: libc::EPERM },
            None => Self { name: "an unknown system call".into(), errno: libc::ENOSYS },
        }
    }
}

/// Programs ask for sockets of this machine at every look at a user's name, and for the others to reach somebody.
fn socket_of(family: u64) -> &'static str {
    match i32::try_from(family) {
        Ok(libc::AF_UNIX) => "a socket of this machine",
        Ok(libc::AF_INET | libc::AF_INET6) => "the network",
        Ok(_) | Err(_) => "a socket",
    }
}

/// Gives up every capability, and what a program could give back.
pub(crate) fn drop_capabilities() -> Result<(), String> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .and_then(|()| set_no_new_privs(true))
        .map_err(|error| format!("the capabilities cannot be given up: {error}"))
}

/// Refuses what is not allowed.
pub(crate) fn refuse(network: Network) -> Result<(), String> {
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let program = allowing(network, refuse)?;
    answer_quietly()?;
    apply_filter(&program).map_err(|error| format!("the filter cannot be set: {error}"))
}

/// The same; the listener hears of what is refused.
pub(crate) fn report(network: Network) -> Result<Listener, String> {
    // The action that the kernel reports by has no name in the crate that builds filters.
    let placeholder = SeccompAction::Trace(0);
    let mut program = allowing(network, placeholder)?;
    let is_placeholder = |step: &&mut seccompiler::sock_filter| {
        step.code == RETURN && step.k == libc::SECCOMP_RET_TRACE
    };
    for step in program.iter_mut().filter(is_placeholder) {
        step.k = libc::SECCOMP_RET_USER_NOTIF;
    }
    answer_quietly()?;
    Listener::set(&program).map_err(|error| format!("the filter cannot be set: {error}"))
}

/// Answers what programs go on without, and nobody is told of.
fn answer_quietly() -> Result<(), String> {
    answer(newer_calls(), libc::ENOSYS)?;
    answer(attributes(), libc::EOPNOTSUPP)
}

fn attributes() -> impl Iterator<Item = i64> {
    ATTRIBUTES.iter().map(|(_, call)| *call)
}

/// The instruction that returns a constant.
const RETURN: u16 = 0x06;

/// What is answered as an older kernel does, so that programs take the older call: `clone3`, whose flags lie in memory, where no
/// filter looks, and what is in no table here. Nobody is told: it is the case at every start of a thread.
fn newer_calls() -> impl Iterator<Item = i64> {
    [libc::SYS_clone3].into_iter().chain(NEWER).filter(|call| !is_known(*call))
}

/// Answers these calls with this error.
fn answer(calls: impl Iterator<Item = i64>, errno: i32) -> Result<(), String> {
    let rules = calls.map(|call| (call, Vec::new())).collect();
    let errno = SeccompAction::Errno(errno.cast_unsigned());
    let program = built(rules, SeccompAction::Allow, errno)?;
    apply_filter(&program).map_err(|error| format!("the filter cannot be set: {error}"))
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn built(
    rules: Rules,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, String> {
    let here = std::env::consts::ARCH.try_into().map_err(|_| "no filter for this processor")?;
    SeccompFilter::new(rules, otherwise, matched, here)
        .and_then(TryInto::try_into)
        .map_err(|error| error.to_string())
}

/// Lets through what is allowed, and what another filter answers: of several filters the strictest counts.
fn allowing(network: Network, otherwise: SeccompAction) -> Result<BpfProgram, String> {
    let tables = [ALLOWED, ALLOWED_OLDER, ALLOWED_NEWER].into_iter().flatten();
    let allowed = tables.map(|(_, call)| *call).chain(newer_calls()).chain(attributes());
    let mut rules: Rules = allowed.map(|call| (call, Vec::new())).collect();
    rules.extend(by_arguments()?);
    rules.extend(by_network(network)?);
    built(rules, otherwise, SeccompAction::Allow)
}

/// One argument of a call, of which the lower half is looked at.
fn condition(argument: u8, compared: SeccompCmpOp, value: u64) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compared, value)
        .map_err(|error| error.to_string())
}

/// All of these must hold.
fn when(
    conditions: impl IntoIterator<Item = Result<SeccompCondition, String>>,
) -> Result<SeccompRule, String> {
    let conditions = conditions.into_iter().collect::<Result<_, _>>()?;
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

fn is(argument: u8, value: i32) -> Result<SeccompCondition, String> {
    condition(argument, SeccompCmpOp::Eq, bits(value))
}

fn has_none_of(argument: u8, flags: u64) -> Result<SeccompCondition, String> {
    condition(argument, SeccompCmpOp::MaskedEq(flags), 0)
}

fn bits(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

/// The kind of a socket lies in the lowest bits; flags are above it.
fn is_kind(argument: u8, kind: i32) -> Result<SeccompCondition, String> {
    condition(argument, SeccompCmpOp::MaskedEq(0xf), bits(kind))
}

/// Spaces of its own, in which a process has capabilities again.
const SPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

fn by_arguments() -> Result<Rules, String> {
    let mut rules = Rules::new();
    // Of itself a process may ask and change what it likes; of no other.
    for call in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ] {
        rules.insert(call, vec![when([is(0, 0)])?]);
    }
    // The first says that the second is a process: a whole user's are none of its own.
    rules.insert(libc::SYS_setpriority, vec![when([is(0, 0), is(1, 0)])?]);
    // To one process. Nobody leaves the group, so a signal to the group is one to the shell: who sends it means their own.
    let one = [has_none_of(0, 0x8000_0000), condition(0, SeccompCmpOp::Ne, 0)];
    rules.insert(libc::SYS_kill, vec![when(one)?]);
    rules.insert(libc::SYS_clone, vec![when([has_none_of(0, bits(SPACES))])?]);
    let other_filter = condition(0, SeccompCmpOp::Ne, bits(libc::PR_SET_SECCOMP));
    rules.insert(libc::SYS_prctl, vec![when([other_filter])?]);
    // To ask, and to be what it is.
    rules.insert(libc::SYS_personality, vec![when([is(0, -1)])?, when([is(0, 0)])?]);
    // A datagram is sent to any socket of this machine by its path.
    let pairs = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET]
        .map(|kind| when([is(0, libc::AF_UNIX), is_kind(1, kind)]));
    rules.insert(libc::SYS_socketpair, pairs.into_iter().collect::<Result<_, _>>()?);
    // With this flag, sending connects, and landlock is not asked.
    let connects = bits(libc::MSG_FASTOPEN);
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        rules.insert(call, vec![when([has_none_of(flags, connects)])?]);
    }
    Ok(rules)
}

fn by_network(network: Network) -> Result<Rules, String> {
    let families = [libc::AF_INET, libc::AF_INET6];
    let mut rules = Rules::new();
    match network {
        Network::None => {}
        Network::Proxy(_) => {
            let tcp = |family| {
                [0, libc::IPPROTO_TCP].map(|protocol| {
                    when([is(0, family), is_kind(1, libc::SOCK_STREAM), is(2, protocol)])
                })
            };
            let sockets = families.into_iter().flat_map(tcp).collect::<Result<_, _>>()?;
            // Where it connects to, the listener looks: a filter does not see it.
            rules.insert(libc::SYS_socket, sockets);
        }
        Network::Internet => {
            let mut sockets = Vec::new();
            for family in families {
                sockets.push(when([is(0, family)])?);
            }
            // Which addresses this machine has is asked for this way.
            sockets.push(when([is(0, libc::AF_NETLINK), is(2, libc::NETLINK_ROUTE)])?);
            rules.insert(libc::SYS_socket, sockets);
            for call in [
                libc::SYS_connect,
                libc::SYS_bind,
                libc::SYS_listen,
                libc::SYS_accept,
                libc::SYS_accept4,
            ] {
                rules.insert(call, Vec::new());
            }
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{
        ALLOWED, ALLOWED_NEWER, ALLOWED_OLDER, ATTRIBUTES, CONDITIONAL, REFUSED, REFUSED_NEWER,
        Verdict, allowing, bits,
    };
    use crate::{Network, tables::Table};
    use seccompiler::SeccompAction;

    #[test]
    fn a_call_is_in_one_table() {
        let tables: [Table; 7] = [
            ALLOWED,
            ALLOWED_OLDER,
            ALLOWED_NEWER,
            REFUSED,
            REFUSED_NEWER,
            ATTRIBUTES,
            CONDITIONAL,
        ];
        let all: Vec<_> = tables.into_iter().flatten().map(|(_, call)| *call).collect();
        let each: BTreeSet<_> = all.iter().collect();
        assert_eq!((all.len(), all.len() > 300), (each.len(), true));
    }

    #[test]
    fn a_filter_is_built_for_every_network() {
        for network in [Network::None, Network::Proxy(7), Network::Internet] {
            let program = allowing(network, SeccompAction::Trace(0));
            assert!(program.is_ok_and(|program| program.len() < 4_096), "{network:?}");
        }
    }

    #[test]
    fn what_is_refused_has_its_name_and_what_is_unknown_seems_to_be_missing() {
        let ptrace = Verdict { name: "ptrace".into(), errno: libc::EPERM };
        assert_eq!(Verdict::on(libc::SYS_ptrace, 0), ptrace);
        let network = Verdict { name: "the network".into(), errno: libc::EPERM };
        assert_eq!(Verdict::on(libc::SYS_socket, bits(libc::AF_INET6)), network);
        let unknown = Verdict { name: "an unknown system call".into(), errno: libc::ENOSYS };
        assert_eq!(Verdict::on(9_999, 0), unknown);
    }
}
