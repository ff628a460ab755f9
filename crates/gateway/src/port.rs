//! A real interface as [`PacketIo`].

use crate::io::{Losses, PacketIo};
use crate::net::{Feature, set_feature};
use crate::offload::Offload;
use crate::sys::{Interfaces, PacketSocket, Received, RxRing, SendBatch};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Memory of the receive ring. 4096 frames of Ethernet's usual size.
const RING_BYTES: usize = 8 << 20;
/// The longest superpacket: 64 KiB above the link layer.
const MAX_SUPERPACKET: usize = (1 << 16) + 64;

/// An Ethernet interface, opened for whole frames: it receives all that come in, whoever they are
/// for, but not what this host sends, and sends frames as they are.
///
/// It belongs to the network namespace of the thread that opened it. Readable (in `poll`'s sense)
/// when frames wait or the interface went down.
#[derive(Debug)]
pub struct Port {
    name: String,
    index: u32,
    mtu: u32,
    socket: PacketSocket,
    ring: RxRing,
    batch: SendBatch,
    losses: Losses,
    /// A superpacket as taken from the socket's queue.
    superpacket: Vec<u8>,
    segment: Vec<u8>,
    merging: MergingOff,
}

/// An interface that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// There is none of this name.
    #[error("{name}: no such interface; there are {}", there.join(", "))]
    NoSuchInterface {
        /// As asked for.
        name: String,
        /// The interfaces of this network namespace.
        there: Vec<String>,
    },
    /// It is not Ethernet.
    #[error("{name}: not an Ethernet interface; a bridge needs whole Ethernet frames")]
    NotEthernet {
        /// As asked for.
        name: String,
    },
    /// The privilege is missing.
    #[error(
        "{name}: raw frames need CAP_NET_RAW and CAP_NET_ADMIN; run as root, or give the binary both with setcap"
    )]
    Privilege {
        /// As asked for.
        name: String,
    },
    /// A system call failed.
    #[error("{name}: {action}: {source}")]
    System {
        /// As asked for.
        name: String,
        /// What was attempted.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
}

