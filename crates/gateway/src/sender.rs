//! Sends frames by AF_XDP if possible, otherwise by AF_PACKET.

use crate::io::Losses;
use crate::net::LinkInfo;
use crate::sys::{PacketSocket, SendBatch, XdpSender};
use std::io;

asymq_core::named! {
    /// Configured method of sending.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum SendBy {
        /// AF_XDP on veth and hardware, if the kernel supports it; otherwise AF_PACKET.
        #[default]
        Auto = "auto",
        /// Only AF_XDP.
        AfXdp = "af-xdp",
        /// Only AF_PACKET.
        AfPacket = "af-packet",
    }
}

asymq_core::read_by_name!(SendBy, "unknown; use auto, af-xdp or af-packet");

asymq_core::named! {
    /// Method of sending frames.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Sending {
        /// AF_XDP socket in copy mode. AF_PACKET still sends frames longer than the MTU or than a page.
        AfXdp = "af-xdp",
        /// AF_PACKET socket.
        AfPacket = "af-packet",
    }
}

asymq_core::show_by_name!(Sending);

/// Sends frames of one interface in order.
#[derive(Debug)]
pub(crate) struct Sender {
    packet: SendBatch,
    xdp: Result<XdpSender, String>,
    /// Maximum length of an untagged frame for AF_XDP, which does not check the MTU.
    longest: usize,
}

const HEADER: usize = 14;
const TAG: usize = 4;

impl Sender {
    /// Opens the sockets that `by` selects.
    pub(crate) fn open(link: &LinkInfo, by: SendBy) -> io::Result<Self> {
        let socket = PacketSocket::new()?;
        socket.set(libc::PACKET_QDISC_BYPASS, 1)?;
        socket.bind(link.index, false)?;
        let longest = link.mtu as usize + HEADER;
        let open = || XdpSender::new(link.index, (longest + TAG).min(4096));
        let xdp = match by {
            SendBy::AfPacket => Err(String::new()),
            // Stacked interfaces select queues by header fields that AF_XDP does not set.
            SendBy::Auto if !matches!(link.kind.as_str(), "" | "veth") => {
                Err(format!("not tried on a {} interface", link.kind))
            }
            SendBy::Auto => open().map_err(|error| error.to_string()),
            SendBy::AfXdp => Ok(open()?),
        };
        Ok(Self {
            packet: SendBatch::new(socket),
            xdp,
            longest,
        })
    }

    /// Method that sends most frames.
    pub(crate) const fn sending(&self) -> Sending {
        match self.xdp {
            Ok(_) => Sending::AfXdp,
            Err(_) => Sending::AfPacket,
        }
    }

    /// Reason why AF_XDP is not used, unless [`SendBy`] excludes it.
    pub(crate) fn fallback(&self) -> Option<&str> {
        let why = self.xdp.as_ref().err()?;
        Some(why.as_str()).filter(|why| !why.is_empty())
    }

    /// Queues a copy of the frame. Sends queued frames first if there is no room.
    pub(crate) fn push(&mut self, frame: &[u8], losses: &mut Losses) {
        if let Ok(xdp) = &mut self.xdp
            && fits(frame, self.longest.min(xdp.longest() - TAG))
        {
            // Ignores errors here and below: if the fault persists, a later flush returns an error.
            if !self.packet.is_empty() {
                let _ = self.packet.send(losses);
            }
            if !xdp.push(frame) {
                let _ = self.send_by_xdp(losses);
                if !self.xdp.as_mut().is_ok_and(|xdp| xdp.push(frame)) {
                    losses.not_sent += 1;
                }
            }
            return;
        }
        let _ = self.send_by_xdp(losses);
        if self.is_waiting() {
            // The frame would overtake queued frames if it were sent now.
            losses.not_sent += 1;
            return;
        }
        if !self.packet.push(frame) {
            let _ = self.packet.send(losses);
            self.packet.push(frame);
        }
    }

    /// Sends all frames for which there is room.
    pub(crate) fn flush(&mut self, losses: &mut Losses) -> io::Result<()> {
        self.send_by_xdp(losses)?;
        self.packet.send(losses)
    }

    /// True if frames are queued for the next [`flush`](Self::flush), for lack of room.
    pub(crate) fn is_waiting(&self) -> bool {
        self.xdp.as_ref().is_ok_and(XdpSender::is_waiting)
    }

    fn send_by_xdp(&mut self, losses: &mut Losses) -> io::Result<()> {
        let Ok(xdp) = &mut self.xdp else {
            return Ok(());
        };
        if !xdp.is_waiting() {
            return Ok(());
        }
        let sent = xdp.send(losses);
        // Closes the socket, so that its queued frames are not sent when the interface returns.
        if let Err(error) = &sent {
            self.xdp = Err(error.to_string());
        }
        sent
    }
}

