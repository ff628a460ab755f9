//! Sequence numbers of packets in tunnels, and replay windows at the far ends.

use super::DataLosses;
use crate::packets::{Options, SimPacket};
use asymq_core::Direction;
use asymq_scenario::Tunnel;

/// Tunnels of a run, one of each kind. A tunnel numbers its packets before the link. At the far end, packets older than
/// the replay window are dropped (RFC 6479).
#[derive(Debug, Default)]
pub(crate) struct Tunnels {
    /// Last number sent, and highest number received, each by direction and kind.
    sent: [[u32; Tunnel::ALL.len()]; 2],
    highest: [[u32; Tunnel::ALL.len()]; 2],
    late: [u64; 2],
    pub(crate) losses: DataLosses,
}

impl Tunnels {
    /// Numbers a packet that enters a tunnel.
    pub(crate) fn enters<O: Options>(
        &mut self,
        direction: Direction,
        tunnel: Tunnel,
        packet: &mut SimPacket<O>,
    ) {
        let sent = &mut self.sent[direction as usize][tunnel as usize];
        *sent += 1;
        packet.set_tunnel_number(*sent);
    }

    /// Receives a packet at the far end. Returns false if the tunnel drops it.
    pub(crate) fn leaves<O: Options>(
        &mut self,
        direction: Direction,
        tunnel: Tunnel,
        packet: &SimPacket<O>,
    ) -> bool {
        let number = packet.tunnel_number();
        let highest = &mut self.highest[direction as usize][tunnel as usize];
        *highest = number.max(*highest);
        let accepts = *highest - number < tunnel.window();
        if !accepts {
            self.late[direction as usize] += 1;
            self.losses.add(packet);
        }
        accepts
    }

    /// Number of packets in a direction that were dropped as older than the replay window.
    pub(crate) fn late(&self, direction: usize) -> u64 {
        self.late[direction]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{Kind, Layout, Segment, TcpOptions};
    use asymq_core::Instant;
    use asymq_scenario::Encapsulation;

    #[test]
    fn a_packet_that_comes_a_window_after_later_ones_is_dropped() {
        for tunnel in Tunnel::ALL {
            let window = tunnel.window();
            let layout = Layout::new(7, 1380, 40, 0).encapsulated(Encapsulation::Tunnel(tunnel));
            let mut tunnels = Tunnels::default();
            let mut packets: Vec<SimPacket<TcpOptions>> = (0..=window)
                .map(|number| {
                    let segment = Segment::new(Kind::Data, number.into());
                    let mut packet = layout.packet(segment, Direction::Up, Instant::ZERO);
                    assert_eq!(packet.tunnel(), Some(tunnel));
                    tunnels.enters(Direction::Up, tunnel, &mut packet);
                    packet
                })
                .collect();
            let (first, second) = (packets.remove(0), packets.remove(0));
            let mut takes =
                |packet: &SimPacket<TcpOptions>| tunnels.leaves(Direction::Up, tunnel, packet);
            assert!(packets.iter().all(&mut takes));
            assert!(takes(&second) && !takes(&first));
            assert_eq!((tunnels.late(0), tunnels.losses.of(7)), (1, 1));
        }
    }
}
