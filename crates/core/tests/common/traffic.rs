//! Packets of many flows: ACKs, data and UDP.

use asymq_core::Ecn;
use asymq_core::packet::{Flow, Header, Network, Protocol, flags};
use asymq_core::units::Instant;

/// Returns hosts that are different for each flow.
pub(crate) fn network(header: &Header) -> Network {
    Network {
        hosts: [header.flow.0, !header.flow.0],
        dscp: header.flow.0 as u8 & 0x3f,
    }
}

/// Packet `number` of a sequence with this many flows in each direction.
pub(crate) fn packet(now: Instant, number: u64, flows: u64) -> Header {
    let flow = number / 4 % flows;
    let tcp = Header {
        arrival: now,
        flow: Flow(flow),
        len: 52,
        ip_len: 52,
        // Each ACK of a flow advances by half a full segment; a flow has two ACKs per round.
        ack: ((number / 4 / flows * 2 + number % 4 / 2) * 730) as u32,
        flags: flags::ACK,
        protocol: Protocol::Tcp,
        ..Header::default()
    };
    match number % 4 {
        0 | 2 => tcp,
        1 => Header {
            flow: Flow(flows + flow),
            len: 1500,
            ip_len: 1500,
            payload: 1448,
            ecn: Ecn::from_bits((number / 4) as u8),
            ..tcp
        },
        _ => Header {
            flow: Flow(2 * flows + flow),
            len: 200,
            ip_len: 200,
            flags: 0,
            ack: 0,
            protocol: Protocol::NonTcp,
            ..tcp
        },
    }
}
