//! AF_PACKET sockets.

use super::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A raw socket on one interface. It receives and sends whole frames.
#[derive(Debug)]
pub(crate) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// A socket that sends only: no frame is received until [`bind`](Self::bind).
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW.
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; protocol 0 receives nothing.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: the descriptor is new and owned by nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Attaches the socket to an interface, receiving every frame or none.
    pub(crate) fn bind(&self, ifindex: u32, receive: bool) -> io::Result<()> {
        let protocol = if receive { libc::ETH_P_ALL } else { 0 } as u16;
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol.to_be(),
            sll_ifindex: ifindex.cast_signed(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: the address is valid for the call and its length is its own.
        check(unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as u32,
            )
        })?;
        Ok(())
    }

    /// Takes every frame that passes the interface, not only those addressed to it.
    pub(crate) fn promiscuous(&self, ifindex: u32) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: ifindex.cast_signed(),
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set_bytes(libc::PACKET_ADD_MEMBERSHIP, &membership)
    }

    /// Sets an integer option of the packet level.
    pub(crate) fn set(&self, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        self.set_bytes(option, &value)
    }

    /// Sets an option of the packet level that is a structure of plain integers.
    pub(super) fn set_bytes<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        set_option(self.as_fd(), libc::SOL_PACKET, option, value)
    }

    /// Room for received frames that wait outside the ring.
    pub(crate) fn set_receive_buffer(&self, bytes: libc::c_int) -> io::Result<()> {
        let set = |option| set_option(self.as_fd(), libc::SOL_SOCKET, option, &bytes);
        // The forced variant is not bound by net.core.rmem_max but wants CAP_NET_ADMIN.
        set(libc::SO_RCVBUFFORCE).or_else(|_| set(libc::SO_RCVBUF))
    }

    /// Takes one frame from the queue outside the ring, its virtio_net_hdr before it. Answers its
    /// length, which is beyond that of `into` if it was cut.
    pub(crate) fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the buffer is valid for its length during the call.
        let answer = unsafe {
            libc::recv(
                self.0.as_raw_fd(),
                into.as_mut_ptr().cast(),
                into.len(),
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            )
        };
        usize::try_from(answer).map_err(|_| io::Error::last_os_error())
    }

    /// The error that waits on the socket, cleared by asking: `NetworkDown` when its interface
    /// went down or away.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        let mut code: libc::c_int = 0;
        let mut len = size_of_val(&code) as libc::socklen_t;
        // SAFETY: both pointers are valid for the call, and `len` says how much room there is.
        let answer = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut code).cast(),
                &raw mut len,
            )
        };
        match check(answer) {
            Ok(_) if code == 0 => None,
            Ok(_) => Some(io::Error::from_raw_os_error(code)),
            Err(error) => Some(error),
        }
    }

    /// Frames that the kernel dropped because ring and queue were full, since last asked.
    pub(crate) fn take_kernel_drops(&self) -> u32 {
        let mut stats = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut len = size_of_val(&stats) as libc::socklen_t;
        // SAFETY: both pointers are valid for the call, and `len` says how much room there is.
        let answer = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut len,
            )
        };
        if answer == 0 { stats.tp_drops } else { 0 }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sets a socket option that is a plain integer or a structure of such.
pub(super) fn set_option<T>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the value is valid for the call and its length is its own; the kernel only reads it.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of_val(value) as libc::socklen_t,
        )
    })?;
    Ok(())
}