/// True if a frame has at most `longest` bytes without its VLAN tag.
fn fits(frame: &[u8], longest: usize) -> bool {
    let is_tagged = || matches!(frame[12..14], [0x81, 0] | [0x88, 0xa8]);
    frame.len() >= HEADER && (frame.len() <= longest || frame.len() <= longest + TAG && is_tagged())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::PacketIo as _;
    use crate::net::Network;
    use crate::sys::xdp::tests::{INDEX, Pair};
    use std::process::Command;
    use std::time::Instant;

    #[test]
    fn af_packet_replaces_a_failing_af_xdp_with_the_reason() {
        let Some(Pair { here, .. }) = &Pair::new() else {
            return;
        };
        let open = |index, by| {
            let link = || -> io::Result<_> { Ok(Network::open()?.link(index)?.unwrap()) };
            here.run(|| Sender::open(&link()?, by))
        };
        let first = open(INDEX, SendBy::Auto).unwrap();
        assert_eq!((first.sending(), first.fallback()), (Sending::AfXdp, None));
        let second = open(INDEX, SendBy::Auto).unwrap();
        assert_eq!(second.sending(), Sending::AfPacket);
        let why = second.fallback().unwrap();
        assert!(why.contains("busy"), "{why}");
        assert!(open(INDEX, SendBy::AfXdp).is_err());
        let bridge = "link add name bridge index 12 type bridge".split(' ');
        let made = here.run(|| Command::new("ip").args(bridge).status());
        assert!(made.unwrap().success());
        let bridge = open(12, SendBy::Auto).unwrap();
        assert_eq!(bridge.fallback(), Some("not tried on a bridge interface"));
        let forced = open(INDEX, SendBy::AfPacket).unwrap();
        assert_eq!(forced.fallback(), None);
    }

    #[test]
    fn frames_leave_in_order_whichever_way_each_takes() {
        let Some(Pair {
            here,
            there,
            mut far,
        }) = Pair::new()
        else {
            return;
        };
        for (by, way) in [
            (SendBy::Auto, Sending::AfXdp),
            (SendBy::AfPacket, Sending::AfPacket),
        ] {
            let open = || {
                let link = Network::open()?.link(INDEX)?.unwrap();
                // Raises the MTU after opening, so that AF_PACKET must send the longer frames.
                let sender = Sender::open(&link, by);
                Network::open()?.set_mtu(INDEX, 3000)?;
                sender
            };
            let mut sender = here.run(open).unwrap();
            there.run(|| Network::open()?.set_mtu(INDEX, 3000)).unwrap();
            assert_eq!(sender.sending(), way);
            let tag = [0x81, 0, 0, 7];
            let mut frames: Vec<Vec<u8>> = (0..1000u32)
                .map(|number| {
                    let len = 60 + number as usize * 7919 % 1460;
                    let mut frame = vec![number as u8; len];
                    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
                    if number % 5 == 0 {
                        frame[12..16].copy_from_slice(&tag);
                    }
                    frame
                })
                .collect();
            frames[501] = frames[501].repeat(100)[..3014].to_vec();
            let mut losses = Losses::default();
            let mut come = Vec::new();
            let mut receive = |come: &mut Vec<Vec<u8>>| {
                let mut each = |frame: &[u8]| {
                    if frame[6..12] == [frame[0]; 6] {
                        come.push(frame.to_vec());
                    }
                };
                far.receive(usize::MAX, &mut each).unwrap();
            };
            for (number, frame) in frames.iter().enumerate() {
                sender.push(frame, &mut losses);
                if number % 37 == 0 {
                    sender.flush(&mut losses).unwrap();
                }
            }
            sender.flush(&mut losses).unwrap();
            assert_eq!(losses, Losses::default());
            let since = Instant::now();
            while come.len() < frames.len() {
                assert!(since.elapsed().as_secs() < 30, "{way}: {} came", come.len());
                receive(&mut come);
            }
            assert!(come == frames, "{way}: in order and whole");
            here.run(|| Network::open()?.set_mtu(INDEX, 1500)).unwrap();
        }
    }

    #[test]
    fn a_way_is_named_as_in_flags() {
        assert_eq!(Sending::AfXdp.name().parse(), Ok(SendBy::AfXdp));
        assert_eq!(Sending::AfPacket.name().parse(), Ok(SendBy::AfPacket));
        assert_eq!("auto".parse(), Ok(SendBy::Auto));
        let error = "xdp".parse::<SendBy>().unwrap_err();
        assert_eq!(error, "unknown; use auto, af-xdp or af-packet");
    }
}
