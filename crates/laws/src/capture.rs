//! Conversion of pcap captures to arrivals, and of sent packets to captures.

use crate::arrival::{Arrival, set_number};
use alloc::vec::Vec;
use asymq_core::decide::frame::{FlowKey, parse};
use asymq_core::{Flow, Instant};

/// Linux TCP over an uplink of 1 Mbit/s: the first bytes of each packet in both directions. `kernel/test/record.py`
/// recorded them on the home side of a router.
pub const HOME: &[u8] = include_bytes!("home.pcap");

/// Magic number of a pcap file that is little-endian and has times in ns.
const MAGIC: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
const HEADER: usize = 24;
/// Length of an empty capture in bytes.
pub(crate) const EMPTY: usize = HEADER;
const SECOND: u64 = 1_000_000_000;

/// Reads the frames of an IP capture. Times count from the first frame, whose sender is at home. Frames from home get
/// numbers. Bytes that the capture cut off are replaced by zeros.
///
/// # Errors
/// The file is not a capture, or is truncated.
pub fn arrivals(pcap: &[u8]) -> Result<Vec<Arrival>, &'static str> {
    if word(pcap, 0) != Some(MAGIC) || word(pcap, 20) != Some(ETHERNET) {
        return Err("not a pcap file of Ethernet frames with nanoseconds, little-endian");
    }
    let key = FlowKey::new([3, 4]);
    let mut conversations: Vec<Flow> = Vec::new();
    let (mut arrivals, mut home, mut start) = (Vec::new(), [0; 6], None);
    let (mut at, mut next) = (HEADER, 0);
    while at < pcap.len() {
        let field = |index: usize| word(pcap, at + 4 * index).ok_or("a record is cut off");
        let (captured, length) = (field(2)? as usize, field(3)? as usize);
        let nanos = u64::from(field(0)?) * SECOND + u64::from(field(1)?);
        let mut bytes = pcap
            .get(at + 16..at + 16 + captured)
            .ok_or("a frame is cut off")?
            .to_vec();
        bytes.resize(length.max(60), 0);
        at += 16 + captured;
        let sender: [u8; 6] = core::array::from_fn(|index| bytes[6 + index]);
        if start.is_none() {
            home = sender;
        }
        let leaves = sender == home;
        let number: Option<u16> = leaves.then_some(next);
        if let Some(number) = number {
            set_number(&mut bytes, number);
            next += 1;
        }
        let flow = parse(&bytes, &key).header.flow;
        let known = conversations.iter().position(|known| *known == flow);
        let conversation = known.unwrap_or_else(|| {
            conversations.push(flow);
            conversations.len() - 1
        });
        arrivals.push(Arrival {
            at: Instant::from_nanos(nanos - *start.get_or_insert(nanos)),
            number,
            conversation: conversation as u16,
            bytes,
        });
    }
    Ok(arrivals)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

pub(crate) struct Capture(Vec<u8>);

impl Default for Capture {
    fn default() -> Self {
        let mut bytes = Vec::new();
        // Version 2.4, no time zone, no limit on captured bytes.
        for word in [MAGIC, 2 | 4 << 16, 0, 0, u32::MAX, ETHERNET] {
            bytes.extend(word.to_le_bytes());
        }
        Self(bytes)
    }
}

impl Capture {
    pub(crate) fn push(&mut self, at: Instant, frame: &[u8]) {
        let (nanos, len) = (at.as_nanos(), frame.len() as u32);
        for word in [(nanos / SECOND) as u32, (nanos % SECOND) as u32, len, len] {
            self.0.extend(word.to_le_bytes());
        }
        self.0.extend(frame);
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::decide::frame::ack_info;

    #[test]
    fn the_home_capture_has_filterable_acks_and_ecn_capable_senders() {
        let arrivals = arrivals(HOME).unwrap();
        let key = FlowKey::new([0, 0]);
        let (mut acks, mut marked, mut reverse) = (0, 0, 0);
        for arrival in &arrivals {
            let parsed = parse(&arrival.bytes, &key);
            match arrival.number {
                None => reverse += 1,
                Some(_) if parsed.header.is_pure_ack() => {
                    assert!(ack_info(&arrival.bytes, parsed.transport).is_some());
                    acks += 1;
                }
                Some(_) => marked += u32::from(parsed.header.ecn == asymq_core::Ecn::Ect0),
            }
        }
        assert!(
            acks > 200 && marked > 100 && reverse > 500,
            "{acks} {marked} {reverse}"
        );
    }

    #[test]
    fn other_files_and_truncated_captures_are_rejected() {
        assert!(arrivals(b"no capture").is_err());
        assert!(arrivals(&HOME[..HOME.len() - 1]).is_err());
    }
}
