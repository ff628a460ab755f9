//! [`PacketIo`] of a real interface.

use crate::interface_hold::InterfaceHold;
use crate::io::{Losses, PacketIo};
use crate::net::{Address, LinkInfo, Network};
use crate::offload::{Offload, Refused};
use crate::sender::{SendBy, Sender};
use crate::sys::{PacketSocket, Received, RxRing};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Size of the receive ring in bytes: room for 4096 frames of 1514 bytes.
const RING_BYTES: usize = 8 << 20;
/// Maximum length of a superpacket in bytes (`gso_max_size`). The kernel allocates the memory on first use.
const MAX_SUPERPACKET: usize = (1 << 19) + 64;

/// An Ethernet interface that receives all incoming frames and sends frames unchanged.
///
/// The port belongs to the network namespace of the thread that opened it. Its descriptor is readable if frames are
/// pending or if the interface went down.
#[derive(Debug)]
pub struct Port {
    name: String,
    socket: PacketSocket,
    ring: RxRing,
    sender: Sender,
    losses: Losses,
    superpacket: Vec<u8>,
    segment: Vec<u8>,
    /// `None` if the caller manages the offloads.
    offloads: Option<InterfaceHold>,
}

/// Reason why an interface cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortError {
    name: String,
    kind: PortErrorKind,
    text: String,
}

asymq_core::error_texts!(PortError {
    Self { name, text, .. } => ("{name}: {text}"),
});

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortErrorKind {
    /// No such interface.
    Absent,
    /// The interface or its name is unsuitable for a gateway.
    Unfit,
    /// Another gateway holds the interface.
    Held,
    /// A privilege is missing, or a system call failed.
    System,
}

impl PortError {
    pub(crate) fn new(name: &str, kind: PortErrorKind, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind,
            text: text.into(),
        }
    }

    fn unfit(name: &str, text: impl Into<String>) -> Self {
        Self::new(name, PortErrorKind::Unfit, text)
    }

    pub(crate) fn system(name: &str, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source: io::Error| {
            let text = match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "raw frames need CAP_NET_RAW and CAP_NET_ADMIN; run as root, or give both to the program with setcap"
                        .into()
                }
                _ => format!("cannot {action}: {source}"),
            };
            Self::new(name, PortErrorKind::System, text)
        }
    }

    pub(crate) fn is(&self, kind: PortErrorKind) -> bool {
        self.kind == kind
    }

    /// The error's text without the interface's name.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// True if another interface or another configuration avoids the error.
    pub fn is_bad_input(&self) -> bool {
        !self.is(PortErrorKind::System)
    }
}

/// Checks a name by the kernel's rules (`dev_valid_name`, `sysctl_dev_name_is_allowed`).
pub fn check_interface_name(name: &str) -> Result<(), PortError> {
    // The kernel's white space is the white space of Latin-1. The kernel treats `%` as a pattern.
    let banned = |byte: u8| {
        matches!(byte, b'/' | b':' | b'%' | 0 | 0x0b | 0xa0) || byte.is_ascii_whitespace()
    };
    let is_name = (1..libc::IFNAMSIZ).contains(&name.len())
        && !matches!(name, "." | ".." | "all" | "default")
        && !name.bytes().any(banned);
    match is_name {
        true => Ok(()),
        false => Err(PortError::unfit(
            &format!("{name:?}"),
            "not an interface name; write 1 to 15 bytes without '/', ':', '%' or spaces, for example eth0",
        )),
    }
}

pub(crate) fn find(network: &mut Network, name: &str) -> Result<LinkInfo, PortError> {
    check_interface_name(name)?;
    let found = network
        .link_named(name)
        .map_err(PortError::system(name, "look it up"))?;
    let Some(link) = found else {
        let there = network.links().unwrap_or_default().into_iter();
        let there: Vec<String> = there.map(|link| link.name).collect();
        let text = format!("no such interface; the interfaces are {}", there.join(", "));
        return Err(PortError::new(name, PortErrorKind::Absent, text));
    };
    match link.hardware {
        libc::ARPHRD_ETHER if is_wifi(&link.name) => Err(PortError::unfit(
            name,
            "is Wi-Fi, which carries only the frames of one station: a bridge would cut off all other hosts; connect \
             this side by cable",
        )),
        libc::ARPHRD_ETHER => Ok(link),
        _ => Err(PortError::unfit(
            name,
            "not an Ethernet interface; a bridge needs whole Ethernet frames",
        )),
    }
}

