//! Interfaces and their addresses, over netlink.

use super::message::{Message, attributes};
use super::{Network, interface};
use std::io;
use std::net::IpAddr;

/// An interface as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkInfo {
    /// Its index, which stays when its name changes.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its link layer: 1 (`ARPHRD_ETHER`) for Ethernet.
    pub hardware: u16,
    /// The largest network packet that it carries.
    pub mtu: u32,
    /// Its Ethernet address; zero if it has none of six bytes.
    pub mac: [u8; 6],
    /// The kind of a virtual interface, such as `bridge` or `vlan`; empty for hardware.
    pub kind: String,
    /// The bridge or bond that it is in.
    pub master: Option<u32>,
    /// The interface that it stands on, as a VLAN does.
    pub below: Option<u32>,
    /// Administratively up.
    pub up: bool,
    /// With a carrier.
    pub carrier: bool,
    /// Takes part in ARP.
    pub arp: bool,
    /// Set to receive frames for any address; what sockets ask for is not counted.
    pub promiscuous: bool,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The interface's index.
    pub index: u32,
    /// The address.
    pub ip: IpAddr,
    /// Bits of its prefix.
    pub prefix: u8,
    /// Valid beyond its link.
    pub global: bool,
    /// Taken by the kernel from a router's announcement.
    pub autoconfigured: bool,
}

/// `IFA_PROTO` of an address (`linux/if_addr.h`), and its value for a router's announcement.
const IFA_PROTO: u16 = 11;
const FROM_ANNOUNCEMENT: u8 = 2;

impl Network {
    /// The interface of this index; `None` if there is none.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn link(&mut self, index: u32) -> io::Result<Option<LinkInfo>> {
        self.first(Message::get(libc::RTM_GETLINK).body(&interface(index, 0, 0)))
    }

    /// The interface of this name; `None` if there is none.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn link_named(&mut self, name: &str) -> io::Result<Option<LinkInfo>> {
        // Longer ones are answered with ERANGE.
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Ok(None);
        }
        let request = Message::get(libc::RTM_GETLINK).body(&interface(0, 0, 0));
        self.first(request.text(libc::IFLA_IFNAME, name))
    }

    /// All interfaces.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn links(&mut self) -> io::Result<Vec<LinkInfo>> {
        self.all(
            Message::dump(libc::RTM_GETLINK).body(&interface(0, 0, 0)),
            link,
        )
    }

    /// All addresses of all interfaces.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn addresses(&mut self) -> io::Result<Vec<Address>> {
        self.all(Message::dump(libc::RTM_GETADDR).body(&[0; 8]), address)
    }

    fn all<T>(&mut self, request: Message, read: fn(&[u8]) -> Option<T>) -> io::Result<Vec<T>> {
        let mut found = Vec::new();
        self.0.ask(request, &mut |body| found.extend(read(body)))?;
        Ok(found)
    }

    fn first(&mut self, request: Message) -> io::Result<Option<LinkInfo>> {
        match self.all(request, link) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            found => found.map(|mut found| found.pop()),
        }
    }
}

fn link(body: &[u8]) -> Option<LinkInfo> {
    let flags = number(body.get(8..)?)?.cast_signed();
    let mut found = LinkInfo {
        index: number(body.get(4..)?)?,
        hardware: u16::from_ne_bytes([*body.get(2)?, *body.get(3)?]),
        up: flags & libc::IFF_UP != 0,
        carrier: flags & libc::IFF_RUNNING != 0,
        arp: flags & libc::IFF_NOARP == 0,
        promiscuous: flags & libc::IFF_PROMISC != 0,
        ..LinkInfo::default()
    };
    for (kind, value) in attributes(body.get(16..)?) {
        match kind {
            libc::IFLA_IFNAME => found.name = text(value),
            libc::IFLA_ADDRESS => found.mac = value.try_into().unwrap_or_default(),
            libc::IFLA_MTU => found.mtu = number(value).unwrap_or_default(),
            libc::IFLA_MASTER => found.master = number(value),
            libc::IFLA_LINK => found.below = number(value),
            libc::IFLA_LINKINFO => {
                let info = attributes(value).find(|(kind, _)| *kind == libc::IFLA_INFO_KIND);
                found.kind = info.map(|(_, value)| text(value)).unwrap_or_default();
            }
            _ => {}
        }
    }
    Some(found)
}

fn address(body: &[u8]) -> Option<Address> {
    let [family, prefix, flags, scope] = *body.first_chunk()?;
    let index = number(body.get(4..)?)?;
    let (mut ip, mut protocol) = (None, None);
    for (kind, value) in attributes(body.get(8..)?) {
        match kind {
            // The other end's address stands in IFA_ADDRESS of a point-to-point interface.
            libc::IFA_LOCAL => ip = Some(value),
            libc::IFA_ADDRESS => ip = ip.or(Some(value)),
            IFA_PROTO => protocol = value.first().copied(),
            _ => {}
        }
    }
    let ip = match i32::from(family) {
        libc::AF_INET => IpAddr::from(<[u8; 4]>::try_from(ip?).ok()?),
        libc::AF_INET6 => IpAddr::from(<[u8; 16]>::try_from(ip?).ok()?),
        _ => return None,
    };
    let dynamic = u32::from(flags) & libc::IFA_F_PERMANENT == 0;
    Some(Address {
        index,
        ip,
        prefix,
        global: scope < libc::RT_SCOPE_LINK,
        // Before Linux 5.18 the kernel does not say who gave it.
        autoconfigured: ip.is_ipv6()
            && dynamic
            && protocol.is_none_or(|protocol| protocol == FROM_ANNOUNCEMENT),
    })
}

fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_ne_bytes)
}

fn text(value: &[u8]) -> String {
    let value = value.strip_suffix(&[0]).unwrap_or(value);
    String::from_utf8_lossy(value).into_owned()
}
