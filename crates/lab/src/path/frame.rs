use asymq_core::decide::frame::{self, FlowKey};
use asymq_core::{Instant, Protocol};
use asymq_gateway::Frame;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Home,
    Servers,
}

/// Parses a frame with IPv4 and TCP or UDP; `None` for others. The frame's `len` is its IP length, which the access
/// link charges.
pub(crate) fn read(bytes: &[u8], from: Side, key: &FlowKey) -> Option<Frame> {
    let parsed = frame::parse(bytes, key);
    if parsed.header.protocol == Protocol::Opaque {
        return None;
    }
    let frame = Frame::new(Instant::ZERO, &parsed, parsed.header.ip_len, bytes.into());
    home_port(&frame, from).map(|_| frame)
}

/// TCP or UDP port at home, which identifies the conversation.
pub(crate) fn home_port(frame: &Frame, from: Side) -> Option<u16> {
    let ip = frame.bytes.get(usize::from(frame.network)..)?;
    let first = *ip.first()?;
    if first >> 4 != 4 {
        return None;
    }
    let port = usize::from(first & 0xf) * 4 + if from == Side::Home { 0 } else { 2 };
    Some(u16::from_be_bytes([*ip.get(port)?, *ip.get(port + 1)?]))
}

/// Delayed frames in order of departure time; frames with equal times stay in order.
#[derive(Default)]
pub(crate) struct DelayLine {
    frames: BTreeMap<(Instant, u64), Frame>,
    sequence: u64,
}

impl DelayLine {
    pub(crate) fn push(&mut self, at: Instant, frame: Frame) {
        self.frames.insert((at, self.sequence), frame);
        self.sequence += 1;
    }

    /// Removes the next frame that departs by `now`. Returns its departure time and the frame.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, Frame)> {
        let next = self.frames.first_entry()?;
        let (at, _) = *next.key();
        (at <= now).then(|| (at, next.remove()))
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        let ((at, _), _) = self.frames.first_key_value()?;
        Some(*at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP over IPv4 from port 5000 to 443.
    fn udp(first: u8) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 29, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame.extend([10, 0, 0, 2, 10, 0, 0, 1]);
        frame.extend([0x13, 0x88, 1, 0xbb, 0, 9, 0, 0, first]);
        frame
    }

    #[test]
    fn udp_crosses_the_path_with_any_payload() {
        // QUIC with a short and with a long header, RTP, and unknown content.
        for first in [0x40, 0xc0, 0x80, 0] {
            let frame = read(&udp(first), Side::Home, &FlowKey::new([1, 2])).unwrap();
            assert_eq!(home_port(&frame, Side::Home), Some(5000), "{first:#x}");
        }
    }
}