pub(crate) fn is_wifi(name: &str) -> bool {
    let device = Path::new("/sys/class/net").join(name);
    device.join("phy80211").exists()
}

/// Fails if an interface has an address or a master. Addresses from router advertisements are allowed,
/// because they disappear when IPv6 is disabled.
pub(crate) fn check_unused(network: &mut Network, link: &LinkInfo) -> Result<(), PortError> {
    let name = &link.name;
    let ask = |action| PortError::system(name, action);
    if let Some(index) = link.master {
        let master = network.link(index).map_err(ask("look up its master"))?;
        let master = master.unwrap_or_default();
        let text = format!(
            "is in the {} {}, over which you may be logged in; a gateway is itself a bridge: on a router, use 'asymq \
             router' instead (docs/router/which-way.md); on a box between router and modem, take the port out of it, \
             from a console or over a third interface",
            master.kind_of_master(),
            master.name
        );
        return Err(PortError::unfit(name, text));
    }
    let addresses = network.addresses().map_err(ask("list its addresses"))?;
    let in_use = |of: &&Address| of.index == link.index && is_in_use(of);
    let Some(Address { ip, prefix, .. }) = addresses.iter().find(in_use) else {
        return Ok(());
    };
    let text = format!(
        "has the address {ip}/{prefix}, over which you may be logged in; on a router, use 'asymq router' instead \
         (docs/router/which-way.md); on a box between router and modem, move the address to a third interface, from a \
         console, and keep NetworkManager, systemd-networkd and dhcpcd from this one"
    );
    Err(PortError::unfit(name, text))
}

/// True if the address was configured. IPv6 addresses from router advertisements, and link-local ones, do not count.
pub(crate) const fn is_in_use(address: &Address) -> bool {
    match address.ip {
        IpAddr::V4(_) => true,
        IpAddr::V6(_) => address.global && !address.autoconfigured,
    }
}

impl Port {
    /// Opens the interface `name` of the calling thread's network namespace. Its GRO and LRO are off while it is open.
    ///
    /// # Errors
    /// There is no such Ethernet interface, or a privilege is missing.
    pub fn open(name: &str) -> Result<Self, PortError> {
        let system = |action| PortError::system(name, action);
        let mut network = Network::open().map_err(system("list interfaces"))?;
        let link = find(&mut network, name)?;
        let mut port = Self::open_link(&link, SendBy::AfPacket)?;
        let offloads = InterfaceHold::offloads(&mut network, &link);
        port.offloads = Some(offloads.map_err(system("change its offloads"))?);
        Ok(port)
    }

    /// Opens an Ethernet interface; the caller manages its offloads.
    pub(crate) fn open_link(link: &LinkInfo, by: SendBy) -> Result<Self, PortError> {
        let (name, index) = (link.name.as_str(), link.index);
        let system = |action| PortError::system(name, action);
        let socket = PacketSocket::new().map_err(system("open a packet socket"))?;
        let set = |option, value| socket.set(option, value);
        // All options are set before `bind` starts reception.
        set(libc::PACKET_VNET_HDR, 1).map_err(system("enable PACKET_VNET_HDR"))?;
        set(libc::PACKET_COPY_THRESH, 1).map_err(system("enable PACKET_COPY_THRESH"))?;
        set(libc::PACKET_IGNORE_OUTGOING, 1).map_err(system("enable PACKET_IGNORE_OUTGOING"))?;
        socket
            .set_receive_buffer(4 << 20)
            .map_err(system("set the size of the receive buffer"))?;
        let ring = RxRing::new(&socket, link.mtu as usize + 22, RING_BYTES)
            .map_err(system("make a receive ring"))?;
        socket
            .promiscuous(index)
            .map_err(system("enable promiscuous mode"))?;
        socket.bind(index, true).map_err(system("bind"))?;

        let sender = Sender::open(link, by).map_err(|error| match by {
            SendBy::AfXdp => PortError::unfit(
                name,
                format!("cannot send by AF_XDP ({error}); use --send auto"),
            ),
            _ => PortError::system(name, "open a socket for sending")(error),
        })?;
        Ok(Self {
            name: name.into(),
            socket,
            ring,
            sender,
            losses: Losses::default(),
            superpacket: vec![0; MAX_SUPERPACKET],
            segment: Vec::new(),
            offloads: None,
        })
    }

