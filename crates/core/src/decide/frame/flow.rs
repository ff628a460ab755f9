//! Conversations as keyed hashes.

use super::ip::{Addresses, Ip};
use crate::packet::Flow;
use siphasher::sip::SipHasher13;

/// Addresses, protocol and ports of a packet.
pub(super) struct Conversation {
    addresses: Addresses,
    protocol: u8,
    ports: u32,
}

impl Conversation {
    #[inline]
    pub(super) const fn v4(from: u32, to: u32, protocol: u8, ports: u32) -> Self {
        Self {
            addresses: Addresses::V4(from, to),
            protocol,
            ports,
        }
    }

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
pub struct FlowKey(Option<SipHasher13>);

impl core::fmt::Debug for FlowKey {
    /// Does not show the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FlowKey")
    }
}

impl FlowKey {
    /// A key of 128 secret bits.
    pub fn new(secret: [u64; 2]) -> Self {
        Self(Some(SipHasher13::new_with_keys(secret[0], secret[1])))
    }

    /// No key: all packets are of flow 0. For a discipline that
    /// [reads no flow](crate::qdisc::Qdisc::reads_flows), which saves the hash.
    pub const fn none() -> Self {
        Self(None)
    }

    /// A number that follows from the secret alone; 0 without one.
    pub fn number(&self) -> u16 {
        self.0
            .map_or(0, |hasher| core::hash::Hasher::finish(&hasher) as u16)
    }

    /// SipHash-1-3 of the two ends in an order that both directions share, and of `scope`.
    #[inline]
    pub(super) fn flow(&self, packet: &Conversation, scope: u64) -> Flow {
        let Some(hasher) = &self.0 else {
            return Flow(0);
        };
        let (source, destination) = (packet.ports >> 16, packet.ports & 0xffff);
        let rest = |backward: bool| {
            let ports = match backward {
                true => packet.ports.rotate_left(16),
                false => packet.ports,
            };
            [scope, u64::from(ports) << 8 | u64::from(packet.protocol)]
        };
        let (hash, backward) = match packet.addresses {
            Addresses::V4(from, to) => {
                let backward = (from, source) > (to, destination);
                let (low, high) = if backward { (to, from) } else { (from, to) };
                let [scope, end] = rest(backward);
                let words = [u64::from(low) << 32 | u64::from(high), scope, end];
                (hash(hasher, words), backward)
            }
            Addresses::V6(from, to) => {
                let backward = (from, source) > (to, destination);
                let (low, high) = if backward { (to, from) } else { (from, to) };
                let [scope, end] = rest(backward);
                let half = |address: u128| [(address >> 64) as u64, address as u64];
                let ([a, b], [c, d]) = (half(low), half(high));
                (hash(hasher, [a, b, c, d, scope, end]), backward)
            }
        };
        Flow(hash & !1 | u64::from(backward))
    }
}

/// The hash of whole words, all at once: fed in pieces, a hasher takes more instructions.
#[inline]
fn hash<const N: usize>(hasher: &SipHasher13, words: [u64; N]) -> u64 {
    hasher.hash(words.map(u64::to_le_bytes).as_flattened())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_without_a_key_is_of_flow_0() {
        let conversation = Conversation {
            addresses: Addresses::V4(1, 2),
            protocol: 6,
            ports: 3,
        };
        assert_eq!(FlowKey::none().flow(&conversation, 0), Flow(0));
        assert_ne!(FlowKey::new([1, 2]).flow(&conversation, 0), Flow(0));
    }
}
