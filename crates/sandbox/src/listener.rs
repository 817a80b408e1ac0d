//! What the kernel reports about refused calls.
//!
//! It is the only file with unsafe code: no crate that we would depend on does this (ADR 27).
#![expect(unsafe_code, reason = "the kernel's interface for it has no safe binding")]

use std::{
    collections::BTreeMap,
    io,
    os::fd::{FromRawFd as _, OwnedFd},
    sync::{Mutex, PoisonError},
};

use rustix::{
    io::Errno,
    ioctl::{Opcode, Setter, Updater, ioctl, opcode},
};
use seccompiler::sock_filter;

use crate::{calls::Verdict, connect::Connect};

/// Hears of every call that the filter did not let through, and answers it.
#[derive(Debug)]
pub struct Listener(OwnedFd);

const RECEIVE: Opcode = opcode::read_write::<libc::seccomp_notif>(b'!', 0);
const SEND: Opcode = opcode::read_write::<libc::seccomp_notif_resp>(b'!', 1);
const WAITS: Opcode = opcode::write::<u64>(b'!', 2);
/// How a connection around the proxy is called.
const ELSEWHERE: &str = "a connection around the proxy";
/// How one is called of which the kernel does not say where it goes.
const UNSEEN: &str = "a connection whose address may not be looked at (kernel.yama.ptrace_scope)";

impl Listener {
    /// Sets this filter for the calling thread and all that it starts.
    pub(crate) fn set(program: &[sock_filter]) -> io::Result<Self> {
        let as_kernel = |step: &sock_filter| libc::sock_filter {
            code: step.code,
            jt: step.jt,
            jf: step.jf,
            k: step.k,
        };
        let mut steps: Vec<_> = program.iter().map(as_kernel).collect();
        let len = steps.len().try_into().map_err(io::Error::other)?;
        let program = libc::sock_fprog { len, filter: steps.as_mut_ptr() };
        // SAFETY: the kernel copies `len` steps from `filter`, which `steps` holds until the call returns, and keeps nothing.
        let listener = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
                &raw const program,
            )
        };
        let listener = i32::try_from(listener).map_err(io::Error::other)?;
        if listener < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel made this descriptor for us just now, and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(listener) }))
    }

    /// Waits for the next call that the filter did not let through, and answers it: a connection to the proxy is made, if there is
    /// one; everything else is refused, and counted by its name. Nobody goes on with a refusal that is not counted yet.
    pub fn next(
        &self,
        proxy: Option<u16>,
        refused: &Mutex<BTreeMap<String, u64>>,
    ) -> io::Result<()> {
        let data = libc::seccomp_data { nr: 0, arch: 0, instruction_pointer: 0, args: [0; 6] };
        let mut call = libc::seccomp_notif { id: 0, pid: 0, flags: 0, data };
        // SAFETY: `RECEIVE` reads and writes one `seccomp_notif`, and `call` is one, zeroed as the kernel asks for.
        let received = unsafe { ioctl(&self.0, Updater::<RECEIVE, _>::new(&mut call)) };
        match received {
            Ok(()) => {}
            // Whoever called is gone.
            Err(Errno::INTR | Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let (error, named) = self.judge(&call, proxy);
        let mut answer = libc::seccomp_notif_resp { id: call.id, val: 0, error, flags: 0 };
        // Whoever is refused may end at once, and is then reported with these counts.
        let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `SEND` reads one `seccomp_notif_resp`, and `answer` is one.
        let sent = unsafe { ioctl(&self.0, Updater::<SEND, _>::new(&mut answer)) };
        match sent {
            Ok(()) => {
                named.into_iter().for_each(|name| *refused.entry(name).or_default() += 1);
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What is answered, and what it is called if it is refused.
    fn judge(&self, call: &libc::seccomp_notif, proxy: Option<u16>) -> (i32, Option<String>) {
        let [first, second, ..] = call.data.args;
        if let Some(port) = proxy
            && i64::from(call.data.nr) == libc::SYS_connect
        {
            let (thread, descriptor) = (call.pid.cast_signed(), first as i32);
            let connect = Connect { thread, descriptor, address: second };
            return match connect.to_proxy(port, || self.is_waiting(call.id)) {
                Ok(()) => (0, None),
                Err(Errno::ACCESS) => (-libc::EACCES, Some(ELSEWHERE.into())),
                Err(Errno::PERM) => (-libc::EPERM, Some(UNSEEN.into())),
                Err(error) => (-error.raw_os_error(), None),
            };
        }
        let Verdict { name, errno } = Verdict::on(call.data.nr.into(), first);
        (-errno, Some(name))
    }

    /// Whether whoever made this call still waits for the answer.
    fn is_waiting(&self, id: u64) -> bool {
        // SAFETY: `WAITS` reads one `u64`.
        unsafe { ioctl(&self.0, Setter::<WAITS, _>::new(id)) }.is_ok()
    }
}
