//! Interfaces of the calling thread's network namespace, made and set up over netlink; their
//! offloads; and network namespaces themselves. No external program is needed.

mod features;
mod look;
mod message;
mod netns;

pub use features::{Feature, feature, set_feature};
pub use look::{Address, LinkInfo};
pub use netns::Netns;

use message::{Message, Route};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// One end of a veth pair to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VethEnd<'a> {
    /// Its name, at most 15 bytes.
    pub name: &'a str,
    /// Its index, free in its namespace.
    pub index: u32,
    /// Its Ethernet address.
    pub mac: [u8; 6],
}

/// A netlink connection to the network namespace that the calling thread was in when it was made.
#[derive(Debug)]
pub struct Network(Route);

impl Network {
    /// Connects.
    ///
    /// # Errors
    /// The kernel gives no netlink socket.
    pub fn open() -> io::Result<Self> {
        Route::open().map(Self)
    }

    /// Makes a veth pair: one end here, the other in the namespace `there`, both down.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_ADMIN in both, `AlreadyExists` for a name or index in use.
    pub fn add_veth(
        &mut self,
        here: VethEnd<'_>,
        there: VethEnd<'_>,
        namespace: BorrowedFd<'_>,
    ) -> io::Result<()> {
        const VETH_INFO_PEER: u16 = 1;
        let end = |message: &mut Message, end: VethEnd<'_>| {
            message.text(libc::IFLA_IFNAME, end.name);
            message.attribute(libc::IFLA_ADDRESS, &end.mac);
        };
        let mut request = Message::create(libc::RTM_NEWLINK);
        request.body(&interface(here.index, 0));
        end(&mut request, here);
        request.nest(libc::IFLA_LINKINFO, |request| {
            request.text(libc::IFLA_INFO_KIND, "veth");
            request.nest(libc::IFLA_INFO_DATA, |request| {
                request.nest(VETH_INFO_PEER, |request| {
                    request.body(&interface(there.index, 0));
                    end(request, there);
                    let fd = namespace.as_raw_fd().cast_unsigned();
                    request.attribute(libc::IFLA_NET_NS_FD, &fd.to_ne_bytes());
                });
            });
        });
        self.0.request(request)
    }

    /// Brings an interface up.
    ///
    /// # Errors
    /// There is none of this index, or the caller lacks CAP_NET_ADMIN.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut request = Message::change(libc::RTM_NEWLINK);
        request.body(&interface(index, libc::IFF_UP as u32));
        self.0.request(request)
    }

    /// Takes an interface down.
    ///
    /// # Errors
    /// There is none of this index, or the caller lacks CAP_NET_ADMIN.
    pub fn set_down(&mut self, index: u32) -> io::Result<()> {
        let mut request = Message::change(libc::RTM_NEWLINK);
        let mut body = interface(index, libc::IFF_UP as u32);
        body[8..12].fill(0);
        request.body(&body);
        self.0.request(request)
    }

    /// Lets an interface take part in ARP, or not.
    ///
    /// # Errors
    /// There is none of this index, or the caller lacks CAP_NET_ADMIN.
    pub fn set_arp(&mut self, index: u32, on: bool) -> io::Result<()> {
        let mut request = Message::change(libc::RTM_NEWLINK);
        let mut body = interface(index, libc::IFF_NOARP as u32);
        if on {
            body[8..12].fill(0);
        }
        request.body(&body);
        self.0.request(request)
    }

    /// Gives an interface another name.
    ///
    /// # Errors
    /// There is none of this index, the name is taken, or the caller lacks CAP_NET_ADMIN.
    pub fn rename(&mut self, index: u32, name: &str) -> io::Result<()> {
        let mut request = Message::change(libc::RTM_NEWLINK);
        request.body(&interface(index, 0));
        request.text(libc::IFLA_IFNAME, name);
        self.0.request(request)
    }

    /// Makes a bridge, down.
    ///
    /// # Errors
    /// `AlreadyExists` for a name or index in use; the kernel has no bridges; CAP_NET_ADMIN is
    /// missing.
    pub fn add_bridge(&mut self, name: &str, index: u32) -> io::Result<()> {
        let mut request = Message::create(libc::RTM_NEWLINK);
        request.body(&interface(index, 0));
        request.text(libc::IFLA_IFNAME, name);
        request.nest(libc::IFLA_LINKINFO, |request| {
            request.text(libc::IFLA_INFO_KIND, "bridge");
        });
        self.0.request(request)
    }

    /// Puts an interface into a bridge or bond.
    ///
    /// # Errors
    /// There is none of this index, it cannot, or the caller lacks CAP_NET_ADMIN.
    pub fn set_master(&mut self, index: u32, master: u32) -> io::Result<()> {
        let mut request = Message::change(libc::RTM_NEWLINK);
        request.body(&interface(index, 0));
        request.attribute(libc::IFLA_MASTER, &master.to_ne_bytes());
        self.0.request(request)
    }

    /// Sets the largest packet that an interface carries.
    ///
    /// # Errors
    /// There is none of this index, it cannot, or the caller lacks CAP_NET_ADMIN.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> io::Result<()> {
        let mut request = Message::change(libc::RTM_NEWLINK);
        request.body(&interface(index, 0));
        request.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
        self.0.request(request)
    }

    /// Removes an interface, and its peer with it if it is one of a pair.
    ///
    /// # Errors
    /// There is none of this index, or the caller lacks CAP_NET_ADMIN.
    pub fn delete(&mut self, index: u32) -> io::Result<()> {
        let mut request = Message::change(libc::RTM_DELLINK);
        request.body(&interface(index, 0));
        self.0.request(request)
    }

    /// Gives an interface an address.
    ///
    /// # Errors
    /// There is no such interface, or it has the address.
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
        let mut request = Message::create(libc::RTM_NEWADDR);
        // ifaddrmsg: family, prefix, flags, scope, index.
        let mut body = [family as u8, prefix, 0, 0, 0, 0, 0, 0];
        body[4..].copy_from_slice(&index.to_ne_bytes());
        request.body(&body);
        request.attribute(libc::IFA_LOCAL, &octets);
        request.attribute(libc::IFA_ADDRESS, &octets);
        self.0.request(request)
    }

    /// Sends what is for a host of its own network out of an interface.
    ///
    /// # Errors
    /// There is no such interface, it is down, or there is such a route.
    pub fn add_route(&mut self, index: u32, address: Ipv4Addr) -> io::Result<()> {
        let mut request = Message::create(libc::RTM_NEWROUTE);
        // rtmsg: family, prefix of destination and of source, TOS, table, protocol, scope, type, flags.
        request.body(&[
            libc::AF_INET as u8,
            32,
            0,
            0,
            libc::RT_TABLE_MAIN,
            libc::RTPROT_STATIC,
            libc::RT_SCOPE_LINK,
            libc::RTN_UNICAST,
            0,
            0,
            0,
            0,
        ]);
        request.attribute(libc::RTA_DST, &address.octets());
        request.attribute(libc::RTA_OIF, &index.to_ne_bytes());
        self.0.request(request)
    }

    /// Tells for good which Ethernet address a neighbour has, so that nobody asks by ARP.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn add_neighbour(&mut self, index: u32, address: Ipv4Addr, mac: [u8; 6]) -> io::Result<()> {
        let mut request = Message::create(libc::RTM_NEWNEIGH);
        // ndmsg: family, padding (3), index, state (2), flags, type.
        let mut body = [libc::AF_INET as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        body[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
        request.body(&body);
        request.attribute(libc::NDA_DST, &address.octets());
        request.attribute(libc::NDA_LLADDR, &mac);
        self.0.request(request)
    }
}

/// An `ifinfomsg`: family, padding, type (2), index, flags, and which flags to change.
fn interface(index: u32, flags: u32) -> [u8; 16] {
    let mut body = [0; 16];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body[12..].copy_from_slice(&flags.to_ne_bytes());
    body
}
