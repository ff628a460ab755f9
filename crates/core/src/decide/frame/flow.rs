//! Conversations as keyed hashes.

use super::ip::{Addresses, Ip};
use crate::packet::Flow;
use core::hash::Hasher;
use siphasher::sip::SipHasher13;

/// Addresses, protocol and ports of a packet.
pub(super) struct Conversation {
    addresses: Addresses,
    protocol: u8,
    ports: u32,
}

impl Conversation {
    /// `ports` are the source's in the upper and the destination's in the lower 16 bits.
    #[inline]
    pub(super) fn new(ip: &Ip<'_>, ports: u32) -> Self {
        Self {
            addresses: ip.addresses,
            protocol: ip.protocol,
            ports,
        }
    }
}

/// The secret that flows are hashed with. Draw it from the system's random source: a sender that knows it can
/// make flows collide.
#[derive(Clone, Copy)]
pub struct FlowKey(SipHasher13);

impl core::fmt::Debug for FlowKey {
    /// Does not show the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FlowKey")
    }
}

impl FlowKey {
    /// A key of 128 secret bits.
    pub fn new(secret: [u64; 2]) -> Self {
        Self(SipHasher13::new_with_keys(secret[0], secret[1]))
    }

    /// SipHash-1-3 of the two ends in an order that both directions share, and of `scope`.
    #[inline]
    pub(super) fn flow(&self, packet: &Conversation, scope: u64) -> Flow {
        let mut hash = self.0;
        let (source, destination) = (packet.ports >> 16, packet.ports & 0xffff);
        let backward = match packet.addresses {
            Addresses::V4(from, to) => {
                let backward = (from, source) > (to, destination);
                let (low, high) = if backward { (to, from) } else { (from, to) };
                hash.write_u64(u64::from(low) << 32 | u64::from(high));
                backward
            }
            Addresses::V6(from, to) => {
                let backward = (from, source) > (to, destination);
                let (low, high) = if backward { (to, from) } else { (from, to) };
                hash.write_u64((low >> 64) as u64);
                hash.write_u64(low as u64);
                hash.write_u64((high >> 64) as u64);
                hash.write_u64(high as u64);
                backward
            }
        };
        let ports = if backward {
            packet.ports.rotate_left(16)
        } else {
            packet.ports
        };
        hash.write_u64(scope);
        hash.write_u64(u64::from(ports) << 8 | u64::from(packet.protocol));
        Flow(hash.finish() & !1 | u64::from(backward))
    }
}
