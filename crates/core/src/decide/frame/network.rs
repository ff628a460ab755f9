//! Hosts and DSCP of a packet.

use super::ip::{Addresses, Ip, Version};
use super::{be16, be32};
use crate::Network;
use crate::decide::random::mix;
use core::net::{IpAddr, Ipv4Addr};

/// DSCP of network control, which CAKE assigns to ARP.
const CS7: u8 = 56;

/// Returns the hosts and the DSCP of a frame. `offset` is the start of the network header, from
/// [`parse`](super::parse). In a tunnel, hosts come from the inner packet, the DSCP from the outer one. Without IP, all
/// values are 0, except ARP's DSCP.
///
/// Hosts are hashed without a secret. A sender can choose addresses that collide; such hosts count as one.
#[inline]
pub fn hosts_and_dscp(frame: &[u8], offset: u16) -> Network {
    // The common case needs only the addresses.
    match frame.get(offset.into()..).and_then(plain_v4) {
        Some(network) => network,
        None => of_any(frame, offset),
    }
}

/// Faster [`hosts_and_dscp`] for a [plain](super::Offsets::is_plain) frame.
#[inline]
pub fn hosts_and_dscp_of_plain(frame: &[u8]) -> Option<Network> {
    of_v4(frame.get(14..)?.first_chunk()?)
}

// Not inlined, to keep the common case short.
#[inline(never)]
fn of_any(frame: &[u8], offset: u16) -> Network {
    const ARP: [u8; 2] = [0x08, 0x06];
    let (link, packet) = frame.split_at(usize::from(offset).min(frame.len()));
    if version(packet).is_none() {
        let is_arp = link.ends_with(&ARP) || frame.get(12..14) == Some(&ARP);
        return Network {
            dscp: if is_arp { CS7 } else { 0 },
            ..Network::default()
        };
    }
    let Some((outer, inner)) = packets(packet) else {
        return Network::default();
    };
    Network {
        hosts: hosts(inner.as_ref().unwrap_or(&outer).addresses),
        dscp: outer.traffic_class >> 2,
    }
}

/// Returns the hosts of a packet between two IPv4 addresses (source first), with the hash of [`hosts_and_dscp`]. Used
/// with NAT, where connection tracking supplies the home addresses.
pub fn hosts_of_v4(ends: [Ipv4Addr; 2]) -> [u64; 2] {
    hosts(Addresses::V4(ends[0].into(), ends[1].into()))
}

/// Returns the hosts and the DSCP of an IPv4 packet that has no options and is not a tunnel packet.
#[inline(always)]
fn plain_v4(packet: &[u8]) -> Option<Network> {
    const NO_OPTIONS: u8 = 0x45;
    const TUNNELS: [u8; 2] = [4, 41];
    let header = packet.first_chunk::<20>()?;
    let is_plain = header[0] == NO_OPTIONS && !TUNNELS.contains(&header[9]);
    if !is_plain || be16(header, 2)? < 20 {
        return None;
    }
    of_v4(header)
}

/// Reads an IPv4 header without options.
#[inline(always)]
fn of_v4(header: &[u8; 20]) -> Option<Network> {
    Some(Network {
        hosts: [be32(header, 12)?, be32(header, 16)?].map(host_of_v4),
        dscp: header[1] >> 2,
    })
}

/// Both ends of a conversation, for displays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Source and destination.
    pub hosts: [IpAddr; 2],
    /// Source and destination port; 0 for fragments and for protocols without ports.
    pub ports: [u16; 2],
    /// Protocol above IP (IANA number).
    pub protocol: u8,
}

/// Returns the ends of a frame. `offset` is the start of the network header, from [`parse`](super::parse). In a
/// tunnel, the ends come from the inner packet. `None` without an IP packet.
pub fn ends(frame: &[u8], offset: u16) -> Option<Ends> {
    const TCP: u8 = 6;
    let (outer, inner) = packets(frame.get(offset.into()..)?)?;
    let ip = inner.unwrap_or(outer);
    let hosts = match ip.addresses {
        Addresses::V4(from, to) => [from, to].map(|ip| IpAddr::from(ip.to_be_bytes())),
        Addresses::V6(from, to) => [from, to].map(|ip| IpAddr::from(ip.to_be_bytes())),
    };
    let ports = match (ip.protocol, ip.payload.first_chunk()) {
        _ if ip.fragment => 0,
        (TCP, Some(ports)) => u32::from_be_bytes(*ports),
        (protocol, _) => super::ports_of(protocol, ip.payload),
    };
    Some(Ends {
        hosts,
        ports: [(ports >> 16) as u16, ports as u16],
        protocol: ip.protocol,
    })
}

fn version(packet: &[u8]) -> Option<Version> {
    match packet.first()? >> 4 {
        4 => Some(Version::V4),
        6 => Some(Version::V6),
        _ => None,
    }
}

/// Returns an IP packet and, for a tunnel packet, the inner packet.
#[inline]
fn packets(packet: &[u8]) -> Option<(Ip<'_>, Option<Ip<'_>>)> {
    // The payload may be missing, because only headers are read.
    const REST: usize = u16::MAX as usize;
    let outer = Ip::read(version(packet)?, packet, REST)?;
    let inner = outer.tunnels();
    let inner = inner.and_then(|version| Ip::read(version, outer.payload, REST));
    Some((outer, inner))
}

