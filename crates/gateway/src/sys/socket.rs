//! AF_PACKET sockets.

use super::check;
use socket2::{Domain, SockAddr, SockAddrStorage, Socket, Type};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// A non-blocking raw socket for whole frames of one interface.
#[derive(Debug)]
pub(crate) struct PacketSocket(Socket);

impl PacketSocket {
    /// Creates a socket that receives nothing until [`bind`](Self::bind).
    pub(crate) fn new() -> io::Result<Self> {
        // Protocol 0 receives nothing.
        Socket::new(Domain::PACKET, Type::RAW.nonblocking(), None).map(Self)
    }

    /// Binds the socket to an interface. If `receive` is true, it receives every frame; otherwise none.
    pub(crate) fn bind(&self, ifindex: u32, receive: bool) -> io::Result<()> {
        let protocol = if receive { libc::ETH_P_ALL } else { 0 } as u16;
        self.0.bind(&address(|address: &mut libc::sockaddr_ll| {
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = protocol.to_be();
            address.sll_ifindex = ifindex.cast_signed();
        }))
    }

    /// Enables promiscuous mode while the socket is open.
    pub(crate) fn promiscuous(&self, ifindex: u32) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: ifindex.cast_signed(),
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set_bytes(libc::PACKET_ADD_MEMBERSHIP, &membership)
    }

    /// Sets an integer option at packet level.
    pub(crate) fn set(&self, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        self.set_bytes(option, &value)
    }

    /// Sets an option at packet level; its value is a structure of integers.
    pub(super) fn set_bytes<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        set_option(&self.0, libc::SOL_PACKET, option, value)
    }

    /// Sets the size of the queue that takes frames too long for the ring.
    pub(crate) fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        set_receive_buffer(&self.0, bytes)
    }

    /// Receives one frame with its virtio_net_hdr from the queue for long frames. Returns the length; a frame that
    /// fills `into` may be truncated.
    pub(crate) fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(into)
    }

    /// Returns and clears the pending error: `NetworkDown` if the interface is down or gone.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        self.0.take_error().unwrap_or_else(Some)
    }

    /// Number of frames that the kernel dropped since the last call because ring and queue were full.
    pub(crate) fn take_kernel_drops(&self) -> u32 {
        let stats = get_option(&self.0, libc::SOL_PACKET, libc::PACKET_STATISTICS);
        stats.map_or(0, |stats: libc::tpacket_stats| stats.tp_drops)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sets the size of a receive buffer, without auto-tuning.
pub fn set_receive_buffer(socket: &Socket, bytes: usize) -> io::Result<()> {
    // The forced variant ignores net.core.rmem_max, but needs CAP_NET_ADMIN.
    let wanted = bytes as i32;
    let forced = set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &wanted);
    forced.or_else(|_| socket.set_recv_buffer_size(bytes))
}

/// Receives the events of a netlink group.
pub(crate) fn add_membership(socket: &Socket, group: u32) -> io::Result<()> {
    set_option(
        socket,
        libc::SOL_NETLINK,
        libc::NETLINK_ADD_MEMBERSHIP,
        &group,
    )
}

/// Sets an option that is an integer.
pub fn set_number(
    socket: &Socket,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    set_option(socket, level, option, &value)
}

/// Sets an option that is a structure of integers.
pub(super) fn set_option<T>(
    socket: &Socket,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let len = size_of_val(value) as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the value is valid for the call, and `len` is its length; the kernel only reads it.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, len) }).map(drop)
}

/// Reads an option that is a structure of integers.
///
/// # Errors
/// `Unsupported` if the kernel's structure has another length.
pub(super) fn get_option<T>(
    socket: &Socket,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<T> {
    // SAFETY: `T` consists of integers.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: both pointers are valid for the call, and `len` is the size of the buffer.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw mut value).cast(),
            &raw mut len,
        )
    })?;
    match len as usize == size_of::<T>() {
        true => Ok(value),
        false => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Creates a socket address; `write` sets its fields. `T` is a kernel address structure that consists of integers.
pub(super) fn address<T>(write: impl FnOnce(&mut T)) -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: zero is valid for integers, and the structures fit into the storage.
    write(unsafe { storage.view_as() });
    // SAFETY: an address of this length was just written.
    unsafe { SockAddr::new(storage, size_of::<T>() as libc::socklen_t) }
}