    /// Name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.ring.is_pending()
    }

    pub(crate) const fn sender(&self) -> &Sender {
        &self.sender
    }
}

impl PacketIo for Port {
    fn receive(&mut self, max: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let Self {
            socket,
            ring,
            losses,
            superpacket,
            segment,
            ..
        } = self;
        let mut shown = 0;
        let mut count = |frame: &[u8]| {
            shown += 1;
            each(frame);
        };
        // After the interface went down, reads all waiting frames.
        let (mut down, mut left) = (None, max);
        while left > 0 || down.is_some() {
            left = left.saturating_sub(1);
            let any = ring.next(|received| {
                if received.outgoing {
                } else if received.truncated {
                    losses.ring_full += 1;
                } else {
                    match take(
                        received,
                        socket,
                        &mut down,
                        superpacket,
                        segment,
                        &mut count,
                    ) {
                        Ok(()) => {}
                        Err(Refused::Malformed) => losses.malformed += 1,
                        Err(Refused::Unsegmentable) => losses.unsegmentable += 1,
                    }
                }
            });
            if !any {
                break;
            }
        }
        if let Some(error) = down {
            return Err(error);
        }
        if shown == 0
            && let Some(error) = socket.take_error()
        {
            return Err(error);
        }
        Ok(shown)
    }

    fn send(&mut self, frame: &[u8]) {
        self.sender.push(frame, &mut self.losses);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sender.flush(&mut self.losses)
    }

    fn losses(&mut self) -> Losses {
        self.losses.ring_full += u64::from(self.socket.take_kernel_drops());
        self.losses
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Restores a received frame to its form on the wire.
fn take(
    received: Received<'_>,
    socket: &PacketSocket,
    down: &mut Option<io::Error>,
    superpacket: &mut [u8],
    segment: &mut Vec<u8>,
    each: &mut dyn FnMut(&[u8]),
) -> Result<(), Refused> {
    let bytes = if received.queued {
        let mut answer = socket.receive(superpacket);
        if let Err(error) = &answer
            && error.kind() == io::ErrorKind::NetworkDown
        {
            // After an interface went down, the first call returns the error and the second call returns the frame.
            *down = answer.err();
            answer = socket.receive(superpacket);
        }
        match answer {
            Ok(len) if len < superpacket.len() => &mut superpacket[..len],
            _ => return Err(Refused::Malformed),
        }
    } else {
        received.bytes
    };
    let Some((header, _)) = bytes.split_first_chunk::<{ RxRing::VNET_HDR }>() else {
        return Err(Refused::Malformed);
    };
    let mut offload = Offload::read(header);
    let frame = match received.vlan {
        None => &mut bytes[RxRing::VNET_HDR..],
        Some(tag) => {
            // Reuses the space of the virtio_net_hdr: moves the addresses down and inserts the tag.
            const SHIFT: usize = RxRing::VNET_HDR - 4;
            if bytes.len() < RxRing::VNET_HDR + 14 {
                return Err(Refused::Malformed);
            }
            offload = offload.shifted(tag.len());
            bytes.copy_within(RxRing::VNET_HDR..RxRing::VNET_HDR + 12, SHIFT);
            bytes[SHIFT + 12..SHIFT + 16].copy_from_slice(&tag);
            &mut bytes[SHIFT..]
        }
    };
    offload.undo(frame, segment, each)
}