/// Hashes an address by Fibonacci hashing, and folds the upper half into the lower half. This spreads neighbouring
/// addresses. The result is never 0.
#[inline]
const fn host_of_v4(address: u32) -> u64 {
    let product = (address as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

fn hosts(addresses: Addresses) -> [u64; 2] {
    match addresses {
        Addresses::V4(from, to) => [from, to].map(host_of_v4),
        Addresses::V6(from, to) => {
            [from, to].map(|address| mix(mix((address >> 64) as u64) ^ address as u64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 header between two hosts, behind an Ethernet header.
    fn v4(source: u8, destination: u8, dscp: u8, protocol: u8, payload: &[u8]) -> [u8; 94] {
        let mut frame = [0; 94];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[15] = dscp << 2 | 1;
        frame[17] = 20 + payload.len() as u8;
        frame[23] = protocol;
        frame[29] = source;
        frame[33] = destination;
        frame[34..34 + payload.len()].copy_from_slice(payload);
        frame
    }

    #[test]
    fn the_two_directions_have_the_same_hosts_the_other_way_round() {
        let there = hosts_and_dscp(&v4(1, 2, 46, 17, &[]), 14);
        let back = hosts_and_dscp(&v4(2, 1, 0, 17, &[]), 14);
        assert_eq!(there.hosts, [back.hosts[1], back.hosts[0]]);
        assert_ne!(there.hosts[0], there.hosts[1]);
        assert_eq!((there.dscp, back.dscp), (46, 0));
        let known = [1, 2].map(|last| Ipv4Addr::new(0, 0, 0, last));
        assert_eq!(hosts_of_v4(known), there.hosts);
    }

    #[test]
    fn in_a_tunnel_the_hosts_are_the_inner_ones() {
        let mut inner = [0; 40];
        inner[0] = 0x60;
        inner[6] = 59;
        (inner[23], inner[39]) = (7, 9);
        let one = hosts_and_dscp(&v4(1, 2, 8, 41, &inner), 14);
        assert_eq!(one, hosts_and_dscp(&v4(3, 2, 8, 41, &inner), 14));
        assert_eq!(one.dscp, 8);
        inner[39] = 10;
        let other = hosts_and_dscp(&v4(1, 2, 8, 41, &inner), 14);
        assert_eq!(other.hosts[0], one.hosts[0]);
        assert_ne!(other.hosts[1], one.hosts[1]);
    }

    #[test]
    fn ends_are_addresses_and_ports_of_the_inner_packet_and_nothing_that_is_cut_is_read() {
        let tcp = [0x12, 0x34, 0, 80, 0, 0, 0, 0];
        let ends_of = |frame: &[u8]| ends(frame, 14);
        let found = ends_of(&v4(1, 2, 0, 6, &tcp)).unwrap();
        assert_eq!(found.hosts, [[0, 0, 0, 1], [0, 0, 0, 2]].map(IpAddr::from));
        assert_eq!((found.ports, found.protocol), ([0x1234, 80], 6));
        // In ICMP these bytes are not ports.
        let icmp = ends_of(&v4(1, 2, 0, 1, &tcp)).unwrap();
        assert_eq!((icmp.ports, icmp.protocol), ([0, 0], 1));
        let mut fragment = v4(1, 2, 0, 17, &tcp);
        fragment[20] = 0x20;
        assert_eq!(ends_of(&fragment).unwrap().ports, [0, 0]);
        let mut inner = [0; 44];
        (inner[0], inner[5], inner[6]) = (0x60, 4, 17);
        (inner[23], inner[39], inner[43]) = (7, 9, 53);
        let found = ends_of(&v4(1, 2, 8, 41, &inner)).unwrap();
        assert_eq!(
            found.hosts,
            ["::7", "::9"].map(|of| of.parse::<IpAddr>().unwrap())
        );
        assert_eq!((found.ports, found.protocol), ([0, 53], 17));
        for len in 0..34 {
            assert_eq!(ends_of(&v4(1, 2, 46, 17, &[])[..len]), None, "{len}");
        }
    }

    #[test]
    fn the_fast_parser_finds_the_same_as_the_general_one() {
        let mut random = crate::decide::random::SplitMix64::new(3);
        let mut short = 0;
        for _ in 0..20_000 {
            let mut frame = v4(random.next() as u8, 2, 46, 17, &[1, 2, 3, 4]);
            for _ in 0..random.next() % 3 {
                frame[14 + random.next() as usize % 20] = random.next() as u8;
            }
            let packet = &frame[14..14 + random.next() as usize % 60];
            let Some(plain) = plain_v4(packet) else {
                continue;
            };
            let (outer, inner) = packets(packet).expect("an IP packet");
            assert!(inner.is_none());
            assert_eq!(plain.hosts, hosts(outer.addresses));
            assert_eq!(plain.dscp, outer.traffic_class >> 2);
            short += 1;
        }
        assert!(short > 5000, "{short}");
    }

    #[test]
    fn arp_is_network_control_and_a_truncated_frame_has_no_class() {
        let mut arp = [0; 60];
        arp[12..14].copy_from_slice(&[8, 6]);
        assert_eq!(hosts_and_dscp(&arp, 14).dscp, CS7);
        for len in 0..34 {
            let cut = &v4(1, 2, 46, 17, &[])[..len];
            assert_eq!(hosts_and_dscp(cut, 14).hosts, [0; 2], "{len}");
        }
    }
}
