//! Connecting for a confined process: to its proxy, and to nothing else.
//!
//! A filter does not see which address a call names, and landlock knows ports only. So the call is refused, and whoever listens
//! connects the very socket itself, to an address of its own: what stands in the memory of the caller is looked at only to tell it
//! that it may not go elsewhere.

use std::{
    fs::File,
    io,
    net::{Ipv4Addr, SocketAddrV4},
    os::unix::fs::FileExt as _,
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

/// A thread by its number, and not only the first of a process; Linux 6.9.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0x80);

/// A call to connect, as it was made.
pub(crate) struct Connect {
    /// By this thread.
    pub(crate) thread: i32,
    /// With this descriptor.
    pub(crate) descriptor: i32,
    /// To what lies here in its memory.
    pub(crate) address: u64,
}

impl Connect {
    /// Connects the socket to the proxy at this port, if that is what was asked for. `is_waiting` says whether the thread is still
    /// the one that called.
    pub(crate) fn to_proxy(&self, port: u16, is_waiting: impl Fn() -> bool) -> Result<(), Errno> {
        let proxy = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        // Whether it may be looked at is the kernel's rule (Yama), and no word on where it was to go.
        if self.asked().map_err(|_| Errno::PERM)? != Some(proxy) {
            return Err(Errno::ACCESS);
        }
        let thread = Pid::from_raw(self.thread).ok_or(Errno::SRCH)?;
        let thread = pidfd_open(thread, THREAD)?;
        let socket = pidfd_getfd(&thread, self.descriptor, PidfdGetfdFlags::empty())?;
        if !is_waiting() {
            return Err(Errno::SRCH);
        }
        rustix::net::connect(&socket, &proxy)
    }

    /// The address that was asked for, if it is of the one family that a proxy has.
    fn asked(&self) -> io::Result<Option<SocketAddrV4>> {
        let mut bytes = [0; 8];
        File::open(format!("/proc/{}/mem", self.thread))?
            .read_exact_at(&mut bytes, self.address)?;
        let [family @ .., _, _, _, _, _, _] = bytes;
        let [_, _, high, low, a, b, c, d] = bytes;
        if i32::from(u16::from_ne_bytes(family)) != libc::AF_INET {
            return Ok(None);
        }
        Ok(Some(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]))))
    }
}
