//! The kernel's table of connections.

use super::message::{Message, Netlink, attributes, find};
use crate::sys::{add_membership, set_receive_buffer};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

// linux/netfilter/nfnetlink_conntrack.h
const NFNL_SUBSYS_CTNETLINK: u16 = 1;
const IPCTNL_MSG_CT_NEW: u16 = 0;
const IPCTNL_MSG_CT_GET: u16 = 1;
const IPCTNL_MSG_CT_DELETE: u16 = 2;
const GROUP_NEW: u32 = 1;
const GROUP_DESTROY: u32 = 3;
const CTA_TUPLE_ORIG: u16 = 1;
const CTA_TUPLE_REPLY: u16 = 2;
const CTA_TUPLE_IP: u16 = 1;
const CTA_TUPLE_PROTO: u16 = 2;
const CTA_IP_V4_SRC: u16 = 1;
const CTA_IP_V4_DST: u16 = 2;
const CTA_PROTO_NUM: u16 = 1;
const CTA_PROTO_SRC_PORT: u16 = 2;
const CTA_PROTO_DST_PORT: u16 = 3;
/// Size of the buffer for events in bytes.
const BUFFER: usize = 4 << 20;

/// A translated connection as seen on the line: address and port of the router, and address and port of the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Translated {
    pub(crate) ends: [Ipv4Addr; 2],
    pub(crate) ports: [u16; 2],
    pub(crate) protocol: u8,
}

/// A change of the kernel's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracked {
    /// A connection, and its host at home.
    New(Translated, Ipv4Addr),
    Gone(Translated),
}

/// A socket that receives changes of the table of its network namespace.
pub(crate) struct Conntrack(Netlink);

/// Addresses and ports of packets in one direction of a connection.
#[derive(Default)]
struct Tuple {
    ends: [Option<Ipv4Addr>; 2],
    ports: [u16; 2],
    protocol: u8,
}

impl Conntrack {
    pub(crate) fn open() -> io::Result<Self> {
        let netlink = Netlink::open_family(libc::NETLINK_NETFILTER)?;
        set_receive_buffer(netlink.socket(), BUFFER)?;
        for group in [GROUP_NEW, GROUP_DESTROY] {
            add_membership(netlink.socket(), group)?;
        }
        netlink.socket().set_nonblocking(true)?;
        Ok(Self(netlink))
    }

    /// Requests all connections; [`read`](Self::read) then reports them as new.
    pub(crate) fn reload(&mut self) -> io::Result<()> {
        let kind = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET;
        self.0
            .send(Message::dump(kind).body(&[libc::AF_INET as u8, 0, 0, 0]))
    }

    /// Calls `each` for every pending change.
    ///
    /// # Errors
    /// The kernel dropped changes because the buffer was full.
    pub(crate) fn read(&mut self, each: &mut dyn FnMut(Tracked)) -> io::Result<()> {
        const NEW: u16 = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW;
        const DELETE: u16 = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE;
        self.0.receive(&mut |kind, body| {
            let Some((connection, host)) = translated(body.get(4..).unwrap_or_default()) else {
                return;
            };
            match kind {
                NEW => each(Tracked::New(connection, host)),
                DELETE => each(Tracked::Gone(connection)),
                _ => {}
            }
        })
    }
}

impl AsFd for Conntrack {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.socket().as_fd()
    }
}

/// Returns a translated connection as seen on the line, and its host at home.
fn translated(body: &[u8]) -> Option<(Translated, Ipv4Addr)> {
    let [sent, replied] = [CTA_TUPLE_ORIG, CTA_TUPLE_REPLY].map(|kind| find(body, kind));
    let (sent, replied) = (Tuple::read(sent?), Tuple::read(replied?));
    let (from, to) = (sent.ends[0]?, sent.ends[1]?);
    let (replies_from, replies_to) = (replied.ends[0]?, replied.ends[1]?);
    let (ends, [far, near], home) = match from != replies_to {
        // A home host opened the connection: replies are addressed to the router.
        true => ([replies_to, replies_from], replied.ports, from),
        // The connection was opened from outside and forwarded to a home host.
        false => ([to, from], sent.ports, replies_from),
    };
    let ports = [near, far];
    let connection = Translated {
        ends,
        ports,
        protocol: sent.protocol,
    };
    (from != replies_to || to != replies_from).then_some((connection, home))
}

impl Tuple {
    fn read(bytes: &[u8]) -> Self {
        let mut tuple = Self::default();
        let address = |value: &[u8]| value.first_chunk::<4>().copied().map(Ipv4Addr::from);
        let port = |value: &[u8]| value.first_chunk().copied().map_or(0, u16::from_be_bytes);
        for (part, values) in attributes(bytes) {
            for (kind, value) in attributes(values) {
                match (part, kind) {
                    (CTA_TUPLE_IP, CTA_IP_V4_SRC) => tuple.ends[0] = address(value),
                    (CTA_TUPLE_IP, CTA_IP_V4_DST) => tuple.ends[1] = address(value),
                    (CTA_TUPLE_PROTO, CTA_PROTO_NUM) => {
                        tuple.protocol = value.first().copied().unwrap_or_default();
                    }
                    (CTA_TUPLE_PROTO, CTA_PROTO_SRC_PORT) => tuple.ports[0] = port(value),
                    (CTA_TUPLE_PROTO, CTA_PROTO_DST_PORT) => tuple.ports[1] = port(value),
                    _ => {}
                }
            }
        }
        tuple
    }
}
