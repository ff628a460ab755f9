//! Interfaces and their addresses, read over netlink.

use super::Network;
use super::message::{Message, attributes, find, interface, text, word};
use std::io;
use std::net::IpAddr;

/// An interface as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkInfo {
    /// Index; it does not change when the interface is renamed.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Link-layer type, such as `ARPHRD_ETHER`.
    pub hardware: u16,
    /// MTU in bytes.
    pub mtu: u32,
    /// Ethernet address; zero if it does not have six bytes.
    pub mac: [u8; 6],
    /// Kind of a virtual interface, such as `bridge` or `vlan`; empty for hardware.
    pub kind: String,
    /// Index of the bridge or bond to which the interface belongs.
    pub master: Option<u32>,
    /// Index of the lower interface, for example of a VLAN.
    pub below: Option<u32>,
    /// True if administratively up.
    pub up: bool,
    /// True if the interface has a carrier.
    pub carrier: bool,
    /// Flags, such as `IFF_NOARP`. `IFF_PROMISC` does not include requests by packet sockets.
    pub flags: libc::c_int,
}

impl LinkInfo {
    /// True if this interface is stacked on `below`, for example as its VLAN. A veth end is not stacked on its peer.
    pub fn is_on(&self, below: &Self) -> bool {
        self.below == Some(below.index) && self.kind != "veth"
    }

    /// Kind of a master for messages; a kind that the kernel does not report is shown as `bridge`.
    pub fn kind_of_master(&self) -> &str {
        match self.kind.as_str() {
            "" => "bridge",
            kind => kind,
        }
    }
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Index of the interface.
    pub index: u32,
    /// Address.
    pub ip: IpAddr,
    /// Prefix length.
    pub prefix: u8,
    /// True if the address is valid beyond this link.
    pub global: bool,
    /// True if the address comes from a router advertisement.
    pub autoconfigured: bool,
}

const IFA_PROTO: u16 = 11;
const FROM_ANNOUNCEMENT: u8 = 2;

impl Network {
    /// Returns the interface of this index, if it exists.
    pub fn link(&mut self, index: u32) -> io::Result<Option<LinkInfo>> {
        self.first(Message::get(libc::RTM_GETLINK).body(&interface(index, 0, 0)))
    }

    /// Returns the interface of this name, if it exists.
    pub fn link_named(&mut self, name: &str) -> io::Result<Option<LinkInfo>> {
        // For such a name, the kernel would answer ERANGE.
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Ok(None);
        }
        let request = Message::get(libc::RTM_GETLINK).body(&interface(0, 0, 0));
        self.first(request.text(libc::IFLA_IFNAME, name))
    }

    /// Returns all interfaces.
    pub fn links(&mut self) -> io::Result<Vec<LinkInfo>> {
        self.all(
            Message::dump(libc::RTM_GETLINK).body(&interface(0, 0, 0)),
            link,
        )
    }

    /// Returns all addresses.
    pub fn addresses(&mut self) -> io::Result<Vec<Address>> {
        self.all(Message::dump(libc::RTM_GETADDR).body(&[0; 8]), address)
    }

    /// Returns the index of the interface through which packets to an address leave.
    pub fn route_to(&mut self, address: IpAddr) -> io::Result<Option<u32>> {
        let (family, octets) = match address {
            IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
            IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
        };
        let mut body = [0; 12];
        body[..2].copy_from_slice(&[family as u8, octets.len() as u8 * 8]);
        let request = Message::get(libc::RTM_GETROUTE).body(&body);
        let found = self.all(request.attribute(libc::RTA_DST, &octets), |body| {
            word(find(body.get(12..)?, libc::RTA_OIF)?, 0)
        });
        found.map(|found| found.first().copied())
    }

    /// Returns the kind of the qdisc configured at an interface; `None` for the kernel's default.
    pub fn qdisc(&mut self, index: u32) -> io::Result<Option<String>> {
        // tcmsg: family, padding, index, handle, parent, info.
        let mut body = [0; 20];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        let found = self.all(Message::dump(libc::RTM_GETQDISC).body(&body), |body| {
            let kind = find(body.get(20..)?, libc::TCA_KIND)?;
            Some((word(body, 4)?, word(body, 8)?, text(kind)))
        });
        let set = found?
            .into_iter()
            .find(|(of, handle, _)| *of == index && *handle != 0);
        Ok(set.map(|(.., kind)| kind))
    }

    pub(super) fn all<T>(
        &mut self,
        request: Message,
        read: fn(&[u8]) -> Option<T>,
    ) -> io::Result<Vec<T>> {
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
    let flags = word(body, 8)?.cast_signed();
    let mut found = LinkInfo {
        index: word(body, 4)?,
        hardware: u16::from_ne_bytes([*body.get(2)?, *body.get(3)?]),
        up: flags & libc::IFF_UP != 0,
        carrier: flags & libc::IFF_RUNNING != 0,
        flags,
        ..LinkInfo::default()
    };
    for (kind, value) in attributes(body.get(16..)?) {
        match kind {
            libc::IFLA_IFNAME => found.name = text(value),
            libc::IFLA_ADDRESS => found.mac = value.try_into().unwrap_or_default(),
            libc::IFLA_MTU => found.mtu = word(value, 0).unwrap_or_default(),
            libc::IFLA_MASTER => found.master = word(value, 0),
            libc::IFLA_LINK => found.below = word(value, 0),
            libc::IFLA_LINKINFO => {
                found.kind = find(value, libc::IFLA_INFO_KIND).map_or_else(String::new, text);
            }
            _ => {}
        }
    }
    Some(found)
}

fn address(body: &[u8]) -> Option<Address> {
    let [family, prefix, flags, scope] = *body.first_chunk()?;
    let index = word(body, 4)?;
    let (mut ip, mut protocol) = (None, None);
    for (kind, value) in attributes(body.get(8..)?) {
        match kind {
            // On a point-to-point interface, IFA_ADDRESS is the address of the peer.
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
        // Kernels before Linux 5.18 do not report the origin.
        autoconfigured: ip.is_ipv6()
            && dynamic
            && protocol.is_none_or(|protocol| protocol == FROM_ANNOUNCEMENT),
    })
}
