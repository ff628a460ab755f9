//! Frames to which no host responds, sent and received on the hosts' interfaces.

use super::checksums;
use super::wait::{DEADLINE, wait_for};
use asymq_gateway::net::Netns;
use asymq_gateway::{PacketIo, Port};

/// An Ethernet address that no host uses.
pub(crate) const NOBODY: [u8; 6] = [2, 9, 9, 9, 9, 9];
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];

/// A frame of an experimental protocol, with a number in it.
pub(crate) fn numbered(number: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..6].copy_from_slice(&NOBODY);
    frame[6..12].copy_from_slice(&[2, 8, 8, 8, 8, 8]);
    frame[12..14].copy_from_slice(&EXPERIMENTAL);
    frame[20..24].copy_from_slice(&number.to_be_bytes());
    frame
}

/// A TCP segment of flow `port` over IPv4; `number` is its sequence and acknowledgement number. With zero `payload`, a
/// pure ACK.
pub(crate) fn segment(port: u16, number: u32, payload: usize) -> Vec<u8> {
    let mut frame = vec![0; 14 + 40 + payload];
    frame[..6].copy_from_slice(&NOBODY);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&((40 + payload) as u16).to_be_bytes());
    frame[23] = 6;
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&port.to_be_bytes());
    if payload > 0 {
        frame[38..42].copy_from_slice(&number.to_be_bytes());
    }
    frame[42..46].copy_from_slice(&number.to_be_bytes());
    frame[46..48].copy_from_slice(&[0x50, 0x10]);
    checksums::fill(&mut frame);
    frame
}

/// A segment of flow `port` in the reverse direction.
pub(crate) fn reverse_segment(port: u16, payload: usize) -> Vec<u8> {
    let mut frame = segment(port, 0, payload);
    frame[26..34].rotate_left(4);
    frame[34..38].rotate_left(2);
    checksums::fill(&mut frame);
    frame
}

/// Flow and acknowledgement number of a [`segment`].
pub(crate) fn port_and_number(frame: &[u8]) -> (u16, u32) {
    let port = u16::from_be_bytes([frame[34], frame[35]]);
    (port, u32::from_be_bytes(frame[42..46].try_into().unwrap()))
}

/// Sends frames from a host's interface, in order.
pub(crate) fn send(from: &Netns, frames: &[Vec<u8>]) {
    from.run(|| {
        let mut port = Port::open("eth").unwrap();
        for frame in frames {
            port.send(frame);
        }
        port.flush()?;
        assert_eq!(port.losses().not_sent, 0);
        Ok(())
    })
    .unwrap();
}

/// Collects the frames to [`NOBODY`] that arrive at a host's interface after the tap was opened.
pub(crate) struct Tap {
    port: Port,
    pub(crate) frames: Vec<Vec<u8>>,
}

impl Tap {
    pub(crate) fn open(at: &Netns) -> Self {
        Self {
            port: at.run(|| Ok(Port::open("eth").unwrap())).unwrap(),
            frames: Vec::new(),
        }
    }

    /// Collects all frames that have arrived; returns the number so far.
    pub(crate) fn poll(&mut self) -> usize {
        let frames = &mut self.frames;
        let mut keep = |frame: &[u8]| {
            if frame[..6] == NOBODY {
                frames.push(frame.to_vec());
            }
        };
        self.port.receive(usize::MAX, &mut keep).unwrap();
        self.frames.len()
    }

    /// Waits until this many frames have arrived.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, count: usize) {
        wait_for(&format!("{count} frames to arrive"), DEADLINE, || {
            self.poll() >= count
        });
    }
}
