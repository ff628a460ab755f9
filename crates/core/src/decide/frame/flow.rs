//! Keyed hashes of addresses, protocol and ports, which identify flows.

use super::ip::{Addresses, Ip};
use crate::Flow;

pub(super) struct Conversation {
    addresses: Addresses,
    protocol: u8,
    ports: u32,
}

impl Conversation {
    /// Creates a conversation; `ports` has the source port in the upper and the destination port in the lower 16 bits.
    #[inline]
    pub(super) fn new(ip: &Ip<'_>, ports: u32) -> Self {
        Self {
            addresses: ip.addresses,
            protocol: ip.protocol,
            ports,
        }
    }
}

/// Secret key of the flow hash. The key must come from the system's random source: a sender that has the key can make
/// flows collide.
#[derive(Clone, Copy)]
pub struct FlowKey(Option<SipKey>);

impl core::fmt::Debug for FlowKey {
    /// Prints no secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FlowKey")
    }
}

impl FlowKey {
    /// Creates a key from 128 secret bits.
    pub fn new(secret: [u64; 2]) -> Self {
        Self(Some(SipKey::new(secret)))
    }

    /// No key: all packets belong to flow 0. For a discipline that [reads no flow](crate::qdisc::Qdisc::reads_flows);
    /// this saves the hash.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Returns a number derived from the secret; 0 without a key.
    pub fn number(&self) -> u16 {
        self.0.map_or(0, |key| key.hash([0]) as u16)
    }

    /// Returns SipHash-1-3 of both ends of `packet` and of `scope`. The other direction differs only in the lowest bit.
    pub(super) fn flow(&self, packet: &Conversation, scope: u64) -> Flow {
        let Some(key) = &self.0 else {
            return Flow(0);
        };
        let (from, to) = match packet.addresses {
            Addresses::V4(from, to) => {
                return self.flow_v4([from, to], packet.protocol, packet.ports, scope);
            }
            Addresses::V6(from, to) => (from, to),
        };
        let (source, destination) = (packet.ports >> 16, packet.ports & 0xffff);
        let backward = (from, source) > (to, destination);
        let (low, high, ports) = match backward {
            true => (to, from, packet.ports.rotate_left(16)),
            false => (from, to, packet.ports),
        };
        let rest = u64::from(ports) << 8 | u64::from(packet.protocol);
        let half = |address: u128| [(address >> 64) as u64, address as u64];
        let ([a, b], [c, d]) = (half(low), half(high));
        let hash = match scope {
            0 => key.hash([a, b, c, d, rest]),
            _ => key.hash([a, b, c, d, scope, rest]),
        };
        Flow(hash & !1 | u64::from(backward))
    }

    /// Like [`flow`](Self::flow), for a packet between two IPv4 addresses; the source comes first.
    #[inline(always)]
    pub(super) fn flow_v4(&self, ends: [u32; 2], protocol: u8, ports: u32, scope: u64) -> Flow {
        let Some(key) = &self.0 else {
            return Flow(0);
        };
        // Any byte order works; the order in memory needs no swap.
        let end = |address: u32, port: u32| u64::from(address.swap_bytes()) << 16 | u64::from(port);
        let (from, to) = (end(ends[0], ports >> 16), end(ends[1], ports & 0xffff));
        let low = from.min(to) | u64::from(protocol) << 48;
        let high = from.max(to);
        let hash = match scope {
            0 => key.hash([low, high]),
            _ => key.hash([low, scope, high]),
        };
        Flow(hash & !1 | u64::from(from > to))
    }
}

/// SipHash-1-3 (Aumasson and Bernstein, 2012): the initial state for a key.
#[derive(Clone, Copy)]
struct SipKey([u64; 4]);

impl SipKey {
    const fn new([k0, k1]: [u64; 2]) -> Self {
        Self([
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ])
    }

    /// Returns the hash of words in little-endian byte order. The caller leaves the upper eight bits of the last word
    /// zero; the function puts the input's length there, which saves one word.
    #[inline]
    fn hash<const N: usize>(&self, mut words: [u64; N]) -> u64 {
        if let Some(last) = words.last_mut() {
            *last |= (8 * N as u64 - 1) << 56;
        }
        let mut state = self.0;
        for word in words {
            state[3] ^= word;
            round(&mut state);
            state[0] ^= word;
        }
        state[2] ^= 0xff;
        for _ in 0..3 {
            round(&mut state);
        }
        state[0] ^ state[1] ^ state[2] ^ state[3]
    }
}

#[inline]
const fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *c = c.wrapping_add(*d);
    *b = b.rotate_left(13) ^ *a;
    *d = d.rotate_left(16) ^ *c;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*b);
    *a = a.wrapping_add(*d);
    *b = b.rotate_left(17) ^ *c;
    *d = d.rotate_left(21) ^ *a;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use siphasher::sip::SipHasher13;

    #[test]
    fn a_packet_without_a_key_is_of_flow_0() {
        for addresses in [Addresses::V4(1, 2), Addresses::V6(1, 2)] {
            let conversation = Conversation {
                addresses,
                protocol: 6,
                ports: 3,
            };
            assert_eq!(FlowKey::none().flow(&conversation, 0), Flow(0));
            assert_ne!(FlowKey::new([1, 2]).flow(&conversation, 0), Flow(0));
        }
    }

    #[test]
    fn the_hash_is_siphash_1_3() {
        const KEY: [u64; 2] = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        fn is_the_same<const N: usize>(words: [u64; N]) {
            let library = SipHasher13::new_with_keys(KEY[0], KEY[1]);
            let bytes = words.map(u64::to_le_bytes);
            let bytes = &bytes.as_flattened()[..8 * N - 1];
            assert_eq!(SipKey::new(KEY).hash(words), library.hash(bytes));
        }
        is_the_same([0]);
        is_the_same([0x0123_4567_89ab_cdef, 0x00fe_dcba_9876_5432]);
        is_the_same([u64::MAX, 1, u64::MAX, 2, u64::MAX, u64::MAX >> 8]);
    }

    #[test]
    fn another_address_port_protocol_or_scope_is_another_flow() {
        let key = FlowKey::new([1, 2]);
        let flow =
            |from, to, protocol, ports, scope| key.flow_v4([from, to], protocol, ports, scope);
        let one = flow(1, 2, 6, 3 << 16 | 4, 0);
        assert_eq!(flow(2, 1, 6, 4 << 16 | 3, 0), one.reverse());
        for other in [
            flow(5, 2, 6, 3 << 16 | 4, 0),
            flow(1, 5, 6, 3 << 16 | 4, 0),
            flow(1, 2, 17, 3 << 16 | 4, 0),
            flow(1, 2, 6, 5 << 16 | 4, 0),
            flow(1, 2, 6, 3 << 16 | 5, 0),
            flow(1, 2, 6, 4 << 16 | 3, 0),
            flow(1, 2, 6, 3 << 16 | 4, 1),
        ] {
            assert_ne!(other.0 & !1, one.0 & !1);
        }
        // Both ends are on one host.
        assert_eq!(
            flow(1, 1, 6, 3 << 16 | 4, 0),
            flow(1, 1, 6, 4 << 16 | 3, 0).reverse()
        );
    }
}