impl Port {
    /// Opens the interface `name` of the calling thread's network namespace.
    ///
    /// # Errors
    /// No such interface, not Ethernet, a privilege is missing.
    pub fn open(name: &str) -> Result<Self, PortError> {
        let system = |action| {
            move |source: io::Error| match source.kind() {
                io::ErrorKind::PermissionDenied => PortError::Privilege { name: name.into() },
                _ => PortError::System {
                    name: name.into(),
                    action,
                    source,
                },
            }
        };
        let interfaces = Interfaces::new().map_err(system("ask for interfaces"))?;
        let index = interfaces
            .index(name)
            .map_err(|_| PortError::NoSuchInterface {
                name: name.into(),
                there: Interfaces::names(),
            })?;
        let (kind, _) = interfaces.hardware(name).map_err(system("ask its kind"))?;
        if kind != libc::ARPHRD_ETHER {
            return Err(PortError::NotEthernet { name: name.into() });
        }
        let mtu = interfaces.mtu(name).map_err(system("ask its MTU"))?;

        let socket = PacketSocket::new().map_err(system("open a packet socket"))?;
        let set = |option, value| socket.set(option, value);
        // Everything is in place before the socket is bound and frames come in.
        set(libc::PACKET_VNET_HDR, 1).map_err(system("ask for offload marks"))?;
        set(libc::PACKET_COPY_THRESH, 1).map_err(system("ask for superpackets"))?;
        set(libc::PACKET_IGNORE_OUTGOING, 1).map_err(system("leave out own frames"))?;
        socket
            .set_receive_buffer(4 << 20)
            .map_err(system("size the receive buffer"))?;
        let ring = RxRing::new(&socket, mtu as usize + 22, RING_BYTES)
            .map_err(system("make a receive ring"))?;
        socket
            .promiscuous(index)
            .map_err(system("go promiscuous"))?;
        socket.bind(index, true).map_err(system("bind"))?;

        let sender = PacketSocket::new().map_err(system("open a packet socket"))?;
        sender
            .set(libc::PACKET_QDISC_BYPASS, 1)
            .map_err(system("bypass its qdisc"))?;
        sender.bind(index, false).map_err(system("bind"))?;
        Ok(Self {
            name: name.into(),
            index,
            mtu,
            socket,
            ring,
            batch: SendBatch::new(sender),
            losses: Losses::default(),
            superpacket: vec![0; MAX_SUPERPACKET],
            segment: Vec::new(),
            merging: MergingOff::new(name),
        })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface's index.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Offloads that were on and are off while the port is open.
    pub fn switched_off(&self) -> &[&'static str] {
        &self.merging.names
    }

    /// The interface's MTU when it was opened.
    pub fn mtu(&self) -> u32 {
        self.mtu
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
        for _ in 0..max {
            let any = ring.next(|received| {
                if received.outgoing {
                } else if received.truncated {
                    losses.ring_full += 1;
                } else if !take(received, socket, superpacket, segment, &mut count) {
                    losses.malformed += 1;
                }
            });
            if !any {
                break;
            }
        }
        if shown == 0
            && let Some(error) = socket.take_error()
        {
            return Err(error);
        }
        Ok(shown)
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) {
        if !self.batch.push(frame) {
            // The error comes again at the next flush, which returns it.
            let _ = self.flush();
            self.batch.push(frame);
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.batch.send(&mut self.losses)
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

/// GRO and LRO kept off: the kernel would merge received frames only for us to split them again,
/// and what it merges inside a tunnel no `virtio_net_hdr` can tell.
#[derive(Debug)]
struct MergingOff {
    interface: String,
    features: Vec<Feature>,
    names: Vec<&'static str>,
}

impl MergingOff {
    fn new(interface: &str) -> Self {
        let mut off = Self {
            interface: interface.into(),
            features: Vec::new(),
            names: Vec::new(),
        };
        for (feature, name) in [(Feature::Gro, "GRO"), (Feature::Lro, "LRO")] {
            // Where it cannot be switched, superpackets are split all the same.
            if let Ok(true) = set_feature(interface, feature, false) {
                off.features.push(feature);
                off.names.push(name);
            }
        }
        off
    }
}

impl Drop for MergingOff {
    fn drop(&mut self) {
        for &feature in &self.features {
            // An interface that is gone needs nothing back.
            let _ = set_feature(&self.interface, feature, true);
        }
    }
}

/// Undoes what offloads did to a received frame; `false` if it is lost.
#[inline]
fn take(
    received: Received<'_>,
    socket: &PacketSocket,
    superpacket: &mut [u8],
    segment: &mut Vec<u8>,
    each: &mut dyn FnMut(&[u8]),
) -> bool {
    let bytes = if received.queued {
        match socket.receive(superpacket) {
            Ok(len) => &mut superpacket[..len],
            Err(_) => return false,
        }
    } else {
        received.bytes
    };
    let Some((header, _)) = bytes.split_first_chunk::<{ RxRing::VNET_HDR }>() else {
        return false;
    };
    let mut offload = Offload::read(header);
    let frame = match received.vlan {
        None => &mut bytes[RxRing::VNET_HDR..],
        Some(tag) => {
            // The virtio_net_hdr is read: its room takes the addresses, and theirs the tag.
            const SHIFT: usize = RxRing::VNET_HDR - 4;
            if bytes.len() < RxRing::VNET_HDR + 14 {
                return false;
            }
            offload = offload.shifted(tag.len());
            bytes.copy_within(RxRing::VNET_HDR..RxRing::VNET_HDR + 12, SHIFT);
            bytes[SHIFT + 12..SHIFT + 16].copy_from_slice(&tag);
            &mut bytes[SHIFT..]
        }
    };
    offload.undo(frame, segment, each).is_ok()
}
