//! Network namespaces, and the interfaces and offloads of the calling thread's namespace. Runs no external programs.

mod bypass;
mod conntrack;
mod hooks;
mod interfaces;
mod message;
mod netns;
mod offloads;
mod port_state;

pub use bypass::{BypassBlock, BypassRule, add_bypass, has_bypass, remove_bypass};
pub(crate) use conntrack::{Conntrack, Tracked, Translated};
pub use hooks::hooked_by;
pub use interfaces::{Address, LinkInfo};
pub use netns::Netns;
pub use offloads::{Feature, feature, link_speed, set_feature};
pub use port_state::PortState;

use message::{Message, Netlink, interface};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// One end of a new veth pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VethEnd<'a> {
    /// Name, at most 15 bytes.
    pub name: &'a str,
    /// Index that is unused in the namespace of this end.
    pub index: u32,
    /// Ethernet address.
    pub mac: [u8; 6],
}

/// A netlink connection to the network namespace of the thread that opened it.
///
/// Changes fail with `PermissionDenied` without CAP_NET_ADMIN, and with `AlreadyExists` if a name, index or address is
/// in use. Otherwise they return the kernel's error.
#[derive(Debug)]
pub struct Network(Netlink);

impl Network {
    /// Opens the connection.
    pub fn open() -> io::Result<Self> {
        Netlink::open().map(Self)
    }

    /// Creates a veth pair, with one end in the calling thread's namespace and one in `namespace`. Both ends are down.
    pub fn add_veth(
        &mut self,
        here: VethEnd<'_>,
        there: VethEnd<'_>,
        namespace: BorrowedFd<'_>,
    ) -> io::Result<()> {
        const VETH_INFO_PEER: u16 = 1;
        let end = |message: Message, end: VethEnd<'_>| {
            message
                .body(&interface(end.index, 0, 0))
                .text(libc::IFLA_IFNAME, end.name)
                .attribute(libc::IFLA_ADDRESS, &end.mac)
        };
        let fd = namespace.as_raw_fd().cast_unsigned().to_ne_bytes();
        let peer = |info: Message| {
            info.nest(VETH_INFO_PEER, |peer| {
                end(peer, there).attribute(libc::IFLA_NET_NS_FD, &fd)
            })
        };
        let request = end(Message::create(libc::RTM_NEWLINK), here);
        self.0.request(request.nest(libc::IFLA_LINKINFO, |info| {
            let info = info.text(libc::IFLA_INFO_KIND, "veth");
            info.nest(libc::IFLA_INFO_DATA, peer)
        }))
    }

    /// Brings an interface up.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        self.set_flag(index, libc::IFF_UP, true)
    }

    /// Takes an interface down.
    pub fn set_down(&mut self, index: u32) -> io::Result<()> {
        self.set_flag(index, libc::IFF_UP, false)
    }

    /// Sets or clears a flag, such as `IFF_NOARP`.
    pub fn set_flag(&mut self, index: u32, flag: libc::c_int, on: bool) -> io::Result<()> {
        let flag = flag.cast_unsigned();
        self.set_flags(index, if on { flag } else { 0 }, flag)
    }

    fn set_flags(&mut self, index: u32, flags: u32, changed: u32) -> io::Result<()> {
        let body = interface(index, flags, changed);
        self.0.request(Message::get(libc::RTM_NEWLINK).body(&body))
    }

    /// Renames an interface.
    pub fn rename(&mut self, index: u32, name: &str) -> io::Result<()> {
        self.0
            .request(Message::link(index).text(libc::IFLA_IFNAME, name))
    }

    /// Moves an interface into a network namespace, where it has the index and name `to`. There it is down, and has no
    /// addresses or routes.
    pub fn move_to(
        &mut self,
        index: u32,
        namespace: BorrowedFd<'_>,
        to: (u32, &str),
    ) -> io::Result<()> {
        const IFLA_NEW_IFINDEX: u16 = 49;
        let fd = namespace.as_raw_fd().cast_unsigned().to_ne_bytes();
        let request = Message::link(index)
            .attribute(libc::IFLA_NET_NS_FD, &fd)
            .text(libc::IFLA_IFNAME, to.1)
            .attribute(IFLA_NEW_IFINDEX, &to.0.to_ne_bytes());
        self.0.request(request)
    }

    /// Sets the MTU in bytes.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> io::Result<()> {
        self.set_number(index, libc::IFLA_MTU, mtu)
    }

    fn set_number(&mut self, index: u32, attribute: u16, value: u32) -> io::Result<()> {
        self.0
            .request(Message::link(index).attribute(attribute, &value.to_ne_bytes()))
    }

    /// Removes an interface, and its veth peer.
    pub fn delete(&mut self, index: u32) -> io::Result<()> {
        self.0
            .request(Message::get(libc::RTM_DELLINK).body(&interface(index, 0, 0)))
    }

    /// Adds an address to an interface.
    pub fn add_address(
        &mut self,
        index: u32,
        address: impl Into<IpAddr>,
        prefix: u8,
    ) -> io::Result<()> {
        let (family, octets) = match address.into() {
            IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
            IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
        };
        // ifaddrmsg: family, prefix, flags, scope, index.
        let mut body = [family as u8, prefix, 0, 0, 0, 0, 0, 0];
        body[4..].copy_from_slice(&index.to_ne_bytes());
        let request = Message::create(libc::RTM_NEWADDR).body(&body);
        let request = request.attribute(libc::IFA_LOCAL, &octets);
        self.0
            .request(request.attribute(libc::IFA_ADDRESS, &octets))
    }

    /// Adds a route to a host that is directly connected to an interface.
    pub fn add_route(&mut self, index: u32, address: Ipv4Addr) -> io::Result<()> {
        // rtmsg: family, prefix of destination and of source, TOS, table, protocol, scope, type, flags.
        let mut body = [0; 12];
        body[..2].copy_from_slice(&[libc::AF_INET as u8, 32]);
        body[4..6].copy_from_slice(&[libc::RT_TABLE_MAIN, libc::RTPROT_STATIC]);
        body[6..8].copy_from_slice(&[libc::RT_SCOPE_LINK, libc::RTN_UNICAST]);
        let request = Message::create(libc::RTM_NEWROUTE).body(&body);
        let request = request.attribute(libc::RTA_DST, &address.octets());
        self.0
            .request(request.attribute(libc::RTA_OIF, &index.to_ne_bytes()))
    }

    /// Adds a permanent neighbour entry.
    pub fn add_neighbour(&mut self, index: u32, address: Ipv4Addr, mac: [u8; 6]) -> io::Result<()> {
        // ndmsg: family, padding (3), index, state (2), flags, type.
        let mut body = [libc::AF_INET as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        body[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
        let request = Message::create(libc::RTM_NEWNEIGH).body(&body);
        let request = request.attribute(libc::NDA_DST, &address.octets());
        self.0.request(request.attribute(libc::NDA_LLADDR, &mac))
    }
}
